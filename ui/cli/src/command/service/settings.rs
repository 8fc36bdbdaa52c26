//! Settings of the scheduler from the environment, by the names of the SDK.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use tepui_service::plan::backoff::BackoffPolicy;
use tepui_service_shell::{Config, ExecutorOverhead};

const MS_PER_SECOND: u64 = 1000;

/// The settings of a service.
pub fn config(service: &str, role: Option<&str>, env: &BTreeMap<String, String>) -> Result<Config> {
    let mut config = Config::new(service);
    let text = |name: &str| env.get(name).filter(|value| !value.is_empty());
    if let Some(role) = role.map(str::to_owned).or_else(|| role_of(env)) {
        config.role = role;
    }
    config.executor = ExecutorOverhead {
        cpus: number(env, "EXECUTOR_CPUS", config.executor.cpus)?,
        mem_mb: number(env, "EXECUTOR_MEM_MB", config.executor.mem_mb)?,
        disk_mb: number(env, "EXECUTOR_DISK_MB", config.executor.disk_mb)?,
    };
    let usual = config.backoff;
    config.backoff = BackoffPolicy {
        enabled: boolean(env, "ENABLE_BACKOFF", usual.enabled)?,
        initial_ms: number(env, "FRAMEWORK_INITIAL_BACKOFF", usual.initial_ms / MS_PER_SECOND)?
            * MS_PER_SECOND,
        factor: number(env, "FRAMEWORK_BACKOFF_FACTOR", usual.factor)?,
        max_ms: number(env, "FRAMEWORK_MAX_LAUNCH_DELAY", usual.max_ms / MS_PER_SECOND)? * MS_PER_SECOND,
    };
    if let Some(tld) = text("SERVICE_TLD") {
        config.service_tld.clone_from(tld);
    }
    if let Some(tld) = text("VIP_TLD") {
        config.vip_tld.clone_from(tld);
    }
    if let Some(command) = text("PAUSE_OVERRIDE_CMD") {
        config.pause_command.clone_from(command);
    }
    let period = u64::try_from(config.timing.reconcile_implicit.as_millis()).unwrap_or(u64::MAX);
    let period = number(env, "IMPLICIT_RECONCILIATION_PERIOD_MS", period)?.max(MS_PER_SECOND);
    config.timing.reconcile_implicit = Duration::from_millis(period);
    config.region = text("SERVICE_REGION").cloned();
    Ok(config)
}

/// The role that Marathon gives to the services of a group.
fn role_of(env: &BTreeMap<String, String>) -> Option<String> {
    let role = env.get("MESOS_ALLOCATION_ROLE").filter(|role| !role.is_empty())?;
    (role != "slave_public").then(|| role.clone())
}

fn number<T: FromStr + PartialOrd + Default>(
    env: &BTreeMap<String, String>,
    name: &str,
    default: T,
) -> Result<T> {
    match env.get(name).filter(|value| !value.is_empty()) {
        None => Ok(default),
        Some(text) => match text.parse::<T>() {
            Ok(value) if value >= T::default() => Ok(value),
            Ok(_) | Err(_) => Err(anyhow!("variable {name} is {text:?}; a number of at least 0 is expected")),
        },
    }
}

fn boolean(env: &BTreeMap<String, String>, name: &str, default: bool) -> Result<bool> {
    match env.get(name).and_then(|value| value.chars().next()) {
        None => Ok(default),
        Some('t' | 'T' | 'y' | 'Y') => Ok(true),
        Some('f' | 'F' | 'n' | 'N') => Ok(false),
        Some(_) => bail!("variable {name} is {:?}; true or false is expected", env[name]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(variables: &[(&str, &str)]) -> Result<Config> {
        let env = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        config("db", None, &env)
    }

    #[test]
    fn variables_of_the_sdk_set_the_scheduler() {
        let plain = with(&[]).expect("defaults");
        assert_eq!(
            (plain.role.as_str(), plain.backoff.initial_ms, plain.executor.mem_mb),
            ("db-role", 60_000, 32.0)
        );
        let set = with(&[
            ("ENABLE_BACKOFF", "no"),
            ("FRAMEWORK_INITIAL_BACKOFF", "2"),
            ("EXECUTOR_CPUS", "0.5"),
            ("MESOS_ALLOCATION_ROLE", "team"),
            ("SERVICE_REGION", "eu"),
            ("IMPLICIT_RECONCILIATION_PERIOD_MS", "5000"),
        ])
        .expect("settings");
        assert_eq!((set.backoff.enabled, set.backoff.initial_ms), (false, 2000));
        assert_eq!(set.timing.reconcile_implicit, Duration::from_secs(5));
        assert_eq!((set.executor.cpus, set.role.as_str(), set.region.as_deref()), (0.5, "team", Some("eu")));
        for (name, value) in
            [("ENABLE_BACKOFF", "2"), ("EXECUTOR_CPUS", "-1"), ("FRAMEWORK_INITIAL_BACKOFF", "x")]
        {
            let error = with(&[(name, value)]).expect_err(name).to_string();
            assert!(error.contains(name), "{error}");
        }
    }
}
