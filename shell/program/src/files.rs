//! Sandboxes and logs over HTTP: `/files/{browse,read,download,debug}`, LIST_FILES and READ_FILE.
//!
//! A path is virtual: it begins with one that is attached, which is a directory or a file under one of its names.
//! Nothing outside of it is ever opened: not by `..`, not through a link, not through a link made while we look.

mod attached;
mod entry;
mod open;
mod utf8;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use http::StatusCode;
use http::header::{CONTENT_DISPOSITION, HeaderValue};
use tepui_http::{HttpError, Query, Request, Response, json, stream_file, with_header};
use tepui_proto::json::JsonWriter;
use tepui_proto::mesos::v1 as pb;

pub use attached::Attached;
use entry::Entry;
use open::{FilesError, Opened};

/// What one answer of `read` holds at most: sixteen pages.
const READ_BYTES_MAX: usize = 16 * 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Browse,
    Read,
    Download,
    Debug,
}

/// One of the classic endpoints. `attached` is called where it may block.
pub async fn answer(
    verb: Verb,
    attached: impl FnOnce() -> Vec<Attached> + Send + 'static,
    request: &Request,
) -> Result<Response, HttpError> {
    let query = request.query.clone();
    looking(move || {
        let attached = attached();
        match verb {
            Verb::Browse => browse_document(&attached, &query),
            Verb::Read => read_document(&attached, &query),
            Verb::Download => download(&attached, &query),
            Verb::Debug => Ok(json(&query, debug_document(&attached))),
        }
    })
    .await
}

/// Looks at files on a thread that may wait for the disk.
pub async fn looking<T: Send + 'static>(
    look: impl FnOnce() -> Result<T, HttpError> + Send + 'static,
) -> Result<T, HttpError> {
    tokio::task::spawn_blocking(look).await.map_err(|err| {
        tracing::error!(%err, "cannot read files");
        HttpError::plain(StatusCode::INTERNAL_SERVER_ERROR)
    })?
}

/// LIST_FILES.
pub fn list(attached: &[Attached], path: &str) -> Result<Vec<pb::FileInfo>, HttpError> {
    Ok(browse(attached, path)?.iter().map(Entry::to_proto).collect())
}

/// READ_FILE: a part of a file, and the size of the whole.
pub fn read_part(
    attached: &[Attached],
    path: &str,
    offset: u64,
    length: Option<u64>,
) -> Result<(Vec<u8>, u64), HttpError> {
    Ok(read(attached, path, offset, length)?)
}

/// The entries of a directory, sorted by path; none for a file.
fn browse(attached: &[Attached], path: &str) -> Result<Vec<Entry>, FilesError> {
    match Opened::open(attached, path)? {
        Opened::File(_) => Ok(Vec::new()),
        Opened::Directory(directory) => entry::entries(&directory, path),
    }
}

/// A part of a file, and the size of the whole.
fn read(
    attached: &[Attached],
    path: &str,
    offset: u64,
    length: Option<u64>,
) -> Result<(Vec<u8>, u64), FilesError> {
    let mut file = open_file(attached, path, "Cannot read a directory.\n")?;
    let size = file.metadata().map_err(FilesError::Io)?.len();
    let wanted = length.unwrap_or(u64::MAX).min(READ_BYTES_MAX as u64);
    let mut data = Vec::new();
    if offset < size {
        file.seek(SeekFrom::Start(offset)).map_err(FilesError::Io)?;
        file.take(wanted).read_to_end(&mut data).map_err(FilesError::Io)?;
    }
    Ok((data, size))
}

fn open_file(attached: &[Attached], path: &str, refusal: &'static str) -> Result<File, FilesError> {
    match Opened::open(attached, path)? {
        Opened::File(file) => Ok(file),
        Opened::Directory(_) => Err(FilesError::Wrong(refusal.to_owned())),
    }
}

fn browse_document(attached: &[Attached], query: &Query) -> Result<Response, HttpError> {
    let entries = browse(attached, path_of(query)?)?;
    let mut w = JsonWriter::new();
    w.array(|w| entries.iter().for_each(|entry| entry.write(w)));
    Ok(json(query, w.into_vec()))
}

fn read_document(attached: &[Attached], query: &Query) -> Result<Response, HttpError> {
    let path = path_of(query)?;
    let offset = number(query, "offset")?;
    let length = number(query, "length")?;
    let (data, at) = match offset {
        // No offset asks for the size.
        None => (Vec::new(), read(attached, path, u64::MAX, Some(0))?.1),
        Some(offset) => (read(attached, path, offset, length)?.0, offset),
    };
    let mut w = JsonWriter::new();
    w.object(|w| {
        w.field("data", &utf8::lossy(data));
        w.field("offset", &at);
    });
    Ok(json(query, w.into_vec()))
}

/// A number of the query; absent and -1 are none.
fn number(query: &Query, name: &'static str) -> Result<Option<u64>, HttpError> {
    let Some(text) = query.get(name) else { return Ok(None) };
    match text.parse::<i64>() {
        Ok(-1) => Ok(None),
        Ok(number) => match u64::try_from(number) {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(HttpError::bad_request(format!("Negative {name} provided: {number}.\n"))),
        },
        Err(err) => Err(HttpError::bad_request(format!("Failed to parse {name}: {err}.\n"))),
    }
}

fn download(attached: &[Attached], query: &Query) -> Result<Response, HttpError> {
    let path = path_of(query)?;
    let file = open_file(attached, path, "Cannot download a directory.\n")?;
    let name = path.rsplit('/').find(|part| !part.is_empty()).unwrap_or("file");
    let disposition = format!("attachment; filename={}", quoted(name));
    let disposition = HeaderValue::from_str(&disposition).unwrap_or(HeaderValue::from_static("attachment"));
    let response = stream_file(file, content_type(name)).map_err(FilesError::Io)?;
    Ok(with_header(response, CONTENT_DISPOSITION, disposition))
}

/// A file name as a header can carry it.
fn quoted(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    match name.chars().all(is_plain) {
        true => name.to_owned(),
        false => {
            let safe =
                |c: char| if c.is_ascii_graphic() && !matches!(c, '"' | '\\') || c == ' ' { c } else { '_' };
            format!("\"{}\"", name.chars().map(safe).collect::<String>())
        }
    }
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, extension)| extension) {
        Some("txt" | "log") => "text/plain",
        Some("json") => "application/json",
        Some("gz" | "tgz") => "application/x-gzip",
        Some("zip") => "application/zip",
        // Never anything that a browser would run.
        Some(_) | None => "application/octet-stream",
    }
}

fn debug_document(attached: &[Attached]) -> Vec<u8> {
    let by_path: BTreeMap<&str, &str> = attached.iter().map(|one| (&*one.path, &*one.real)).collect();
    let mut w = JsonWriter::new();
    w.object(|w| by_path.iter().for_each(|(path, real)| w.field(path, *real)));
    w.into_vec()
}

fn path_of(query: &Query) -> Result<&str, HttpError> {
    match query.get("path") {
        None | Some("") => Err(HttpError::bad_request("Expecting 'path=value' in query.\n")),
        Some(path) => Ok(path),
    }
}

impl From<FilesError> for HttpError {
    fn from(error: FilesError) -> Self {
        match error {
            FilesError::NotFound => HttpError::new(StatusCode::NOT_FOUND, ""),
            FilesError::Wrong(message) => HttpError::bad_request(message),
            FilesError::Io(err) => {
                HttpError::new(StatusCode::INTERNAL_SERVER_ERROR, format!("Failed to read: {err}.\n"))
            }
        }
    }
}

#[cfg(test)]
mod tests;
