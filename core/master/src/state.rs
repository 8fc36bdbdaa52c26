//! The master's state as readers see it: persistent maps of shared entities, so that a snapshot is a clone.
//!
//! Owned and changed by the master alone. What can be derived (used, offered, counts) is not here.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use rpds::{QueueSync, RedBlackTreeMapSync, RedBlackTreeSetSync};
use tepui_fsm::Wall;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::scheduler::OfferConstraints;
use tepui_resources::Resources;
use tepui_types::{AgentId, ConnId, ExecutorId, FrameworkId, OfferId, TaskId};

pub type Map<K, V> = RedBlackTreeMapSync<K, V>;

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
    pub frameworks: Map<FrameworkId, Arc<Framework>>,
    /// Oldest first.
    pub completed_frameworks: QueueSync<Arc<Framework>>,
    pub offers: Map<OfferId, Arc<Offer>>,
    /// Roles whose weight is not 1.0.
    pub weights: Map<String, f64>,
    /// The `--roles` whitelist.
    pub roles: Option<Arc<Vec<String>>>,
}

/// A registered agent.
#[derive(Clone, Debug)]
pub struct Agent {
    pub id: AgentId,
    pub info: pb::AgentInfo,
    pub version: String,
    /// "slave(1)@ip:port".
    pub pid: String,
    pub capabilities: Vec<pb::agent_info::capability::Type>,
    pub link: AgentLink,
    /// An operator took it out of use; it makes no offers.
    pub deactivated: bool,
    pub registered_at: Wall,
    pub reregistered_at: Option<Wall>,
    /// With dynamic reservations and volumes applied, revocable ones included.
    pub total: Resources,
    /// Tasks on it that are not both terminal and acknowledged.
    pub tasks: RedBlackTreeSetSync<(FrameworkId, TaskId)>,
    pub executors: Map<(FrameworkId, ExecutorId), Arc<Executor>>,
    /// Operations not both terminal and acknowledged, by their uuid.
    pub operations: Map<[u8; 16], Arc<Operation>>,
}

/// How the master is connected with an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentLink {
    Connected { conn: ConnId },
    /// The link broke; it may come back.
    Silent { since: Wall },
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
    pub info: pb::FrameworkInfo,
    pub link: FrameworkLink,
    pub registered_at: Wall,
    pub reregistered_at: Option<Wall>,
    pub unregistered_at: Option<Wall>,
    pub suppressed_roles: RedBlackTreeSetSync<String>,
    pub offer_constraints: Option<Arc<OfferConstraints>>,
    /// Live tasks: not both terminal and acknowledged.
    pub tasks: Map<TaskId, Arc<Task>>,
    /// Oldest first.
    pub unreachable_tasks: QueueSync<Arc<Task>>,
    pub completed_tasks: QueueSync<Arc<Task>>,
}

/// How the master is connected with a framework.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrameworkLink {
    Connected { conn: ConnId, stream_id: String },
    /// Its stream ended; it is removed when its failover timeout has passed.
    Disconnected { since: Wall },
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
    /// The v1 Task as GET_TASKS shows it; `state` and `statuses` are kept current in here.
    pub task: pb::Task,
    pub resources: Resources,
}

/// Resources of one agent, offered to one framework in one role.
#[derive(Clone, Debug)]
pub struct Offer {
    pub id: OfferId,
    pub framework_id: FrameworkId,
    pub agent_id: AgentId,
    pub role: String,
    pub resources: Resources,
    pub offered_at: Wall,
}

/// An offer operation that the agent has not finished, or whose end nobody acknowledged yet.
#[derive(Clone, Debug)]
pub struct Operation {
    pub operation: pb::Operation,
}
