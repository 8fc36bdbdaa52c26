//! A volume driver: Docker's plugin protocol over the driver's own socket.
//!
//! A driver is found by its name: `<name>.sock`, `<name>.spec` or `<name>.json` in the directories of plugins. Every
//! call is one request with a time limit; the driver's error message is passed on unchanged.

use std::collections::BTreeMap;
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
pub(super) enum DriverFault {
    #[error("{0}")]
    Unusable(String),
    /// In its own words.
    #[error("{0}")]
    Refused(String),
    #[error("it did not answer {call} within {} seconds", timeout.as_secs_f64())]
    Late { call: &'static str, timeout: Duration },
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
            return Err(DriverFault::Unusable(format!("'{name}' cannot be the name of a driver")));
        }
        let address = dirs.iter().find_map(|dir| in_dir(dir, name));
        let nowhere = || {
            let dirs: Vec<String> = dirs.iter().map(|dir| dir.display().to_string()).collect();
            DriverFault::Unusable(format!("no such driver in {}", dirs.join(", ")))
        };
        let address = address.ok_or_else(nowhere)?.map_err(DriverFault::Unusable)?;
        let driver = Driver { address };
        let answer = driver.call_driver("Plugin.Activate", &Call::default(), timeout).await?;
        if !answer.implements.iter().any(|kind| kind == KIND) {
            return Err(DriverFault::Unusable(format!("it is a plugin, but no {KIND}")));
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
            false => Err(DriverFault::Unusable(format!("it reports the mount point '{path}'"))),
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
        let asked = tokio::time::timeout(timeout, self.request(call, with)).await;
        let (is_done, body) = match asked {
            Ok(answered) => answered.map_err(|why| DriverFault::Unusable(format!("{call}: {why}")))?,
            Err(_) => return Err(DriverFault::Late { call, timeout }),
        };
        let answer: Result<Answer, _> = serde_json::from_slice(&body);
        match (is_done, answer) {
            (_, Ok(Answer { err: Some(why), .. })) if !why.is_empty() => Err(DriverFault::Refused(why)),
            (true, Ok(answer)) => Ok(answer),
            (true, Err(_)) if body.is_empty() => Ok(Answer::default()),
            (true, Err(err)) => Err(DriverFault::Unusable(format!("{call}: invalid answer: {err}"))),
            (false, _) => Err(DriverFault::Refused(String::from_utf8_lossy(&body).trim().to_owned())),
        }
    }

    async fn request(&self, call: &str, with: &Call<'_>) -> Result<(bool, Bytes), String> {
        match &self.address {
            Address::Unix(path) => {
                let stream = UnixStream::connect(path).await;
                let stream =
                    stream.map_err(|err| format!("cannot connect to '{}': {err}", path.display()))?;
                post(stream, call, with).await
            }
            Address::Tcp(host) => {
                let stream = TcpStream::connect(host).await;
                post(stream.map_err(|err| format!("cannot connect to '{host}': {err}"))?, call, with).await
            }
        }
    }
}

async fn post(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    call: &str,
    with: &Call<'_>,
) -> Result<(bool, Bytes), String> {
    let told = |err: hyper::Error| err.to_string();
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(told)?;
    // Ends with the request, which reports any error.
    tokio::spawn(connection);
    let body = serde_json::to_vec(with).map_err(|err| err.to_string())?;
    let request = Request::post(format!("/{call}"))
        .header(HOST, "plugin")
        .header(ACCEPT, MEDIA_TYPE)
        .header(CONTENT_TYPE, MEDIA_TYPE)
        .body(Full::new(Bytes::from(body)))
        .map_err(|err| err.to_string())?;
    let response = sender.send_request(request).await.map_err(told)?;
    let is_done = response.status().is_success();
    let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
    Ok((is_done, body.map_err(|err| format!("its answer broke off: {err}"))?.to_bytes()))
}

/// The address of a driver by its file in a directory.
fn in_dir(dir: &Path, name: &str) -> Option<Result<Address, String>> {
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
        let spec: Spec = serde_json::from_str(&text).map_err(|err| format!("'{}': {err}", json.display()))?;
        parse_address(&spec.addr)
    };
    json.exists().then(|| small(&json).and_then(parse))
}

fn small(path: &Path) -> Result<String, String> {
    let told = |why: String| format!("cannot read '{}': {why}", path.display());
    match std::fs::metadata(path) {
        Ok(meta) if meta.len() > SPEC_BYTES_MAX => Err(told(String::from("it is too large"))),
        Ok(_) => std::fs::read_to_string(path).map_err(|err| told(err.to_string())),
        Err(err) => Err(told(err.to_string())),
    }
}

fn parse_address(text: &str) -> Result<Address, String> {
    let bad = || format!("'{text}' is not an address of a driver: unix:///path or tcp://host:port");
    match text.split_once("://").ok_or_else(bad)? {
        ("unix", path) if path.starts_with('/') => Ok(Address::Unix(PathBuf::from(path))),
        ("tcp" | "http", host) if host.contains(':') => {
            Ok(Address::Tcp(host.trim_end_matches('/').to_owned()))
        }
        ("https", _) => Err(String::from("drivers by TLS are not supported")),
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
        let found = |name: &str| in_dir(dir.path(), name);
        assert_eq!(found("a"), Some(Ok(Address::Unix("/run/a".into()))));
        assert_eq!(found("b"), Some(Ok(Address::Tcp("127.0.0.1:80".into()))));
        assert!(found("c").expect("a file").expect_err("no address").contains("unix:///path"));
        assert!(found("d").expect("a file").is_err());
        assert_eq!(found("e"), Some(Ok(Address::Unix(dir.path().join("e.sock")))), "a socket comes first");
        assert_eq!(found("f"), None);
    }
}
