//! Answers to calls, taken from the bytes of a connection: pure parsing.

use bytes::{Buf, BytesMut};
use httparse::Status;

use crate::endpoint::Endpoint;
use crate::fault::Fault;

/// The longest head of an answer.
const HEAD_BYTES_MAX: usize = 64 * 1024;
const HEADERS_MAX: usize = 100;
/// The longest body of an answer to a call.
const BODY_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The text of a refusal is cut here.
const REFUSAL_BYTES_MAX: usize = 64 * 1024;

#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    status: u16,
    message: String,
    /// Whether the peer closes the connection after it.
    pub is_last: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Parsed {
    Whole(Answer),
    /// More bytes are needed.
    Partial,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Malformed {
    Syntax(String),
    TooLong,
}

impl Malformed {
    pub fn fault(self, peer: &Endpoint) -> Fault {
        let peer = peer.to_string();
        match self {
            Malformed::Syntax(why) => Fault::Unreadable { peer, why },
            Malformed::TooLong => Fault::TooLong { peer, max: BODY_BYTES_MAX },
        }
    }
}

impl Answer {
    pub fn outcome(self) -> Result<(), Fault> {
        match self.status {
            200..300 => Ok(()),
            status => Err(Fault::Refused { status, message: self.message }),
        }
    }
}

struct Head {
    status: u16,
    bytes: usize,
    body: Body,
    is_last: bool,
}

enum Body {
    Sized(usize),
    Chunked,
    UntilClose,
}

/// Takes the first answer out of `received`. `is_closed` means that nothing follows.
pub fn take(received: &mut BytesMut, is_closed: bool) -> Result<Parsed, Malformed> {
    loop {
        let Some(head) = head(received)? else { return Ok(Parsed::Partial) };
        let rest = &received[head.bytes..];
        let (body, body_bytes) = match head.body {
            Body::Sized(size) if size > BODY_BYTES_MAX => return Err(Malformed::TooLong),
            Body::Sized(size) if rest.len() < size => return Ok(Parsed::Partial),
            Body::Sized(size) => (rest[..size].to_vec(), size),
            Body::Chunked => match chunks(rest)? {
                Some(whole) => whole,
                None => return Ok(Parsed::Partial),
            },
            Body::UntilClose if rest.len() > BODY_BYTES_MAX => return Err(Malformed::TooLong),
            Body::UntilClose if !is_closed => return Ok(Parsed::Partial),
            Body::UntilClose => (rest.to_vec(), rest.len()),
        };
        let is_interim = (100..200).contains(&head.status);
        received.advance(head.bytes + body_bytes);
        if !is_interim {
            let text = String::from_utf8_lossy(&body[..body.len().min(REFUSAL_BYTES_MAX)]).trim().to_owned();
            return Ok(Parsed::Whole(Answer { status: head.status, message: text, is_last: head.is_last }));
        }
    }
}

fn head(received: &[u8]) -> Result<Option<Head>, Malformed> {
    let syntax = |why: &str| Malformed::Syntax(why.to_owned());
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut answer = httparse::Response::new(&mut headers);
    let bytes = match answer.parse(received).map_err(|err| Malformed::Syntax(err.to_string()))? {
        Status::Complete(bytes) => bytes,
        Status::Partial if received.len() > HEAD_BYTES_MAX => return Err(syntax("its head is too long")),
        Status::Partial => return Ok(None),
    };
    let (Some(status), Some(version)) = (answer.code, answer.version) else {
        return Err(syntax("it has no status"));
    };
    let text = |name: &str| {
        let header = answer.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(header.value).ok().map(str::trim)
    };
    let body = match (text("transfer-encoding"), text("content-length")) {
        _ if matches!(status, 100..200 | 204 | 304) => Body::Sized(0),
        (Some(coding), _) if coding.eq_ignore_ascii_case("chunked") => Body::Chunked,
        (Some(_), _) => return Err(syntax("its transfer encoding is unknown")),
        (None, Some(length)) => {
            Body::Sized(length.parse().map_err(|_| syntax("its content length is no number"))?)
        }
        (None, None) => Body::UntilClose,
    };
    let closes = text("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
    let is_last = closes || version == 0 || matches!(body, Body::UntilClose);
    Ok(Some(Head { status, bytes, body, is_last }))
}

/// A body of chunks with its size on the wire; none if it is not whole.
fn chunks(bytes: &[u8]) -> Result<Option<(Vec<u8>, usize)>, Malformed> {
    let (mut body, mut at) = (Vec::new(), 0);
    loop {
        let parsed = httparse::parse_chunk_size(&bytes[at..]);
        let parsed = parsed.map_err(|_| Malformed::Syntax("its chunks are malformed".to_owned()))?;
        let Status::Complete((line, size)) = parsed else { return Ok(None) };
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        if size > BODY_BYTES_MAX - body.len() {
            return Err(Malformed::TooLong);
        }
        at += line;
        if size == 0 {
            // Trailers have no meaning for a call.
            let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
            let trailers = httparse::parse_headers(&bytes[at..], &mut headers);
            let trailers = trailers.map_err(|err| Malformed::Syntax(err.to_string()))?;
            return Ok(match trailers {
                Status::Complete((length, _)) => Some((body, at + length)),
                Status::Partial => None,
            });
        }
        let Some(chunk) = bytes.get(at..at + size + 2) else { return Ok(None) };
        let Some(data) = chunk.strip_suffix(b"\r\n") else {
            return Err(Malformed::Syntax("its chunks are malformed".to_owned()));
        };
        body.extend_from_slice(data);
        at += size + 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answers in `bytes` as `status text`, with `!` for the last on its connection, then what is left or wrong.
    fn read(bytes: &str, is_closed: bool) -> Vec<String> {
        let (mut received, mut read) = (BytesMut::from(bytes), Vec::new());
        loop {
            match take(&mut received, is_closed) {
                Ok(Parsed::Whole(Answer { status, message, is_last })) => {
                    let last = if is_last { "!" } else { "" };
                    read.push(format!("{status} {message}{last}"));
                }
                Ok(Parsed::Partial) => {
                    read.extend((!received.is_empty()).then(|| format!("{} bytes left", received.len())));
                    return read;
                }
                Err(Malformed::TooLong) => read.push("too long".to_owned()),
                Err(Malformed::Syntax(why)) => read.push(why),
            }
            if read.last().is_some_and(|last| !last.starts_with(|c: char| c.is_ascii_digit())) {
                return read;
            }
        }
    }

    #[test]
    fn responses_are_parsed_in_order_with_any_framing() {
        let accepted = "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n";
        let chunked = "HTTP/1.1 400 Bad Request\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nt: 1\r\n\r\n";
        for (bytes, expected) in [
            (accepted.repeat(2), vec!["202 ", "202 "]),
            (format!("HTTP/1.1 100 Continue\r\n\r\n{accepted}"), vec!["202 "]),
            (format!("HTTP/1.1 403 No\r\nContent-Length: 3\r\n\r\nno\n{accepted}"), vec!["403 no", "202 "]),
            (format!("{chunked}{accepted}"), vec!["400 abcde", "202 "]),
            ("HTTP/1.1 204 No Content\r\n\r\n".to_owned(), vec!["204 "]),
            ("HTTP/1.1 202 A\r\nconnection: close\r\ncontent-length: 0\r\n\r\n".to_owned(), vec!["202 !"]),
            ("HTTP/1.0 202 A\r\ncontent-length: 0\r\n\r\n".to_owned(), vec!["202 !"]),
            ("HTTP/1.1 202 A\r\ncontent-length: 2\r\n\r\nx".to_owned(), vec!["38 bytes left"]),
            ("HTTP/1.1 202 A\r\n\r\nx".to_owned(), vec!["19 bytes left"]),
            (
                "HTTP/1.1 202 A\r\ncontent-length: x\r\n\r\n".to_owned(),
                vec!["its content length is no number"],
            ),
            (
                "HTTP/1.1 202 A\r\ntransfer-encoding: gzip\r\n\r\n".to_owned(),
                vec!["its transfer encoding is unknown"],
            ),
            (
                "HTTP/1.1 202 A\r\ntransfer-encoding: chunked\r\n\r\n1\r\nabc".to_owned(),
                vec!["its chunks are malformed"],
            ),
            (format!("HTTP/1.1 202 A\r\ncontent-length: {}\r\n\r\n", BODY_BYTES_MAX + 1), vec!["too long"]),
            (
                format!("HTTP/1.1 202 A\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n", BODY_BYTES_MAX + 1),
                vec!["too long"],
            ),
            (format!("HTTP/1.1 202 A\r\nx: {}", "y".repeat(HEAD_BYTES_MAX)), vec!["its head is too long"]),
            ("SSH-2.0-x\r\n".to_owned(), vec!["invalid HTTP version"]),
        ] {
            assert_eq!(read(&bytes, false), expected, "{bytes:.80}");
        }
        assert_eq!(read("HTTP/1.1 500 E\r\n\r\nwhy", true), ["500 why!"]);
    }

    /// However the bytes are cut, the same answers come out.
    #[test]
    fn responses_split_at_any_byte_are_parsed() {
        let bytes = "HTTP/1.1 400 B\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\nHTTP/1.1 202 A\r\ncontent-length: 0\r\n\r\n";
        for cut in 0..bytes.len() {
            let mut received = BytesMut::from(&bytes[..cut]);
            let mut statuses = Vec::new();
            for more in ["", &bytes[cut..]] {
                received.extend_from_slice(more.as_bytes());
                while let Ok(Parsed::Whole(answer)) = take(&mut received, false) {
                    statuses.push(answer.status);
                }
            }
            assert_eq!((statuses, received.len()), (vec![400, 202], 0), "{cut}");
        }
    }
}
