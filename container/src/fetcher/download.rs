//! Downloads over HTTP and HTTPS, to a file.
//!
//! The final answer must be 200; a limited number of redirects is followed, but never to another kind of source. Uses
//! the certificates that the system trusts.

use std::io;
use std::path::Path;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{AUTHORIZATION, HOST, LOCATION, USER_AGENT};
use http::uri::{Authority, Scheme};
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Bytes, Incoming};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::fs::File;
use tokio::io::AsyncWriteExt;

use super::fault::Fault;

const REDIRECTS_MAX: usize = 20;

/// Downloads to a path and returns how many bytes that were. Nothing may take longer than `stall` to bring the next.
pub(super) async fn download(
    url: &str,
    to: &Path,
    bytes_max: Option<u64>,
    stall: Duration,
) -> Result<u64, Fault> {
    let mut body = open(url, stall).await?;
    if bytes_max.is_some_and(|max| body.size_hint().lower() > max) {
        return Err(Fault::TooLarge);
    }
    let cannot_write = || Fault::io(format!("cannot write '{}'", to.display()));
    let mut file = File::create(to).await.map_err(cannot_write())?;
    let mut bytes = 0;
    while let Some(frame) = within(stall, body.frame()).await? {
        let frame = frame.map_err(Fault::Interrupted)?;
        let Ok(chunk) = frame.into_data() else { continue };
        bytes += chunk.len() as u64;
        if bytes_max.is_some_and(|max| bytes > max) {
            return Err(Fault::TooLarge);
        }
        file.write_all(&chunk).await.map_err(cannot_write())?;
    }
    file.flush().await.map_err(cannot_write())?;
    Ok(bytes)
}

/// Follows redirects to the body.
async fn open(url: &str, stall: Duration) -> Result<Incoming, Fault> {
    let mut uri: Uri = url.parse()?;
    for _ in 0..=REDIRECTS_MAX {
        let response = within(stall, get(&uri, Vec::new())).await??;
        let status = response.status();
        if status == StatusCode::OK {
            return Ok(response.into_body());
        }
        uri = match response.headers().get(LOCATION) {
            Some(location) if status.is_redirection() => {
                let target = location.to_str().ok().and_then(|location| resolve(&uri, location));
                target.ok_or_else(|| Fault::Redirect(location.clone()))?
            }
            Some(_) | None => return Err(Fault::Status(status)),
        };
    }
    Err(Fault::Redirects(REDIRECTS_MAX))
}

async fn within<T>(stall: Duration, work: impl Future<Output = T>) -> Result<T, Fault> {
    let late = |_| Fault::Stalled(stall.as_secs_f64());
    tokio::time::timeout(stall, work).await.map_err(late)
}

/// One request, with what headers it is to have.
pub(crate) async fn get(
    uri: &Uri,
    headers: Vec<(HeaderName, HeaderValue)>,
) -> Result<Response<Incoming>, Fault> {
    send(Method::GET, uri, headers, String::new()).await
}

/// The same with a message.
pub(crate) async fn send(
    method: Method,
    uri: &Uri,
    headers: Vec<(HeaderName, HeaderValue)>,
    body: String,
) -> Result<Response<Incoming>, Fault> {
    let (target, login) = split_login(uri).ok_or(Fault::NoHost)?;
    let host = target.authority().map_or("", Authority::as_str);
    let mut request = Request::builder()
        .method(method)
        .uri(&target)
        .header(HOST, host)
        .header(USER_AGENT, concat!("tepui/", env!("CARGO_PKG_VERSION")))
        .body(Full::new(Bytes::from(body)))
        .map_err(Fault::Request)?;
    request.headers_mut().extend(login.map(|login| (AUTHORIZATION, login)).into_iter().chain(headers));
    let response = if target.scheme() == Some(&Scheme::HTTPS) {
        let connector = https().map_err(Fault::NoCertificates)?;
        Client::builder(TokioExecutor::new()).build(connector).request(request).await
    } else {
        Client::builder(TokioExecutor::new()).build(HttpConnector::new()).request(request).await
    };
    response.map_err(|err| Fault::Unreachable { host: host.to_owned(), err })
}

fn https() -> io::Result<hyper_rustls::HttpsConnector<HttpConnector>> {
    let provider = rustls::crypto::ring::default_provider();
    let builder = hyper_rustls::HttpsConnectorBuilder::new().with_provider_and_native_roots(provider)?;
    Ok(builder.https_only().enable_http1().build())
}

/// `user:password@host` becomes a header; the password never goes out in a line of the request.
fn split_login(uri: &Uri) -> Option<(Uri, Option<HeaderValue>)> {
    let authority = uri.authority()?.as_str();
    let Some((login, host)) = authority.rsplit_once('@') else { return Some((uri.clone(), None)) };
    let login = percent_encoding::percent_decode_str(login).collect::<Vec<u8>>();
    let mut header = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(login))).ok()?;
    header.set_sensitive(true);
    let mut parts = uri.clone().into_parts();
    parts.authority = Some(host.parse().ok()?);
    Some((Uri::from_parts(parts).ok()?, Some(header)))
}

/// Where a redirect leads: http and https only. A login stays with its host.
pub(crate) fn resolve(from: &Uri, location: &str) -> Option<Uri> {
    let (scheme, authority) = (from.scheme_str()?, from.authority()?.as_str());
    let location = location.split('#').next().unwrap_or_default();
    let whole = if location.contains("://") {
        location.to_owned()
    } else if location.starts_with("//") {
        format!("{scheme}:{location}")
    } else if location.starts_with('/') {
        format!("{scheme}://{authority}{location}")
    } else {
        let (above, _) = from.path().rsplit_once('/')?;
        format!("{scheme}://{authority}{above}/{location}")
    };
    let uri: Uri = whole.parse().ok()?;
    matches!(uri.scheme_str()?, "http" | "https").then_some(uri)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_are_resolved_and_restricted_to_http() {
        let from: Uri = "http://h:1/a/b?c".parse().expect("a URI");
        for (location, to) in [
            ("/x", Some("http://h:1/x")),
            ("x/y#z", Some("http://h:1/a/x/y")),
            ("//g/x", Some("http://g/x")),
            ("https://g/x", Some("https://g/x")),
            ("file:///etc/passwd", None),
            ("ftp://g/x", None),
            ("http://", None),
        ] {
            assert_eq!(resolve(&from, location).map(|uri| uri.to_string()).as_deref(), to, "{location}");
        }
    }

    #[test]
    fn credentials_in_a_uri_become_a_basic_header() {
        let uri: Uri = "http://me:p%40ss@h/x".parse().expect("a URI");
        let (target, login) = split_login(&uri).expect("it has a host");
        assert_eq!(target.to_string(), "http://h/x");
        assert_eq!(login.expect("a login"), "Basic bWU6cEBzcw==");
    }
}
