//! Content negotiation: the form of a body and the form that the peer accepts.
//!
//! More liberal than a v1 master: parameters (`; charset=utf-8`) and any case are fine in a Content-Type.

use bytes::Bytes;
use http::StatusCode;
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
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

/// The form for the peer: JSON if it accepts it, independent of its preferences.
pub fn accepts(headers: &HeaderMap) -> Result<Encoding, HttpError> {
    let allowed = |encoding: &Encoding| accepts_type(headers, encoding.name());
    [Encoding::Json, Encoding::Protobuf].into_iter().find(allowed).ok_or_else(|| {
        HttpError::new(
            StatusCode::NOT_ACCEPTABLE,
            "Expecting 'Accept' to allow 'application/x-protobuf' or 'application/json'",
        )
    })
}

/// Streams of records, whatever the form of each.
const RECORDIO: &str = "application/recordio";

/// The header with the form of the records of a stream.
const MESSAGE_CONTENT_TYPE: &str = "message-content-type";

/// The header with the requested form of the records of an answer.
const MESSAGE_ACCEPT: &str = "message-accept";

/// How a stream of messages is answered: the form of its records, and whether the stream itself is called RecordIO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamForm {
    pub encoding: Encoding,
    pub is_named: bool,
}

impl StreamForm {
    /// The Content-Type of the answer.
    pub fn headers(self) -> Vec<(HeaderName, HeaderValue)> {
        let name = HeaderValue::from_static(self.encoding.name());
        match self.is_named {
            true => vec![
                (CONTENT_TYPE, HeaderValue::from_static(RECORDIO)),
                (HeaderName::from_static(MESSAGE_CONTENT_TYPE), name),
            ],
            false => vec![(CONTENT_TYPE, name)],
        }
    }
}

/// The form of an agent's answer, which may be a stream: a peer may name the form of the records, or that of the stream
/// and then that of the records by `Message-Accept`, which only then makes sense.
pub fn accepts_stream(headers: &HeaderMap) -> Result<StreamForm, HttpError> {
    let refused = |words: &str| Err(HttpError::new(StatusCode::NOT_ACCEPTABLE, words.to_owned()));
    let message_accept = HeaderName::from_static(MESSAGE_ACCEPT);
    match (accepts(headers), headers.contains_key(&message_accept)) {
        (Ok(encoding), false) => return Ok(StreamForm { encoding, is_named: false }),
        (Ok(_), true) => {
            return refused("Expecting 'Message-Accept' to be not set for non-streaming responses");
        }
        (Err(_), _) if accepts_type(headers, RECORDIO) => (),
        (Err(_), _) => {
            return refused(
                "Expecting 'Accept' to allow application/json or application/x-protobuf or application/recordio",
            );
        }
    }
    let wanted =
        |one: &Encoding| allows(headers, &message_accept, &[one.name(), "application/*", "*/*"], true);
    match [Encoding::Json, Encoding::Protobuf].into_iter().find(wanted) {
        Some(encoding) => Ok(StreamForm { encoding, is_named: true }),
        None => refused("Expecting 'Message-Accept' to allow application/json or application/x-protobuf"),
    }
}

/// The form of the records of a request to an agent that is a stream; `None` if it is not one.
pub fn streamed_body(headers: &HeaderMap) -> Result<Option<Encoding>, HttpError> {
    let media = |name: &str| headers.get(name).map(|value| media_type(value.to_str().unwrap_or_default()));
    let unsupported = |words: &str| Err(HttpError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, words.to_owned()));
    let records = media(MESSAGE_CONTENT_TYPE);
    let is_stream = match Encoding::of_body(headers) {
        Ok(_) => false,
        Err(_) if media(CONTENT_TYPE.as_str()).as_deref() == Some(RECORDIO) => true,
        Err(error) if error.status == StatusCode::UNSUPPORTED_MEDIA_TYPE => {
            return unsupported(
                "Expecting 'Content-Type' of application/json or application/x-protobuf or application/recordio",
            );
        }
        Err(error) => return Err(error),
    };
    match (is_stream, records) {
        (false, None) => Ok(None),
        (false, Some(_)) => {
            unsupported("Expecting 'Message-Content-Type' to be not set for non-streaming requests")
        }
        (true, None) => {
            Err(HttpError::bad_request("Expecting 'Message-Content-Type' to be set for streaming requests"))
        }
        (true, Some(name)) => {
            match [Encoding::Json, Encoding::Protobuf].into_iter().find(|one| one.name() == name) {
                Some(encoding) => Ok(Some(encoding)),
                None => unsupported(
                    "Expecting 'Message-Content-Type' of application/json or application/x-protobuf",
                ),
            }
        }
    }
}

/// Whether the Accept header allows `media`. An absent header allows everything.
pub fn accepts_type(headers: &HeaderMap, media: &str) -> bool {
    let (kind, _) = media.split_once('/').unwrap_or((media, ""));
    let any_of_kind = format!("{kind}/*");
    allows(headers, &ACCEPT, &[media, &any_of_kind, "*/*"], true)
}

/// Whether the Accept header names `media` itself, and thereby prefers it to the default.
pub(crate) fn asks_for_type(headers: &HeaderMap, media: &str) -> bool {
    allows(headers, &ACCEPT, &[media], false)
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
    fn response_encoding_prefers_json() {
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
    fn content_type_ignores_case_and_parameters() {
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
    fn stream_encoding_is_negotiated_by_accept_headers() {
        let headers = |accept: Option<&'static str>, message: Option<&'static str>| -> HeaderMap {
            let pairs = [(ACCEPT, accept), (HeaderName::from_static(MESSAGE_ACCEPT), message)];
            let value = |(name, value): (HeaderName, Option<&'static str>)| {
                value.map(|value| (name, HeaderValue::from_static(value)))
            };
            pairs.into_iter().filter_map(value).collect()
        };
        let (json, protobuf) = ("application/json", "application/x-protobuf");
        for (accept, message, expected) in [
            (None, None, Ok((Encoding::Json, false))),
            (Some(protobuf), None, Ok((Encoding::Protobuf, false))),
            (Some(RECORDIO), Some(json), Ok((Encoding::Json, true))),
            (Some(RECORDIO), Some(protobuf), Ok((Encoding::Protobuf, true))),
            (Some(RECORDIO), None, Ok((Encoding::Json, true))),
            (Some(RECORDIO), Some("*/*"), Ok((Encoding::Json, true))),
            (Some(RECORDIO), Some("application/json;q=0, application/*"), Ok((Encoding::Protobuf, true))),
            (Some(RECORDIO), Some("APPLICATION/X-PROTOBUF"), Ok((Encoding::Protobuf, true))),
            (Some("application/recordio, text/html"), Some(json), Ok((Encoding::Json, true))),
            (Some("*/*"), None, Ok((Encoding::Json, false))),
            (Some("application/json;q=0, application/x-protobuf;q=0, */*"), None, Ok((Encoding::Json, true))),
            (Some("application/recordio, application/json;q=0.1"), None, Ok((Encoding::Json, false))),
            (Some(RECORDIO), Some("text/html"), Err(406)),
            (Some(json), Some(json), Err(406)),
            (Some("*/*"), Some(json), Err(406)),
            (None, Some(json), Err(406)),
            (Some("text/html"), None, Err(406)),
            (Some("text/html"), Some(json), Err(406)),
            (Some("application/recordio;q=0"), None, Err(406)),
        ] {
            let form = accepts_stream(&headers(accept, message));
            let form = form.map(|form| (form.encoding, form.is_named)).map_err(|err| err.status.as_u16());
            assert_eq!(form, expected, "{accept:?} {message:?}");
        }
    }

    #[test]
    fn request_stream_encoding_follows_content_type_headers() {
        let json = "application/json";
        for (content, message, expected) in [
            (Some(json), None, Ok(None)),
            (Some("Application/JSON; charset=utf-8"), None, Ok(None)),
            (None, None, Err(400)),
            (None, Some(json), Err(400)),
            (Some("text/html"), None, Err(415)),
            (Some("text/html"), Some(json), Err(415)),
            (Some("Application/RecordIO; x=y"), Some("APPLICATION/JSON"), Ok(Some(Encoding::Json))),
            (Some(RECORDIO), Some(RECORDIO), Err(415)),
            (Some(RECORDIO), Some(json), Ok(Some(Encoding::Json))),
            (Some(RECORDIO), Some("application/x-protobuf"), Ok(Some(Encoding::Protobuf))),
            (Some(RECORDIO), None, Err(400)),
            (Some(RECORDIO), Some("text/html"), Err(415)),
            (Some(json), Some(json), Err(415)),
        ] {
            let pairs = [(CONTENT_TYPE, content), (HeaderName::from_static(MESSAGE_CONTENT_TYPE), message)];
            let pairs =
                pairs.into_iter().filter_map(|(name, value)| Some((name, HeaderValue::from_static(value?))));
            let form = streamed_body(&pairs.collect()).map_err(|err| err.status.as_u16());
            assert_eq!(form, expected, "{content:?} {message:?}");
        }
    }

    #[test]
    fn gzip_requires_accept_encoding() {
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
