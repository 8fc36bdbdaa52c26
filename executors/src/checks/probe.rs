//! One attempt of a check: runs a command, sends an HTTP request, or opens a connection.
//!
//! Absent: evaluation of the outcome.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::Stdio;

use http::{Request, Uri, header};
use http_body_util::Empty;
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use nix::sys::signal::Signal;
use tepui_client::v1::CommandInfo;
use tokio::net::TcpStream;

use super::{Outcome, Probe, Target};
use crate::{kill, process, tls};

/// A chain of redirects longer than this is a failure.
const REDIRECTS_MAX: usize = 10;

/// Makes the attempt within its time.
pub async fn make(probe: &Probe) -> Outcome {
    let attempt = async {
        match &probe.target {
            Target::Command(command) => run(command).await,
            Target::Http { https, ipv6, port, path } => http_get(*https, *ipv6, *port, path).await,
            Target::Tcp { ipv6, port } => {
                Outcome::Connected(TcpStream::connect((loopback(*ipv6), *port)).await.is_ok())
            }
        }
    };
    match probe.timeout {
        // Dropping the attempt also kills its command.
        Some(timeout) => tokio::time::timeout(timeout, attempt)
            .await
            .unwrap_or_else(|_| Outcome::Failed(format!("timed out after {timeout:?}"))),
        None => attempt.await,
    }
}

fn loopback(ipv6: bool) -> IpAddr {
    match ipv6 {
        true => Ipv6Addr::LOCALHOST.into(),
        false => Ipv4Addr::LOCALHOST.into(),
    }
}

/// Kills the process tree of a command when the attempt is dropped.
struct Tree(Option<i32>);

impl Drop for Tree {
    fn drop(&mut self) {
        if let Some(pid) = self.0 {
            kill::signal_tree(pid, Signal::SIGKILL);
        }
    }
}

async fn run(info: &CommandInfo) -> Outcome {
    let mut command = tokio::process::Command::from(process::outside_task(info));
    // Its output goes to the executor's stderr, not to the task's output.
    command.stdout(Stdio::from(std::io::stderr())).process_group(0);
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return Outcome::Failed(format!("cannot run the check: {error}")),
    };
    let mut tree = Tree(child.id().map(u32::cast_signed));
    let status = child.wait().await;
    tree.0 = None;
    match status.map(|status| status.code()) {
        Ok(Some(code)) => Outcome::Exited(code),
        Ok(None) => Outcome::Failed("the check was killed".into()),
        Err(error) => Outcome::Failed(format!("cannot wait for the check: {error}")),
    }
}

async fn http_get(https: bool, ipv6: bool, port: u16, path: &str) -> Outcome {
    let host = if ipv6 { "[::1]" } else { "127.0.0.1" };
    let scheme = if https { "https" } else { "http" };
    let path = if path.is_empty() { "/" } else { path };
    let mut uri: Uri = match format!("{scheme}://{host}:{port}{path}").parse() {
        Ok(uri) => uri,
        Err(error) => return Outcome::Failed(format!("bad path '{path}': {error}")),
    };
    let client = Client::builder(TokioExecutor::new())
        .pool_max_idle_per_host(0)
        .build::<_, Empty<Bytes>>(tls::connector());
    for _ in 0..=REDIRECTS_MAX {
        let request = match Request::get(uri.clone()).header(header::USER_AGENT, "tepui").body(Empty::new()) {
            Ok(request) => request,
            Err(error) => return Outcome::Failed(format!("bad request: {error}")),
        };
        let response = match client.request(request).await {
            Ok(response) => response,
            Err(error) => return Outcome::Failed(format!("no answer: {error}")),
        };
        match response.headers().get(header::LOCATION).and_then(|to| redirected(&uri, to.to_str().ok()?)) {
            Some(to) if response.status().is_redirection() => uri = to,
            Some(_) | None => return Outcome::Status(response.status().as_u16()),
        }
    }
    Outcome::Failed("too many redirects".into())
}

/// Where a `Location` leads: it may lack scheme and host, or be relative to the path before it.
fn redirected(from: &Uri, location: &str) -> Option<Uri> {
    let (scheme, authority) = (from.scheme_str()?, from.authority()?);
    let text = match location {
        _ if location.contains("://") => location.to_owned(),
        _ if location.starts_with("//") => format!("{scheme}:{location}"),
        _ if location.starts_with('/') => format!("{scheme}://{authority}{location}"),
        _ => {
            let directory = from.path().rsplit_once('/').map_or("", |(directory, _)| directory);
            format!("{scheme}://{authority}{directory}/{location}")
        }
    };
    text.parse().ok()
}

#[cfg(test)]
mod tests;
