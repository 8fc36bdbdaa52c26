//! The master's state as readers see it: persistent maps of shared entities, so that a snapshot is a clone.
//!
//! Owned and changed by the master alone. What can be derived is not here, except where deriving it means a walk over all
//! tasks (`tallies`).

mod liveness;
pub(crate) mod notice;
mod offers;
mod operations;
mod part;
mod recent;
pub(crate) mod status;
mod tallies;
pub(crate) mod transition;
mod visible;

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use rpds::{RedBlackTreeMapSync, RedBlackTreeSetSync};
use tepui_fsm::Wall;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::framework_info::capability::Type as FrameworkCapability;
use tepui_proto::mesos::v1::scheduler::OfferConstraints;
use tepui_registry::{Deactivation, Machine};
use tepui_resources::{Format, Resources};
use tepui_types::{AgentId, ConnId, DiskPressure, ExecutorId, FrameworkId, OfferId, TaskId};

pub(crate) use liveness::{Liveness, Silence};
pub(crate) use offers::Offers;
pub(crate) use operations::Operations;
pub use recent::Recent;
pub(crate) use tallies::Presence;
pub use tallies::{AgentTally, FrameworkTally, Tallies, TaskCounts};
pub use visible::event_seen;

use crate::values::counters::{Counters, FrameworkCounters};

pub type Map<K, V> = RedBlackTreeMapSync<K, V>;
pub type Set<T> = RedBlackTreeSetSync<T>;

/// Names an operation inside the cluster; given by the master.
pub type OperationUuid = [u8; 16];

/// Everything readers may ask about. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct State {
    /// Grows with every published change.
    pub version: u64,
    pub master_info: Arc<pb::MasterInfo>,
    pub started_at: Wall,
    pub elected_at: Wall,
    /// Registered agents, connected or not.
    pub agents: Map<AgentId, Arc<Agent>>,
    /// Admitted by an earlier master, not back yet.
    pub recovered_agents: Map<AgentId, Arc<pb::AgentInfo>>,
    pub unreachable_agents: Map<AgentId, Wall>,
    pub gone_agents: Map<AgentId, Wall>,
    /// Agents of which nothing is offered, wherever they are.
    pub deactivated_agents: Arc<BTreeMap<AgentId, Deactivation>>,
    pub frameworks: Map<FrameworkId, Arc<Framework>>,
    /// Oldest first.
    pub completed_frameworks: Recent<FrameworkId, Arc<Framework>>,
    /// What the tasks and executors of frameworks come to. In a part of the state they are still those of the whole.
    pub tallies: Tallies,
    pub offers: Map<OfferId, Arc<Offer>>,
    /// Requests to leave agents, not answered yet.
    pub inverse_offers: Map<OfferId, Arc<InverseOffer>>,
    /// What happened so far. Counting alone does not make a new version.
    pub counters: Counters,
    /// The same for each framework, as long as it is remembered.
    pub framework_counters: Map<FrameworkId, Arc<FrameworkCounters>>,
    /// Weights that are not 1.
    pub weights: Map<String, f64>,
    /// How many decline filters there are in each role that has any.
    pub offer_filters: Map<String, u64>,
    /// Quotas that are not the default.
    pub quotas: Map<String, Arc<pb::quota::QuotaConfig>>,
    pub schedule: Arc<pb::maintenance::Schedule>,
    /// Machines that are scheduled for maintenance or down; all others are up.
    pub machines: Map<Machine, Arc<pb::MachineInfo>>,
    /// Set while the registry's disk is short of room: changes that need room are rejected.
    pub disk_pressure: Option<DiskPressure>,
    /// The `--roles` whitelist.
    pub roles: Option<Arc<Vec<String>>>,
    /// Roles whose reservations are not lent while idle; none: all are lent.
    pub slack_opt_out: Option<Arc<Vec<String>>>,
}

impl State {
    /// Whether operators may speak of this role: any, or with a whitelist one that is on it or has a weight.
    pub fn allows_role(&self, role: &str) -> bool {
        let listed = |allowed: &Arc<Vec<String>>| allowed.iter().any(|known| known == role);
        role == "*" || self.roles.as_ref().is_none_or(listed) || self.weights.contains_key(role)
    }
}

/// A registered agent.
#[derive(Clone, Debug)]
pub struct Agent {
    pub id: AgentId,
    pub info: Arc<pb::AgentInfo>,
    pub version: Arc<str>,
    /// "slave(1)@ip:port".
    pub pid: Arc<str>,
    /// Whether it is reached by https.
    pub speaks_tls: bool,
    pub capabilities: Arc<[pb::agent_info::capability::Type]>,
    pub link: AgentLink,
    /// An operator took it out of use; it makes no offers.
    pub deactivated: bool,
    /// It is to be empty, or is; it is deactivated then.
    pub drain: Option<Drain>,
    /// Its disk is short of room; it makes no offers.
    pub disk_pressure: Option<DiskPressure>,
    /// When its machine will not be there.
    pub unavailability: Option<Arc<pb::Unavailability>>,
    /// Answers of frameworks to inverse offers.
    pub inverse_answers: Map<FrameworkId, pb::allocator::InverseOfferStatus>,
    pub registered_at: Wall,
    pub reregistered_at: Option<Wall>,
    /// With dynamic reservations and volumes applied, revocable ones included.
    pub total: Resources,
    /// Tasks on it that are not both terminal and acknowledged.
    pub tasks: Set<(FrameworkId, TaskId)>,
    /// Executors that frameworks brought; those the agent makes for command tasks are its own business.
    pub executors: Map<(FrameworkId, ExecutorId), Arc<Executor>>,
    /// Operations not both terminal and acknowledged, by their uuid.
    pub operations: Map<OperationUuid, Arc<Operation>>,
}

/// The drain of an agent.
#[derive(Clone, Debug, PartialEq)]
pub struct Drain {
    pub info: pb::DrainInfo,
    pub since: Wall,
}

/// How the master is connected with an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentLink {
    Connected {
        conn: ConnId,
    },
    /// The link broke; it may re-register.
    Silent {
        since: Wall,
    },
}

#[derive(Clone, Debug)]
pub struct Executor {
    pub framework_id: FrameworkId,
    pub agent_id: AgentId,
    pub info: pb::ExecutorInfo,
    pub resources: Resources,
}

/// A framework: connected, away, or ended.
#[derive(Clone, Debug)]
pub struct Framework {
    pub id: FrameworkId,
    /// `id` is set.
    pub info: Arc<pb::FrameworkInfo>,
    pub link: FrameworkLink,
    pub registered_at: Wall,
    pub reregistered_at: Option<Wall>,
    pub unregistered_at: Option<Wall>,
    pub suppressed_roles: Set<String>,
    pub offer_constraints: Option<Arc<OfferConstraints>>,
    /// Live tasks: not both terminal and acknowledged.
    pub tasks: Map<TaskId, Arc<Task>>,
    /// What their descriptions take.
    pub(crate) task_bytes: usize,
    /// Oldest first.
    pub unreachable_tasks: Recent<TaskId, Arc<Task>>,
    pub completed_tasks: Recent<TaskId, Arc<Task>>,
    /// Whether the tasks under an executor of this name share its cgroups: decided by the first, for ever.
    pub(crate) shares_cgroups: Recent<ExecutorId, bool>,
}

/// How the master is connected with a framework.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrameworkLink {
    Connected {
        conn: ConnId,
        stream_id: Arc<str>,
    },
    /// Its stream ended; it is removed when its failover timeout has passed.
    Disconnected {
        since: Wall,
    },
    /// Known from agents only, after a new master started.
    Recovered,
    Completed,
}

#[derive(Clone, Debug)]
pub struct Task {
    pub id: TaskId,
    pub framework_id: FrameworkId,
    pub agent_id: AgentId,
    /// Unset for command tasks.
    pub executor_id: Option<ExecutorId>,
    /// The v1 Task; `state` and `statuses` are kept current in here. Its resources are `resources`: see [`Task::message`].
    pub task: pb::Task,
    pub resources: Resources,
    /// Reported by its agent; not launched by this master.
    pub is_reported: bool,
    /// What its description took when it became known.
    pub bytes: usize,
}

/// Resources of one agent, offered to one framework in one role.
#[derive(Clone, Debug)]
pub struct Offer {
    pub id: OfferId,
    pub framework_id: FrameworkId,
    pub agent_id: AgentId,
    pub role: String,
    /// Allocated to `role`.
    pub resources: Resources,
    pub offered_at: Wall,
}

/// A request to a framework to leave an agent.
#[derive(Clone, Debug)]
pub struct InverseOffer {
    pub id: OfferId,
    pub framework_id: FrameworkId,
    pub agent_id: AgentId,
    pub unavailability: Arc<pb::Unavailability>,
}

/// An offer operation that the agent has not finished, or whose terminal status is not acknowledged yet.
#[derive(Clone, Debug)]
pub struct Operation {
    pub uuid: OperationUuid,
    /// Unset for an operator's request.
    pub framework_id: Option<FrameworkId>,
    pub agent_id: AgentId,
    /// `latest_status` and `statuses` are kept current in here.
    pub operation: pb::Operation,
}

impl Agent {
    /// Its stream, while there is one.
    pub fn conn(&self) -> Option<ConnId> {
        match self.link {
            AgentLink::Connected { conn } => Some(conn),
            AgentLink::Silent { .. } => None,
        }
    }

    /// Connected and not taken out of use.
    pub fn is_active(&self) -> bool {
        self.conn().is_some() && !self.deactivated
    }

    /// Whether its resources may be offered.
    pub fn is_offered(&self) -> bool {
        self.is_active() && self.disk_pressure.is_none()
    }

    pub fn has(&self, capability: pb::agent_info::capability::Type) -> bool {
        self.capabilities.contains(&capability)
    }

    /// The executors of one framework.
    pub fn executors_of(&self, framework_id: &FrameworkId) -> impl Iterator<Item = &Arc<Executor>> + '_ {
        let framework_id = framework_id.clone();
        let first = (framework_id.clone(), ExecutorId::new(""));
        self.executors
            .range(first..)
            .take_while(move |((owner, _), _)| *owner == framework_id)
            .map(|(_, executor)| executor)
    }

    /// The tasks of one framework.
    pub fn framework_tasks(&self, framework_id: &FrameworkId) -> impl Iterator<Item = &TaskId> + '_ {
        let framework_id = framework_id.clone();
        let first = (framework_id.clone(), TaskId::new(""));
        self.tasks.range(first..).take_while(move |(owner, _)| *owner == framework_id).map(|(_, task)| task)
    }
}

impl Framework {
    /// Its event stream, while there is one.
    pub fn conn(&self) -> Option<ConnId> {
        match self.link {
            FrameworkLink::Connected { conn, .. } => Some(conn),
            FrameworkLink::Disconnected { .. } | FrameworkLink::Recovered | FrameworkLink::Completed => None,
        }
    }

    pub fn has(&self, capability: FrameworkCapability) -> bool {
        has_capability(&self.info, capability)
    }

    pub fn is_partition_aware(&self) -> bool {
        self.has(FrameworkCapability::PARTITION_AWARE)
    }

    /// The roles it is subscribed in.
    pub fn roles(&self) -> Vec<String> {
        roles_of(&self.info)
    }

    /// How reservations are written for it.
    pub fn resource_format(&self) -> Format {
        match self.has(FrameworkCapability::RESERVATION_REFINEMENT) {
            true => Format::Post,
            false => Format::Pre,
        }
    }
}

pub(crate) fn has_capability(info: &pb::FrameworkInfo, wanted: FrameworkCapability) -> bool {
    info.capabilities.iter().any(|capability| capability.r#type == Some(wanted))
}

/// `roles` of a framework with the MULTI_ROLE capability, else its one `role`.
pub(crate) fn roles_of(info: &pb::FrameworkInfo) -> Vec<String> {
    match has_capability(info, FrameworkCapability::MULTI_ROLE) {
        true => info.roles.clone(),
        false => alloc::vec![String::from(info.role.as_deref().unwrap_or("*"))],
    }
}

/// The URL of an agent, from its pid `slave(1)@ip:port`.
pub(crate) fn agent_url(agent: &Agent) -> pb::URL {
    let (process, address) = agent.pid.split_once('@').unwrap_or((&agent.pid, ""));
    let (ip, port) = address.rsplit_once(':').unwrap_or((address, ""));
    let address = pb::Address {
        hostname: Some(agent.info.hostname.clone()),
        ip: (!ip.is_empty()).then(|| String::from(ip)),
        port: port.parse().unwrap_or_else(|_| agent.info.port.unwrap_or(5051)),
        ..Default::default()
    };
    pb::URL {
        scheme: if agent.speaks_tls { "https" } else { "http" }.into(),
        address: address.into(),
        path: Some(alloc::format!("/{process}")),
        ..Default::default()
    }
}
