//! A web server with a few fixed pages that counts its visitors.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// Serves until the test process exits.
pub struct Web {
    pub port: u16,
    visits: Arc<Mutex<BTreeMap<String, usize>>>,
}

impl Web {
    /// Pages by path: their status and content. Everything else is 404.
    pub fn serve(pages: &[(&str, u16, &[u8])]) -> Self {
        let pages: Arc<BTreeMap<String, (u16, Vec<u8>)>> = Arc::new(
            pages.iter().map(|(path, status, body)| (path.to_string(), (*status, body.to_vec()))).collect(),
        );
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let visits = Arc::new(Mutex::new(BTreeMap::new()));
        let counter = visits.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (pages, counter) = (pages.clone(), counter.clone());
                // Browsers open connections before they have a request. A malformed request gets no answer.
                std::thread::spawn(move || answer(stream, &pages, &counter));
            }
        });
        Self { port, visits }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// The number of GET requests for this path.
    pub fn visits(&self, path: &str) -> usize {
        self.visits.lock().expect("no visitor panics").get(path).copied().unwrap_or_default()
    }
}

fn answer(
    stream: TcpStream,
    pages: &BTreeMap<String, (u16, Vec<u8>)>,
    visits: &Mutex<BTreeMap<String, usize>>,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    if method == "GET" {
        *visits.lock().expect("no visitor panics").entry(path.to_string()).or_default() += 1;
    }
    let missing = (404, Vec::new());
    let (status, body) = pages.get(path).unwrap_or(&missing);
    let mut answer =
        format!("HTTP/1.1 {status} Status\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len())
            .into_bytes();
    if method != "HEAD" {
        answer.extend(body);
    }
    loop {
        let mut header = String::new();
        if reader.read_line(&mut header)? == 0 || header.trim().is_empty() {
            break;
        }
    }
    (&stream).write_all(&answer)
}
