//! `--cluster-opt KEY=VALUE` and the variables `SWARM_MESOS_…`.
//!
//! The first option with a key wins, even if its value is empty; else the variable if it is not empty. What cannot be
//! understood is an error that names the option.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::net::IpAddr;
use core::time::Duration;

use crate::go;

const TASK_TIMEOUT: Duration = Duration::from_secs(5);
const OFFER_TIMEOUT: Duration = Duration::from_secs(30);
const REFUSE_TIMEOUT: Duration = Duration::from_secs(5);

/// (key, variable).
const KEYS: [(&str, &str); 9] = [
    ("mesos.address", "SWARM_MESOS_ADDRESS"),
    ("mesos.port", "SWARM_MESOS_PORT"),
    ("mesos.user", "SWARM_MESOS_USER"),
    ("mesos.tasktimeout", "SWARM_MESOS_TASK_TIMEOUT"),
    ("mesos.offertimeout", "SWARM_MESOS_OFFER_TIMEOUT"),
    ("mesos.offerrefusetimeout", "SWARM_MESOS_OFFER_REFUSE_TIMEOUT"),
    ("mesos.checkpointfailover", "SWARM_MESOS_CHECKPOINT_FAILOVER"),
    ("mesos.enablerevocable", "SWARM_MESOS_ENABLE_REVOCABLE"),
    ("mesos.role", "SWARM_MESOS_ROLE"),
];

/// Keys of classic Swarm's own driver.
const IGNORED_KEYS: [&str; 2] = ["swarm.overcommit", "swarm.createretry"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterOptions {
    pub user: Option<String>,
    pub task_timeout: Duration,
    pub offer_timeout: Duration,
    pub refuse_timeout: Duration,
    pub checkpoint: Option<bool>,
    pub revocable: bool,
    /// At least one.
    pub roles: Vec<String>,
    /// Options that were given and mean nothing here.
    pub ignored: Vec<&'static str>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptionError(String);

impl ClusterOptions {
    pub fn parse(options: &[String], variable: impl Fn(&str) -> Option<String>) -> Result<Self, OptionError> {
        let mut given: Vec<(&str, &str)> = Vec::new();
        for option in options {
            let (key, value) = option
                .split_once('=')
                .ok_or_else(|| OptionError(format!("--cluster-opt {option} must be KEY=VALUE")))?;
            if !KEYS.iter().any(|(known, _)| *known == key) && !IGNORED_KEYS.contains(&key) {
                let keys: Vec<&str> = KEYS.iter().map(|(known, _)| *known).collect();
                let text = format!("--cluster-opt {key} is unknown; there are: {}", keys.join(", "));
                return Err(OptionError(text));
            }
            given.push((key, value));
        }
        let value = |key: &str| {
            let option = given.iter().find(|(given, _)| *given == key).map(|(_, value)| (*value).to_owned());
            let (_, name) = KEYS.iter().find(|(known, _)| *known == key)?;
            option.or_else(|| variable(name).filter(|value| !value.is_empty()))
        };
        let mut ignored: Vec<&'static str> =
            IGNORED_KEYS.into_iter().filter(|key| given.iter().any(|(given, _)| given == key)).collect();
        ignored.extend(check_listener(value("mesos.address"), value("mesos.port"))?);
        Ok(Self {
            user: value("mesos.user").filter(|user| !user.is_empty()),
            task_timeout: duration("mesos.tasktimeout", value("mesos.tasktimeout"), TASK_TIMEOUT)?,
            offer_timeout: duration("mesos.offertimeout", value("mesos.offertimeout"), OFFER_TIMEOUT)?,
            refuse_timeout: duration(
                "mesos.offerrefusetimeout",
                value("mesos.offerrefusetimeout"),
                REFUSE_TIMEOUT,
            )?,
            checkpoint: truth("mesos.checkpointfailover", value("mesos.checkpointfailover"))?,
            revocable: truth("mesos.enablerevocable", value("mesos.enablerevocable"))?.unwrap_or(false),
            roles: roles(value("mesos.role")),
            ignored,
        })
    }

    /// An idle manager holds an offer in one role after the other, and then in none for as long as in one.
    pub fn idle_refuse_timeout(&self) -> Duration {
        self.offer_timeout.saturating_mul(u32::try_from(self.roles.len()).unwrap_or(u32::MAX))
    }
}

/// The framework opens the connection: there is nothing to listen on. Values are checked all the same.
fn check_listener(address: Option<String>, port: Option<String>) -> Result<Vec<&'static str>, OptionError> {
    let mut ignored = Vec::new();
    if let Some(address) = address {
        address.parse::<IpAddr>().map_err(|_| {
            OptionError(format!("invalid IP address for cluster-opt mesos.address: {address:?}"))
        })?;
        ignored.push("mesos.address");
    }
    if let Some(port) = port {
        let wrong =
            |_| OptionError(format!("cluster-opt mesos.port must be a port from 0 to 65535, not {port:?}"));
        port.parse::<u16>().map_err(wrong)?;
        ignored.push("mesos.port");
    }
    Ok(ignored)
}

fn duration(key: &str, value: Option<String>, default: Duration) -> Result<Duration, OptionError> {
    match value {
        None => Ok(default),
        Some(text) => {
            go::parse_duration(&text).map_err(|error| OptionError(format!("cluster-opt {key}: {error}")))
        }
    }
}

fn truth(key: &str, value: Option<String>) -> Result<Option<bool>, OptionError> {
    let wrong = |text: &str| OptionError(format!("cluster-opt {key} must be true or false, not {text:?}"));
    value.map(|text| go::parse_bool(&text).ok_or_else(|| wrong(&text))).transpose()
}

fn roles(value: Option<String>) -> Vec<String> {
    let value = value.unwrap_or_default();
    let named = value.split(',').map(str::trim).filter(|role| !role.is_empty());
    let roles: Vec<String> = named.map(str::to_string).collect();
    if roles.is_empty() { Vec::from(["*".to_owned()]) } else { roles }
}

impl fmt::Display for OptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for OptionError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(options: &[&str], variables: &[(&str, &str)]) -> Result<ClusterOptions, String> {
        let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
        let find = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        ClusterOptions::parse(&options, find).map_err(|error| error.to_string())
    }

    #[test]
    fn options_override_variables() {
        let wrong = |text: &str| {
            Err(format!("cluster-opt mesos.enablerevocable must be true or false, not {text:?}"))
        };
        let variable = "SWARM_MESOS_ENABLE_REVOCABLE";
        for (option, value, expected) in [
            (None, None, Ok(false)),
            (None, Some("true"), Ok(true)),
            (None, Some("false"), Ok(false)),
            (None, Some(""), Ok(false)),
            (None, Some("yes"), wrong("yes")),
            (Some("true"), None, Ok(true)),
            (Some("True"), None, Ok(true)),
            (Some("1"), None, Ok(true)),
            (Some("T"), None, Ok(true)),
            (Some("0"), Some("true"), Ok(false)),
            (Some("false"), Some("true"), Ok(false)),
            (Some("true"), Some("false"), Ok(true)),
            (Some("true"), Some("yes"), Ok(true)),
            (Some("yes"), None, wrong("yes")),
            (Some("on"), None, wrong("on")),
            (Some(""), Some("true"), wrong("")),
        ] {
            let option = option.map(|value| format!("mesos.enablerevocable={value}"));
            let options: Vec<&str> = option.as_deref().into_iter().collect();
            let variables: Vec<(&str, &str)> = value.map(|value| (variable, value)).into_iter().collect();
            let got = parse(&options, &variables).map(|options| options.revocable);
            assert_eq!(got, expected, "{options:?} {variables:?}");
        }
        let first = parse(&["mesos.tasktimeout=1s", "mesos.tasktimeout=2s"], &[]);
        assert_eq!(first.map(|options| options.task_timeout), Ok(Duration::from_secs(1)));
    }

    #[test]
    fn every_option_has_a_variable_that_it_overrides() {
        let values = [
            ("127.0.0.1", "::1"),
            ("1", "2"),
            ("alice", "bob"),
            ("1s", "2m"),
            ("3s", "4m"),
            ("5s", "6m"),
            ("true", "false"),
            ("true", "false"),
            ("web", "web,db"),
        ];
        for ((key, variable), (value, other)) in KEYS.into_iter().zip(values) {
            let options = |option: Option<&str>, variables: &[(&str, &str)]| {
                let option = option.map(|value| format!("{key}={value}"));
                let parsed = parse(&option.as_deref().into_iter().collect::<Vec<_>>(), variables);
                ClusterOptions { ignored: Vec::new(), ..parsed.expect(key) }
            };
            let expected = options(Some(value), &[]);
            assert_eq!(options(None, &[(variable, value)]), expected, "{variable}");
            assert_eq!(options(Some(value), &[(variable, other)]), expected, "{key} overrides {variable}");
            let has_effect = !["mesos.address", "mesos.port"].contains(&key);
            assert_eq!(options(None, &[(variable, other)]) != expected, has_effect, "{key}");
        }
    }

    #[test]
    fn defaults_are_those_of_classic_swarm() {
        let defaults = parse(&[], &[]).expect("defaults");
        assert_eq!(
            defaults,
            ClusterOptions {
                user: None,
                task_timeout: Duration::from_secs(5),
                offer_timeout: Duration::from_secs(30),
                refuse_timeout: Duration::from_secs(5),
                checkpoint: None,
                revocable: false,
                roles: Vec::from(["*".to_owned()]),
                ignored: Vec::new(),
            }
        );
        let all = parse(
            &["mesos.user=nobody", "mesos.role=web, db", "mesos.port=5151", "swarm.overcommit=0.1"],
            &[("SWARM_MESOS_TASK_TIMEOUT", "30s"), ("SWARM_MESOS_CHECKPOINT_FAILOVER", "true")],
        )
        .expect("options");
        assert_eq!(all.user.as_deref(), Some("nobody"));
        assert_eq!(all.roles, ["web", "db"]);
        assert_eq!(all.idle_refuse_timeout(), Duration::from_secs(60));
        assert_eq!((all.task_timeout, all.checkpoint), (Duration::from_secs(30), Some(true)));
        assert_eq!(all.ignored, ["swarm.overcommit", "mesos.port"]);
    }

    #[test]
    fn invalid_cluster_options_are_named_in_the_error() {
        for (option, error) in [
            ("mesos.user", "--cluster-opt mesos.user must be KEY=VALUE"),
            ("mesos.address=x", "invalid IP address for cluster-opt mesos.address: \"x\""),
            ("mesos.port=70000", "cluster-opt mesos.port must be a port from 0 to 65535, not \"70000\""),
            ("mesos.tasktimeout=5", "cluster-opt mesos.tasktimeout: time: missing unit in duration \"5\""),
            (
                "mesos.checkpointfailover=maybe",
                "cluster-opt mesos.checkpointfailover must be true or false, not \"maybe\"",
            ),
        ] {
            assert_eq!(parse(&[option], &[]), Err(error.to_owned()), "{option}");
        }
        let unknown = parse(&["mesos.enablerevokable=true"], &[]).expect_err("a misspelt key");
        assert!(
            unknown.starts_with("--cluster-opt mesos.enablerevokable is unknown; there are: mesos.address, ")
        );
    }
}
