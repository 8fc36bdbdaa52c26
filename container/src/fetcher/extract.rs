//! Archives: which files are unpacked, by which of the system's tools. Works in the current directory, the sandbox.

use std::fs::File;
use std::io;
use std::path::Path;
use std::process::Stdio;

use tokio::process::Command;

use super::job::Fault;

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

/// Unpacks `archive`, which is called `name` in the sandbox, into the current directory.
pub(super) async fn extract(kind: Kind, archive: &Path, name: &Path) -> Result<(), Fault> {
    let (tool, mut command) = match kind {
        Kind::Tar => ("tar", Command::new("tar")),
        Kind::Zip => ("unzip", Command::new("unzip")),
        Kind::Gzip => ("gunzip", Command::new("gunzip")),
    };
    match kind {
        // Files belong to who unpacks them, whatever the archive says.
        Kind::Tar => command.args(["-x", "-o", "-f"]).arg(archive).stdout(Stdio::null()),
        Kind::Zip => command.args(["-o", "-q"]).arg(archive).stdout(Stdio::null()),
        Kind::Gzip => {
            let to = Path::new(name.file_name().unwrap_or_default()).with_extension("");
            let file = File::create(&to).map_err(Fault::io(format!("cannot make '{}'", to.display())))?;
            command.stdin(File::open(archive).map_err(Fault::io("cannot open the archive"))?).stdout(file)
        }
    };
    let status = match command.status().await {
        Ok(status) => status,
        Err(err) if err.kind() == io::ErrorKind::NotFound => {
            return Err(Fault::Told(format!("cannot extract it: '{tool}' is not installed on this agent")));
        }
        Err(err) => return Err(Fault::io(format!("cannot run '{tool}'"))(err)),
    };
    match status.success() {
        true => Ok(()),
        false => Err(Fault::Told(format!("cannot extract it: '{tool}' ended with {status}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings() {
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
