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

/// A body that ends with this text if its sender is lost.
pub fn explained(body: Body, text: String) -> Body {
    Explained { body, text: Some(text) }.boxed_unsync()
}

struct Explained {
    body: Body,
    /// None once it was sent.
    text: Option<String>,
}

impl http_body::Body for Explained {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.text.is_none() {
            return Poll::Ready(None);
        }
        match Pin::new(&mut self.body).poll_frame(context) {
            Poll::Ready(Some(Err(error))) => {
                tracing::debug!(%error, "answer of an engine broken off");
                let text = self.text.take().unwrap_or_default();
                Poll::Ready(Some(Ok(Frame::data(text.into()))))
            }
            polled => polled,
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn answer_of_a_lost_engine_ends_with_the_reason() {
        for (last, expected) in [(Some("reset"), "step 1\nengine lost\n"), (None, "step 1\n")] {
            let (pieces, body) = channel();
            pieces.send(Ok("step 1\n".into())).await.expect("a reader");
            if let Some(error) = last {
                pieces.send(Err(error.into())).await.expect("a reader");
            }
            drop(pieces);
            let all = explained(body, "engine lost\n".to_owned()).collect().await.expect("no error");
            assert_eq!(all.to_bytes(), expected);
        }
    }
}
