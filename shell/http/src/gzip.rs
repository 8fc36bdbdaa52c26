//! gzip: request bodies that come compressed, answers that are worth compressing.

use std::io::{Read, Write};

use bytes::Bytes;
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use http::header::{CONTENT_ENCODING, HeaderMap, HeaderValue, VARY};

use crate::body::Body;
use crate::negotiate::accepts_gzip;
use crate::rendition::COMPRESS_BYTES_MIN;
use crate::respond::Response;

/// Larger answers are compressed on a thread that may be busy for a while.
const COMPRESS_INLINE_BYTES_MAX: usize = 32 * 1024;

pub(crate) enum Inflated {
    Whole(Bytes),
    TooLarge,
    Broken(std::io::Error),
}

/// Decompresses at most `bytes_max`, so that a small body cannot become a large heap.
pub(crate) fn inflate(compressed: &[u8], bytes_max: usize) -> Inflated {
    let mut plain = Vec::new();
    match MultiGzDecoder::new(compressed).take(bytes_max as u64 + 1).read_to_end(&mut plain) {
        Ok(_) if plain.len() > bytes_max => Inflated::TooLarge,
        Ok(_) => Inflated::Whole(plain.into()),
        Err(err) => Inflated::Broken(err),
    }
}

/// Compresses an answer if the peer accepts it and it pays. Never streams or files.
pub(crate) async fn compress(response: Response, request: &HeaderMap) -> Response {
    let (mut head, body) = response.into_parts();
    let bytes = match body {
        Body::Bytes(bytes)
            if bytes.len() >= COMPRESS_BYTES_MIN && !head.headers.contains_key(CONTENT_ENCODING) =>
        {
            bytes
        }
        other => return Response::from_parts(head, other),
    };
    head.headers.append(VARY, HeaderValue::from_static("Accept-Encoding"));
    if !accepts_gzip(request) {
        return Response::from_parts(head, Body::Bytes(bytes));
    }
    let compressed = match bytes.len() <= COMPRESS_INLINE_BYTES_MAX {
        true => deflate(&bytes),
        false => {
            let plain = bytes.clone();
            let compressing = tokio::task::spawn_blocking(move || deflate(&plain)).await;
            compressing
                .inspect_err(|err| tracing::error!(%err, "cannot compress an answer"))
                .unwrap_or_default()
        }
    };
    if compressed.is_empty() {
        return Response::from_parts(head, Body::Bytes(bytes));
    }
    head.headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    Response::from_parts(head, Body::Bytes(compressed.into()))
}

fn deflate(plain: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(plain.len() / 4), Compression::fast());
    encoder.write_all(plain).and_then(|()| encoder.finish()).expect("writing to a Vec cannot fail")
}
