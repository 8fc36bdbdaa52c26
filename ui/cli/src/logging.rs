//! Where log lines go: the terminal, at the level the flags or `TEPUI_LOG` say, or for a while at another one.

use tepui_shell_master::Logging;
use tracing_subscriber::EnvFilter;

use crate::flags::both::LoggingFlags;

/// Starts logging for a program that runs until it is stopped; operators may ask it for more.
pub fn start(flags: &LoggingFlags) -> Logging {
    if flags.quiet {
        return Logging::default();
    }
    let level = match flags.logging_level.to_uppercase().as_str() {
        "DEBUG" => "debug",
        "WARNING" => "warn",
        "ERROR" => "error",
        _ => "info",
    };
    let usual = move || EnvFilter::try_from_env("TEPUI_LOG").unwrap_or_else(|_| EnvFilter::new(level));
    let log = tracing_subscriber::fmt().with_writer(std::io::stderr).with_target(false);
    let log = log.with_env_filter(usual()).with_filter_reloading();
    let filter = log.reload_handle();
    log.init();
    Logging::new(move |level| {
        let wanted = match level {
            0 => usual(),
            1 => EnvFilter::new("debug"),
            _ => EnvFilter::new("trace"),
        };
        // Fails only if there is no log any more, and then there is nothing to be done about it.
        let _ = filter.reload(wanted);
    })
}
