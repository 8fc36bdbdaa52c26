//! Archives: which files are unpacked, by which of the system's tools. Works in the current directory, the sandbox.

use std::fs::File;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};

use nix::sys::signal::Signal;
use tokio::process::Command;

use super::budget::Budget;
use super::fault::Fault;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Tar,
    Zip,
    /// One compressed file and no archive: unpacked to its name without the ending.
    Gzip,
}

const ENDINGS: [(&str, Kind); 9] = [
    (".tar", Kind::Tar),
    (".tgz", Kind::Tar),
    (".tar.gz", Kind::Tar),
    (".tbz2", Kind::Tar),
    (".tar.bz2", Kind::Tar),
    (".txz", Kind::Tar),
    (".tar.xz", Kind::Tar),
    (".zip", Kind::Zip),
    (".gz", Kind::Gzip),
];

/// Whether a file of that name is unpacked, and how.
pub(super) fn kind(name: &str) -> Option<Kind> {
    ENDINGS.iter().find(|(ending, _)| name.ends_with(ending)).map(|(_, kind)| *kind)
}

/// Unpacks `archive`, which is called `name` in the sandbox, into the current directory, within what that may hold.
pub(super) async fn extract(kind: Kind, archive: &Path, name: &Path, budget: Budget) -> Result<(), Fault> {
    let (tool, mut command) = match kind {
        Kind::Tar => ("tar", Command::new("tar")),
        Kind::Zip => ("unzip", Command::new("unzip")),
        Kind::Gzip => ("gunzip", Command::new("gunzip")),
    };
    match kind {
        // Files belong to the user that unpacks them, not to the one in the archive.
        Kind::Tar => command.args(["-x", "-o", "-f"]).arg(archive).stdout(Stdio::null()),
        Kind::Zip => command.args(["-o", "-q"]).arg(archive).stdout(Stdio::null()),
        Kind::Gzip => {
            let to = Path::new(name.file_name().unwrap_or_default()).with_extension("");
            let file = File::create(&to).map_err(Fault::io(format!("cannot make '{}'", to.display())))?;
            command.stdin(File::open(archive).map_err(Fault::io("cannot open the archive"))?).stdout(file)
        }
    };
    let status = match run(&mut command, budget).await {
        Ok(Some(status)) => status,
        Ok(None) => return Err(budget.fault()),
        Err(err) if err.kind() == io::ErrorKind::NotFound => {
            return Err(Fault::NoTool(tool));
        }
        Err(err) => return Err(Fault::io(format!("cannot run '{tool}'"))(err)),
    };
    // The kernel ends a tool that writes one file that is too large.
    let is_too_large = status.signal() == Some(Signal::SIGXFSZ as i32) || budget.is_exceeded();
    match (is_too_large, status.success()) {
        (true, _) => Err(budget.fault()),
        (false, true) => Ok(()),
        (false, false) => Err(Fault::Tool { tool, status }),
    }
}

/// How the tool ended; none if it was killed because the sandbox held too much.
async fn run(command: &mut Command, budget: Budget) -> io::Result<Option<ExitStatus>> {
    let mut tool = command.kill_on_drop(true).spawn()?;
    tokio::select! {
        status = tool.wait() => status.map(Some),
        () = budget.exceeded() => {
            tool.kill().await?;
            Ok(None)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archive_kinds_are_detected_by_suffix() {
        for (name, expected) in [
            ("a.tar", Some(Kind::Tar)),
            ("a.tar.gz", Some(Kind::Tar)),
            ("dir/a.tgz", Some(Kind::Tar)),
            ("a.txz", Some(Kind::Tar)),
            ("a.zip", Some(Kind::Zip)),
            ("a.txt.gz", Some(Kind::Gzip)),
            ("a.gz?x=1", None),
            ("a.jar", None),
            ("tar", None),
        ] {
            assert_eq!(kind(name), expected, "{name}");
        }
    }
}
