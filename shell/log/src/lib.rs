//! The log of a program: the format of a line, the thread that writes it, and queues of state transitions.
//!
//! Owns everything between a `tracing` event and the file. No caller waits for a disk or a terminal: when a queue is full,
//! lines are dropped, and the log reports how many.
//! Never here: which event is worth a line.
#![forbid(unsafe_code)]

mod audit;
mod capture;
mod format;
mod repeats;
mod time;
mod transitions;
mod writer;

use std::fs::File;
use std::io::{self, IsTerminal};
use std::sync::{Arc, OnceLock};

use tracing::{Event, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};
use tracing_subscriber::{Registry, reload};

pub use audit::AuditLog;
pub use capture::capture;
pub use format::{FIELD_BYTES_MAX, LogFormat};
pub use time::timestamp;
pub use transitions::TransitionLog;
pub use writer::BUFFER_BYTES_MAX;

use format::Style;
use writer::Writer;

/// The variable that replaces the level: `debug`, or `info,tepui_http=debug`.
const FILTER_VARIABLE: &str = "TEPUI_LOG";

/// The writer of this process, once the log has started.
static WRITER: OnceLock<Arc<Writer>> = OnceLock::new();

/// How a program logs.
#[derive(Debug)]
pub struct Settings {
    pub format: LogFormat,
    /// The least severe level that is written.
    pub level: tracing::Level,
    /// A file that lines are appended to.
    pub file: Option<File>,
    /// Whether lines go to standard error.
    pub stderr: bool,
}

/// Why the log could not be started.
#[derive(Debug)]
pub enum LogFault {
    Thread(io::Error),
    /// Another log was started in this process.
    Started(TryInitError),
}

impl std::fmt::Display for LogFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LogFault::Thread(_) => write!(f, "cannot start the log's thread"),
            LogFault::Started(_) => write!(f, "the log has already been started"),
        }
    }
}

impl std::error::Error for LogFault {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            LogFault::Thread(err) => Some(err),
            LogFault::Started(err) => Some(err),
        }
    }
}

/// Starts the log of this process. The returned function changes the level: 0 is the one of the settings, 1 is debug,
/// more is trace.
pub fn start(settings: Settings) -> Result<impl Fn(u32) + Send + Sync + 'static, LogFault> {
    let colours = settings.file.is_none() && settings.format == LogFormat::Text && io::stderr().is_terminal();
    let style = Style { format: settings.format, colours };
    let writer = Writer::start(style, settings.file, settings.stderr).map_err(LogFault::Thread)?;
    let usual = move || {
        let chosen = std::env::var(FILTER_VARIABLE).ok().and_then(|text| text.parse().ok());
        chosen.unwrap_or_else(|| Targets::new().with_default(settings.level))
    };
    let (filter, control) = reload::Layer::<Targets, Registry>::new(usual());
    let lines = Lines { style, writer: writer.clone() };
    tracing_subscriber::registry().with(filter).with(lines).try_init().map_err(LogFault::Started)?;
    // Fails only for a second log, which the line above has refused.
    let _ = WRITER.set(writer);
    Ok(move |level| {
        let wanted = match level {
            0 => usual(),
            1 => Targets::new().with_default(tracing::Level::DEBUG),
            _ => Targets::new().with_default(tracing::Level::TRACE),
        };
        // Fails only after the subscriber is dropped, when there is no log.
        let _ = control.reload(wanted);
    })
}

/// Waits until everything logged so far is written, at most for a second.
pub fn flush() {
    if let Some(writer) = WRITER.get() {
        writer.flush();
    }
}

/// Flushes all lines and drops later ones.
pub fn close() {
    if let Some(writer) = WRITER.get() {
        writer.close();
    }
}

/// Formats events on the thread that logs them, and hands the lines over.
struct Lines {
    style: Style,
    writer: Arc<Writer>,
}

impl<S: Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        format::with_line(self.style, transitions::time_of_event(), event, |line| self.writer.push(line));
    }
}

#[cfg(test)]
mod tests;
