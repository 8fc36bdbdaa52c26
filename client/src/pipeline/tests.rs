//! A connection that breaks, with calls in flight and without.

use std::io;
use std::task::Waker;

use tokio::io::{AsyncRead, ReadBuf};

use super::*;
use crate::connection::Request;
use crate::format::Format;

/// Cannot be read from.
struct Broken;

impl AsyncRead for Broken {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()))
    }
}

impl AsyncWrite for Broken {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[tokio::test]
async fn idle_connection_that_breaks_is_closed_without_a_fault() {
    let peer = Endpoint::parse("127.0.0.1:1", 1).expect("an address");
    let head = Request::post("/", Format::Json, Vec::new()).head(&peer).expect("a request");
    let mut pipeline = Pipeline::new(peer);
    pipeline.open = Some(Open::new(Box::new(Broken)));
    let polled = pin!(pipeline.answer()).poll(&mut Context::from_waker(Waker::noop()));
    assert!(polled.is_pending(), "there is no answer to come");
    assert!(pipeline.open.is_none());

    pipeline.open = Some(Open::new(Box::new(Broken)));
    pipeline.send(&head, b"{}", ()).await.expect("sent");
    assert!(matches!(pipeline.answer().await, Err(Fault::Lost { .. })));
}
