//! Docker's credential helpers: programs that provide logins for registries. `docker-credential-<name> get` reads a
//! server from its input and writes `{"Username":…,"Secret":…}`.
//!
//! Only the operator configures such programs. Each has a time limit and an output limit.

use std::process::Stdio;
use std::time::Duration;

use serde::Deserialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

use super::credential::Login;
use super::fault::{HelperFault, LoginFault};

/// A helper may use the network.
const TIME_MAX: Duration = Duration::from_secs(30);
const BYTES_MAX: u64 = 1 << 20;
const SHOWN_CHARS_MAX: usize = 300;

/// This user name marks the secret as a token.
const TOKEN_USER: &str = "<token>";
/// The message of all helpers.
const UNKNOWN: &str = "credentials not found";

/// Logins use an old address for Docker's own registry.
const HUB: (&str, &str) = ("index.docker.io", "https://index.docker.io/v1/");

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    username: String,
    secret: String,
}

/// The login for a host; none if the helper has none.
pub(super) async fn get(name: &str, host: &str) -> Result<Option<Login>, LoginFault> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if name.is_empty() || !name.bytes().all(is_plain) {
        return Err(LoginFault::HelperName(name.to_owned()));
    }
    let program = format!("docker-credential-{name}");
    let asked =
        tokio::time::timeout(TIME_MAX, run_helper(&program, if host == HUB.0 { HUB.1 } else { host })).await;
    let said = asked.unwrap_or_else(|_| Err(HelperFault::Late(TIME_MAX.as_secs())));
    let failed = |why| LoginFault::Helper { program: program.clone(), why };
    match said.map_err(failed)? {
        (true, text) => {
            let answer: Answer = serde_json::from_slice(&text).map_err(|_| failed(HelperFault::Answer))?;
            Ok(Some(match answer.username.as_str() {
                TOKEN_USER => Login::Token(answer.secret),
                name => Login::basic(name, &answer.secret),
            }))
        }
        (false, text) if String::from_utf8_lossy(&text).contains(UNKNOWN) => Ok(None),
        (false, text) => {
            let text: String = String::from_utf8_lossy(&text).chars().take(SHOWN_CHARS_MAX).collect();
            Err(failed(HelperFault::Reported(text.trim().to_owned())))
        }
    }
}

/// Success and output of the helper, which is killed if the future is dropped.
async fn run_helper(program: &str, server: &str) -> Result<(bool, Vec<u8>), HelperFault> {
    let mut child = Command::new(program)
        .arg("get")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    if let Some(mut stdin) = stdin {
        stdin.write_all(format!("{server}\n").as_bytes()).await.ok(); // A helper may answer without reading.
    }
    let mut text = Vec::new();
    if let Some(stdout) = stdout {
        stdout.take(BYTES_MAX).read_to_end(&mut text).await?;
    }
    Ok((child.wait().await?.success(), text))
}
