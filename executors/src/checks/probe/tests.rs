//! Attempts against real commands and a small server.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use rustls::pki_types::PrivateKeyDer;
use tepui_client::shorthand::shell;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

async fn outcome(target: Target, timeout: Option<Duration>) -> Outcome {
    make(&Probe { target, timeout }).await
}

type Table = &'static [(&'static str, &'static str)];

/// Answers each path with the status line and headers of the table.
async fn serve(table: Table) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            answer(stream, table).await;
        }
    });
    port
}

async fn serve_tls(table: Table) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    let der = |text| BASE64_STANDARD.decode(text).expect("base64");
    let key = PrivateKeyDer::try_from(der(KEY)).expect("a key");
    let config =
        rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("supported")
            .with_no_client_auth()
            .with_single_cert(vec![der(CERTIFICATE).into()], key)
            .expect("key and certificate match");
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            if let Ok(stream) = acceptor.accept(stream).await {
                answer(stream, table).await;
            }
        }
    });
    port
}

/// A self-signed test certificate.
const KEY: &str = "MC4CAQAwBQYDK2VwBCIEIIPuFjDHsOBzYCG0H3I96jkoDVpQCgqLhwsuzdUAFeLG";
const CERTIFICATE: &str = "MIIBNjCB6aADAgECAhQJFoNoVd7c5ElTBvItQfkvLlgEBTAFBgMrZXAwETEPMA0GA1UEAwwGbm9ib2R5MB4\
    XDTI2MTExNTIxMzgzN1oXDTM2MTExMjIxMzgzN1owETEPMA0GA1UEAwwGbm9ib2R5MCowBQYDK2VwAyEAyIcsEB5mifAYuxuepaK8agngKwH\
    56juHqEZwMKeyb3mjUzBRMB0GA1UdDgQWBBQEfxdXwrKoI2CdulldXxbDX9WVGjAfBgNVHSMEGDAWgBQEfxdXwrKoI2CdulldXxbDX9WVGjA\
    PBgNVHRMBAf8EBTADAQH/MAUGAytlcANBAHH50cpMLlv3Q0CWsc8kPBMfAbeG8iI1PhMMmr9Mi7WcpDYiAygZlEK3YtTmmqjBHoKF5RmMJJs\
    LcZ8gjo7UdAs=";

async fn answer(mut stream: impl AsyncReadExt + AsyncWriteExt + Unpin, table: Table) {
    let mut head = vec![0; 4096];
    let length = stream.read(&mut head).await.unwrap_or(0);
    let head = String::from_utf8_lossy(&head[..length]).into_owned();
    let path = head.split(' ').nth(1).unwrap_or_default();
    let answer = table.iter().find(|(key, _)| *key == path).map_or("404 Not Found", |(_, answer)| answer);
    let answer = format!("HTTP/1.1 {answer}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    let _ = stream.write_all(answer.as_bytes()).await;
    let _ = stream.shutdown().await;
}

#[tokio::test]
async fn http_probe_reports_the_status() {
    let port = serve(&[
        ("/", "200 OK"),
        ("/teapot", "418 No"),
        ("/deep/moved", "302 Found\r\nlocation: there"),
        ("/deep/there", "307 Moved\r\nlocation: /"),
        ("/circle", "301 Moved\r\nlocation: /circle"),
        ("/nowhere", "304 Not Modified"),
    ])
    .await;
    let http = |path: &str| Target::Http { https: false, ipv6: false, port, path: path.into() };
    for (path, status) in
        [("", 200), ("/", 200), ("/teapot", 418), ("/missing", 404), ("/deep/moved", 200), ("/nowhere", 304)]
    {
        assert_eq!(outcome(http(path), None).await, Outcome::Status(status), "{path}");
    }
    assert_eq!(outcome(http("/circle"), None).await, Outcome::Failed("too many redirects".into()));
    let ipv6 = Target::Http { https: false, ipv6: true, port, path: "/".into() };
    assert!(matches!(outcome(ipv6, None).await, Outcome::Failed(_)), "nobody listens there");
}

#[tokio::test]
async fn https_probe_accepts_any_certificate() {
    let port = serve_tls(&[("/", "200 OK")]).await;
    let https = |path: &str| Target::Http { https: true, ipv6: false, port, path: path.into() };
    assert_eq!(outcome(https("/"), None).await, Outcome::Status(200));
    assert_eq!(outcome(https("/missing"), None).await, Outcome::Status(404));
}

#[tokio::test]
async fn tcp_probe_reports_the_connection() {
    let port = serve(&[]).await;
    assert_eq!(outcome(Target::Tcp { ipv6: false, port }, None).await, Outcome::Connected(true));
    assert_eq!(outcome(Target::Tcp { ipv6: true, port }, None).await, Outcome::Connected(false));
}

#[tokio::test]
async fn command_probe_reports_the_exit_status() {
    let command = |text: &str| Target::Command(shell(text));
    assert_eq!(outcome(command("exit 7"), None).await, Outcome::Exited(7));
    assert_eq!(outcome(command("kill -9 $$"), None).await, Outcome::Failed("the check was killed".into()));
    let timeout = Some(Duration::from_millis(50));
    assert_eq!(outcome(command("sleep 100"), timeout).await, Outcome::Failed("timed out after 50ms".into()));
}
