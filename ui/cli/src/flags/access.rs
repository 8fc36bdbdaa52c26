//! Flags about who is let in and what they may do, which both programs have, and how their files are read.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use tepui_shell_master::{Authentication, Credentials, Firewall};

/// The only way to prove who one is by a name and a secret.
const BASIC: &str = "basic";

/// The content of a file whose name may begin with `file://`.
pub fn read(flag: &str, path: &Path) -> Result<Vec<u8>> {
    let path = local(path);
    std::fs::read(&path).with_context(|| format!("--{flag}: cannot read {}", path.display()))
}

/// The content of a file that holds a secret. v1 starts with one that everybody reads, so it is only warned about.
pub fn read_secret(flag: &str, path: &Path) -> Result<Vec<u8>> {
    warn_if_open(flag, path);
    read(flag, path)
}

/// A secret that every user of the machine reads is none.
pub fn warn_if_open(flag: &str, path: &Path) {
    let path = local(path);
    let mode = std::fs::metadata(&path).map_or(0, |found| found.permissions().mode());
    if mode & 0o007 != 0 {
        tracing::warn!(
            path = %path.display(),
            mode = format!("{:o}", mode & 0o7777),
            "--{flag}: the file can be accessed by every user of this machine; chmod 600 it"
        );
    }
}

/// A path without `file://` before it.
pub fn local(path: &Path) -> PathBuf {
    match path.to_str().and_then(|text| text.strip_prefix("file://")) {
        Some(rest) => PathBuf::from(rest),
        None => path.to_path_buf(),
    }
}

/// JSON as it stands, or the content of the file that is named instead.
pub fn json_or_file(flag: &str, value: &str) -> Result<Vec<u8>> {
    match value.trim_start().starts_with(['{', '[']) {
        true => Ok(value.as_bytes().to_vec()),
        false => read(flag, Path::new(value)),
    }
}

/// The endpoints that nobody may use.
pub fn firewall(rules: Option<&str>) -> Result<Firewall> {
    let Some(text) = rules else { return Ok(Firewall::default()) };
    let text = json_or_file("firewall_rules", text)?;
    Firewall::parse(&text).map_err(|why| anyhow::anyhow!("--firewall_rules: {why}"))
}

/// What proofs are checked against, if a realm asks for them.
pub fn credentials(flag: &str, path: Option<&Path>, is_needed: bool) -> Result<Credentials> {
    match path {
        Some(path) => {
            let text = read_secret(flag, path)?;
            Credentials::parse(&text).map_err(|why| anyhow::anyhow!("--{flag}: {}: {why}", path.display()))
        }
        None if is_needed => bail!("--{flag} is missing: authentication is on and nobody could pass it"),
        None => Ok(Credentials::default()),
    }
}

pub fn authentication(flag: &str, path: Option<&Path>, is_needed: bool) -> Result<Authentication> {
    Ok(Authentication::new(credentials(flag, path, is_needed)?, None))
}

/// Flags that name authenticators may only name what there is.
pub fn only_basic(flag: &str, value: Option<&str>) -> Result<()> {
    match value {
        None | Some(BASIC) => Ok(()),
        Some(other) => bail!("--{flag}={other} is not there; there is: {BASIC}"),
    }
}
