//! Bodies of requests and answers: known bytes or a stream that is passed on.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::Incoming;
use tokio::sync::mpsc;

pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
pub type Body = UnsyncBoxBody<Bytes, BoxError>;
/// Gives pieces to a body. `closed()` returns when its reader has left.
pub type Pieces = mpsc::Sender<Result<Bytes, BoxError>>;

/// Pieces of a body that wait for a slow reader.
const PIECES_MAX: usize = 16;

pub fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

pub fn empty() -> Body {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}

/// What a peer sends, passed on as it comes.
pub fn incoming(body: Incoming) -> Body {
    body.map_err(Into::into).boxed_unsync()
}

/// A body that ends when its sender is dropped.
pub fn channel() -> (Pieces, Body) {
    let (pieces, receiver) = mpsc::channel(PIECES_MAX);
    (pieces, Channel { receiver }.boxed_unsync())
}

/// A body that calls `observe` whenever something of it has arrived, and when it is over.
pub fn observed(body: Body, observe: impl FnMut() + Send + Unpin + 'static) -> Body {
    Observed { body, observe }.boxed_unsync()
}

struct Channel {
    receiver: mpsc::Receiver<Result<Bytes, BoxError>>,
}

impl http_body::Body for Channel {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.receiver.poll_recv(context).map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}

struct Observed<F> {
    body: Body,
    observe: F,
}

impl<F: FnMut() + Send + Unpin + 'static> http_body::Body for Observed<F> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if polled.is_ready() {
            (self.observe)();
        }
        polled
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.body.size_hint()
    }
}
