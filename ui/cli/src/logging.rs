//! Where log lines go: the terminal, at the level the flags or `TEPUI_LOG` say.

use tracing_subscriber::EnvFilter;

use crate::flags::agent::LoggingFlags;

/// Starts logging for a program that runs until it is stopped.
pub fn start(flags: &LoggingFlags) {
    if flags.quiet {
        return;
    }
    let level = match flags.logging_level.to_uppercase().as_str() {
        "DEBUG" => "debug",
        "WARNING" => "warn",
        "ERROR" => "error",
        _ => "info",
    };
    let filter = EnvFilter::try_from_env("TEPUI_LOG").unwrap_or_else(|_| EnvFilter::new(level));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false).init();
}
