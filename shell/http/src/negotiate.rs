//! Content negotiation: which form a body has and which form the peer wants.
//!
//! More liberal than a v1 master: parameters (`; charset=utf-8`) and any case are fine in a Content-Type.

use bytes::Bytes;
use http::StatusCode;
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName};
use tepui_proto::{Wire, json, wire};

use crate::HttpError;

/// The two forms of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encoding {
    Json,
    Protobuf,
}

impl Encoding {
    pub fn name(self) -> &'static str {
        match self {
            Encoding::Json => "application/json",
            Encoding::Protobuf => "application/x-protobuf",
        }
    }

    pub fn encode<M: Wire>(self, message: &M) -> Bytes {
        match self {
            Encoding::Json => json::to_vec(message).into(),
            Encoding::Protobuf => wire::encode(message).into(),
        }
    }

    /// The form of a request's body.
    pub(crate) fn of_body(headers: &HeaderMap) -> Result<Self, HttpError> {
        let Some(value) = headers.get(CONTENT_TYPE) else {
            return Err(HttpError::bad_request("Expecting 'Content-Type' to be present"));
        };
        let media = media_type(value.to_str().unwrap_or_default());
        [Encoding::Json, Encoding::Protobuf].into_iter().find(|encoding| encoding.name() == media).ok_or_else(
            || {
                HttpError::new(
                    StatusCode::UNSUPPORTED_MEDIA_TYPE,
                    "Expecting 'Content-Type' of application/json or application/x-protobuf",
                )
            },
        )
    }
}

/// The form the peer wants: JSON if it allows it, whatever its preferences.
pub fn accepts(headers: &HeaderMap) -> Result<Encoding, HttpError> {
    let allowed = |encoding: &Encoding| accepts_type(headers, encoding.name());
    [Encoding::Json, Encoding::Protobuf].into_iter().find(allowed).ok_or_else(|| {
        HttpError::new(
            StatusCode::NOT_ACCEPTABLE,
            "Expecting 'Accept' to allow 'application/x-protobuf' or 'application/json'",
        )
    })
}

/// Whether the Accept header allows `media`. An absent header allows everything.
pub fn accepts_type(headers: &HeaderMap, media: &str) -> bool {
    let (kind, _) = media.split_once('/').unwrap_or((media, ""));
    let any_of_kind = format!("{kind}/*");
    allows(headers, &ACCEPT, &[media, &any_of_kind, "*/*"], true)
}

/// Whether the peer can read gzip.
pub fn accepts_gzip(headers: &HeaderMap) -> bool {
    allows(headers, &ACCEPT_ENCODING, &["gzip", "*"], false)
}

/// Looks for `names`, most specific first, among the items of a header; the first that is there decides by its q.
fn allows(headers: &HeaderMap, header: &HeaderName, names: &[&str], absent: bool) -> bool {
    let mut values = headers.get_all(header).iter().filter_map(|value| value.to_str().ok()).peekable();
    if values.peek().is_none() {
        return absent;
    }
    let items: Vec<(String, bool)> = values.flat_map(|value| value.split(',')).map(parse_item).collect();
    names
        .iter()
        .find_map(|name| items.iter().find(|(item, _)| item == name))
        .is_some_and(|(_, allowed)| *allowed)
}

/// `text/html;level=1;q=0.5` as its name and whether q leaves it allowed.
fn parse_item(item: &str) -> (String, bool) {
    let q = item.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        (name.trim().eq_ignore_ascii_case("q")).then(|| value.trim().parse::<f64>().unwrap_or(1.0))
    });
    (media_type(item), q != Some(0.0))
}

fn media_type(value: &str) -> String {
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn headers(name: HeaderName, value: Option<&str>) -> HeaderMap {
        value.map(|value| (name, HeaderValue::from_str(value).unwrap())).into_iter().collect()
    }

    #[test]
    fn the_answers_form_is_json_if_it_may_be() {
        for (accept, expected) in [
            (None, Some(Encoding::Json)),
            (Some("*/*"), Some(Encoding::Json)),
            (Some("application/*"), Some(Encoding::Json)),
            (Some("application/x-protobuf"), Some(Encoding::Protobuf)),
            (Some("application/x-protobuf, application/json;q=0.1"), Some(Encoding::Json)),
            (Some("application/json;q=0, */*"), Some(Encoding::Protobuf)),
            (Some("Application/JSON; charset=utf-8"), Some(Encoding::Json)),
            (Some("text/html"), None),
            (Some("application/recordio"), None),
            (Some("*/*;q=0"), None),
        ] {
            assert_eq!(accepts(&headers(ACCEPT, accept)).ok(), expected, "{accept:?}");
        }
    }

    #[test]
    fn the_bodys_form_ignores_case_and_parameters() {
        for (value, expected) in [
            (Some("application/json"), Ok(Encoding::Json)),
            (Some("application/json; charset=utf-8"), Ok(Encoding::Json)),
            (Some("APPLICATION/X-Protobuf"), Ok(Encoding::Protobuf)),
            (Some("text/plain"), Err(415)),
            (Some("application/json-seq"), Err(415)),
            (None, Err(400)),
        ] {
            let got = Encoding::of_body(&headers(CONTENT_TYPE, value)).map_err(|error| error.status.as_u16());
            assert_eq!(got, expected, "{value:?}");
        }
    }

    #[test]
    fn gzip_only_for_those_who_ask() {
        for (value, expected) in [
            (None, false),
            (Some("gzip, deflate"), true),
            (Some("deflate"), false),
            (Some("*"), true),
            (Some("gzip;q=0, *"), false),
            (Some("GZIP;q=0.5"), true),
        ] {
            assert_eq!(accepts_gzip(&headers(ACCEPT_ENCODING, value)), expected, "{value:?}");
        }
    }
}
