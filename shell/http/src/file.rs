//! The content of a file as an answer, sent piece by piece.

use std::fs::File;
use std::io::Read;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};

use crate::body::{Body, ChunkSender};
use crate::respond::{Response, with_header};

/// What is sent at a time.
const CHUNK_BYTES: usize = 64 * 1024;

/// An answer with the content of a file, sent piece by piece. Must be called inside a tokio runtime.
pub fn stream_file(file: File, content_type: &'static str) -> std::io::Result<Response> {
    let size = file.metadata()?.len();
    let (sender, body) = Body::chunks();
    // Ends with the file or when the peer goes away; a failure to read becomes a broken body. Not more than there was
    // when it began: a log may grow faster than the peer reads.
    tokio::spawn(send_chunks(file.take(size), sender));
    Ok(with_header(Response::new(body), CONTENT_TYPE, HeaderValue::from_static(content_type)))
}

/// Sends a file piece by piece, holding no thread while the peer is not reading.
async fn send_chunks(mut file: std::io::Take<File>, sender: ChunkSender) {
    loop {
        let reading = tokio::task::spawn_blocking(move || {
            let mut chunk = vec![0; CHUNK_BYTES];
            let count = file.read(&mut chunk)?;
            chunk.truncate(count);
            Ok((file, Bytes::from(chunk)))
        });
        match reading.await.unwrap_or_else(|err| Err(std::io::Error::other(err))) {
            Ok((_, chunk)) if chunk.is_empty() => return,
            Ok((rest, chunk)) => {
                file = rest;
                if !sender.send(Ok(chunk)).await {
                    return;
                }
            }
            Err(err) => {
                sender.send(Err(err)).await;
                return;
            }
        }
    }
}
