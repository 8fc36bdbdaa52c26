//! A connection that breaks, with calls in flight and without.

use std::io;
use std::task::Waker;

use tokio::io::{AsyncRead, ReadBuf};

use super::*;
use crate::connection::Request;
use crate::format::Format;

/// Has these bytes to read and breaks then. Cannot be written to.
struct Broken(&'static [u8]);

impl AsyncRead for Broken {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.0.is_empty() {
            return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
        }
        buf.put_slice(std::mem::take(&mut self.0));
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Broken {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

fn pipeline(transport: Broken) -> (Pipeline<()>, Head) {
    let peer = Endpoint::parse("127.0.0.1:1", 1).expect("an address");
    let head = Request::post("/", Format::Json, Vec::new()).head(&peer).expect("a request");
    let mut pipeline = Pipeline::new(peer);
    pipeline.open = Some(Open::new(Box::new(transport)));
    (pipeline, head)
}

#[tokio::test]
async fn idle_connection_that_breaks_is_closed_without_a_fault() {
    let (mut pipeline, _) = pipeline(Broken(b""));
    let polled = pin!(pipeline.answer()).poll(&mut Context::from_waker(Waker::noop()));
    assert!(polled.is_pending(), "there is no answer to come");
    assert!(pipeline.open.is_none());
}

#[tokio::test]
async fn answers_that_arrived_before_the_connection_broke_count() {
    let (mut pipeline, head) = pipeline(Broken(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n"));
    for _ in 0..2 {
        pipeline.send(&head, b"{}", ()).await.expect("sent");
    }
    assert!(matches!(pipeline.answer().await, Ok(((), Ok(())))));
    assert!(matches!(pipeline.answer().await, Err(Fault::Lost { .. })));
}
