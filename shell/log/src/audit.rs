//! The audit log file: one JSON object per line, appended by a dedicated thread.
//!
//! Senders never block. An entry is lost if the queue is full or the write fails (full disk): the number is logged at
//! once and written as an entry after the next successful write. A renamed or removed file is reopened by name, so that
//! it can be rotated.

use std::fs::{File, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, SystemTime};

use crate::time::write_timestamp;

/// Entries that may wait for the thread; more are lost.
pub const QUEUE_ENTRIES_MAX: usize = 8 * 1024;
/// Bytes that are written at once.
const BATCH_BYTES_MAX: usize = 256 * 1024;
/// Limit for the last flush on exit.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);
/// Entries contain principals and their actions.
const MODE: u32 = 0o600;

/// The sender. Cheap to clone; the thread exits after the last one is dropped.
#[derive(Clone, Debug)]
pub struct AuditLog {
    queue: SyncSender<Message>,
    lost: Arc<AtomicU64>,
}

#[derive(Debug)]
enum Message {
    Entry(String),
    /// Answered when everything before it is written.
    Flush(SyncSender<()>),
}

impl AuditLog {
    /// Opens the file, with a mode of 0600, and starts the thread.
    pub fn start(path: &Path) -> io::Result<Self> {
        Self::with_limit(path, QUEUE_ENTRIES_MAX)
    }

    fn with_limit(path: &Path, limit: usize) -> io::Result<Self> {
        let file = AuditFile::open(path)?;
        let (queue, messages) = sync_channel(limit);
        let lost = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&lost);
        // After a panic of this thread `push` counts all entries as lost.
        thread::Builder::new().name("audit".to_owned()).spawn(move || run(&messages, &counted, file))?;
        Ok(Self { queue, lost })
    }

    /// Takes over an entry: a JSON object that has at least one field and no `time`. Never waits.
    pub fn push(&self, object: &str) {
        if self.queue.try_send(Message::Entry(timed(SystemTime::now(), object))).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until everything so far is written, at most for a second.
    pub fn flush(&self) {
        let (written, done) = sync_channel(1);
        if self.queue.try_send(Message::Flush(written)).is_ok() {
            // A timeout means a blocked disk, an error an exited thread; both are ignored on exit.
            let _ = done.recv_timeout(FLUSH_TIMEOUT);
        }
    }
}

/// `{"time":"…",` and the fields of the object, as a line.
fn timed(at: SystemTime, object: &str) -> String {
    let mut line = String::with_capacity(object.len() + 40);
    line.push_str("{\"time\":\"");
    write_timestamp(at, &mut line);
    line.push_str("\",");
    line.push_str(object.strip_prefix('{').unwrap_or(object));
    line.push('\n');
    line
}

fn run(messages: &Receiver<Message>, lost: &AtomicU64, mut file: AuditFile) {
    while let Ok(first) = messages.recv() {
        let (mut batch, mut waiting) = (String::new(), Vec::new());
        let mut next = Some(first);
        while let Some(message) = next {
            match message {
                Message::Entry(line) => batch.push_str(&line),
                Message::Flush(written) => waiting.push(written),
            }
            next = (batch.len() < BATCH_BYTES_MAX).then(|| messages.try_recv().ok()).flatten();
        }
        write(&mut file, lost, batch);
        // One that waits no longer needs no answer.
        waiting.into_iter().for_each(|written: SyncSender<()>| written.try_send(()).unwrap_or_default());
    }
}

/// Writes a batch, preceded by the number of entries lost since the last successful write.
fn write(file: &mut AuditFile, lost: &AtomicU64, batch: String) {
    let missing = lost.swap(0, Ordering::Relaxed);
    let lines = if missing == 0 { batch } else { report(missing) + &batch };
    if missing > 0 {
        tracing::warn!(
            lost = missing,
            "audit entries were lost: the queue was full or the file is not writable"
        );
    }
    if lines.is_empty() {
        return;
    }
    if let Err((err, unwritten)) = file.append(lines.as_bytes()) {
        // A report that was not written does not count as an entry and is repeated.
        let is_reported = missing == 0 || unwritten < lines.matches('\n').count() as u64;
        let still_lost = if is_reported { unwritten } else { unwritten - 1 + missing };
        lost.fetch_add(still_lost, Ordering::Relaxed);
        tracing::warn!(%err, path = %file.path.display(), entries = unwritten, "cannot write audit entries");
    }
}

fn report(lost: u64) -> String {
    let object = format!("{{\"action\":\"ENTRIES_LOST\",\"outcome\":\"failed\",\"count\":{lost}}}");
    timed(SystemTime::now(), &object)
}

/// The file under its name.
struct AuditFile {
    path: PathBuf,
    file: File,
    /// The last line is incomplete.
    torn: bool,
}

impl AuditFile {
    fn open(path: &Path) -> io::Result<Self> {
        let file = open(path)?;
        Ok(Self { path: path.to_path_buf(), file, torn: false })
    }

    /// Appends lines; if that fails, with how many of them are not in the file.
    fn append(&mut self, lines: &[u8]) -> Result<(), (io::Error, u64)> {
        self.follow_name();
        let mut rest = lines;
        let failed = loop {
            if rest.is_empty() {
                return Ok(());
            }
            // A line that a full disk cut off must not swallow the next one.
            if self.torn {
                match self.file.write(b"\n") {
                    Ok(1..) => self.torn = false,
                    Ok(0) => break io::ErrorKind::WriteZero.into(),
                    Err(err) if err.kind() == io::ErrorKind::Interrupted => continue,
                    Err(err) => break err,
                }
            }
            match self.file.write(rest) {
                Ok(0) => break io::ErrorKind::WriteZero.into(),
                Ok(written) => rest = &rest[written..],
                Err(err) if err.kind() == io::ErrorKind::Interrupted => (),
                Err(err) => break err,
            }
        };
        let before = lines.len() - rest.len();
        self.torn = self.torn || before > 0 && lines[before - 1] != b'\n';
        Err((failed, rest.iter().filter(|byte| **byte == b'\n').count() as u64))
    }

    /// After a rotation the name stands for another file, or for none.
    fn follow_name(&mut self) {
        let same = |named: &Metadata, own: &Metadata| (named.dev(), named.ino()) == (own.dev(), own.ino());
        let (named, own) = (std::fs::metadata(&self.path), self.file.metadata());
        if matches!((&named, &own), (Ok(named), Ok(own)) if same(named, own)) {
            return;
        }
        match open(&self.path) {
            Ok(file) => (self.file, self.torn) = (file, false),
            Err(err) => {
                tracing::warn!(%err, path = %self.path.display(), "cannot open the audit log again after its rotation");
            }
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    // Opening a pipe would wait for its reader.
    if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let file = File::options().create(true).append(true).mode(MODE).open(path)?;
    if file.metadata()?.permissions().mode() & 0o7777 & !MODE != 0 {
        file.set_permissions(PermissionsExt::from_mode(MODE))?;
    }
    Ok(file)
}

#[cfg(test)]
mod tests;
