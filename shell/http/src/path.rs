//! The path of a request: its non-empty components, percent-decoded.

use percent_encoding::percent_decode_str;

use crate::HttpError;

/// The components of a request's path.
pub fn components(path: &str) -> Result<Vec<String>, HttpError> {
    if !path.starts_with('/') {
        return Err(HttpError::bad_request("Request URL path must be absolute"));
    }
    let decoded: Result<Vec<String>, _> = path
        .split('/')
        .filter(|part| !part.is_empty())
        .map(|part| percent_decode_str(part).decode_utf8().map(String::from))
        .collect();
    let decoded = decoded.map_err(|_| HttpError::bad_request("Request URL path is not UTF-8"))?;
    match decoded.iter().any(|part| part.starts_with("..")) {
        true => Err(HttpError::not_found()),
        false => Ok(decoded),
    }
}
