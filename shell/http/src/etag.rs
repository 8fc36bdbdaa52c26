//! ETags: a reader that has the newest version gets a 304 without a body.

use http::StatusCode;
use http::header::{CACHE_CONTROL, ETAG, HeaderMap, HeaderValue, IF_NONE_MATCH};

use crate::respond::{Response, empty};

/// Names one version of what an address shows. Weak: compressed or not, it is the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntityTag(String);

impl EntityTag {
    /// `epoch` differs between two starts of a program, which count versions from the beginning.
    pub fn new(epoch: u64, version: u64) -> Self {
        Self(format!("W/\"{epoch:x}-{version:x}\""))
    }

    /// Whether the reader has this version.
    pub fn is_known(&self, headers: &HeaderMap) -> bool {
        let values = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
        let bare = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
        let own = bare(&self.0);
        values.flat_map(|value| value.split(',')).any(|tag| tag.trim() == "*" || bare(tag) == own)
    }

    /// `304`, for a reader that has this version.
    pub fn not_modified(&self) -> Response {
        self.on(empty(StatusCode::NOT_MODIFIED))
    }

    /// The same answer, tagged. It may be cached, but must be revalidated before it is used.
    pub fn on(&self, mut response: Response) -> Response {
        let tag = HeaderValue::from_str(&self.0).expect("hexadecimal digits can stand in a header");
        response.headers_mut().insert(ETAG, tag);
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn if_none_match_with_the_current_etag_matches() {
        let tag = EntityTag::new(0xabc, 17);
        for (header, expected) in [
            (None, false),
            (Some("W/\"abc-11\""), true),
            (Some("\"abc-11\""), true),
            (Some("\"x\", W/\"abc-11\""), true),
            (Some("*"), true),
            (Some("W/\"abc-12\""), false),
            (Some("abc-11"), false),
        ] {
            let headers: HeaderMap =
                header.map(|text| (IF_NONE_MATCH, HeaderValue::from_static(text))).into_iter().collect();
            assert_eq!(tag.is_known(&headers), expected, "{header:?}");
        }
    }
}
