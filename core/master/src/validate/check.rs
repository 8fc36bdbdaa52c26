//! Checks and health checks of tasks.

use alloc::format;
use alloc::string::String;

use tepui_proto::mesos::v1 as pb;

use super::command;

pub(super) fn health_check(check: &pb::HealthCheck) -> Result<(), String> {
    use pb::health_check::Type;
    match check.r#type {
        None => return Err("HealthCheck must specify 'type'".into()),
        Some(Type::UNKNOWN) => return Err("'UNKNOWN' is not a valid health check type".into()),
        Some(Type::COMMAND) => {
            let command = present(check.command.as_option(), "command", "COMMAND health check")?;
            check_command(command, "health check")?;
        }
        Some(Type::HTTP) => {
            let http = present(check.http.as_option(), "http", "HTTP health check")?;
            if let Some(scheme) = http.scheme.as_deref().filter(|scheme| !matches!(*scheme, "http" | "https"))
            {
                return Err(format!("Unsupported HTTP health check scheme: '{scheme}'"));
            }
            check_path(http.path.as_deref(), "health check")?;
        }
        Some(Type::TCP) => drop(present(check.tcp.as_option(), "tcp", "TCP health check")?),
    }
    non_negative("delay_seconds", check.delay_seconds)?;
    non_negative("grace_period_seconds", check.grace_period_seconds)?;
    non_negative("interval_seconds", check.interval_seconds)?;
    non_negative("timeout_seconds", check.timeout_seconds)
}

pub(super) fn check(check: &pb::CheckInfo) -> Result<(), String> {
    use pb::check_info::Type;
    match check.r#type {
        None => return Err("CheckInfo must specify 'type'".into()),
        Some(Type::UNKNOWN) => return Err("'UNKNOWN' is not a valid check type".into()),
        Some(Type::COMMAND) => {
            let command = present(check.command.as_option(), "command", "COMMAND check")?;
            check_command(&command.command, "check")?;
        }
        Some(Type::HTTP) => {
            let http = present(check.http.as_option(), "http", "HTTP check")?;
            check_path(http.path.as_deref(), "check")?;
        }
        Some(Type::TCP) => drop(present(check.tcp.as_option(), "tcp", "TCP check")?),
    }
    non_negative("delay_seconds", check.delay_seconds)?;
    non_negative("interval_seconds", check.interval_seconds)?;
    non_negative("timeout_seconds", check.timeout_seconds)
}

fn present<'a, T>(part: Option<&'a T>, field: &str, what: &str) -> Result<&'a T, String> {
    part.ok_or_else(|| format!("Expecting '{field}' to be set for {what}"))
}

fn check_command(command: &pb::CommandInfo, what: &str) -> Result<(), String> {
    if command.value.is_none() {
        return Err(format!("Expecting 'command.value' to be set for COMMAND {what}"));
    }
    command::command(command).map_err(|why| format!("{what}'s `CommandInfo` is invalid: {why}"))
}

fn check_path(path: Option<&str>, what: &str) -> Result<(), String> {
    match path.filter(|path| !path.starts_with('/')) {
        Some(path) => Err(format!("The path '{path}' of HTTP {what} must start with '/'")),
        None => Ok(()),
    }
}

fn non_negative(field: &str, seconds: Option<f64>) -> Result<(), String> {
    match seconds {
        // Written so that not-a-number is refused as well.
        Some(seconds) if !(0.0..f64::INFINITY).contains(&seconds) => match seconds > 0.0 {
            true => Err(format!("Expecting '{field}' to be finite")),
            false => Err(format!("Expecting '{field}' to be non-negative")),
        },
        Some(_) | None => Ok(()),
    }
}
