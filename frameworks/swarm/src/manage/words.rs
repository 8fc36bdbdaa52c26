//! Words of the command line: options with one or two dashes, their values, and what is left.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::UsageError;

/// Options without a value.
const SWITCHES: [&str; 11] = [
    "debug",
    "experimental",
    "help",
    "version",
    "tls",
    "tlsverify",
    "replication",
    "api-enable-cors",
    "cors",
    "allow-local-users",
    "refresh-on-node-filter",
];

/// Options with a value: (name, other name).
const VALUES: [(&str, &str); 23] = [
    ("log-level", "l"),
    ("strategy", ""),
    ("filter", "f"),
    ("host", "H"),
    ("replication-ttl", ""),
    ("advertise", "addr"),
    ("tlscacert", ""),
    ("tlscert", ""),
    ("tlskey", ""),
    ("engine-refresh-min-interval", ""),
    ("engine-refresh-max-interval", ""),
    ("engine-failure-retry", ""),
    ("engine-refresh-retry", ""),
    ("heartbeat", ""),
    ("cluster-driver", "c"),
    ("cluster-opt", ""),
    ("discovery-opt", ""),
    ("container-name-refresh-filter", ""),
    ("state-dir", ""),
    ("executor", ""),
    ("engine-socket", ""),
    ("ttl", ""),
    ("allowed-hosts", ""),
];

/// Options that are read and mean nothing: engines tell what happens by themselves.
pub(super) const IGNORED: [&str; 9] = [
    "experimental",
    "engine-refresh-min-interval",
    "engine-refresh-max-interval",
    "engine-failure-retry",
    "engine-refresh-retry",
    "heartbeat",
    "discovery-opt",
    "refresh-on-node-filter",
    "container-name-refresh-filter",
];

pub const HELP: &str = "\
Serve the Docker API for the whole cluster.

Usage: tepui swarm manage [OPTIONS] MASTER

TEPUI_PRINCIPAL and TEPUI_SECRET, or TEPUI_TOKEN_FILE, authenticate the framework to the master;
TEPUI_TLS_CA, TEPUI_TLS_CERT and TEPUI_TLS_KEY are for TLS with master and etcd.

MASTER is host:port, several of them separated by commas, or etcd://host:port/prefix (variable SWARM_DISCOVERY).

  --host, -H HOST            Listen on tcp://IP:PORT or unix:///PATH; may be repeated (variable SWARM_HOST) [default: tcp://127.0.0.1:2375]
  --allowed-hosts NAME       Names that clients may use for this manager, besides those of this machine: names, addresses,
                             .domain, or * for any; separated by commas, may be repeated
  --allow-local-users        Permit every user of this machine to use the API on a loopback address without --tlsverify
                             [default: root and the user of this process]
  --api-enable-cors, --cors  Let pages of every web site use the API
  --strategy NAME            Order of nodes: spread, binpack, random [default: spread]
  --filter, -f NAME          Filter of nodes; may be repeated and replaces all
                             [default: health, port, containerslots, dependency, affinity, constraint, whitelist]
  --cluster-opt KEY=VALUE    Option of the framework; may be repeated:
      mesos.user               User of tasks (variable SWARM_MESOS_USER) [default: user of this process]
      mesos.role               Roles, separated by commas (variable SWARM_MESOS_ROLE) [default: *]
      mesos.tasktimeout        Time that a container waits for a node (variable SWARM_MESOS_TASK_TIMEOUT) [default: 5s]
      mesos.offertimeout       Time that an offer is held (variable SWARM_MESOS_OFFER_TIMEOUT) [default: 30s]
      mesos.offerrefusetimeout Time that the rest of an accepted offer is refused
                               (variable SWARM_MESOS_OFFER_REFUSE_TIMEOUT) [default: 5s]
      mesos.checkpointfailover Whether agents checkpoint the tasks (variable SWARM_MESOS_CHECKPOINT_FAILOVER) [default: true]
      mesos.enablerevocable    Whether to use revocable resources (variable SWARM_MESOS_ENABLE_REVOCABLE) [default: false]
  --tlsverify                Use TLS and verify clients and engines
  --tls                      Use TLS without verifying peers
  --tlscacert PATH           CA certificates that sign those of clients and engines
  --tlscert PATH             Certificate of the manager
  --tlskey PATH              Key of the manager
  --replication              Stand by while another manager leads; needs a MASTER of the form etcd://…, where records are kept too
  --replication-ttl TIME     Time after which a leader that is gone is replaced [default: 20s]
  --advertise, --addr ADDR   host:port of this manager for the others (variable SWARM_ADVERTISE)
  --state-dir PATH           Directory of the records of containers, without --replication [default: /var/lib/tepui/swarm]
  --executor PATH            Path of the tepui binary on the agents [default: the path of this binary]
  --engine-socket PATH       Unix socket of the engine on agents without the attribute docker_socket [default: /var/run/docker.sock]
  --log-level, -l LEVEL      debug, info, warn, error, fatal, panic [default: info]
  --debug                    Same as --log-level debug
";

/// What was typed, taken apart.
#[derive(Debug, Default)]
pub(super) struct Words {
    /// The first word that is no option.
    pub command: Option<String>,
    pub arguments: Vec<String>,
    options: Vec<(&'static str, String)>,
}

impl Words {
    pub fn parse(arguments: &[String]) -> Result<Words, UsageError> {
        let mut words = Words::default();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            match argument
                .strip_prefix("--")
                .or_else(|| argument.strip_prefix('-'))
                .filter(|option| !option.is_empty())
            {
                Some(option) => {
                    let (name, inline) = match option.split_once('=') {
                        Some((name, value)) => (name, Some(value.to_owned())),
                        None => (option, None),
                    };
                    words.option(name, inline, &mut rest)?;
                }
                None if words.command.is_none() => words.command = Some(argument.clone()),
                None => words.arguments.push(argument.clone()),
            }
        }
        Ok(words)
    }

    fn option<'w>(
        &mut self,
        name: &str,
        inline: Option<String>,
        rest: &mut impl Iterator<Item = &'w String>,
    ) -> Result<(), UsageError> {
        let name = match name {
            "h" => "help",
            "v" => "version",
            name => name,
        };
        if let Some(switch) = SWITCHES.iter().find(|switch| **switch == name) {
            match inline.as_deref().map_or(Some(true), crate::go::parse_bool) {
                Some(true) => self.options.push((switch, String::new())),
                Some(false) => (),
                None => return Err(UsageError(format!("--{name} must be true or false"))),
            }
            return Ok(());
        }
        let known = VALUES.iter().find(|(long, short)| *long == name || !short.is_empty() && *short == name);
        let Some((long, _)) = known else {
            return Err(UsageError(format!(
                "flag provided but not defined: -{name}. See 'swarm manage --help'."
            )));
        };
        let value = inline.or_else(|| rest.next().cloned());
        let value = value.ok_or_else(|| UsageError(format!("flag needs an argument: -{name}")))?;
        self.options.push((long, value));
        Ok(())
    }

    pub fn has(&self, name: &str) -> bool {
        self.options.iter().any(|(given, _)| *given == name)
    }

    pub fn last(&self, name: &str) -> Option<&str> {
        self.options.iter().rev().find(|(given, _)| *given == name).map(|(_, value)| value.as_str())
    }

    pub fn all(&self, name: &str) -> Vec<String> {
        self.options.iter().filter(|(given, _)| *given == name).map(|(_, value)| value.clone()).collect()
    }
}
