//! The command line of `tepui swarm`: classic Swarm's, with its options, defaults and texts.
//!
//! Long options take one or two dashes. Options that mean nothing to a framework that is told of engines by offers and events
//! are read, checked and listed as ignored.

mod words;

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use crate::filter::Filter;
use crate::go;
use crate::options::ClusterOptions;
use crate::schedule::Scheduler;
use crate::strategy::Strategy;
use words::Words;

const DEFAULT_HOST: &str = "tcp://127.0.0.1:2375";
const DEFAULT_STATE: &str = "/var/lib/tepui/swarm";
const DEFAULT_SOCKET: &str = "/var/run/docker.sock";

/// What `tepui swarm …` is to do.
#[derive(Clone, Debug)]
pub enum Command {
    Manage(Manage),
    Help,
    Version,
}

#[derive(Clone, Debug)]
pub struct Manage {
    /// `host:port`, several separated by commas, or `etcd://…`.
    pub master: String,
    pub scheduler: Scheduler,
    /// Where to listen.
    pub hosts: Vec<Host>,
    pub cluster: ClusterOptions,
    /// Directory of the records.
    pub state: String,
    /// Path of the `tepui` binary on the agents; without, that of this process.
    pub executor: Option<String>,
    /// Unix socket of the engine on agents that name none by an attribute.
    pub engine_socket: String,
    /// `debug`, `info`, `warn`, `error`, `fatal` or `panic`.
    pub log_level: String,
    /// Options that were given and mean nothing here.
    pub ignored: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// `host:port`.
    Tcp(String),
    Unix(String),
}

/// A text for the terminal; the process exits with an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageError(pub String);

impl Command {
    /// The words behind `tepui swarm`.
    pub fn parse(
        arguments: &[String],
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Command, UsageError> {
        let words = Words::parse(arguments)?;
        if words.has("help") {
            return Ok(Command::Help);
        }
        if words.has("version") {
            return Ok(Command::Version);
        }
        match words.command.as_deref() {
            None | Some("help" | "h") => Ok(Command::Help),
            Some("manage" | "m") => Manage::of(&words, &variable).map(Command::Manage),
            Some("list" | "l") => Err(fault(
                "engines are not listed by a discovery service; `docker info` at the manager shows them",
            )),
            Some("join" | "j") => Err(fault(
                "engines do not join: start an agent beside each of them (`tepui agent --attributes=docker_port:2375`)",
            )),
            Some("create" | "c") if !words.arguments.is_empty() => {
                Err(fault("the `create` command takes no arguments. See 'swarm create --help'."))
            }
            Some("create" | "c") => Err(fault(
                "clusters have no tokens: name the master instead (`tepui swarm manage HOST:PORT`)",
            )),
            Some(other) => {
                Err(UsageError(format!("no such command: {other}; there are: manage, list, join, create")))
            }
        }
    }
}

impl Manage {
    /// In the order of classic Swarm's checks.
    fn of(words: &Words, variable: &impl Fn(&str) -> Option<String>) -> Result<Manage, UsageError> {
        check_tls(words)?;
        check_engine_options(words)?;
        let master = match &words.arguments[..] {
            [master] => master.clone(),
            [] => variable("SWARM_DISCOVERY")
                .filter(|master| !master.is_empty())
                .ok_or_else(|| fault("discovery required to manage a cluster. See 'swarm manage --help'."))?,
            [_, extra, ..] => {
                return Err(UsageError(format!("one master is expected; {extra:?} is one too many")));
            }
        };
        let scheduler = scheduler(words)?;
        match words.last("cluster-driver") {
            None | Some("mesos-experimental") => (),
            Some(other) => return Err(UsageError(format!("unsupported cluster {other:?}"))),
        }
        let cluster = ClusterOptions::parse(&words.all("cluster-opt"), variable)
            .map_err(|error| UsageError(error.to_string()))?;
        let hosts = hosts(words, variable)?;
        if words.has("replication") {
            return Err(fault(
                "--replication is not supported yet; run one manager, which continues from its records",
            ));
        }
        let mut ignored: Vec<String> =
            words::IGNORED.iter().filter(|it| words.has(it)).map(|it| format!("--{it}")).collect();
        ignored.extend(cluster.ignored.iter().map(|key| format!("--cluster-opt {key}")));
        Ok(Manage {
            master,
            scheduler,
            hosts,
            cluster,
            state: words.last("state-dir").unwrap_or(DEFAULT_STATE).to_owned(),
            executor: words.last("executor").map(str::to_owned),
            engine_socket: words.last("engine-socket").unwrap_or(DEFAULT_SOCKET).to_owned(),
            log_level: log_level(words)?,
            ignored,
        })
    }
}

fn log_level(words: &Words) -> Result<String, UsageError> {
    let default = if words.has("debug") { "debug" } else { "info" };
    let level = words.last("log-level").unwrap_or(default);
    match level {
        "debug" | "info" | "warn" | "error" | "fatal" | "panic" => Ok(level.to_owned()),
        other => Err(UsageError(format!(
            "--log-level must be debug, info, warn, error, fatal or panic, not {other:?}"
        ))),
    }
}

fn check_tls(words: &Words) -> Result<(), UsageError> {
    let has = |name: &str| words.has(name);
    if has("tls") || has("tlsverify") {
        if !has("tlscert") || !has("tlskey") {
            return Err(fault("--tlscert and --tlskey must be provided when using --tls"));
        }
        if has("tlsverify") && !has("tlscacert") {
            return Err(fault("--tlscacert must be provided when using --tlsverify"));
        }
        return Err(fault("--tls is not supported yet; listen on a loopback address or a Unix socket"));
    }
    if has("tlscert") || has("tlskey") || has("tlscacert") {
        return Err(fault(
            "--tlscert, --tlskey and --tlscacert require the use of either --tls or --tlsverify",
        ));
    }
    Ok(())
}

/// Nothing is polled, but what is wrong is said.
fn check_engine_options(words: &Words) -> Result<(), UsageError> {
    let duration = |name: &str, default: u64| match words.last(name) {
        None => Ok(Duration::from_secs(default)),
        Some(text) => {
            go::parse_duration(text).map_err(|error| UsageError(format!("invalid --{name}: {error}")))
        }
    };
    let (least, most) =
        (duration("engine-refresh-min-interval", 30)?, duration("engine-refresh-max-interval", 60)?);
    if least.is_zero() {
        return Err(fault("min refresh interval should be a positive number"));
    }
    if most < least {
        return Err(fault("max refresh interval cannot be less than min refresh interval"));
    }
    if words.last("engine-refresh-retry").is_some_and(|retry| retry != "3") {
        return Err(fault("--engine-refresh-retry is deprecated. Use --engine-failure-retry"));
    }
    if words
        .last("engine-failure-retry")
        .is_some_and(|retry| !retry.parse::<u32>().is_ok_and(|retry| retry > 0))
    {
        return Err(fault("invalid failure retry count"));
    }
    if duration("heartbeat", 60)? < Duration::from_secs(1) {
        return Err(fault("--heartbeat should be at least one second"));
    }
    Ok(())
}

fn scheduler(words: &Words) -> Result<Scheduler, UsageError> {
    let strategy = words.last("strategy").map_or(Some(Strategy::default()), Strategy::named);
    let strategy = strategy.ok_or_else(|| fault("strategy not supported"))?;
    let named = words.all("filter");
    let filters: Option<Vec<Filter>> = named.iter().map(|name| Filter::named(name)).collect();
    let filters = filters.ok_or_else(|| fault("filter not supported"))?;
    let filters = if filters.is_empty() { Filter::ALL.to_vec() } else { filters };
    Ok(Scheduler { filters, strategy })
}

fn hosts(words: &Words, variable: &impl Fn(&str) -> Option<String>) -> Result<Vec<Host>, UsageError> {
    let mut given = words.all("host");
    if given.is_empty() {
        let one = variable("SWARM_HOST").filter(|host| !host.is_empty());
        given.push(one.unwrap_or_else(|| DEFAULT_HOST.to_owned()));
    }
    given.iter().map(|host| Host::parse(host)).collect()
}

impl Host {
    /// Everybody who can connect is root on every engine: without TLS, only this machine may.
    fn parse(text: &str) -> Result<Host, UsageError> {
        if let Some(path) = text.strip_prefix("unix://") {
            return Ok(Host::Unix(path.to_owned()));
        }
        let address = text.strip_prefix("tcp://").unwrap_or(text);
        let wrong = || UsageError(format!("--host {text:?} must be tcp://IP:PORT or unix:///PATH"));
        let (host, port) = address.rsplit_once(':').ok_or_else(wrong)?;
        port.parse::<u16>().map_err(|_| wrong())?;
        let ip = host.trim_start_matches('[').trim_end_matches(']').parse::<core::net::IpAddr>();
        let is_loopback = host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback());
        if !is_loopback {
            return Err(UsageError(format!(
                "--host {text:?}: everybody who can connect is root on every engine; without TLS, which is not supported yet, \
                 listen on a loopback address or a Unix socket"
            )));
        }
        Ok(Host::Tcp(address.to_owned()))
    }
}

fn fault(text: &str) -> UsageError {
    UsageError(text.to_owned())
}

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for UsageError {}

pub use words::HELP;

#[cfg(test)]
mod tests;
