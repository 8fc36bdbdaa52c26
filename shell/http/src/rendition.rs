//! One answer while it is made: chunks that grow, read by any number of readers at their own pace.
//!
//! Made by one renderer; whoever asks for the same thing meanwhile reads along from the first chunk on.

use std::io::Write;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::StatusCode;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, VARY};
use tepui_proto::json::JsonWriter;
use tokio::sync::watch;

use crate::HttpError;
use crate::body::Body;
use crate::gzip::COMPRESS_BYTES_MIN;
use crate::respond::Response;
use crate::way::give_way;

/// What is handed to readers at a time.
const CHUNK_BYTES: usize = 128 * 1024;

/// What is written between two looks at whether others want the processor.
const PIECE_BYTES: usize = 16 * 1024;

/// An answer, whole or growing.
#[derive(Debug)]
pub struct Rendition {
    /// The version of what it shows.
    pub version: u64,
    chunks: Mutex<Vec<Bytes>>,
    progress: watch::Sender<Progress>,
    compressed: OnceLock<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// So many chunks are there.
    Growing(usize),
    Whole,
    /// Whoever made it failed.
    Broken,
}

/// The making end. Dropping it before `finish` breaks the rendition.
#[derive(Debug)]
pub struct Pen {
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
    /// An empty one and its pen. With `gzip` it is compressed if that pays.
    pub fn begin(version: u64, gzip: bool) -> (Arc<Self>, Pen) {
        let (progress, _) = watch::channel(Progress::Growing(0));
        let chunks = Mutex::new(Vec::new());
        let rendition = Arc::new(Self { version, chunks, progress, compressed: OnceLock::new() });
        let form = if gzip { Form::Undecided(Vec::new()) } else { Form::Plain };
        (rendition.clone(), Pen { rendition, form })
    }

    pub fn is_over(&self) -> bool {
        !matches!(*self.progress.borrow(), Progress::Growing(_))
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

    /// As an answer that is sent while it grows.
    pub async fn response(self: Arc<Self>, content_type: &'static str) -> Result<Response, HttpError> {
        let mut progress = self.progress.subscribe();
        // Two chunks, or all there is: then it is known whether one will do.
        let _ = progress.wait_for(|progress| !matches!(progress, Progress::Growing(0 | 1))).await;
        let (first, now) = (self.chunk(0), *progress.borrow());
        let body = match (now, first) {
            (Progress::Broken, _) => return Err(broken()),
            (Progress::Whole, None) => Body::Empty,
            (Progress::Whole, Some(only)) if self.chunk(1).is_none() => Body::Bytes(only),
            (Progress::Whole | Progress::Growing(_), _) => {
                Body::Along(ReadAlong { rendition: self.clone(), next: 0, waiting: None })
            }
        };
        let mut response = Response::new(body);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        if self.compressed.get() == Some(&true) {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            headers.append(VARY, HeaderValue::from_static("Accept-Encoding"));
        }
        Ok(response)
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
}

impl ReadAlong {
    pub(crate) fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<std::io::Result<Bytes>>> {
        loop {
            if let Some(waiting) = &mut self.waiting {
                ready!(waiting.as_mut().poll(cx));
                self.waiting = None;
            }
            // Before the chunk is looked for: what is over then lacks nothing that would come.
            let progress = *self.rendition.progress.borrow();
            if let Some(chunk) = self.rendition.chunk(self.next) {
                self.next += 1;
                return Poll::Ready(Some(Ok(chunk)));
            }
            match progress {
                Progress::Whole => return Poll::Ready(None),
                Progress::Broken => {
                    return Poll::Ready(Some(Err(std::io::Error::other("the answer could not be made"))));
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

impl Pen {
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

impl Drop for Pen {
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

/// Lets `write` write JSON that leaves through the pen while more is written.
pub fn write_json(pen: Pen, write: impl FnOnce(&mut JsonWriter)) {
    let chunks = Arc::new(Mutex::new(Chunks { pen, held: Vec::new() }));
    let spilled = chunks.clone();
    let mut w = JsonWriter::spilling(PIECE_BYTES, move |piece| {
        spilled.lock().expect("no code panics while it holds this lock").add(&piece);
        give_way();
    });
    write(&mut w);
    let last = w.into_vec();
    if let Ok(chunks) = Arc::try_unwrap(chunks) {
        let chunks = chunks.into_inner().expect("no code panics while it holds this lock");
        chunks.finish(&last);
    }
}

/// Pieces on their way into chunks.
struct Chunks {
    pen: Pen,
    held: Vec<u8>,
}

impl Chunks {
    fn add(&mut self, piece: &[u8]) {
        self.held.extend_from_slice(piece);
        if self.held.len() >= CHUNK_BYTES {
            self.pen.write(std::mem::replace(&mut self.held, Vec::with_capacity(CHUNK_BYTES + PIECE_BYTES)));
        }
    }

    fn finish(mut self, last: &[u8]) {
        self.held.extend_from_slice(last);
        self.pen.write(self.held);
        self.pen.finish();
    }
}

fn broken() -> HttpError {
    HttpError::plain(StatusCode::INTERNAL_SERVER_ERROR)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;
    use http_body_util::BodyExt;

    use super::*;

    #[tokio::test]
    async fn readers_read_along_and_whatever_pace_they_have() {
        let (rendition, mut pen) = Rendition::begin(7, false);
        pen.write(b"one ".to_vec());
        pen.write(b"two ".to_vec());
        let early = rendition.clone().response("text/plain").await.unwrap();
        pen.write(b"three".to_vec());
        pen.finish();
        let late = rendition.clone().response("text/plain").await.unwrap();
        for response in [early, late] {
            let body = response.into_body().collect().await.unwrap().to_bytes();
            assert_eq!(body, "one two three");
        }
        assert_eq!(rendition.whole().await.unwrap(), "one two three");
        assert!(rendition.is_over());
    }

    #[tokio::test]
    async fn json_leaves_in_pieces() {
        let (rendition, pen) = Rendition::begin(1, false);
        let text = "x".repeat(CHUNK_BYTES);
        write_json(pen, |w| w.array(|w| (0..3).for_each(|_| w.object(|w| w.field("x", &text)))));
        let object = format!("{{\"x\":\"{text}\"}}");
        assert_eq!(rendition.lock().len(), 4);
        assert_eq!(rendition.whole().await.unwrap(), format!("[{object},{object},{object}]"));
    }

    #[tokio::test]
    async fn what_is_large_is_compressed() {
        let large = "x".repeat(5000);
        for (text, compressed) in [("small", false), (large.as_str(), true)] {
            let (rendition, mut pen) = Rendition::begin(1, true);
            pen.write(text.as_bytes().to_vec());
            pen.finish();
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
    async fn a_maker_that_fails_is_noticed() {
        let (rendition, pen) = Rendition::begin(1, false);
        drop(pen);
        let refused = rendition.response("text/plain").await.map(drop).unwrap_err();
        assert_eq!(refused.status, 500);
        let (rendition, mut pen) = Rendition::begin(1, false);
        pen.write(b"a".to_vec());
        pen.write(b"b".to_vec());
        let response = rendition.response("text/plain").await.unwrap();
        drop(pen);
        assert!(response.into_body().collect().await.is_err(), "the body must not look whole");
    }
}
