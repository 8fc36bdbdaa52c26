//! Flags of both programs for authentication and authorization, and their files.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use tepui_shell_master::{Authentication, Credentials, Firewall};

/// The only authenticator by principal and secret.
const BASIC: &str = "basic";

/// The content of a file whose name may begin with `file://`.
pub fn read(flag: &str, path: &Path) -> Result<Vec<u8>> {
    let path = local(path);
    std::fs::read(&path).with_context(|| format!("--{flag}: cannot read {}", path.display()))
}

/// Flags of all commands whose value is, or may be, the name of a file with secrets.
const SECRET_FILES: [&str; 9] = [
    "credentials",
    "http_credentials",
    "credential",
    "jwt_secret_key",
    "tls_key",
    "tlskey",
    "etcd_key",
    "docker_config",
    "token_file",
];

/// A file with secrets that every user of the machine may read or write: such a secret is none.
#[derive(Debug, PartialEq, Eq)]
pub struct OpenFile<'f> {
    flag: &'f str,
    path: PathBuf,
    mode: u32,
}

impl std::fmt::Display for OpenFile<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { flag, path, mode } = self;
        let path = path.display();
        write!(
            f,
            "--{flag}: {path} (mode {mode:o}) can be accessed by every user of this machine; chmod 600 it"
        )
    }
}

/// Warns in the log of a program. v1 starts with such files, so they are not refused.
pub fn warn_of_readable_secrets(shown: &[(String, String)]) {
    for file in open_files(shown) {
        tracing::warn!("{file}");
    }
}

/// The files with secrets that every user can access. `shown` are the flags that were set, with their values.
pub fn open_files(shown: &[(String, String)]) -> Vec<OpenFile<'_>> {
    let secret = shown.iter().filter(|(flag, _)| SECRET_FILES.contains(&flag.as_str()));
    secret
        .filter_map(|(flag, value)| {
            let path = local(Path::new(value));
            let found = std::fs::metadata(&path).ok().filter(std::fs::Metadata::is_file)?;
            let mode = found.permissions().mode() & 0o7777;
            (mode & 0o007 != 0).then_some(OpenFile { flag, path, mode })
        })
        .collect()
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

/// The disabled endpoints.
pub fn firewall(rules: Option<&str>) -> Result<Firewall> {
    let Some(text) = rules else { return Ok(Firewall::default()) };
    let text = json_or_file("firewall_rules", text)?;
    Firewall::parse(&text).map_err(|reason| anyhow::anyhow!("--firewall_rules: {reason}"))
}

/// The credentials, required if a realm is authenticated.
pub fn credentials(flag: &str, path: Option<&Path>, is_needed: bool) -> Result<Credentials> {
    match path {
        Some(path) => {
            let text = read(flag, path)?;
            Credentials::parse(&text)
                .map_err(|reason| anyhow::anyhow!("--{flag}: {}: {reason}", path.display()))
        }
        None if is_needed => {
            bail!("--{flag} is missing: authentication is enabled and no principal could authenticate")
        }
        None => Ok(Credentials::default()),
    }
}

pub fn authentication(flag: &str, path: Option<&Path>, is_needed: bool) -> Result<Authentication> {
    Ok(Authentication::new(credentials(flag, path, is_needed)?, None))
}

/// Rejects unsupported authenticators.
pub fn only_basic(flag: &str, value: Option<&str>) -> Result<()> {
    match value {
        None | Some(BASIC) => Ok(()),
        Some(other) => bail!("--{flag}={other} is not supported; supported: {BASIC}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_with_secrets_is_checked() {
        let dir = std::env::temp_dir().join(format!("tepui-secrets-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let make = |name: &str, mode: u32| {
            let path = dir.join(name);
            std::fs::write(&path, "secret").unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
            path.display().to_string()
        };
        let (open, private) = (make("open", 0o644), make("private", 0o640));
        for flag in SECRET_FILES {
            let shown = |value: &str| vec![(flag.to_owned(), value.to_owned())];
            let expected = format!(
                "--{flag}: {open} (mode 644) can be accessed by every user of this machine; chmod 600 it"
            );
            for value in [open.clone(), format!("file://{open}")] {
                let given = shown(&value);
                let found = open_files(&given);
                assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), [expected.as_str()]);
            }
            for value in [private.as_str(), "***", "/no/such/file", "/"] {
                assert_eq!(open_files(&shown(value)), [], "{value}");
            }
        }
        let others = [("work_dir".to_owned(), open.clone()), ("tls_cert".to_owned(), open)];
        assert_eq!(open_files(&others), []);
        std::fs::remove_dir_all(&dir).unwrap();
    }

    /// Also covers future flags whose name indicates a secret.
    #[test]
    fn every_secret_flag_is_listed() {
        let tree = crate::tree();
        for command in tree.get_subcommands() {
            for flag in command.get_arguments().filter_map(clap::Arg::get_long) {
                let sounds_secret =
                    flag.ends_with("_key") || flag.contains("credential") || flag == "token_file";
                let is_checked = SECRET_FILES.contains(&flag);
                assert!(is_checked || !sounds_secret, "{} --{flag}", command.get_name());
            }
        }
    }
}
