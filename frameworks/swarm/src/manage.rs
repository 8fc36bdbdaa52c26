//! The command line of `tepui swarm`: classic Swarm's, with its options, defaults and texts.
//!
//! Long options take one or two dashes. Options without meaning for a framework that finds engines by offers and
//! events are read, checked and listed as ignored.

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
const REPLICATION_TTL: Duration = Duration::from_secs(20);

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
    /// For clients and engines alike; none: neither uses TLS.
    pub tls: Option<TlsPaths>,
    pub replication: Option<Replication>,
    /// Names of this manager besides those of the machine, for the check of `Host`.
    pub allowed_hosts: Vec<String>,
    /// Other users of this machine than root and that of this process may use the API on loopback addresses.
    pub local_users: bool,
    /// Pages of every web site may use the API.
    pub cors: bool,
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

/// Files in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsPaths {
    pub cert: String,
    pub key: String,
    /// Who vouches for peers; none: peers are not verified.
    pub ca: Option<String>,
}

/// One of several managers leads; the others stand by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replication {
    /// `host:port` where the others reach this manager.
    pub advertise: String,
    /// How long a leader that is gone is still taken for one.
    pub ttl: Duration,
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
        let tls = tls(words)?;
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
        let is_verified = tls.as_ref().is_some_and(|tls| tls.ca.is_some());
        let hosts = hosts(words, variable, is_verified)?;
        let replication = replication(words, variable, &master)?;
        let mut ignored: Vec<String> =
            words::IGNORED.iter().filter(|it| words.has(it)).map(|it| format!("--{it}")).collect();
        ignored.extend(cluster.ignored.iter().map(|key| format!("--cluster-opt {key}")));
        Ok(Manage {
            master,
            scheduler,
            hosts,
            tls,
            replication,
            allowed_hosts: allowed_hosts(words),
            local_users: words.has("allow-local-users"),
            cors: words.has("api-enable-cors") || words.has("cors"),
            cluster,
            state: words.last("state-dir").unwrap_or(DEFAULT_STATE).to_owned(),
            executor: words.last("executor").map(str::to_owned),
            engine_socket: words.last("engine-socket").unwrap_or(DEFAULT_SOCKET).to_owned(),
            log_level: log_level(words)?,
            ignored,
        })
    }
}

fn allowed_hosts(words: &Words) -> Vec<String> {
    let given = words.all("allowed-hosts");
    let names = given.iter().flat_map(|names| names.split(',')).map(str::trim);
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
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

fn tls(words: &Words) -> Result<Option<TlsPaths>, UsageError> {
    let path = |name: &str| words.last(name).filter(|path| !path.is_empty()).map(str::to_owned);
    let (cert, key, ca) = (path("tlscert"), path("tlskey"), path("tlscacert"));
    if !words.has("tls") && !words.has("tlsverify") {
        if cert.is_some() || key.is_some() || ca.is_some() {
            return Err(fault(
                "--tlscert, --tlskey and --tlscacert require the use of either --tls or --tlsverify",
            ));
        }
        return Ok(None);
    }
    let (Some(cert), Some(key)) = (cert, key) else {
        return Err(fault("--tlscert and --tlskey must be provided when using --tls"));
    };
    match (words.has("tlsverify"), ca) {
        (true, None) => Err(fault("--tlscacert must be provided when using --tlsverify")),
        (true, ca) => Ok(Some(TlsPaths { cert, key, ca })),
        (false, _) => Ok(Some(TlsPaths { cert, key, ca: None })),
    }
}

fn replication(
    words: &Words,
    variable: &impl Fn(&str) -> Option<String>,
    master: &str,
) -> Result<Option<Replication>, UsageError> {
    if !words.has("replication") {
        return Ok(None);
    }
    let advertise = words.last("advertise").map(str::to_owned).or_else(|| variable("SWARM_ADVERTISE"));
    let advertise = advertise.filter(|address| !address.is_empty());
    let advertise = advertise
        .ok_or_else(|| fault("--advertise address must be provided when using --leader-election"))?;
    let is_address = advertise
        .rsplit_once(':')
        .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0));
    if !is_address {
        return Err(fault("--advertise should be of the form ip:port or hostname:port"));
    }
    let ttl = match words.last("replication-ttl") {
        None => REPLICATION_TTL,
        Some(text) => go::parse_duration(text)
            .map_err(|error| UsageError(format!("invalid --replication-ttl: {error}")))?,
    };
    if ttl.is_zero() {
        return Err(fault("--replication-ttl should be a positive number"));
    }
    if !master.starts_with("etcd://") && !master.starts_with("etcds://") {
        return Err(fault(
            "Leader election is only supported with consul, etcd and zookeeper discovery. \
             Name the master by etcd://host:port/prefix.",
        ));
    }
    Ok(Some(Replication { advertise, ttl }))
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
    if words.all("discovery-opt").iter().any(|option| !option.contains('=')) {
        return Err(fault("--discovery-opt must contain key=value strings"));
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

fn hosts(
    words: &Words,
    variable: &impl Fn(&str) -> Option<String>,
    is_verified: bool,
) -> Result<Vec<Host>, UsageError> {
    let mut given = words.all("host");
    if given.is_empty() {
        let one = variable("SWARM_HOST").filter(|host| !host.is_empty());
        given.push(one.unwrap_or_else(|| DEFAULT_HOST.to_owned()));
    }
    given.iter().map(|host| Host::parse(host, is_verified)).collect()
}

impl Host {
    /// A client is root on every engine: unless clients are verified, only this machine may connect.
    fn parse(text: &str, is_verified: bool) -> Result<Host, UsageError> {
        if let Some(path) = text.strip_prefix("unix://") {
            return Ok(Host::Unix(path.to_owned()));
        }
        let address = text.strip_prefix("tcp://").unwrap_or(text);
        let wrong = || UsageError(format!("--host {text:?} must be tcp://IP:PORT or unix:///PATH"));
        let (host, port) = address.rsplit_once(':').ok_or_else(wrong)?;
        port.parse::<u16>().map_err(|_| wrong())?;
        let ip = host.trim_start_matches('[').trim_end_matches(']').parse::<core::net::IpAddr>();
        let is_loopback = host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback());
        if !is_loopback && !is_verified {
            return Err(UsageError(format!(
                "--host {text:?}: everybody who can connect is root on every engine; use --tlsverify, or listen on a loopback \
                 address or a Unix socket"
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
