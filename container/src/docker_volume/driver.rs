//! A volume driver: Docker's plugin protocol over the driver's own socket.
//!
//! A driver is found by its name: `<name>.sock`, `<name>.spec` or `<name>.json` in the directories of plugins. Every
//! call is one request with a time limit; the driver's error message is passed on unchanged.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::Request;
use http::header::{ACCEPT, CONTENT_TYPE, HOST};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

const MEDIA_TYPE: &str = "application/vnd.docker.plugins.v1.2+json";
const ANSWER_BYTES_MAX: usize = 1 << 20;
const SPEC_BYTES_MAX: u64 = 1 << 16;
const KIND: &str = "VolumeDriver";

/// Failures of calls to a driver.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DriverFault {
    #[error("'{0}' cannot be the name of a driver")]
    Name(String),
    #[error("no such driver in {}", .0.join(", "))]
    NotFound(Vec<String>),
    #[error(transparent)]
    Address(#[from] AddressFault),
    #[error("it is a plugin, but no {KIND}")]
    OtherKind,
    #[error("it reports the mount point '{0}'")]
    MountPoint(String),
    #[error("{call}: {fault}")]
    Request { call: &'static str, fault: RequestFault },
    /// In its own words.
    #[error("{0}")]
    Refused(String),
    #[error("it did not answer {call} within {} seconds", timeout.as_secs_f64())]
    Late { call: &'static str, timeout: Duration },
}

/// The file of a driver does not have its address.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AddressFault {
    #[error("cannot read '{}': it is too large", .0.display())]
    TooLarge(PathBuf),
    #[error("cannot read '{}': {err}", path.display())]
    Unreadable { path: PathBuf, err: io::Error },
    #[error("'{}': {err}", path.display())]
    Document { path: PathBuf, err: serde_json::Error },
    #[error("'{0}' is not an address of a driver: unix:///path or tcp://host:port")]
    Form(String),
    #[error("drivers by TLS are not supported")]
    Tls,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestFault {
    #[error("cannot connect to '{address}': {err}")]
    Connect { address: String, err: io::Error },
    #[error(transparent)]
    Http(#[from] hyper::Error),
    #[error(transparent)]
    Message(#[from] http::Error),
    #[error(transparent)]
    Encode(#[from] serde_json::Error),
    #[error("its answer broke off: {0}")]
    Incomplete(Box<dyn std::error::Error + Send + Sync>),
    #[error("invalid answer: {0}")]
    Answer(serde_json::Error),
}

/// Where a driver listens.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Address {
    Unix(PathBuf),
    Tcp(String),
}

#[derive(Clone, Debug)]
pub(super) struct Driver {
    address: Address,
}

/// What all calls take; what is not needed is left out.
#[derive(Default, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Call<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
    #[serde(rename = "ID", skip_serializing_if = "str::is_empty")]
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    opts: Option<&'a BTreeMap<String, String>>,
}

/// What all calls answer.
#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Answer {
    err: Option<String>,
    mountpoint: Option<String>,
    implements: Vec<String>,
    capabilities: Capabilities,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Capabilities {
    scope: String,
}

/// Which machines see a volume of a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    /// The one it was made on.
    Local,
    /// All that have the driver.
    Global,
}

impl Scope {
    /// What is no scope counts for the smaller one, as it does for Docker.
    fn parse(text: &str) -> Scope {
        match text.eq_ignore_ascii_case("global") {
            true => Scope::Global,
            false => Scope::Local,
        }
    }
}

/// The document of a `.json` file.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Spec {
    addr: String,
}

impl Driver {
    /// Finds the driver and verifies its type.
    pub async fn find(name: &str, dirs: &[PathBuf], timeout: Duration) -> Result<Driver, DriverFault> {
        let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        if !name.chars().all(is_word) || name.starts_with('.') || name.is_empty() {
            return Err(DriverFault::Name(name.to_owned()));
        }
        let address = dirs.iter().find_map(|dir| in_dir(dir, name));
        let nowhere = || DriverFault::NotFound(dirs.iter().map(|dir| dir.display().to_string()).collect());
        let address = address.ok_or_else(nowhere)??;
        let driver = Driver { address };
        let answer = driver.call_driver("Plugin.Activate", &Call::default(), timeout).await?;
        if !answer.implements.iter().any(|kind| kind == KIND) {
            return Err(DriverFault::OtherKind);
        }
        let scope = driver.scope(timeout).await?;
        tracing::debug!(driver = name, ?scope, "volume driver found");
        Ok(driver)
    }

    /// The scope of its volumes. Informational: a volume is mounted where its container is, and the driver decides
    /// whether it is the same volume elsewhere. Old drivers do not support the call and have volumes of one machine.
    async fn scope(&self, timeout: Duration) -> Result<Scope, DriverFault> {
        match self.call_driver("VolumeDriver.Capabilities", &Call::default(), timeout).await {
            Ok(answer) => Ok(Scope::parse(&answer.capabilities.scope)),
            Err(DriverFault::Refused(_)) => Ok(Scope::Local),
            Err(fault) => Err(fault),
        }
    }

    /// Creates a volume. An existing one is a success: the driver has its path.
    pub async fn create(
        &self,
        name: &str,
        options: &BTreeMap<String, String>,
        timeout: Duration,
    ) -> Result<(), DriverFault> {
        let call = Call { name, opts: Some(options), ..Default::default() };
        match self.call_driver("VolumeDriver.Create", &call, timeout).await {
            Err(DriverFault::Refused(why)) => match self.path(name, timeout).await {
                Ok(_) => Ok(()),
                Err(DriverFault::Refused(_)) => Err(DriverFault::Refused(why)),
                Err(fault) => Err(fault),
            },
            made => made.map(drop),
        }
    }

    /// Mounts a volume for `id`; returns its path.
    pub async fn mount(&self, name: &str, id: &str, timeout: Duration) -> Result<PathBuf, DriverFault> {
        let call = Call { name, id, ..Default::default() };
        let answer = self.call_driver("VolumeDriver.Mount", &call, timeout).await?;
        let path = match answer.mountpoint.filter(|path| !path.is_empty()) {
            Some(path) => path,
            None => self.path(name, timeout).await?.unwrap_or_default(),
        };
        match Path::new(&path).is_absolute() {
            true => Ok(PathBuf::from(path)),
            false => Err(DriverFault::MountPoint(path)),
        }
    }

    pub async fn unmount(&self, name: &str, id: &str, timeout: Duration) -> Result<(), DriverFault> {
        let call = Call { name, id, ..Default::default() };
        self.call_driver("VolumeDriver.Unmount", &call, timeout).await.map(drop)
    }

    async fn path(&self, name: &str, timeout: Duration) -> Result<Option<String>, DriverFault> {
        let call = Call { name, ..Default::default() };
        Ok(self.call_driver("VolumeDriver.Path", &call, timeout).await?.mountpoint)
    }

    async fn call_driver(
        &self,
        call: &'static str,
        with: &Call<'_>,
        timeout: Duration,
    ) -> Result<Answer, DriverFault> {
        let failed = |fault| DriverFault::Request { call, fault };
        let asked = tokio::time::timeout(timeout, self.request(call, with)).await;
        let (is_done, body) = match asked {
            Ok(answered) => answered.map_err(failed)?,
            Err(_) => return Err(DriverFault::Late { call, timeout }),
        };
        let answer: Result<Answer, _> = serde_json::from_slice(&body);
        match (is_done, answer) {
            (_, Ok(Answer { err: Some(why), .. })) if !why.is_empty() => Err(DriverFault::Refused(why)),
            (true, Ok(answer)) => Ok(answer),
            (true, Err(_)) if body.is_empty() => Ok(Answer::default()),
            (true, Err(err)) => Err(failed(RequestFault::Answer(err))),
            (false, _) => Err(DriverFault::Refused(String::from_utf8_lossy(&body).trim().to_owned())),
        }
    }

    async fn request(&self, call: &str, with: &Call<'_>) -> Result<(bool, Bytes), RequestFault> {
        let failed = |address: String| move |err| RequestFault::Connect { address, err };
        match &self.address {
            Address::Unix(path) => {
                let stream = UnixStream::connect(path).await;
                post(stream.map_err(failed(path.display().to_string()))?, call, with).await
            }
            Address::Tcp(host) => {
                let stream = TcpStream::connect(host).await;
                post(stream.map_err(failed(host.clone()))?, call, with).await
            }
        }
    }
}

async fn post(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    call: &str,
    with: &Call<'_>,
) -> Result<(bool, Bytes), RequestFault> {
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    // Ends with the request, which reports any error.
    tokio::spawn(connection);
    let body = serde_json::to_vec(with)?;
    let request = Request::post(format!("/{call}"))
        .header(HOST, "plugin")
        .header(ACCEPT, MEDIA_TYPE)
        .header(CONTENT_TYPE, MEDIA_TYPE)
        .body(Full::new(Bytes::from(body)))?;
    let response = sender.send_request(request).await?;
    let is_done = response.status().is_success();
    let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
    Ok((is_done, body.map_err(RequestFault::Incomplete)?.to_bytes()))
}

/// The address of a driver by its file in a directory.
fn in_dir(dir: &Path, name: &str) -> Option<Result<Address, AddressFault>> {
    for socket in [dir.join(format!("{name}.sock")), dir.join(name).join(format!("{name}.sock"))] {
        if socket.exists() {
            return Some(Ok(Address::Unix(socket)));
        }
    }
    let spec = dir.join(format!("{name}.spec"));
    if spec.exists() {
        return Some(small(&spec).and_then(|text| parse_address(text.trim())));
    }
    let json = dir.join(format!("{name}.json"));
    let parse = |text: String| {
        let spec: Result<Spec, _> = serde_json::from_str(&text);
        parse_address(&spec.map_err(|err| AddressFault::Document { path: json.clone(), err })?.addr)
    };
    json.exists().then(|| small(&json).and_then(parse))
}

fn small(path: &Path) -> Result<String, AddressFault> {
    let unreadable = |err| AddressFault::Unreadable { path: path.to_owned(), err };
    match std::fs::metadata(path).map_err(unreadable)?.len() > SPEC_BYTES_MAX {
        true => Err(AddressFault::TooLarge(path.to_owned())),
        false => std::fs::read_to_string(path).map_err(unreadable),
    }
}

fn parse_address(text: &str) -> Result<Address, AddressFault> {
    let bad = || AddressFault::Form(text.to_owned());
    match text.split_once("://").ok_or_else(bad)? {
        ("unix", path) if path.starts_with('/') => Ok(Address::Unix(PathBuf::from(path))),
        ("tcp" | "http", host) if host.contains(':') => {
            Ok(Address::Tcp(host.trim_end_matches('/').to_owned()))
        }
        ("https", _) => Err(AddressFault::Tls),
        _ => Err(bad()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn driver_scopes_are_parsed() {
        for (text, scope) in [
            ("global", Scope::Global),
            ("Global", Scope::Global),
            ("local", Scope::Local),
            ("", Scope::Local),
        ] {
            assert_eq!(Scope::parse(text), scope, "{text}");
        }
    }

    #[test]
    fn driver_addresses_are_read_from_plugin_files() {
        let dir = tempfile::tempdir().expect("a directory");
        let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).expect("written");
        write("a.spec", "unix:///run/a\n");
        write("b.json", r#"{"Name":"b","Addr":"http://127.0.0.1:80"}"#);
        write("c.spec", "nonsense");
        write("d.json", "{}");
        write("e.sock", "");
        write("e.spec", "tcp://other:1");
        let found =
            |name: &str| in_dir(dir.path(), name).map(|found| found.map_err(|fault| fault.to_string()));
        assert_eq!(found("a"), Some(Ok(Address::Unix("/run/a".into()))));
        assert_eq!(found("b"), Some(Ok(Address::Tcp("127.0.0.1:80".into()))));
        assert!(found("c").expect("a file").expect_err("no address").contains("unix:///path"));
        assert!(found("d").expect("a file").is_err());
        assert_eq!(found("e"), Some(Ok(Address::Unix(dir.path().join("e.sock")))), "a socket comes first");
        assert_eq!(found("f"), None);
    }
}
