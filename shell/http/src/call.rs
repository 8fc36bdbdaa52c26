//! A v1 call from a request, with the checks, their order and the messages of v1.

use bytes::Bytes;
use http::StatusCode;
use tepui_proto::{Wire, json, wire};

use crate::{Encoding, HttpError, Request};

/// The largest call. An ACCEPT with thousands of tasks fits.
pub const CALL_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Larger calls are parsed on a thread that may be busy for a while.
const PARSE_INLINE_BYTES_MAX: usize = 256 * 1024;

/// Method, Content-Type, size, syntax, required fields: in this order.
pub async fn read_call<M: Wire + Default + Send + 'static>(request: &mut Request) -> Result<M, HttpError> {
    read_call_within(request, CALL_BYTES_MAX).await
}

/// The same with a smaller limit.
pub async fn read_call_within<M: Wire + Default + Send + 'static>(
    request: &mut Request,
    bytes_max: usize,
) -> Result<M, HttpError> {
    request.expect_method("POST")?;
    let encoding = Encoding::of_body(&request.headers)?;
    let body = request.read_body(bytes_max).await?;
    let call = match body.len() <= PARSE_INLINE_BYTES_MAX {
        true => parse_call(encoding, body),
        false => {
            let parsing = tokio::task::spawn_blocking(move || parse_call(encoding, body));
            parsing.await.unwrap_or_else(|err| {
                tracing::error!(%err, "cannot parse a call");
                Err(HttpError::plain(StatusCode::INTERNAL_SERVER_ERROR))
            })
        }
    };
    request.release_memory();
    call
}

/// A call from its bytes.
pub fn parse_call<M: Wire + Default>(encoding: Encoding, body: Bytes) -> Result<M, HttpError> {
    match encoding {
        Encoding::Json => json::from_slice(&body).map_err(|err| {
            let what =
                if err.is_syntax() { "parse body into JSON" } else { "convert JSON into Call protobuf" };
            HttpError::bad_request(format!("Failed to {what}: {err}"))
        }),
        Encoding::Protobuf => wire::decode(&body, CALL_BYTES_MAX)
            .map_err(|err| HttpError::bad_request(format!("Failed to parse body into Call protobuf: {err}"))),
    }
}
