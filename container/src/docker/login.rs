//! Logins for registries from which the engine brings images: what was fetched into the sandbox, else what the operator gave.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE;
use rustix::fs::{Mode, OFlags};
use serde_json::json;

use super::fault::PullFault;
use crate::host::beneath;
use crate::images::{Login, LoginFault, Logins, Reference};

/// Where Docker looks for logins in a home directory, the newer first.
const FILES: [(&str, &str); 2] = [(".docker", "config.json"), ("", ".dockercfg")];
const BYTES_MAX: u64 = 1 << 20;

/// Where images without a host come from, as logins name it.
const HUB: [&str; 2] = ["index.docker.io", "docker.io"];

/// The header `X-Registry-Auth` for an image; none if there is no login for its registry.
pub(super) async fn header(image: &str, logins: &Logins) -> Result<Option<String>, LoginFault> {
    let Ok(reference) = Reference::parse(image) else { return Ok(None) };
    let hosts: Vec<&str> = match reference.host.as_deref() {
        Some(host) if !HUB.contains(&host) => vec![host],
        Some(_) | None => HUB.to_vec(),
    };
    for host in hosts {
        let login = match logins.find(host).await? {
            Some(Login::Token(token)) => json!({"identitytoken": token, "serveraddress": host}),
            Some(login) => match login.pair() {
                Some((name, secret)) => {
                    json!({"username": name, "password": secret, "serveraddress": host})
                }
                None => continue,
            },
            None => continue,
        };
        return Ok(Some(URL_SAFE.encode(login.to_string())));
    }
    Ok(None)
}

/// Logins that were fetched into a sandbox; none if there are no such files. Blocking.
pub(super) fn fetched(sandbox: &Path) -> Result<Option<Logins>, PullFault> {
    for (directory, file) in FILES {
        match read(sandbox, directory, file) {
            Ok(text) => return Ok(Some(Logins::parse(&text)?)),
            Err(err) if err.kind() == io::ErrorKind::NotFound => (),
            Err(err) => return Err(PullFault::SandboxFile { file, err }),
        }
    }
    Ok(None)
}

/// No link is followed: the sandbox belongs to the user of the task.
fn read(sandbox: &Path, directory: &str, file: &str) -> io::Result<Vec<u8>> {
    let dir = beneath::open_dir(sandbox, Path::new(directory))?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(&dir, file, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut text = Vec::new();
    file.take(BYTES_MAX).read_to_end(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn registry_credentials_are_chosen_by_image_host() {
        let text = r#"{"auths":{"https://index.docker.io/v1/":{"auth":"aHViOjE="},"h:5000":{"auth":"b3duOjI="},
            "t:5":{"identitytoken":"abc"}}}"#;
        let logins = Logins::parse(text.as_bytes()).expect("logins");
        let shown = async |image: &str| {
            let bytes = URL_SAFE.decode(header(image, &logins).await.expect("no program is run")?);
            let login: serde_json::Value = serde_json::from_slice(&bytes.expect("base64")).expect("JSON");
            let whose = [&login["username"], &login["password"], &login["identitytoken"]];
            let whose: Vec<_> = whose.into_iter().filter_map(serde_json::Value::as_str).collect();
            Some(format!("{} {}", whose.join(" "), login["serveraddress"]))
        };
        let hub = Some(r#"hub 1 "index.docker.io""#);
        for (image, login) in [
            ("busybox", hub),
            ("some/thing:1", hub),
            ("docker.io/library/busybox", hub),
            ("h:5000/a/b", Some(r#"own 2 "h:5000""#)),
            ("t:5/a", Some(r#"abc "t:5""#)),
            ("other.example/a", None),
            ("not an image", None),
        ] {
            assert_eq!(shown(image).await.as_deref(), login, "{image}");
        }
    }

    #[test]
    fn fetched_docker_config_is_read() {
        let sandbox = tempfile::tempdir().expect("a directory");
        let dir = sandbox.path();
        let count = || {
            let found = fetched(dir).map_err(|fault| fault.to_string());
            found.map(|found| found.map(|logins| format!("{logins:?}")))
        };
        assert_eq!(count(), Ok(None));
        std::fs::write(dir.join(".dockercfg"), r#"{"a":{"auth":"YTpi"},"b":{"auth":"YTpi"}}"#)
            .expect("written");
        assert_eq!(count(), Ok(Some("Logins(2 hosts)".into())));
        std::fs::create_dir(dir.join(".docker")).expect("made");
        std::fs::write(dir.join(".docker/config.json"), r#"{"auths":{"a":{"auth":"YTpi"}}}"#)
            .expect("written");
        assert_eq!(count(), Ok(Some("Logins(1 hosts)".into())));
        std::fs::remove_file(dir.join(".docker/config.json")).expect("removed");
        std::os::unix::fs::symlink("/etc/passwd", dir.join(".docker/config.json")).expect("linked");
        assert!(count().expect_err("a link").contains("cannot read 'config.json' of the sandbox"));
    }
}
