//! The operator pages, which are part of the program.

use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue, REFERRER_POLICY};
use tepui_http::{Body, HttpError, Response};

/// `/` and everything below `/app`.
pub(crate) fn page(path: &[String]) -> Result<Response, HttpError> {
    let asset = tepui_web::asset(path).ok_or_else(HttpError::not_found)?;
    let mut response = Response::new(Body::Bytes(asset.content.as_bytes().into()));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(asset.content_type));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(tepui_web::CONTENT_SECURITY_POLICY));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    Ok(response)
}
