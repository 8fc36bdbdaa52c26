//! The log of a program that runs until it is stopped, as its flags set it.

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use anyhow::{Context, Result};
use tepui_log::Settings;
use tepui_shell_master::Logging;
use tracing::Level;

use crate::flags::both::LoggingFlags;

/// Of log files: they name the tasks and the people of a cluster.
const LOG_MODE: u32 = 0o640;

/// Starts the log; operators can change its level while the program runs.
pub fn start(flags: &LoggingFlags, program: &str) -> Result<Logging> {
    let file = flags.own_file(program).as_deref().map(open).transpose()?;
    if file.is_none() && flags.quiet {
        return Ok(Logging::default());
    }
    let level = match flags.logging_level.to_uppercase().as_str() {
        "DEBUG" => Level::DEBUG,
        "WARNING" => Level::WARN,
        "ERROR" => Level::ERROR,
        _ => Level::INFO,
    };
    let settings = Settings { format: flags.log_format.into(), level, file, stderr: !flags.quiet };
    Ok(Logging::new(tepui_log::start(settings)?))
}

/// Opens a log file to append to.
fn open(path: &Path) -> Result<File> {
    append(path).with_context(|| format!("--log_dir: cannot write {}", path.display()))
}

fn append(path: &Path) -> io::Result<File> {
    std::fs::create_dir_all(path.parent().unwrap_or(path))?;
    let file = File::options().create(true).append(true).mode(LOG_MODE).open(path)?;
    // An earlier version left it open to every user. A pipe or a device of the operator keeps its mode.
    let metadata = file.metadata()?;
    let mode = metadata.mode() & 0o7777;
    if metadata.is_file() && mode & !LOG_MODE != 0 {
        match file.set_permissions(Permissions::from_mode(mode & LOG_MODE)) {
            Err(err) if err.kind() == io::ErrorKind::PermissionDenied => (), // Of another user, who decides.
            tightened => tightened?,
        }
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_files_are_private() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("logs/master.log");
        let mode = |path: &Path| path.metadata().expect("a file").mode() & 0o7777;
        open(&path).expect("created");
        assert_eq!(mode(&path) & !LOG_MODE, 0);
        for (before, after) in [(0o644, 0o640), (0o666, 0o640), (0o600, 0o600)] {
            std::fs::set_permissions(&path, Permissions::from_mode(before)).expect("ours");
            open(&path).expect("opened");
            assert_eq!(mode(&path), after);
        }
    }
}
