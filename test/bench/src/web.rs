//! GET over a connection of its own, counting what comes; and event streams of operators.

use std::path::Path;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

/// Reads a document to its end; how many bytes came. An answer that breaks off is an error.
pub async fn get(master: &str, path: &str, gzip: bool) -> Result<usize> {
    let mut request = http::Request::get(path);
    if gzip {
        request = request.header(http::header::ACCEPT_ENCODING, "gzip");
    }
    let (mut body, mut bytes) = (send(master, request, Bytes::new()).await?, 0);
    while let Some(frame) = body.frame().await {
        bytes += frame?.into_data().map_or(0, |data| data.len());
    }
    Ok(bytes)
}

pub async fn get_json(master: &str, path: &str) -> Result<serde_json::Value> {
    let body = send(master, http::Request::get(path), Bytes::new()).await?;
    let bytes = body.collect().await?.to_bytes();
    serde_json::from_slice(&bytes).with_context(|| format!("{path} is no JSON"))
}

/// The event stream of an operator.
pub async fn subscribe(master: &str) -> Result<Incoming> {
    let request = http::Request::post("/api/v1")
        .header(http::header::CONTENT_TYPE, "application/json")
        .header(http::header::ACCEPT, "application/x-protobuf");
    send(master, request, Bytes::from_static(br#"{"type":"SUBSCRIBE"}"#)).await
}

/// Sends a document; returns with the head of the answer, whatever its status is.
pub async fn call(
    address: &str,
    method: http::Method,
    path: &str,
    body: &serde_json::Value,
) -> Result<http::Response<Incoming>> {
    let stream = TcpStream::connect(address).await?;
    exchange(stream, address, document_request(method, path), body.to_string().into()).await
}

/// The same over a Unix socket.
pub async fn call_unix(
    socket: &Path,
    method: http::Method,
    path: &str,
    body: &serde_json::Value,
) -> Result<http::Response<Incoming>> {
    let stream = UnixStream::connect(socket).await?;
    exchange(stream, "docker", document_request(method, path), body.to_string().into()).await
}

fn document_request(method: http::Method, path: &str) -> http::request::Builder {
    let request = http::Request::builder().method(method).uri(path);
    request.header(http::header::CONTENT_TYPE, "application/json")
}

/// The status and the document of an answer.
pub async fn document(answer: http::Response<Incoming>) -> Result<(http::StatusCode, serde_json::Value)> {
    let status = answer.status();
    let bytes = answer.into_body().collect().await?.to_bytes();
    Ok((status, serde_json::from_slice(&bytes).unwrap_or_default()))
}

async fn send(master: &str, request: http::request::Builder, body: Bytes) -> Result<Incoming> {
    let answer = exchange(TcpStream::connect(master).await?, master, request, body).await?;
    if answer.status() != http::StatusCode::OK {
        bail!("{master} answered {}", answer.status());
    }
    Ok(answer.into_body())
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    host: &str,
    request: http::request::Builder,
    body: Bytes,
) -> Result<http::Response<Incoming>> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // Ends with the answer, or when that is dropped.
    tokio::spawn(connection);
    let request = request.header(http::header::HOST, host).body(Full::new(body))?;
    Ok(sender.send_request(request).await?)
}

/// Counts the records of an event stream without keeping them.
#[derive(Debug, Default)]
pub struct Records {
    /// Records that have come whole.
    pub count: usize,
    /// The length of the record that comes: its digits so far, then what is missing of it.
    length: usize,
    is_inside: bool,
}

impl Records {
    /// Takes in a piece of the stream; how many records became whole by it.
    pub fn push(&mut self, mut data: &[u8]) -> Result<usize> {
        let before = self.count;
        while let Some((first, rest)) = data.split_first() {
            if self.is_inside {
                let taken = self.length.min(data.len());
                (self.length, data) = (self.length - taken, &data[taken..]);
                if self.length == 0 {
                    (self.count, self.is_inside) = (self.count + 1, false);
                }
                continue;
            }
            match first {
                b'0'..=b'9' => self.length = self.length * 10 + usize::from(first - b'0'),
                b'\n' => self.is_inside = true,
                other => bail!("{other} in the length of a record"),
            }
            data = rest;
        }
        Ok(self.count - before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_split_at_any_byte_are_counted() {
        let stream = b"3\nabc10\n0123456789\x31\nx";
        for size in 1..stream.len() {
            let mut records = Records::default();
            let counts = stream.chunks(size).map(|piece| records.push(piece).unwrap());
            assert_eq!(counts.sum::<usize>(), 3, "pieces of {size}");
        }
        assert!(Records::default().push(b"{").is_err());
    }
}
