//! `--whitelist`: a file of the hosts whose agents are offered, one on a line, read again every few seconds.
//!
//! An empty file means that nothing is offered. While the file cannot be read, its last content is in effect.

use std::collections::BTreeSet;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tepui_core_master::Input;
use tepui_runtime::Handle;

/// How often the file is read, as v1 does.
const READ_INTERVAL: Duration = Duration::from_secs(5);

/// A larger file is not read.
const WHITELIST_BYTES_MAX: u64 = 16 * 1024 * 1024;

pub(crate) fn read(path: &Path) -> io::Result<BTreeSet<String>> {
    let mut text = String::new();
    let read = std::fs::File::open(path)?.take(WHITELIST_BYTES_MAX + 1).read_to_string(&mut text)?;
    if read as u64 > WHITELIST_BYTES_MAX {
        let why = format!("it is larger than {WHITELIST_BYTES_MAX} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    let hosts: BTreeSet<String> =
        text.lines().map(str::trim).filter(|host| !host.is_empty()).map(String::from).collect();
    if hosts.is_empty() {
        tracing::warn!(path = %path.display(), "the whitelist is empty: nothing is offered");
    }
    Ok(hosts)
}

/// Sends the content of the file to the machine whenever it changes, until the machine terminates.
pub(crate) async fn follow(path: PathBuf, mut hosts: BTreeSet<String>, machine: Handle<Input>) {
    let mut readable = true;
    loop {
        tokio::time::sleep(READ_INTERVAL).await;
        let file = path.clone();
        let read = tokio::task::spawn_blocking(move || read(&file)).await;
        match read.unwrap_or_else(|panic| Err(io::Error::other(panic))) {
            Ok(new) if new != hosts => {
                tracing::info!(hosts = new.len(), "the whitelist changed");
                hosts = new.clone();
                if machine.send(Input::Whitelist { hosts: Some(new) }).await.is_err() {
                    return;
                }
                readable = true;
            }
            Ok(_) => readable = true,
            Err(err) if readable => {
                tracing::warn!(%err, path = %path.display(), "cannot read the whitelist; the previous one stays in effect");
                readable = false;
            }
            Err(_) => (),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whitelist_file_has_one_host_per_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("whitelist");
        std::fs::write(&path, "a.example\n\n  b.example \r\n").unwrap();
        assert_eq!(read(&path).unwrap(), ["a.example".to_owned(), "b.example".to_owned()].into());
        std::fs::write(&path, "\n").unwrap();
        assert_eq!(read(&path).unwrap(), BTreeSet::new());
        assert!(read(&dir.path().join("none")).is_err());
    }
}
