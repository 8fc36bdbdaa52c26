//! Files that a master or an agent shows: sandboxes and logs. Browse, read, download, follow.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::Client;
use crate::connection::{self, Request};
use crate::fault::Fault;

/// Interval of reads at the end of a followed file.
pub const FOLLOW_POLL: Duration = Duration::from_millis(250);

/// Characters of a path that need no escape in a query.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq)]
pub struct FileInfo {
    pub path: String,
    pub size: u64,
    /// For example `-rw-r--r--`; directories begin with `d`.
    pub mode: String,
    /// Seconds since the epoch.
    pub mtime: f64,
    pub uid: String,
    pub gid: String,
}

/// A piece of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The offset of the data; the size of the file if no offset was requested.
    pub offset: u64,
    pub data: Vec<u8>,
}

impl Client {
    /// The entries of a directory.
    pub async fn browse(&self, path: &str) -> Result<Vec<FileInfo>, Fault> {
        let entries = self.get(&query("browse", path)).await?;
        Ok(entries.as_array().into_iter().flatten().map(file_info).collect())
    }

    /// A piece of a file, possibly shorter than `length`, empty at the end. Without an offset only the size of the
    /// file is returned.
    pub async fn read(&self, path: &str, offset: Option<u64>, length: Option<u64>) -> Result<Piece, Fault> {
        let mut query = query("read", path);
        if let Some(offset) = offset {
            query += &format!("&offset={offset}");
        }
        if let Some(length) = length {
            query += &format!("&length={length}");
        }
        let (peer, body) = self.get_bytes(&query).await?;
        let unreadable = |why: &str| Fault::Unreadable { peer: peer.to_string(), why: why.to_owned() };
        piece(&body).ok_or_else(|| unreadable("expected {\"offset\": number, \"data\": string}"))
    }

    /// The whole file, piece by piece as it comes.
    pub async fn download(&self, path: &str) -> Result<Download, Fault> {
        let (peer, answer) = self.open(Request::get(query("download", path))).await?;
        if !answer.status().is_success() {
            return Err(connection::refusal(answer).await);
        }
        Ok(Download { peer: peer.to_string(), body: answer.into_body() })
    }

    /// Follows a file that grows, from `offset` on.
    pub fn follow(&self, path: &str, offset: u64) -> Tail {
        Tail { client: self.clone(), path: path.to_owned(), offset }
    }
}

/// A file on its way.
#[derive(Debug)]
pub struct Download {
    peer: String,
    body: Incoming,
}

impl Download {
    /// The next piece; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Fault> {
        while let Some(frame) = self.body.frame().await {
            let frame = frame.map_err(|err| Fault::Broken { peer: self.peer.clone(), err })?;
            if let Ok(data) = frame.into_data() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }
}

/// A file that is followed.
#[derive(Clone, Debug)]
pub struct Tail {
    client: Client,
    path: String,
    offset: u64,
}

impl Tail {
    /// Where the next piece begins.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// What is there now beyond the last piece; empty at the end of the file.
    pub async fn available(&mut self) -> Result<Vec<u8>, Fault> {
        let piece = self.client.read(&self.path, Some(self.offset), None).await?;
        self.offset += piece.data.len() as u64;
        Ok(piece.data)
    }

    /// The next piece; waits for the file to grow. A file that is not there yet counts as empty.
    pub async fn next(&mut self) -> Result<Vec<u8>, Fault> {
        loop {
            match self.available().await {
                Ok(data) if data.is_empty() => (),
                Err(Fault::Refused { status: 404, .. }) => (),
                outcome => return outcome,
            }
            tokio::time::sleep(FOLLOW_POLL).await;
        }
    }
}

fn query(what: &str, path: &str) -> String {
    format!("/files/{what}?path={}", escape(path))
}

/// A text as it may stand in a query.
pub fn escape(text: &str) -> impl std::fmt::Display {
    utf8_percent_encode(text, PLAIN)
}

fn file_info(entry: &Value) -> FileInfo {
    let text = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
    FileInfo {
        path: text("path"),
        size: entry["size"].as_u64().or_else(|| entry["size"].as_f64().map(|size| size as u64)).unwrap_or(0),
        mode: text("mode"),
        mtime: entry["mtime"].as_f64().unwrap_or(0.0),
        uid: text("uid"),
        gid: text("gid"),
    }
}

/// Reads `{"offset": …, "data": "…"}`, whose data is the file's bytes as they are: not always UTF-8, so not always JSON.
fn piece(body: &[u8]) -> Option<Piece> {
    let at = find(body, b"\"data\"")?;
    let (string, rest) = raw_string(&body[at + b"\"data\"".len()..])?;
    // Without the string, what is left is plain JSON.
    let mut plain = body[..at].to_vec();
    plain.extend_from_slice(b"\"data\":0");
    plain.extend_from_slice(rest);
    let plain: Value = serde_json::from_slice(&plain).ok()?;
    let offset = plain["offset"].as_u64().or_else(|| plain["offset"].as_f64().map(|offset| offset as u64))?;
    Some(Piece { offset, data: string })
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

/// The bytes of the JSON string after a colon, and what follows it.
fn raw_string(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let open = text.iter().position(|byte| *byte == b'"')?;
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = &text[open + 1..];
    loop {
        let (first, after) = rest.split_first()?;
        rest = after;
        match first {
            b'"' => return Some((bytes, rest)),
            b'\\' => rest = unescape(rest, &mut bytes)?,
            plain => bytes.push(*plain),
        }
    }
}

/// Reads what follows a backslash.
fn unescape<'a>(text: &'a [u8], bytes: &mut Vec<u8>) -> Option<&'a [u8]> {
    let (kind, rest) = text.split_first()?;
    bytes.push(match kind {
        b'b' => 0x08,
        b'f' => 0x0c,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'u' => {
            let (unit, rest) = code_unit(rest)?;
            let (scalar, rest) = match (unit, rest.strip_prefix(b"\\u").and_then(code_unit)) {
                (0xd800..0xdc00, Some((low @ 0xdc00..0xe000, rest))) => {
                    (0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00), rest)
                }
                (unit, _) => (unit, rest),
            };
            let scalar = char::from_u32(scalar).unwrap_or(char::REPLACEMENT_CHARACTER);
            bytes.extend_from_slice(scalar.encode_utf8(&mut [0; 4]).as_bytes());
            return Some(rest);
        }
        other => *other,
    });
    Some(rest)
}

fn code_unit(text: &[u8]) -> Option<(u32, &[u8])> {
    let (digits, rest) = text.split_at_checked(4)?;
    let digits = std::str::from_utf8(digits).ok()?;
    Some((u32::from_str_radix(digits, 16).ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_chunks_keep_every_byte() {
        let table: [(&[u8], u64, &[u8]); 6] = [
            (br#"{"offset":5,"data":"hello\n"}"#, 5, b"hello\n"),
            (br#"{"data":"a\"b\\c\/","offset":0}"#, 0, br#"a"b\c/"#),
            (b"{\"offset\":1,\"data\":\"\xff\x80\"}", 1, b"\xff\x80"),
            (br#"{"offset":1.0,"data":"\u0000\u00e9\ud83d\ude00"}"#, 1, "\0é😀".as_bytes()),
            (br#"{ "offset" : 7 , "data" : "" }"#, 7, b""),
            (br#"{"offset":0,"data":"{\"data\":1}"}"#, 0, br#"{"data":1}"#),
        ];
        for (body, offset, data) in table {
            assert_eq!(
                piece(body),
                Some(Piece { offset, data: data.to_vec() }),
                "{}",
                String::from_utf8_lossy(body)
            );
        }
        for body in [&b"{}"[..], b"{\"offset\":1}", b"{\"data\":\"x\"}", b"{\"offset\":1,\"data\":\"x", b""] {
            assert_eq!(piece(body), None, "{}", String::from_utf8_lossy(body));
        }
    }

    #[test]
    fn paths_are_escaped() {
        assert_eq!(query("read", "/a b/c&d+é"), "/files/read?path=/a%20b/c%26d%2B%C3%A9");
    }
}
