//! Where log lines go: the terminal and a file, at the level the flags or `TEPUI_LOG` say, or for a while at another one.

use std::fs::File;
use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use tepui_shell_master::Logging;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::writer::{BoxMakeWriter, MakeWriterExt};

use crate::flags::both::LoggingFlags;

/// Starts logging for a program that runs until it is stopped; operators may ask it for more.
pub fn start(flags: &LoggingFlags, program: &str) -> Result<Logging> {
    let file = flags.own_file(program).as_deref().map(open).transpose()?;
    let coloured = file.is_none() && std::io::stderr().is_terminal();
    let writer = match (file, flags.quiet) {
        (None, true) => return Ok(Logging::default()),
        (None, false) => BoxMakeWriter::new(std::io::stderr),
        (Some(file), true) => BoxMakeWriter::new(file),
        (Some(file), false) => BoxMakeWriter::new(file.and(std::io::stderr)),
    };
    let level = match flags.logging_level.to_uppercase().as_str() {
        "DEBUG" => "debug",
        "WARNING" => "warn",
        "ERROR" => "error",
        _ => "info",
    };
    let usual = move || EnvFilter::try_from_env("TEPUI_LOG").unwrap_or_else(|_| EnvFilter::new(level));
    let log = tracing_subscriber::fmt().with_writer(writer).with_ansi(coloured).with_target(false);
    let log = log.with_env_filter(usual()).with_filter_reloading();
    let filter = log.reload_handle();
    log.init();
    Ok(Logging::new(move |level| {
        let wanted = match level {
            0 => usual(),
            1 => EnvFilter::new("debug"),
            _ => EnvFilter::new("trace"),
        };
        // Fails only if there is no log any more, and then there is nothing to be done about it.
        let _ = filter.reload(wanted);
    }))
}

/// What is written comes behind what is there.
fn open(path: &Path) -> Result<Arc<File>> {
    let folder = path.parent().unwrap_or(path);
    std::fs::create_dir_all(folder)
        .and_then(|()| File::options().create(true).append(true).open(path))
        .map(Arc::new)
        .with_context(|| format!("--log_dir: cannot write {}", path.display()))
}
