//! The environment that an agent gives to its executors, read and checked once.

use std::path::PathBuf;
use std::time::Duration;

use crate::credential::Credential;
use crate::duration;
use crate::endpoint::{AddressError, Endpoint};

/// If `MESOS_EXECUTOR_SHUTDOWN_GRACE_PERIOD` is absent.
const SHUTDOWN_GRACE_PERIOD: Duration = Duration::from_secs(5);
/// If `MESOS_RECOVERY_TIMEOUT` is absent though the framework checkpoints.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(15 * 60);
/// If `MESOS_SUBSCRIPTION_BACKOFF_MAX` is absent.
const SUBSCRIPTION_BACKOFF_MAX: Duration = Duration::from_secs(2);

/// The environment of an executor: its ids, its agent.
#[derive(Clone, Debug)]
pub struct Environment {
    pub agent: Endpoint,
    pub framework_id: String,
    pub executor_id: String,
    /// The sandbox as this process sees it.
    pub sandbox: PathBuf,
    pub checkpoint: bool,
    pub recovery_timeout: Duration,
    pub subscription_backoff_max: Duration,
    pub shutdown_grace_period: Duration,
    pub credential: Option<Credential>,
}

/// A variable that is missing or wrong: this process was not started by an agent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnvironmentError {
    #[error("{0} is not set: executors are started by an agent")]
    Missing(&'static str),
    #[error("{name} is wrong")]
    Duration {
        name: &'static str,
        #[source]
        err: duration::ParseError,
    },
    #[error("{name} is wrong")]
    Address {
        name: &'static str,
        #[source]
        err: AddressError,
    },
}

impl Environment {
    /// Reads the environment of this process.
    pub fn from_env() -> Result<Self, EnvironmentError> {
        Self::from_vars(|name| std::env::var(name).ok())
    }

    /// Reads variables through `var`; an empty one counts as absent.
    pub fn from_vars(var: impl Fn(&str) -> Option<String>) -> Result<Self, EnvironmentError> {
        let var = |name: &'static str| var(name).filter(|value| !value.is_empty());
        let required = |name| var(name).ok_or(EnvironmentError::Missing(name));
        let duration = |name, default| match var(name) {
            Some(text) => duration::parse(&text).map_err(|err| EnvironmentError::Duration { name, err }),
            None => Ok(default),
        };
        let sandbox = var("MESOS_SANDBOX").map_or_else(|| required("MESOS_DIRECTORY"), Ok)?;
        Ok(Self {
            agent: agent_endpoint(&var)?,
            framework_id: required("MESOS_FRAMEWORK_ID")?,
            executor_id: required("MESOS_EXECUTOR_ID")?,
            sandbox: sandbox.into(),
            checkpoint: var("MESOS_CHECKPOINT").is_some_and(|value| value == "1"),
            recovery_timeout: duration("MESOS_RECOVERY_TIMEOUT", RECOVERY_TIMEOUT)?,
            subscription_backoff_max: duration("MESOS_SUBSCRIPTION_BACKOFF_MAX", SUBSCRIPTION_BACKOFF_MAX)?,
            shutdown_grace_period: duration("MESOS_EXECUTOR_SHUTDOWN_GRACE_PERIOD", SHUTDOWN_GRACE_PERIOD)?,
            credential: var("MESOS_EXECUTOR_AUTHENTICATION_TOKEN").map(Credential::Bearer),
        })
    }
}

/// The pid contains the prefix of the agent's paths; the plain endpoint has none.
fn agent_endpoint(var: &impl Fn(&'static str) -> Option<String>) -> Result<Endpoint, EnvironmentError> {
    let (name, endpoint) = match (var("MESOS_SLAVE_PID"), var("MESOS_AGENT_ENDPOINT")) {
        (Some(pid), _) => ("MESOS_SLAVE_PID", Endpoint::from_pid(&pid)),
        (None, Some(address)) => ("MESOS_AGENT_ENDPOINT", Endpoint::parse(&address, 5051)),
        (None, None) => return Err(EnvironmentError::Missing("MESOS_AGENT_ENDPOINT")),
    };
    endpoint.map_err(|err| EnvironmentError::Address { name, err })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: &[(&str, &str)] = &[
        ("MESOS_AGENT_ENDPOINT", "127.0.0.1:5051"),
        ("MESOS_FRAMEWORK_ID", "F"),
        ("MESOS_EXECUTOR_ID", "e"),
        ("MESOS_DIRECTORY", "/work/sandbox"),
        ("MESOS_EXECUTOR_SHUTDOWN_GRACE_PERIOD", "7secs"),
        ("MESOS_CHECKPOINT", "1"),
        ("MESOS_RECOVERY_TIMEOUT", "10mins"),
        ("MESOS_SUBSCRIPTION_BACKOFF_MAX", "3secs"),
    ];

    fn read(changes: &[(&str, &str)]) -> Result<Environment, EnvironmentError> {
        Environment::from_vars(|name| {
            let find = |vars: &[(&str, &str)]| {
                vars.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
            };
            find(changes).or_else(|| find(FULL))
        })
    }

    #[test]
    fn executor_environment_is_parsed() {
        let environment = read(&[]).expect("complete");
        assert_eq!(environment.agent.to_string(), "127.0.0.1:5051");
        assert_eq!(environment.sandbox, PathBuf::from("/work/sandbox"));
        assert!(environment.checkpoint);
        assert_eq!(environment.recovery_timeout, Duration::from_secs(600));
        assert_eq!(environment.subscription_backoff_max, Duration::from_secs(3));
        assert_eq!(environment.shutdown_grace_period, Duration::from_secs(7));

        let with_pid = read(&[("MESOS_SLAVE_PID", "slave(1)@10.0.0.1:5052"), ("MESOS_SANDBOX", "/mnt/s")]);
        let with_pid = with_pid.expect("complete");
        assert_eq!(with_pid.agent.to_string(), "10.0.0.1:5052/slave(1)");
        assert_eq!(with_pid.sandbox, PathBuf::from("/mnt/s"));
        assert!(!read(&[("MESOS_CHECKPOINT", "0")]).expect("complete").checkpoint);
    }

    #[test]
    fn invalid_variables_are_named_in_the_error() {
        let table = [
            ("MESOS_FRAMEWORK_ID", "", "MESOS_FRAMEWORK_ID is not set: executors are started by an agent"),
            ("MESOS_EXECUTOR_ID", "", "MESOS_EXECUTOR_ID is not set: executors are started by an agent"),
            (
                "MESOS_AGENT_ENDPOINT",
                "",
                "MESOS_AGENT_ENDPOINT is not set: executors are started by an agent",
            ),
            ("MESOS_AGENT_ENDPOINT", "host:port", "MESOS_AGENT_ENDPOINT is wrong"),
            ("MESOS_RECOVERY_TIMEOUT", "soon", "MESOS_RECOVERY_TIMEOUT is wrong"),
        ];
        for (name, value, message) in table {
            assert_eq!(read(&[(name, value)]).expect_err(name).to_string(), message);
        }
    }
}
