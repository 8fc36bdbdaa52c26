//! The checkers: one file per invariant. Each observes every fact and keeps the state it needs.
//!
//! The first violation stops the run. Absent: changes of the world.

mod acknowledged_not_resent;
mod completion_time_is_enforced;
mod constraints_hold;
mod container_ends_are_true;
mod container_names_are_unique;
mod containers_persist;
mod containers_run_once;
mod gone_stays_gone;
mod kills_complete;
mod kinds_are_not_mixed;
mod launch_at_most_once;
mod nested_tasks;
mod nested_terminates_first;
mod no_orphan_container;
mod no_overcommit;
mod no_start_after_termination;
mod nothing_acknowledged_is_lost;
mod offer_has_one_owner;
mod quota_not_exceeded;
mod services_hold;
mod tallies_match;
mod task_instances_are_distinct;
mod terminal_is_final;
mod terminal_states_are_true;
mod updates_in_order;
mod users_are_authorized;
mod visible_is_durable;
mod volumes_persist;
mod waits_are_answered;

use std::fmt;

use tepui_core_agent as agent;
use tepui_core_master as master;
use tepui_proto::mesos::v1 as pb;
use tepui_registry::{Operation, Registry};
use tepui_types::{Answer, ConnId, ContainerId, LaunchSpec, Termination};

use crate::executor::Executor;
use crate::host::Host;

/// An observation for checkers.
#[derive(Debug)]
pub(crate) enum Fact<'a> {
    MasterRestarts(&'a Registry),
    /// After a turn.
    MasterTurn(&'a master::Master),
    /// An audit of the master's state: after every turn, or every n-th.
    MasterBooks(&'a master::Master),
    /// A record is on the disk.
    MasterStores(&'a Operation),
    /// An effect becomes visible.
    MasterEffect(&'a master::Effect),
    AgentWiped {
        agent: usize,
    },
    /// It was requested to kill its tasks and unregister.
    AgentLeaves {
        agent: usize,
    },
    AgentTurn {
        agent: usize,
        machine: &'a agent::Agent,
        host: &'a Host,
        now: u64,
    },
    AgentStores {
        agent: usize,
        record: &'a agent::Record,
    },
    AgentEffect {
        agent: usize,
        effect: &'a agent::Effect,
    },
    ContainerLaunches {
        agent: usize,
        spec: &'a LaunchSpec,
    },
    /// Its first process begins.
    ContainerRuns {
        agent: usize,
        spec: &'a LaunchSpec,
    },
    ContainerRemoved {
        id: &'a ContainerId,
    },
    /// Nothing runs in it any more.
    ContainerEnds {
        id: &'a ContainerId,
        termination: &'a Termination,
    },
    /// A call about containers reached an agent.
    CallReceived {
        conn: ConnId,
        call: &'a pb::agent::Call,
    },
    CallAnswered {
        agent: usize,
        conn: ConnId,
        answer: &'a Answer<pb::agent::Response>,
        host: &'a Host,
    },
    /// A task begins to run in an executor; then this much of the machine's cpu is in use by tasks.
    TaskStarts {
        agent: usize,
        framework: &'a str,
        container: &'a ContainerId,
        task: &'a str,
        cpus: Share,
        /// Its process starts later, in a nested container.
        is_nested: bool,
    },
    /// An executor receives an event of its agent or of its session.
    ExecutorEvent {
        container: &'a ContainerId,
        event: &'a tepui_client::executor::Event,
    },
    /// The process of a task in its executor's container exited.
    TaskEnds {
        container: &'a ContainerId,
        task: &'a str,
        end: TaskEnd,
    },
    /// A health check of a task failed.
    ProbeFails {
        container: &'a ContainerId,
        task: &'a str,
    },
    ExecutorUpdates {
        executor: &'a Executor,
        container: &'a ContainerId,
        status: &'a pb::TaskStatus,
        uuid: &'a [u8],
    },
    /// The agent acknowledged the update to the executor.
    ExecutorConfirmed {
        agent: usize,
        executor: &'a Executor,
        container: &'a ContainerId,
        task: &'a str,
        uuid: &'a [u8],
    },
    /// `untrusted`: it may only use the user `nobody`.
    FrameworkIs {
        id: &'a str,
        checkpoint: bool,
        untrusted: bool,
    },
    FrameworkEnds {
        id: &'a str,
    },
    FrameworkLaunches {
        id: &'a str,
        task: &'a str,
    },
    /// A framework requests the destruction of a volume.
    VolumeUnwanted {
        volume: &'a str,
    },
    FrameworkSees {
        id: &'a str,
        status: &'a pb::TaskStatus,
    },
    FrameworkAcknowledges {
        uuid: &'a [u8],
    },
    /// The Swarm manager takes an input in.
    SwarmInput(&'a tepui_swarm::Input),
    /// Its state after a turn.
    SwarmTurn(&'a tepui_swarm::View),
    SwarmEffect(&'a tepui_swarm::Effect),
    /// It agrees with engines and master.
    SwarmRests(&'a tepui_swarm::View),
    /// A client was told that its container is created.
    ContainerAnswered {
        create: u64,
    },
    /// The container of a create may be removed from now on.
    ContainerUnwanted {
        create: u64,
    },
    /// A client asks for one start.
    ClientStarts {
        create: u64,
    },
    /// A Docker engine starts a container. `moves`: it is placed again when its node fails.
    EngineStarts {
        create: u64,
        moves: bool,
        id: &'a str,
    },
    EngineStops {
        id: &'a str,
    },
    /// This framework is a service.
    ServiceIs {
        id: &'a str,
    },
    /// What a service does from now on was decided with this status known.
    ServiceKnows {
        id: &'a str,
        status: &'a tepui_proto::mesos::v1::TaskStatus,
    },
    /// All plans of a service are complete after the end of faults.
    ServiceComplete {
        view: &'a tepui_service::scheduler::View,
        /// Of all agents.
        totals: &'a [tepui_resources::Resources],
    },
    /// They are not.
    ServiceWaits {
        view: &'a tepui_service::scheduler::View,
    },
    /// Everything has healed.
    Settled,
}

/// How a task actually terminated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskEnd {
    /// The raw wait(2) status of its process.
    Exited(i32),
    OutOfMemory,
    NotStarted,
    /// It cannot be determined.
    Unknown,
}

/// How much of something is in use, in thousandths.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    pub(crate) used: u64,
    pub(crate) total: u64,
}

pub(crate) trait Check {
    fn name(&self) -> &'static str;

    /// An error describes the violation.
    fn observe(&mut self, fact: &Fact<'_>) -> Result<(), String>;
}

/// What was violated, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub invariant: &'static str,
    pub detail: String,
}

impl Violation {
    pub(crate) fn new(invariant: &'static str, detail: String) -> Self {
        Self { invariant, detail }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.invariant, self.detail)
    }
}

pub(crate) struct Checks {
    all: Vec<Box<dyn Check>>,
    first: Option<Violation>,
}

impl Checks {
    pub(crate) fn new() -> Self {
        Checks {
            all: vec![
                Box::<no_overcommit::NoOvercommit>::default(),
                Box::<offer_has_one_owner::OfferHasOneOwner>::default(),
                Box::<launch_at_most_once::LaunchAtMostOnce>::default(),
                Box::<task_instances_are_distinct::TaskInstancesAreDistinct>::default(),
                Box::<terminal_is_final::TerminalIsFinal>::default(),
                Box::<updates_in_order::UpdatesInOrder>::default(),
                Box::<acknowledged_not_resent::AcknowledgedNotResent>::default(),
                Box::<no_orphan_container::NoOrphanContainer>::default(),
                Box::<nested_terminates_first::NestedTerminatesFirst>::default(),
                Box::<waits_are_answered::WaitsAreAnswered>::default(),
                Box::<kills_complete::KillsComplete>::default(),
                Box::<completion_time_is_enforced::CompletionTimeIsEnforced>::default(),
                Box::<gone_stays_gone::GoneStaysGone>::default(),
                Box::<visible_is_durable::VisibleIsDurable>::default(),
                Box::<nothing_acknowledged_is_lost::NothingAcknowledgedIsLost>::default(),
                Box::<no_start_after_termination::NoStartAfterTermination>::default(),
                Box::<volumes_persist::VolumesPersist>::default(),
                Box::<terminal_states_are_true::TerminalStatesAreTrue>::default(),
                Box::<users_are_authorized::UsersAreAuthorized>::default(),
                Box::<constraints_hold::ConstraintsHold>::default(),
                Box::<quota_not_exceeded::QuotaNotExceeded>::default(),
                Box::<tallies_match::TalliesMatch>::default(),
                Box::<containers_run_once::ContainersRunOnce>::default(),
                Box::<containers_persist::ContainersPersist>::default(),
                Box::<container_names_are_unique::ContainerNamesAreUnique>::default(),
                Box::<kinds_are_not_mixed::KindsAreNotMixed>::default(),
                Box::<container_ends_are_true::ContainerEndsAreTrue>::default(),
                Box::<services_hold::ServicesHold>::default(),
            ],
            first: None,
        }
    }

    pub(crate) fn observe(&mut self, fact: &Fact<'_>) {
        for check in &mut self.all {
            if self.first.is_none()
                && let Err(detail) = check.observe(fact)
            {
                self.first = Some(Violation::new(check.name(), detail));
            }
        }
    }

    /// A violation found elsewhere.
    pub(crate) fn fail(&mut self, invariant: &'static str, detail: String) {
        self.first.get_or_insert(Violation::new(invariant, detail));
    }

    pub(crate) fn violation(&mut self) -> Option<Violation> {
        self.first.take()
    }
}

/// The start of a uuid, as traces show it.
fn short(uuid: &[u8]) -> String {
    uuid.iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}
