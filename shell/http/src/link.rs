//! Links: connections that left HTTP with `101 Switching Protocols` and carry a stream of bytes in each direction.
//!
//! Both directions end together. An idle link holds no buffer; the HTTP library keeps two for every connection.

use std::fmt::Debug;
use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};

use crate::queue::StreamBody;

/// Bytes read at once, on the stack.
const CHUNK_BYTES_MAX: usize = 16 * 1024;

/// Takes the bytes that a peer sends.
pub trait Receive: Debug + Send {
    /// Waits until the bytes are accepted; an error is the reason to close the link.
    fn receive(&mut self, chunk: Bytes) -> Receiving<'_>;
}

pub type Receiving<'r> = Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'r>>;

/// The two directions of a link.
#[derive(Debug)]
pub struct Link {
    pub outgoing: StreamBody,
    pub receiver: Box<dyn Receive>,
}

impl Link {
    /// Carries both directions until one of them ends; an error unless that was orderly.
    pub async fn run(self, stream: impl AsyncRead + AsyncWrite + Unpin) -> Result<(), String> {
        let (reader, writer) = tokio::io::split(stream);
        tokio::select! {
            ended = receive(reader, self.receiver) => ended,
            ended = send(writer, self.outgoing) => ended,
        }
    }
}

async fn receive(mut reader: impl AsyncRead + Unpin, mut receiver: Box<dyn Receive>) -> Result<(), String> {
    loop {
        let chunk = std::future::poll_fn(|cx| poll_chunk(&mut reader, cx)).await.map_err(text)?;
        if chunk.is_empty() {
            return Ok(());
        }
        receiver.receive(chunk).await?;
    }
}

fn poll_chunk(reader: &mut (impl AsyncRead + Unpin), cx: &mut Context<'_>) -> Poll<io::Result<Bytes>> {
    let mut room = [MaybeUninit::uninit(); CHUNK_BYTES_MAX];
    let mut chunk = ReadBuf::uninit(&mut room);
    ready!(Pin::new(reader).poll_read(cx, &mut chunk))?;
    Poll::Ready(Ok(Bytes::copy_from_slice(chunk.filled())))
}

async fn send(mut writer: impl AsyncWrite + Unpin, outgoing: StreamBody) -> Result<(), String> {
    while let Some(chunk) = outgoing.next().await {
        writer.write_all(&chunk.map_err(text)?).await.map_err(text)?;
        writer.flush().await.map_err(text)?;
    }
    writer.shutdown().await.map_err(text)
}

fn text(err: io::Error) -> String {
    err.to_string()
}
