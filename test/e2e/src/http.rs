//! A raw HTTP client, so that a test can send exact bytes, including invalid ones.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::Value;

use crate::patience;

#[derive(Clone, Debug)]
pub struct Http {
    address: String,
}

#[derive(Clone, Debug)]
pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// A RecordIO event stream.
pub struct Stream {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    body: Chunks,
    unread: Vec<u8>,
}

struct Chunks {
    reader: BufReader<TcpStream>,
}

impl Http {
    pub fn new(address: &str) -> Self {
        Self { address: address.to_string() }
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    pub fn get(&self, path: &str) -> Response {
        self.send("GET", path, &[], b"")
    }

    /// POSTs JSON and reads the complete answer.
    pub fn post(&self, path: &str, body: &Value) -> Response {
        self.send("POST", path, &[("Content-Type", "application/json")], body.to_string().as_bytes())
    }

    /// Sends a request; an unreachable server is status 0.
    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Response {
        let failed = Response { status: 0, headers: Vec::new(), body: Vec::new() };
        let Ok((status, headers, mut reader)) = self.request(method, path, headers, body) else {
            return failed;
        };
        let mut body = Vec::new();
        if header(&headers, "transfer-encoding") == Some("chunked") {
            let mut chunks = Chunks { reader };
            while let Ok(Some(chunk)) = chunks.next() {
                body.extend(chunk);
            }
        } else if reader.read_to_end(&mut body).is_err() {
            return failed;
        }
        Response { status, headers, body }
    }

    /// Sends a request and reads the answer's head, and its body unless that is a stream.
    pub fn head_of(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Response {
        let (status, headers, mut reader) =
            self.request(method, path, headers, body).expect("the server answers");
        let mut body = Vec::new();
        if header(&headers, "transfer-encoding") != Some("chunked") {
            reader.read_to_end(&mut body).expect("the answer ends");
        }
        Response { status, headers, body }
    }

    /// POSTs JSON and keeps the answer open as an event stream.
    pub fn stream(&self, path: &str, headers: &[(&str, &str)], body: &Value) -> Stream {
        self.try_stream(path, headers, body).expect("the server answers")
    }

    /// Like `stream`; `None` without an answer.
    pub fn try_stream(&self, path: &str, headers: &[(&str, &str)], body: &Value) -> Option<Stream> {
        let headers: Vec<_> = [("Content-Type", "application/json")].iter().chain(headers).copied().collect();
        let (status, headers, reader) =
            self.request("POST", path, &headers, body.to_string().as_bytes()).ok()?;
        Some(Stream { status, headers, body: Chunks { reader }, unread: Vec::new() })
    }

    /// Opens a connection and sends these bytes, whatever they are.
    pub fn raw(&self, bytes: &[u8]) -> std::io::Result<TcpStream> {
        let mut stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(patience()))?;
        stream.write_all(bytes)?;
        Ok(stream)
    }

    fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> std::io::Result<(u16, Vec<(String, String)>, BufReader<TcpStream>)> {
        let mut text = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", self.address);
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
        let mut stream = self.raw(text.as_bytes())?;
        stream.write_all(body)?;
        read_head(stream)
    }
}

fn read_head(stream: TcpStream) -> std::io::Result<(u16, Vec<(String, String)>, BufReader<TcpStream>)> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let status = line.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
    let mut headers = Vec::new();
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        match line.trim_end().split_once(':') {
            Some((name, value)) => headers.push((name.to_lowercase(), value.trim().to_string())),
            None => return Ok((status, headers, reader)),
        }
    }
}

fn header<'h>(headers: &'h [(String, String)], name: &str) -> Option<&'h str> {
    headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}

impl Response {
    pub fn json(&self) -> Option<Value> {
        serde_json::from_slice(&self.body).ok()
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        header(&self.headers, name)
    }
}

impl Chunks {
    /// The next chunk; `None` at the end of the body.
    fn next(&mut self) -> std::io::Result<Option<Vec<u8>>> {
        let mut line = String::new();
        self.reader.read_line(&mut line)?;
        let size = usize::from_str_radix(line.trim(), 16).unwrap_or(0);
        if size == 0 {
            return Ok(None);
        }
        let mut chunk = vec![0; size + 2];
        self.reader.read_exact(&mut chunk)?;
        chunk.truncate(size);
        Ok(Some(chunk))
    }
}

impl Stream {
    pub fn header(&self, name: &str) -> Option<&str> {
        header(&self.headers, name)
    }

    /// The next event; `None` at the end of the stream.
    pub fn next_event(&mut self) -> Option<Value> {
        self.next_record().map(|record| serde_json::from_slice(&record).expect("an event is JSON"))
    }

    /// The raw record.
    pub fn next_record(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(record) = self.take_record() {
                return Some(record);
            }
            match self.body.next() {
                Ok(Some(chunk)) => self.unread.extend(chunk),
                Ok(None) | Err(_) => return None,
            }
        }
    }

    fn take_record(&mut self) -> Option<Vec<u8>> {
        let line = self.unread.iter().position(|byte| *byte == b'\n')?;
        let size: usize =
            std::str::from_utf8(&self.unread[..line]).ok()?.parse().expect("a record starts with its size");
        if self.unread.len() < line + 1 + size {
            return None;
        }
        let record = self.unread[line + 1..line + 1 + size].to_vec();
        self.unread.drain(..line + 1 + size);
        Some(record)
    }
}
