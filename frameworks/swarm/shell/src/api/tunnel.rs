//! Hijacked calls: after `101 Switching Protocols` a stream of bytes in both directions between client and engine.
//!
//! Either side may close its half and still read: `docker run` without `-i` closes its half at once, and output goes on.

use std::time::Duration;

use http::header::{self, HeaderValue};
use http::{Response, StatusCode};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};

use super::Api;
use super::call::Call;
use super::error::ApiError;
use super::forward::{end_to_end, request};
use super::targets::Target;
use crate::body::{self, Body};

type Side = TokioIo<Upgraded>;

/// Read at once in one direction.
const BUFFER_BYTES: usize = 64 * 1024;
/// Streams that are open at the same time. One more is rejected: each takes two file descriptors.
pub const TUNNELS_MAX: usize = 4096;
/// After the engine's last byte, for a client that goes on to write: the engine may still read.
const CLIENT_LINGER: Duration = Duration::from_secs(60);

impl Api {
    /// Tunnels if the client asks for an upgrade; otherwise the answer streams in one direction only. `on_end`: what to do after a
    /// tunnel.
    pub async fn tunnel(
        &self,
        mut call: Call,
        target: &Target,
        path: &str,
        on_end: impl FnOnce() + Send + 'static,
    ) -> Result<Response<Body>, ApiError> {
        if !call.is_upgrade() {
            let bytes = call.bytes().await?;
            return self.forward_bytes(&call, target, path, bytes).await;
        }
        let permit = self.shared.tunnels.clone().try_acquire_owned().map_err(|_| {
            let message = format!("{TUNNELS_MAX} streams are attached already; try again later");
            ApiError::new(StatusCode::SERVICE_UNAVAILABLE, message)
        })?;
        let bytes = call.bytes().await?;
        let mut headers = end_to_end(&call.headers);
        headers.remove(header::CONTENT_LENGTH);
        headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        let protocol = call.headers.get(header::UPGRADE).cloned();
        headers.extend(protocol.map(|protocol| (header::UPGRADE, protocol)));
        let request = request(call.method.clone(), path, headers, body::full(bytes))?;
        let answer = target.client.send(request).await?;
        if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
            let (mut head, body) = answer.into_parts();
            head.headers = end_to_end(&head.headers);
            return Ok(Response::from_parts(head, body::incoming(body)));
        }
        let mut response = Response::new(body::empty());
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        *response.headers_mut() = answer.headers().clone();
        let (client, engine) = (hyper::upgrade::on(&mut call.request), hyper::upgrade::on(answer));
        // It ends with either side; both learn of a failure by the end of the stream.
        tokio::spawn(async move {
            connect(client, engine).await;
            on_end();
            drop(permit);
        });
        Ok(response)
    }
}

/// Passes bytes on in both directions until the engine's side, or the leading manager's, ends.
pub async fn connect(client: OnUpgrade, engine: OnUpgrade) {
    let (client, engine) = match tokio::join!(client, engine) {
        (Ok(client), Ok(engine)) => (TokioIo::new(client), TokioIo::new(engine)),
        (Err(error), _) | (_, Err(error)) => {
            tracing::debug!(%error, "stream not upgraded");
            return;
        }
    };
    let (from_client, to_client) = tokio::io::split(client);
    let (from_engine, to_engine) = tokio::io::split(engine);
    let mut input = std::pin::pin!(copy(from_client, to_engine));
    let mut output = std::pin::pin!(copy(from_engine, to_client));
    let mut has_input = true;
    loop {
        tokio::select! {
            () = &mut output => break,
            // The end of the client's half does not end the engine's.
            () = &mut input, if has_input => has_input = false,
        }
    }
    if has_input {
        let _ = tokio::time::timeout(CLIENT_LINGER, input).await; // Either way the stream is over.
    }
}

/// Until the reader's end, which closes the writer's half.
async fn copy(mut from: ReadHalf<Side>, mut to: WriteHalf<Side>) {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        match from.read(&mut buffer).await {
            Ok(0) | Err(_) => break,
            Ok(count) => {
                if to.write_all(&buffer[..count]).await.is_err() || to.flush().await.is_err() {
                    return;
                }
            }
        }
    }
    let _ = to.shutdown().await; // The peer has closed it already.
}
