//! A web server for tests: few words of HTTP, all the ways a server can be bad.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;

/// What is said to one path, as raw bytes, and whether the connection stays open afterwards.
#[derive(Clone)]
pub struct Page {
    bytes: Vec<u8>,
    hang: bool,
}

pub fn ok(body: &[u8]) -> Page {
    let mut bytes = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len()).into_bytes();
    bytes.extend_from_slice(body);
    Page { bytes, hang: false }
}

pub fn raw(text: &str) -> Page {
    Page { bytes: text.replace('\n', "\r\n").into_bytes(), hang: false }
}

pub fn hanging(text: &str) -> Page {
    Page { hang: true, ..raw(text) }
}

pub fn redirect(to: &str) -> Page {
    raw(&format!("HTTP/1.1 302 Found\nLocation: {to}\nContent-Length: 0\n\n"))
}

pub struct Server {
    pub base: String,
    /// The head of every request.
    pub requests: Arc<Mutex<Vec<String>>>,
    /// How many hanging answers the client gave up on.
    pub given_up: Arc<AtomicUsize>,
}

impl Server {
    pub async fn start(
        pages: impl IntoIterator<Item = (impl Into<String>, Page)>,
        tls: Option<tokio_rustls::TlsAcceptor>,
    ) -> Server {
        let pages: BTreeMap<String, Page> =
            pages.into_iter().map(|(path, page)| (path.into(), page)).collect();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let scheme = if tls.is_some() { "https" } else { "http" };
        let requests = Arc::new(Mutex::new(Vec::new()));
        let given_up = Arc::new(AtomicUsize::new(0));
        let seen = (requests.clone(), given_up.clone());
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (pages, seen, tls) = (pages.clone(), seen.clone(), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        Some(tls) => match tls.accept(stream).await {
                            Ok(stream) => serve(stream, &pages, &seen).await,
                            Err(_) => None,
                        },
                        None => serve(stream, &pages, &seen).await,
                    }
                });
            }
        });
        Server { base: format!("{scheme}://localhost:{port}"), requests, given_up }
    }

    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    pub fn count(&self, path: &str) -> usize {
        let line = format!("GET {path} ");
        self.requests.lock().unwrap().iter().filter(|head| head.starts_with(&line)).count()
    }
}

async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    pages: &BTreeMap<String, Page>,
    (seen, given_up): &(Arc<Mutex<Vec<String>>>, Arc<AtomicUsize>),
) -> Option<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).ok()?;
    let path = head.split(' ').nth(1)?.to_owned();
    seen.lock().unwrap().push(head);
    let missing = raw("HTTP/1.1 404 Not Found\nContent-Length: 0\n\n");
    let page = pages.get(&path).unwrap_or(&missing);
    stream.write_all(&page.bytes).await.ok()?;
    stream.flush().await.ok()?;
    if page.hang {
        stream.read_u8().await.ok();
        given_up.fetch_add(1, Ordering::SeqCst);
    }
    stream.shutdown().await.ok()
}

pub fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

/// As `localhost`, whom those trust who trust `ca.pem`.
pub fn tls() -> tokio_rustls::TlsAcceptor {
    use tokio_rustls::rustls::pki_types::pem::PemObject;
    use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
    use tokio_rustls::rustls::{ServerConfig, crypto::ring};
    let certificate = CertificateDer::from_pem_file(fixtures().join("localhost.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(fixtures().join("localhost.key")).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    tokio_rustls::TlsAcceptor::from(Arc::new(config))
}
