//! The thread that writes lines. Logging threads append to a buffer; lines of a few milliseconds are written together.

use std::fs::File;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use tracing::Level;

use crate::format::{JSON_START, LogFormat, Style};
use crate::repeats::{Repeats, Suppressed, WINDOW};
use crate::time::write_timestamp;

/// Bytes that may wait to be written; with more, lines are dropped and counted.
pub const BUFFER_BYTES_MAX: usize = 8 << 20;

/// How long lines are gathered for one write.
const GATHER: Duration = Duration::from_millis(10);
/// Limit for the last flush on exit.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

const POISONED: &str = "no code panics while it holds this lock";

pub(crate) struct Writer {
    style: Style,
    pending: Mutex<Pending>,
    /// There is something to write.
    filled: Condvar,
    /// Everything is written.
    emptied: Condvar,
}

#[derive(Default)]
struct Pending {
    bytes: Vec<u8>,
    bytes_max: usize,
    dropped: u64,
    repeats: Repeats,
    /// The thread is writing a batch.
    writing: bool,
    /// A caller waits until everything is written.
    flushing: bool,
    /// Nothing more is taken.
    closed: bool,
}

impl Pending {
    fn append(&mut self, line: &[u8]) {
        match self.bytes.len() + line.len() <= self.bytes_max {
            true => self.bytes.extend_from_slice(line),
            false => self.dropped += 1,
        }
    }

    fn append_suppressed(&mut self, style: Style, suppressed: Suppressed) {
        let line = repeated(style.format, &suppressed);
        self.append(line.as_bytes());
    }
}

impl Writer {
    pub fn start(style: Style, file: Option<File>, stderr: bool) -> io::Result<Arc<Self>> {
        Self::with_limit(style, file, stderr, BUFFER_BYTES_MAX)
    }

    fn with_limit(style: Style, file: Option<File>, stderr: bool, bytes_max: usize) -> io::Result<Arc<Self>> {
        let writer = Arc::new(Self {
            style,
            pending: Mutex::new(Pending { bytes_max, ..Pending::default() }),
            filled: Condvar::new(),
            emptied: Condvar::new(),
        });
        let own = Arc::clone(&writer);
        let mut outputs: Vec<Box<dyn Write + Send>> = Vec::new();
        outputs.extend(file.map(|file| Box::new(file) as Box<dyn Write + Send>));
        outputs.extend(stderr.then(|| Box::new(io::stderr()) as Box<dyn Write + Send>));
        // Runs until the process exits and cannot panic.
        thread::Builder::new().name("log".to_owned()).spawn(move || own.run(outputs))?;
        Ok(writer)
    }

    /// Takes a line over. Waits for no output.
    pub fn push(&self, line: &str) {
        let mut pending = self.lock();
        if pending.closed {
            return;
        }
        let (admitted, suppressed) =
            pending.repeats.admit(Instant::now(), &line.as_bytes()[self.style.format.time_bytes()..]);
        if let Some(suppressed) = suppressed {
            pending.append_suppressed(self.style, suppressed);
        }
        let was_empty = pending.bytes.is_empty();
        if admitted {
            pending.append(line.as_bytes());
        }
        if was_empty {
            self.filled.notify_one();
        }
    }

    /// Waits until everything is written, for a limited time.
    pub fn flush(&self) {
        let mut pending = self.lock();
        for suppressed in pending.repeats.expired(Instant::now(), true) {
            pending.append_suppressed(self.style, suppressed);
        }
        pending.flushing = true;
        self.filled.notify_one();
        let unwritten = |pending: &mut Pending| pending.writing || !pending.bytes.is_empty();
        let waited = self.emptied.wait_timeout_while(pending, FLUSH_TIMEOUT, unwritten);
        waited.expect(POISONED).0.flushing = false;
    }

    /// Rejects further lines and waits until the earlier ones are written.
    pub fn close(&self) {
        self.lock().closed = true;
        self.flush();
    }

    fn run(&self, mut outputs: Vec<Box<dyn Write + Send>>) {
        let mut bytes = Vec::new();
        loop {
            let dropped = self.take(&mut bytes);
            if dropped > 0 {
                let text = "log lines were dropped: they came faster than they could be written";
                let line = self.style.own_line(SystemTime::now(), Level::WARN, text, ("dropped", dropped));
                bytes.extend_from_slice(line.as_bytes());
            }
            let lost = outputs.iter_mut().any(|output| output.write_all(&bytes).is_err());
            let mut pending = self.lock();
            pending.writing = false;
            if lost {
                // A full disk: reported once there is room. The other output may still have the lines.
                pending.dropped += bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
            }
            self.emptied.notify_all();
            bytes.clear();
        }
    }

    /// Waits for lines, then for more of them; how many had to be dropped.
    fn take(&self, bytes: &mut Vec<u8>) -> u64 {
        let mut pending = self.lock();
        while pending.bytes.is_empty() {
            pending = match pending.repeats.has_suppressed() {
                true => self.filled.wait_timeout(pending, WINDOW).expect(POISONED).0,
                false => self.filled.wait(pending).expect(POISONED),
            };
            for suppressed in pending.repeats.expired(Instant::now(), false) {
                pending.append_suppressed(self.style, suppressed);
            }
        }
        let gathering = |pending: &mut Pending| !pending.flushing;
        pending = self.filled.wait_timeout_while(pending, GATHER, gathering).expect(POISONED).0;
        std::mem::swap(&mut pending.bytes, bytes);
        pending.writing = true;
        std::mem::take(&mut pending.dropped)
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().expect(POISONED)
    }
}

/// A suppressed line with the current time and its number of repeats.
pub(crate) fn repeated(format: LogFormat, Suppressed { line, times }: &Suppressed) -> String {
    let mut text = String::with_capacity(line.len() + 64);
    if format == LogFormat::Json {
        text.push_str(JSON_START);
    }
    write_timestamp(SystemTime::now(), &mut text);
    let line = String::from_utf8_lossy(line);
    let line = line.trim_end_matches('\n');
    match (format, line.strip_suffix('}')) {
        (LogFormat::Json, Some(fields)) => text.push_str(&format!("{fields},\"repeated\":{times}}}\n")),
        (LogFormat::Text | LogFormat::Json, _) => text.push_str(&format!("{line} repeated={times}\n")),
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    /// A writer into a pipe, and the pipe's read end.
    fn piped(bytes_max: usize) -> (Arc<Writer>, io::PipeReader) {
        let (reader, writer) = io::pipe().unwrap();
        let file = File::from(std::os::fd::OwnedFd::from(writer));
        let style = Style { format: LogFormat::Text, colours: false };
        (Writer::with_limit(style, Some(file), false, bytes_max).unwrap(), reader)
    }

    fn line(text: &str) -> String {
        let mut line = String::new();
        write_timestamp(SystemTime::now(), &mut line);
        format!("{line}  INFO {text}\n")
    }

    #[test]
    fn lines_arrive_in_order_and_repeats_are_counted() {
        let (writer, mut reader) = piped(BUFFER_BYTES_MAX);
        for _ in 0..5 {
            writer.push(&line("same"));
        }
        writer.push(&line("other"));
        writer.flush();
        let mut bytes = [0; 1024];
        let count = reader.read(&mut bytes).unwrap();
        let text = String::from_utf8_lossy(&bytes[..count]).into_owned();
        let rest: Vec<&str> = text.lines().map(|line| &line[LogFormat::Text.time_bytes()..]).collect();
        let expected =
            ["  INFO same", "  INFO same", "  INFO same", "  INFO other", "  INFO same repeated=2"];
        assert_eq!(rest, expected);
    }

    #[test]
    fn blocked_output_drops_and_counts_lines() {
        const LIMIT: usize = 256 * 1024;
        let (writer, mut reader) = piped(LIMIT);
        let long = "x".repeat(64 * 1024);
        // The pipe holds one line at most, the thread one buffer, and nothing is read before all lines are queued.
        let pushed = 4 * LIMIT / long.len();
        for number in 0..pushed {
            writer.push(&line(&format!("{number} {long}")));
        }
        let (mut text, mut chunk) = (String::new(), [0; 64 * 1024]);
        let dropped = |text: &str| -> usize {
            let counts = text.lines().filter_map(|line| line.rsplit_once("dropped="));
            counts.map(|(_, count)| count.parse::<usize>().unwrap_or(0)).sum()
        };
        let written = |text: &str| text.lines().filter(|line| line.ends_with('x')).count();
        while !text.ends_with('\n') || written(&text) + dropped(&text) < pushed {
            let count = reader.read(&mut chunk).unwrap();
            text.push_str(std::str::from_utf8(&chunk[..count]).unwrap());
        }
        assert!(dropped(&text) > 0);
        assert_eq!(written(&text) + dropped(&text), pushed);
    }
}
