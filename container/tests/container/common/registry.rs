//! A registry for tests, over an OCI layout; it may want a login, and may send blobs from elsewhere.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::Value;

/// `user:secret` as a login, and the token that is given for it.
pub const LOGIN: &str = "dXNlcjpzZWNyZXQ=";
const TOKEN: &str = "a-token";
/// What may be exchanged for that token.
pub const IDENTITY: &str = "an identity";

#[derive(Clone, Copy, PartialEq)]
pub enum Wants {
    Nothing,
    Basic,
    Bearer,
}

#[derive(Clone)]
pub struct Registry {
    pub address: String,
    layout: PathBuf,
    wants: Wants,
    /// Method and path of every request that was answered.
    pub requests: Arc<Mutex<Vec<String>>>,
}

impl Registry {
    /// Serves `app:latest`.
    pub fn start(layout: &Path, wants: Wants) -> Registry {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let registry = Registry { address, layout: layout.to_owned(), wants, requests: Arc::default() };
        let serving = registry.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let registry = serving.clone();
                std::thread::spawn(move || registry.serve(stream));
            }
        });
        registry
    }

    /// How many requests had this in their path.
    pub fn count(&self, what: &str) -> usize {
        self.requests.lock().unwrap().iter().filter(|path| path.contains(what)).count()
    }

    fn serve(&self, mut stream: TcpStream) -> Option<()> {
        let mut reader = BufReader::new(stream.try_clone().ok()?);
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
            let is_head = line.starts_with("HEAD ");
            let path = line.split_whitespace().nth(1)?.to_owned();
            let (mut login, mut length) = (String::new(), 0);
            loop {
                line.clear();
                reader.read_line(&mut line).ok()?;
                match line.trim().split_once(": ") {
                    Some((name, value)) if name.eq_ignore_ascii_case("authorization") => {
                        login = value.to_owned()
                    }
                    Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                        length = value.parse().ok()?;
                    }
                    Some(_) => (),
                    None => break,
                }
            }
            self.requests.lock().unwrap().push(path.clone());
            let mut form = vec![0; length];
            reader.read_exact(&mut form).ok()?;
            let form = String::from_utf8_lossy(&form).into_owned();
            let (status, header, body) = match path.as_str() {
                "/token" => exchange(&form),
                _ => self.answer(&path, &login),
            };
            let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n{header}\r\n", body.len());
            stream.write_all(head.as_bytes()).ok()?;
            if !is_head {
                stream.write_all(&body).ok()?;
            }
        }
    }

    fn answer(&self, path: &str, login: &str) -> (&'static str, String, Vec<u8>) {
        let none = String::new();
        if path.starts_with("/token?") {
            let is_right =
                login == format!("Basic {LOGIN}") && path.contains("scope=repository%3Aapp%3Apull");
            return match is_right {
                true => ("200 OK", none, format!(r#"{{"token":"{TOKEN}"}}"#).into_bytes()),
                false => ("401 Unauthorized", none, b"who are you".to_vec()),
            };
        }
        let is_in = path.starts_with("/elsewhere/")
            || match self.wants {
                Wants::Nothing => true,
                Wants::Basic => login == format!("Basic {LOGIN}"),
                Wants::Bearer => login == format!("Bearer {TOKEN}"),
            };
        if !is_in {
            let challenge = match self.wants {
                Wants::Basic => String::from("Basic realm=\"test\""),
                _ => format!(
                    "Bearer realm=\"http://{}/token\",service=\"test\",scope=\"repository:app:pull\"",
                    self.address
                ),
            };
            return ("401 Unauthorized", format!("WWW-Authenticate: {challenge}\r\n"), Vec::new());
        }
        let read = |hex: &str| std::fs::read(self.layout.join("blobs/sha256").join(hex)).ok();
        let index: Value =
            serde_json::from_slice(&std::fs::read(self.layout.join("index.json")).unwrap()).unwrap();
        let latest = index["manifests"][0]["digest"].as_str().unwrap().replace("sha256:", "");
        if path == "/v2/" {
            return ("200 OK", none, Vec::new());
        }
        let found = match path.trim_start_matches("/v2/app/").split_once('/') {
            Some(("manifests", "latest")) => read(&latest),
            Some(("manifests", digest)) => read(&digest.replace("sha256:", "")),
            // Blobs are elsewhere, as they often are.
            Some(("blobs", digest)) => {
                return ("307 Temporary Redirect", format!("Location: /elsewhere/{digest}\r\n"), Vec::new());
            }
            _ => path.strip_prefix("/elsewhere/sha256:").and_then(read),
        };
        match found {
            Some(body) => ("200 OK", kind(&body), body),
            None => ("404 Not Found", none, br#"{"errors":[{"code":"MANIFEST_UNKNOWN"}]}"#.to_vec()),
        }
    }
}

/// A token for an identity, as OAuth2 has it.
fn exchange(form: &str) -> (&'static str, String, Vec<u8>) {
    let identity = IDENTITY.replace(' ', "%20");
    let wanted = [
        "grant_type=refresh_token".to_owned(),
        "service=test".to_owned(),
        "scope=repository%3Aapp%3Apull".to_owned(),
        format!("refresh_token={identity}"),
    ];
    match wanted.iter().all(|field| form.split('&').any(|given| given == field)) {
        true => ("200 OK", String::new(), format!(r#"{{"access_token":"{TOKEN}"}}"#).into_bytes()),
        false => ("401 Unauthorized", String::new(), b"who are you".to_vec()),
    }
}

/// An engine wants to know what it is given.
fn kind(body: &[u8]) -> String {
    let document: Value = serde_json::from_slice(body).unwrap_or_default();
    let kind = match (document["manifests"].is_array(), document["layers"].is_array()) {
        (true, _) => "vnd.oci.image.index.v1+json",
        (false, true) => "vnd.oci.image.manifest.v1+json",
        (false, false) => "octet-stream",
    };
    format!("Content-Type: application/{kind}\r\n")
}
