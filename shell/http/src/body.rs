//! Bodies of answers: nothing, bytes at hand, an event stream, chunks that another thread makes, an answer that is
//! read along by many, or a link in place of a body.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::sync::mpsc;

use crate::link::Link;
use crate::queue::StreamBody;
use crate::rendition::ReadAlong;

/// Chunks that may wait for the peer to read; then the maker waits.
const CHUNKS_WAITING_MAX: usize = 2;

/// The body of an answer.
#[derive(Debug)]
pub enum Body {
    Empty,
    Bytes(Bytes),
    Stream(StreamBody),
    Chunks(mpsc::Receiver<std::io::Result<Bytes>>),
    Along(ReadAlong),
    /// Begins when the head was sent; the body is empty.
    Link(Box<Link>),
}

/// The making end of a body of chunks.
#[derive(Debug)]
pub struct ChunkSender {
    sender: mpsc::Sender<std::io::Result<Bytes>>,
}

impl Body {
    /// A body made chunk by chunk, elsewhere.
    pub fn chunks() -> (ChunkSender, Body) {
        let (sender, receiver) = mpsc::channel(CHUNKS_WAITING_MAX);
        (ChunkSender { sender }, Body::Chunks(receiver))
    }
}

impl ChunkSender {
    /// Waits until the peer has gone away.
    pub async fn closed(&self) {
        self.sender.closed().await;
    }

    /// Waits until the peer has read enough; false if it went away.
    pub async fn send(&self, chunk: std::io::Result<Bytes>) -> bool {
        self.sender.send(chunk).await.is_ok()
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match &mut *self {
            Body::Empty | Body::Link(_) => Poll::Ready(None),
            Body::Bytes(bytes) => {
                let bytes = std::mem::take(bytes);
                *self = Body::Empty;
                Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))))
            }
            Body::Stream(stream) => {
                stream.poll_record(cx).map(|record| record.map(|record| record.map(Frame::data)))
            }
            Body::Chunks(chunks) => {
                chunks.poll_recv(cx).map(|chunk| chunk.map(|chunk| chunk.map(Frame::data)))
            }
            Body::Along(along) => along.poll_chunk(cx).map(|chunk| chunk.map(|chunk| chunk.map(Frame::data))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Body::Empty | Body::Link(_) => true,
            Body::Bytes(bytes) => bytes.is_empty(),
            Body::Stream(_) | Body::Chunks(_) | Body::Along(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Body::Empty | Body::Link(_) => SizeHint::with_exact(0),
            Body::Bytes(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Body::Stream(_) | Body::Chunks(_) | Body::Along(_) => SizeHint::default(),
        }
    }
}
