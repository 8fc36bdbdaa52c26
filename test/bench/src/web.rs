//! GET over a connection of its own, counting what comes; and event streams of operators.

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// Reads a document to its end; how many bytes came.
pub async fn get(master: &str, path: &str, gzip: bool) -> Result<usize> {
    let mut bytes = 0;
    get_counting(master, path, gzip, |count| bytes += count).await?;
    Ok(bytes)
}

/// Reads a document to its end, and says how many bytes came whenever some do.
pub async fn get_counting(master: &str, path: &str, gzip: bool, mut count: impl FnMut(usize)) -> Result<()> {
    let mut request = http::Request::get(path);
    if gzip {
        request = request.header(http::header::ACCEPT_ENCODING, "gzip");
    }
    let mut body = send(master, request, Bytes::new()).await?;
    while let Some(frame) = body.frame().await {
        count(frame?.into_data().map_or(0, |data| data.len()));
    }
    Ok(())
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

async fn send(master: &str, request: http::request::Builder, body: Bytes) -> Result<Incoming> {
    let stream = TcpStream::connect(master).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // Ends with the answer, or when that is dropped.
    tokio::spawn(connection);
    let request = request.header(http::header::HOST, master).body(Full::new(body))?;
    let answer = sender.send_request(request).await?;
    if answer.status() != http::StatusCode::OK {
        bail!("the master answered {}", answer.status());
    }
    Ok(answer.into_body())
}
