//! One answer while it is rendered: chunks that grow, read by any number of readers at their own speed.
//!
//! Rendered once; each reader reads from the first chunk on, without waiting for the last.

use std::io::Write;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::StatusCode;
use tepui_proto::json::JsonWriter;
use tokio::sync::watch;

use crate::HttpError;

/// Smaller answers are sent as they are.
pub(crate) const COMPRESS_BYTES_MIN: usize = 1024;

/// What is handed to readers at a time.
const CHUNK_BYTES: usize = 64 * 1024;

/// Chunks written to a peer in one go: then other connections of the thread have their turn.
const CHUNKS_AT_ONCE: usize = 1;

/// The generation of a rendition whose rendering has not begun: it will be newer than any request.
const QUEUED: u64 = u64::MAX;
/// Of one whose version is not known yet, or that has none. That of version V is V + 1.
const UNKNOWN: u64 = 0;

/// An answer, whole or growing.
#[derive(Debug)]
pub struct Rendition {
    generation: AtomicU64,
    chunks: Mutex<Vec<Bytes>>,
    progress: watch::Sender<Progress>,
    compressed: OnceLock<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// So many chunks are there.
    Growing(usize),
    Whole,
    /// It could not be rendered, or is not in memory any more.
    Broken,
}

/// A rendition of which so much is there that its answer can begin.
pub(crate) enum Begun {
    Empty,
    Whole(Bytes),
    Growing(ReadAlong),
}

/// The making end. Dropping it before `finish` breaks the rendition.
#[derive(Debug)]
pub struct DocumentWriter {
    rendition: Arc<Rendition>,
    form: Form,
}

#[derive(Debug)]
enum Form {
    Plain,
    /// Compressed, unless it turns out to be small.
    Undecided(Vec<u8>),
    Gzip(GzEncoder<Vec<u8>>),
}

impl Rendition {
    /// An empty one and its writer. With `gzip` it is compressed if that pays.
    pub fn begin(gzip: bool) -> (Arc<Self>, DocumentWriter) {
        let (progress, _) = watch::channel(Progress::Growing(0));
        let (generation, chunks) = (AtomicU64::new(QUEUED), Mutex::new(Vec::new()));
        let rendition = Arc::new(Self { generation, chunks, progress, compressed: OnceLock::new() });
        let form = if gzip { Form::Undecided(Vec::new()) } else { Form::Plain };
        (rendition.clone(), DocumentWriter { rendition, form })
    }

    /// The version of the state that it shows, once its rendering has begun.
    pub fn version(&self) -> u64 {
        self.generation().saturating_sub(1)
    }

    pub(crate) fn is_versioned(&self) -> bool {
        ![QUEUED, UNKNOWN].contains(&self.generation())
    }

    /// Whether it shows this version or a later one.
    pub(crate) fn is_as_new_as(&self, version: u64) -> bool {
        self.generation() > version || self.generation() == QUEUED
    }

    fn generation(&self) -> u64 {
        self.generation.load(Ordering::SeqCst)
    }

    pub fn is_over(&self) -> bool {
        !matches!(*self.progress.borrow(), Progress::Growing(_))
    }

    pub fn is_broken(&self) -> bool {
        *self.progress.borrow() == Progress::Broken
    }

    /// Breaks a whole rendition and frees its memory; how much that was. Its readers get an error.
    pub(crate) fn cut_off(&self) -> usize {
        let mut chunks = self.lock();
        self.progress.send_replace(Progress::Broken);
        std::mem::take(&mut *chunks).iter().map(Bytes::len).sum()
    }

    /// Waits until it is whole or broken.
    pub async fn over(&self) {
        let mut progress = self.progress.subscribe();
        // The sender lives as long as we do.
        let _ = progress.wait_for(|progress| !matches!(progress, Progress::Growing(_))).await;
    }

    /// How much of it there is.
    pub fn bytes(&self) -> usize {
        self.lock().iter().map(Bytes::len).sum()
    }

    /// The whole of it, once it is there.
    pub async fn whole(&self) -> Result<Bytes, HttpError> {
        self.over().await;
        match *self.progress.borrow() {
            Progress::Whole => Ok(self.lock().concat().into()),
            Progress::Growing(_) | Progress::Broken => Err(broken()),
        }
    }

    /// Waits until it is known how it is read: as a whole or while it grows.
    pub(crate) async fn begun(self: &Arc<Self>) -> Result<Begun, HttpError> {
        let mut progress = self.progress.subscribe();
        // Two chunks, or all there is: then it is known whether one will do.
        let _ = progress.wait_for(|progress| !matches!(progress, Progress::Growing(0 | 1))).await;
        let (first, now) = (self.chunk(0), *progress.borrow());
        match (now, first) {
            (Progress::Broken, _) => Err(broken()),
            (Progress::Whole, None) => Ok(Begun::Empty),
            (Progress::Whole, Some(only)) if self.chunk(1).is_none() => Ok(Begun::Whole(only)),
            (Progress::Whole | Progress::Growing(_), _) => Ok(Begun::Growing(ReadAlong::new(self.clone()))),
        }
    }

    /// Whether it turned out to be worth compressing.
    pub(crate) fn is_compressed(&self) -> bool {
        self.compressed.get() == Some(&true)
    }

    /// Waits until there are more chunks than these, or it is over.
    async fn more_than(self: Arc<Self>, chunks: usize) {
        let mut progress = self.progress.subscribe();
        let there = |progress: &Progress| !matches!(progress, Progress::Growing(count) if *count <= chunks);
        // The sender lives as long as we do.
        let _ = progress.wait_for(there).await;
    }

    fn chunk(&self, at: usize) -> Option<Bytes> {
        self.lock().get(at).cloned()
    }

    fn push(&self, chunk: Vec<u8>) {
        if !chunk.is_empty() {
            let count = {
                let mut chunks = self.lock();
                chunks.push(chunk.into());
                chunks.len()
            };
            self.progress.send_replace(Progress::Growing(count));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Bytes>> {
        self.chunks.lock().expect("no code panics while it holds this lock")
    }
}

/// One reader of a rendition, at its own pace.
pub struct ReadAlong {
    rendition: Arc<Rendition>,
    /// Which chunk comes next.
    next: usize,
    /// For it, if it is not there yet.
    waiting: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// Chunks since others had their turn.
    at_once: usize,
}

impl ReadAlong {
    pub(crate) fn new(rendition: Arc<Rendition>) -> Self {
        Self { rendition, next: 0, waiting: None, at_once: 0 }
    }

    pub(crate) fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<std::io::Result<Bytes>>> {
        loop {
            if let Some(waiting) = &mut self.waiting {
                ready!(waiting.as_mut().poll(cx));
                self.waiting = None;
            }
            // Both under the lock: no chunk is added or taken away between the two.
            let (chunk, progress) = {
                let chunks = self.rendition.lock();
                (chunks.get(self.next).cloned(), *self.rendition.progress.borrow())
            };
            if let Some(chunk) = chunk {
                if self.at_once == CHUNKS_AT_ONCE {
                    self.at_once = 0;
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                self.at_once += 1;
                self.next += 1;
                return Poll::Ready(Some(Ok(chunk)));
            }
            match progress {
                Progress::Whole => return Poll::Ready(None),
                Progress::Broken => {
                    return Poll::Ready(Some(Err(std::io::Error::other("the answer could not be rendered"))));
                }
                Progress::Growing(_) => {
                    self.waiting = Some(Box::pin(self.rendition.clone().more_than(self.next)));
                }
            }
        }
    }
}

impl std::fmt::Debug for ReadAlong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReadAlong").field("next", &self.next).finish_non_exhaustive()
    }
}

impl DocumentWriter {
    /// Rendering begins: later requests for something newer must not share this.
    pub(crate) fn begin(&self) {
        self.rendition.generation.store(UNKNOWN, Ordering::SeqCst);
    }

    /// Sets the version of the state that is rendered.
    pub fn set_version(&self, version: u64) {
        self.rendition.generation.store(version + 1, Ordering::SeqCst);
    }

    pub(crate) fn rendition(&self) -> Arc<Rendition> {
        self.rendition.clone()
    }

    /// Whether anyone waits for what is rendered.
    pub(crate) fn is_read(&self) -> bool {
        Arc::strong_count(&self.rendition) > 1
    }

    /// Appends a piece.
    pub fn write(&mut self, piece: Vec<u8>) {
        match &mut self.form {
            Form::Plain => self.rendition.push(piece),
            Form::Undecided(held) => {
                held.extend_from_slice(&piece);
                if held.len() >= COMPRESS_BYTES_MIN {
                    self.compress();
                }
            }
            Form::Gzip(encoder) => {
                encoder.write_all(&piece).expect("writing to a Vec cannot fail");
                if encoder.get_ref().len() >= CHUNK_BYTES {
                    let chunk = std::mem::take(encoder.get_mut());
                    self.rendition.push(chunk);
                }
            }
        }
        // The kernel lets a thread of any niceness use up its time slice. A thread that decides has been waiting for this one if
        // it became runnable meanwhile.
        std::thread::yield_now();
    }

    /// Nothing more comes.
    pub fn finish(mut self) {
        match std::mem::replace(&mut self.form, Form::Plain) {
            Form::Plain => (),
            Form::Undecided(held) => self.rendition.push(held),
            Form::Gzip(encoder) => {
                self.rendition.push(encoder.finish().expect("writing to a Vec cannot fail"));
            }
        }
        self.rendition.progress.send_replace(Progress::Whole);
    }

    /// It is large enough to be worth it.
    fn compress(&mut self) {
        let mut encoder = GzEncoder::new(Vec::with_capacity(CHUNK_BYTES), Compression::fast());
        if let Form::Undecided(held) = &self.form {
            encoder.write_all(held).expect("writing to a Vec cannot fail");
        }
        self.form = Form::Gzip(encoder);
        // Set once: only an undecided form comes here.
        let _ = self.rendition.compressed.set(true);
    }
}

impl Drop for DocumentWriter {
    fn drop(&mut self) {
        self.rendition.progress.send_if_modified(|progress| {
            let broken = matches!(progress, Progress::Growing(_));
            if broken {
                *progress = Progress::Broken;
            }
            broken
        });
    }
}

/// Lets `write` write JSON that leaves through the writer while more is written.
pub fn write_json(writer: DocumentWriter, write: impl FnOnce(&mut JsonWriter)) {
    let writer = Arc::new(Mutex::new(writer));
    let spilled = writer.clone();
    let mut w = JsonWriter::spilling(CHUNK_BYTES, move |piece| {
        spilled.lock().expect("no code panics while it holds this lock").write(piece);
    });
    write(&mut w);
    let last = w.into_vec();
    let writer = Arc::into_inner(writer).expect("the JSON writer that shared it is gone");
    let mut writer = writer.into_inner().expect("no code panics while it holds this lock");
    writer.write(last);
    writer.finish();
}

fn broken() -> HttpError {
    HttpError::plain(StatusCode::INTERNAL_SERVER_ERROR)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;
    use http::header::CONTENT_ENCODING;
    use http_body_util::BodyExt;

    use super::*;

    #[tokio::test]
    async fn readers_of_a_rendition_get_all_bytes_at_any_pace() {
        let (rendition, mut writer) = Rendition::begin(false);
        writer.write(b"one ".to_vec());
        writer.write(b"two ".to_vec());
        let early = rendition.clone().response("text/plain").await.unwrap();
        writer.write(b"three".to_vec());
        writer.finish();
        let late = rendition.clone().response("text/plain").await.unwrap();
        for response in [early, late] {
            let body = response.into_body().collect().await.unwrap().to_bytes();
            assert_eq!(body, "one two three");
        }
        assert_eq!(rendition.whole().await.unwrap(), "one two three");
        assert!(rendition.is_over());
    }

    /// However fast the peer takes a large answer, other connections have their turn in between.
    #[tokio::test]
    async fn large_response_yields_between_chunks() {
        let (rendition, mut writer) = Rendition::begin(false);
        (0..CHUNKS_AT_ONCE * 2 + 1).for_each(|_| writer.write(b"x".to_vec()));
        writer.finish();
        let mut reader = ReadAlong::new(rendition);
        let mut cx = Context::from_waker(std::task::Waker::noop());
        let mut polls = Vec::new();
        loop {
            match reader.poll_chunk(&mut cx) {
                Poll::Ready(Some(Ok(_))) => polls.push("chunk"),
                Poll::Ready(Some(Err(err))) => panic!("{err}"),
                Poll::Ready(None) => break,
                Poll::Pending => polls.push("yield"),
            }
        }
        let runs: Vec<usize> = polls.split(|poll| *poll == "yield").map(<[_]>::len).collect();
        assert_eq!(runs, [CHUNKS_AT_ONCE, CHUNKS_AT_ONCE, 1]);
    }

    #[tokio::test]
    async fn json_is_streamed_in_chunks() {
        let (rendition, writer) = Rendition::begin(false);
        let text = "x".repeat(CHUNK_BYTES);
        write_json(writer, |w| w.array(|w| (0..3).for_each(|_| w.object(|w| w.field("x", &text)))));
        let object = format!("{{\"x\":\"{text}\"}}");
        assert_eq!(rendition.lock().len(), 4);
        assert_eq!(rendition.whole().await.unwrap(), format!("[{object},{object},{object}]"));
    }

    #[tokio::test]
    async fn large_renditions_are_compressed() {
        let large = "x".repeat(5000);
        for (text, compressed) in [("small", false), (large.as_str(), true)] {
            let (rendition, mut writer) = Rendition::begin(true);
            writer.write(text.as_bytes().to_vec());
            writer.finish();
            let response = rendition.response("text/plain").await.unwrap();
            assert_eq!(response.headers().contains_key(CONTENT_ENCODING), compressed);
            let body = response.into_body().collect().await.unwrap().to_bytes();
            let mut plain = String::new();
            match compressed {
                true => drop(GzDecoder::new(&*body).read_to_string(&mut plain).unwrap()),
                false => plain.push_str(std::str::from_utf8(&body).unwrap()),
            }
            assert_eq!(plain, text);
        }
    }

    #[tokio::test]
    async fn failed_rendering_breaks_the_response() {
        let (rendition, writer) = Rendition::begin(false);
        drop(writer);
        let refused = rendition.response("text/plain").await.map(drop).unwrap_err();
        assert_eq!(refused.status, 500);
        let (rendition, mut writer) = Rendition::begin(false);
        writer.write(b"a".to_vec());
        writer.write(b"b".to_vec());
        let response = rendition.response("text/plain").await.unwrap();
        drop(writer);
        assert!(response.into_body().collect().await.is_err(), "the body must not look whole");
    }
}
