//! The log of a program that runs until it is stopped, as its flags set it.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
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
    let folder = path.parent().unwrap_or(path);
    std::fs::create_dir_all(folder)
        .and_then(|()| File::options().create(true).append(true).mode(LOG_MODE).open(path))
        .with_context(|| format!("--log_dir: cannot write {}", path.display()))
}
