//! A registry over HTTP: manifests by name, blobs by digest, with logins as registries ask for them.
//!
//! What is brought is written to files and believed only by its digest. Every wait, body and file has a limit.

use std::path::{Path, PathBuf};
use std::time::Duration;

use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, LOCATION, WWW_AUTHENTICATE};
use http::{HeaderValue, Method, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use serde::Deserialize;
use tokio::io::AsyncWriteExt;

use super::blob::Blob;
use super::credential::Login;
use super::digest::Digest;
use super::fault::{DocumentFault, ImageFault, RegistryFault};
use super::local::Found;
use super::login::Logins;
use super::manifest::{Config, Manifest};
use super::reference::Reference;
use super::store::{Hold, Store};
use crate::fetcher::{download, fault};

const MANIFESTS: &str = "application/vnd.docker.distribution.manifest.v2+json, \
    application/vnd.docker.distribution.manifest.list.v2+json, application/vnd.oci.image.manifest.v1+json, \
    application/vnd.oci.image.index.v1+json";
const DOCUMENT_BYTES_MAX: usize = 8 << 20;
/// Of one layer as it is sent.
const BLOB_BYTES_MAX: u64 = 16 << 30;
const REDIRECTS_MAX: usize = 10;
/// Nothing may take longer to bring the next piece.
const STALL_MAX: Duration = Duration::from_secs(60);
const ERROR_SHOWN_CHARS_MAX: usize = 300;

/// A registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Registry {
    /// `http://host:port`
    base: Uri,
}

/// Brings one image.
struct Pull<'a> {
    base: String,
    repository: String,
    logins: &'a Logins,
    /// Kept between requests: registries ask once.
    authorization: Option<HeaderValue>,
}

#[derive(Deserialize)]
struct Token {
    #[serde(alias = "access_token")]
    token: String,
}

impl Registry {
    pub fn parse(url: &str) -> Result<Registry, ImageFault> {
        let bad = || ImageFault::RegistryFlag(url.to_owned());
        let base: Uri = url.trim_end_matches('/').parse().map_err(|_| bad())?;
        let is_plain = matches!(base.scheme_str(), Some("http" | "https")) && base.path() == "/";
        if is_plain && base.authority().is_some() { Ok(Registry { base }) } else { Err(bad()) }
    }

    /// Brings an image into files below `staged`, but for layers that are in the store already.
    pub async fn pull(
        &self,
        reference: &Reference,
        logins: &Logins,
        store: &Store,
        staged: &Path,
        hold: &mut Hold,
    ) -> Result<Found, ImageFault> {
        let own = self.base.authority().map_or("", |host| host.as_str());
        let host = reference.host.as_deref().unwrap_or(own);
        let scheme = if host == own { self.base.scheme_str().unwrap_or("https") } else { "https" };
        let is_hub = host.ends_with("docker.io") && !reference.repository.contains('/');
        let repository = if is_hub { "library/" } else { "" }.to_owned() + &reference.repository;
        let base = format!("{scheme}://{host}");
        let mut pull = Pull { base, repository, logins, authorization: None };
        let manifest = pull.manifest(reference).await?;
        let config = manifest.config.as_ref().ok_or(DocumentFault::NoConfiguration)?;
        let config_blob = pull.blob(&config.digest, staged).await?;
        let diff_ids = Config::parse(&config_blob.read("the configuration")?)?.rootfs.diff_ids;
        hold.add(diff_ids.iter().cloned()); // Those that are not brought must stay.
        let mut layers = Vec::new();
        for (index, layer) in manifest.layers.iter().enumerate() {
            let is_here = diff_ids.get(index).is_some_and(|diff_id| store.layer(diff_id).is_dir());
            layers.push(match is_here {
                true => Blob { file: PathBuf::new(), offset: 0, size: 0, digest: None },
                false => pull.blob(&layer.digest, staged).await?,
            });
        }
        Ok(Found { config: config_blob, layers })
    }
}

impl Pull<'_> {
    /// The one for this machine.
    async fn manifest(&mut self, reference: &Reference) -> Result<Manifest, ImageFault> {
        let first = self.document(&reference.version(), reference.digest.as_ref()).await?;
        if first.manifests.is_empty() {
            return Ok(first);
        }
        let digest = first.for_this_machine()?.digest.clone();
        self.document(&digest.to_string(), Some(&digest)).await
    }

    async fn document(&mut self, version: &str, digest: Option<&Digest>) -> Result<Manifest, ImageFault> {
        let path = format!("/v2/{}/manifests/{version}", self.repository);
        let bytes = small(self.get(&path).await?).await?;
        digest.map_or(Ok(()), |digest| digest.check("the manifest", &bytes))?;
        Ok(Manifest::parse(&bytes)?)
    }

    async fn blob(&mut self, digest: &Digest, staged: &Path) -> Result<Blob, ImageFault> {
        let mut body = self.get(&format!("/v2/{}/blobs/{digest}", self.repository)).await?.into_body();
        let file = staged.join(digest.hex());
        let cannot = || ImageFault::io(format!("cannot write '{}'", file.display()));
        let mut to = tokio::fs::File::create(&file).await.map_err(cannot())?;
        let mut bytes = 0;
        while let Some(frame) = within(body.frame()).await? {
            let frame = frame.map_err(|err| RegistryFault::BrokenDownload(fault::chain(&err)))?;
            let Ok(chunk) = frame.into_data() else { continue };
            bytes += chunk.len() as u64;
            if bytes > BLOB_BYTES_MAX {
                return Err(RegistryFault::LayerBytes(BLOB_BYTES_MAX).into());
            }
            to.write_all(&chunk).await.map_err(cannot())?;
        }
        to.flush().await.map_err(cannot())?;
        let blob = Blob::of_file(file.clone()).map_err(cannot())?;
        Ok(blob.with_digest(digest.clone()))
    }

    /// Sends a request, authenticates if required, and follows redirects.
    async fn get(&mut self, path: &str) -> Result<Response<Incoming>, ImageFault> {
        let start: Uri =
            format!("{}{path}", self.base).parse().map_err(|_| RegistryFault::Path(path.to_owned()))?;
        let mut response = request(&start, self.authorization.as_ref()).await?;
        if response.status() == StatusCode::UNAUTHORIZED {
            self.authorization = Some(self.log_in(&response).await?);
            response = request(&start, self.authorization.as_ref()).await?;
        }
        let mut uri = start;
        for _ in 0..=REDIRECTS_MAX {
            let status = response.status();
            let location = response.headers().get(LOCATION).and_then(|location| location.to_str().ok());
            match location.filter(|_| status.is_redirection()) {
                Some(location) => {
                    let next = download::resolve(&uri, location).ok_or(RegistryFault::Redirect)?;
                    // A login is for its host only.
                    let login = self.authorization.as_ref().filter(|_| next.authority() == uri.authority());
                    response = request(&next, login).await?;
                    uri = next;
                }
                None if status == StatusCode::OK => return Ok(response),
                None => return Err(refusal(&uri, response).await),
            }
        }
        Err(RegistryFault::Redirects(REDIRECTS_MAX).into())
    }

    /// The credentials of further requests, by the registry's challenge.
    async fn log_in(&self, asked: &Response<Incoming>) -> Result<HeaderValue, ImageFault> {
        let challenge = asked.headers().get(WWW_AUTHENTICATE).and_then(|header| header.to_str().ok());
        let challenge = challenge.ok_or(RegistryFault::NoChallenge)?;
        let host = self.base.split_once("://").map_or("", |(_, host)| host);
        let login = self.logins.find(host).await?;
        let (kind, rest) = challenge.split_once(' ').unwrap_or((challenge, ""));
        if kind.eq_ignore_ascii_case("basic") {
            let header = login.and_then(|login| login.header());
            return header.ok_or_else(|| RegistryFault::NoCredentials(host.to_owned()).into());
        }
        if !kind.eq_ignore_ascii_case("bearer") {
            return Err(RegistryFault::Challenge(kind.to_owned()).into());
        }
        let value = |key: &str| parameter(rest, key);
        let realm = value("realm").ok_or(RegistryFault::NoRealm)?;
        let encode = |text: &str| {
            percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
        };
        let own = format!("repository:{}:pull", self.repository);
        let scope = value("scope").unwrap_or(&own);
        let mut query = format!("scope={}", encode(scope));
        if let Some(service) = value("service") {
            query += &format!("&service={}", encode(service));
        }
        let place = |url: &str| url.parse::<Uri>().map_err(|_| RegistryFault::Realm(realm.to_owned()));
        let (uri, response) = match &login {
            Some(Login::Token(token)) => {
                let (uri, token) = (place(realm)?, encode(token));
                let body = format!("grant_type=refresh_token&client_id=tepui&{query}&refresh_token={token}");
                (uri.clone(), exchange(&uri, body).await?)
            }
            login => {
                let uri = place(&format!("{realm}{}{query}", if realm.contains('?') { '&' } else { '?' }))?;
                let header = login.as_ref().and_then(Login::header);
                (uri.clone(), request(&uri, header.as_ref()).await?)
            }
        };
        if response.status() != StatusCode::OK {
            return Err(refusal(&uri, response).await);
        }
        let token: Token = serde_json::from_slice(&small(response).await?).map_err(RegistryFault::Token)?;
        let mut header = HeaderValue::try_from(format!("Bearer {}", token.token))
            .map_err(|_| RegistryFault::UnusableToken)?;
        header.set_sensitive(true);
        Ok(header)
    }
}

/// `key="value"` of a challenge.
fn parameter<'a>(challenge: &'a str, key: &str) -> Option<&'a str> {
    let mut rest = challenge;
    while let Some((name, after)) = rest.split_once('=') {
        let after = after.strip_prefix('"')?;
        let (value, next) = after.split_once('"')?;
        if name.trim_matches([',', ' ']).eq_ignore_ascii_case(key) {
            return Some(value);
        }
        rest = next;
    }
    None
}

async fn request(uri: &Uri, authorization: Option<&HeaderValue>) -> Result<Response<Incoming>, ImageFault> {
    let mut headers = vec![(ACCEPT, HeaderValue::from_static(MANIFESTS))];
    headers.extend(authorization.map(|value| (AUTHORIZATION, value.clone())));
    Ok(within(download::get(uri, headers))
        .await?
        .map_err(|fault| RegistryFault::Download(fault.to_string()))?)
}

/// Exchanges a refresh token for an access token of the registry.
async fn exchange(uri: &Uri, body: String) -> Result<Response<Incoming>, ImageFault> {
    let form = HeaderValue::from_static("application/x-www-form-urlencoded");
    let sending = download::send(Method::POST, uri, vec![(CONTENT_TYPE, form)], body);
    Ok(within(sending).await?.map_err(|fault| RegistryFault::Download(fault.to_string()))?)
}

async fn small(response: Response<Incoming>) -> Result<Vec<u8>, ImageFault> {
    let body = within(Limited::new(response.into_body(), DOCUMENT_BYTES_MAX).collect()).await?;
    Ok(body.map_err(|err| RegistryFault::BrokenAnswer(err.to_string()))?.to_bytes().to_vec())
}

async fn refusal(uri: &Uri, response: Response<Incoming>) -> ImageFault {
    let status = response.status();
    let text = small(response).await.unwrap_or_default();
    let text: String = String::from_utf8_lossy(&text).chars().take(ERROR_SHOWN_CHARS_MAX).collect();
    let host = uri.authority().map_or("", |host| host.as_str());
    let (place, text) = (format!("{host}{}", uri.path()), text.trim().to_owned());
    RegistryFault::Status { place, status, text }.into()
}

async fn within<T>(work: impl Future<Output = T>) -> Result<T, ImageFault> {
    let late = |_| RegistryFault::Stalled(STALL_MAX.as_secs()).into();
    tokio::time::timeout(STALL_MAX, work).await.map_err(late)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authenticate_challenge_parameters_are_parsed() {
        let text = r#"realm="http://h/t?a=b",service="s v", scope="repository:a:pull,push""#;
        assert_eq!(parameter(text, "realm"), Some("http://h/t?a=b"));
        assert_eq!(parameter(text, "service"), Some("s v"));
        assert_eq!(parameter(text, "scope"), Some("repository:a:pull,push"));
        assert_eq!(parameter(text, "other"), None);
    }

    #[test]
    fn registry_urls_are_validated() {
        for good in ["http://127.0.0.1:5000", "https://r.example/", "http://[::1]:80"] {
            assert!(Registry::parse(good).is_ok(), "{good}");
        }
        for bad in ["ftp://h", "http://", "h:5000", "http://h/path", ""] {
            assert!(Registry::parse(bad).is_err(), "{bad}");
        }
    }
}
