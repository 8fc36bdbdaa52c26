//! What the scheduler learns: events of the master, commands of operators, facts about agents.

use std::collections::BTreeMap;

use tepui_proto::mesos::v1 as pb;
use tepui_resources::Resources;
use tepui_types::{AgentId, OfferId};

use crate::plan::Action;
use crate::spec::ServiceSpec;

/// A call of an operator that waits for its answer. Given by the shell, never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

#[derive(Clone, Debug)]
pub enum Input {
    /// Earlier offers are void.
    Subscribed {
        framework_id: String,
    },
    /// Offers that are held are void.
    Disconnected,
    /// Calls got no answer while the subscription lasts; those that used or declined offers name them.
    CallsLost {
        offers: Vec<OfferId>,
    },
    Offers(Vec<pb::Offer>),
    Rescinded(OfferId),
    Update(Box<pb::TaskStatus>),
    OperationUpdate(Box<pb::OperationStatus>),
    /// The agent was removed from the cluster.
    AgentFailed(AgentId),
    /// ERROR of the master: the session is over.
    Failed(String),
    /// The master carried out TEARDOWN.
    Deregistered,
    /// All agents of the cluster, as the operator API lists them. Optional: without it no step is called unplaceable.
    Agents(Vec<AgentFacts>),
    Command {
        request: RequestId,
        command: Command,
    },
}

/// What is known of an agent beyond its offers.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentFacts {
    pub id: AgentId,
    pub hostname: String,
    pub region: Option<String>,
    pub zone: Option<String>,
    /// Name and value as text.
    pub attributes: Vec<(String, String)>,
    /// Resources in total, including those in use by others.
    pub total: Resources,
    /// Deactivated or draining: no tasks are launched there.
    pub is_deactivated: bool,
    /// Draining or drained: its tasks have to leave it.
    pub is_draining: bool,
    /// Isolators of the agent, if known. Pods with external volumes need `docker/volume`.
    pub isolators: Option<Vec<String>>,
    /// Docker volume plugins of the agent, if known.
    pub volume_plugins: Option<Vec<String>>,
    /// Rejects operations whose states a framework asks for.
    pub lacks_operation_feedback: bool,
}

#[derive(Clone, Debug)]
pub enum Command {
    Plan {
        plan: String,
        action: Action,
    },
    /// Kills the tasks of a pod instance; they are launched again with the same reservations.
    RestartPod {
        pod: String,
    },
    /// Kills the tasks of a pod instance, releases its reservations and launches it anew on any agent.
    ReplacePod {
        pod: String,
    },
    /// Names of tasks, short or full; empty is all tasks of the pod instance.
    PausePod {
        pod: String,
        tasks: Vec<String>,
    },
    ResumePod {
        pod: String,
        tasks: Vec<String>,
    },
    /// A new target. Also given at every start, with the spec of the command line.
    SetTarget {
        spec: Box<ServiceSpec>,
        origin: Origin,
    },
    /// Kills all tasks, releases all reservations and volumes, deregisters the framework. Irreversible.
    Uninstall,
    PutProperty {
        key: String,
        value: Vec<u8>,
    },
}

/// Where a spec comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The files of a scheduler that starts: they win over an uploaded spec only if they changed since its upload.
    Start,
    /// The files of the scheduler, read again by request.
    Files,
    /// A client of the API.
    Upload,
}

/// Environment variables that `start` of a plan gives to tasks.
pub type Parameters = BTreeMap<String, String>;
