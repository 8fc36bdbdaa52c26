//! Captured log lines, for tests.

use std::sync::{Arc, Mutex};

use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

use crate::format::{self, Style};
use crate::{LogFormat, transitions};

/// The lines that this thread logs in `run`, each without its time.
pub fn capture(format: LogFormat, run: impl FnOnce()) -> String {
    let written: Arc<Mutex<String>> = Arc::default();
    let layer = Capture { format, written: Arc::clone(&written) };
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), run);
    std::mem::take(&mut *written.lock().expect("no code panics while it holds this lock"))
}

struct Capture {
    format: LogFormat,
    written: Arc<Mutex<String>>,
}

impl<S: Subscriber> Layer<S> for Capture {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        let style = Style { format: self.format, colours: false };
        format::with_line(style, transitions::time_of_event(), event, |line| {
            let mut written = self.written.lock().expect("no code panics while it holds this lock");
            written.push_str(&line[self.format.time_bytes()..]);
        });
    }
}
