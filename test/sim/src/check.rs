//! The checkers: one file per invariant. Each sees every fact and keeps what it needs to judge the next.
//!
//! The first violation ends the run. Never here: changes of the world.

mod acknowledged_not_resent;
mod constraints_hold;
mod ends_are_true;
mod gone_stays_gone;
mod kills_end;
mod launch_at_most_once;
mod lives_stay_apart;
mod nested_ends_first;
mod no_orphan_container;
mod no_overcommit;
mod nothing_acknowledged_is_lost;
mod offer_has_one_owner;
mod quota_not_exceeded;
mod tallies_match;
mod terminal_is_final;
mod times_end;
mod updates_in_order;
mod users_are_authorized;
mod visible_is_durable;
mod volumes_stay;
mod waits_are_answered;

use std::fmt;

use tepui_core_agent as agent;
use tepui_core_master as master;
use tepui_proto::mesos::v1 as pb;
use tepui_registry::{Operation, Registry};
use tepui_types::{Answer, ConnId, ContainerId, LaunchSpec, Termination};

use crate::executor::Executor;
use crate::host::Host;

/// Something that happened, as a checker sees it.
#[derive(Debug)]
pub(crate) enum Fact<'a> {
    MasterRestarts(&'a Registry),
    /// A turn is over.
    MasterTurn(&'a master::Master),
    /// A record is on the disk.
    MasterStores(&'a Operation),
    /// An effect becomes visible.
    MasterSays(&'a master::Effect),
    AgentWiped {
        agent: usize,
    },
    /// It was asked to end its tasks and leave.
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
    AgentSays {
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
    CallHeard {
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
    },
    /// An executor hears something of its agent, or of its session.
    ExecutorEvent {
        container: &'a ContainerId,
        event: &'a tepui_client::executor::Event,
    },
    /// The process of a task ended that runs in its executor's container.
    TaskEnds {
        container: &'a ContainerId,
        task: &'a str,
        end: TaskEnd,
    },
    /// A check of a task says that it is not well.
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
    /// The agent told the executor that it has the update.
    ExecutorConfirmed {
        agent: usize,
        executor: &'a Executor,
        container: &'a ContainerId,
        task: &'a str,
        uuid: &'a [u8],
    },
    /// `untrusted`: it may not use other users than nobody.
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
    /// A framework asks to destroy a volume.
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
    /// Everything has healed.
    Settled,
}

/// How a task really ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskEnd {
    /// The raw wait(2) status of its process.
    Exited(i32),
    OutOfMemory,
    NotStarted,
    /// Nobody could tell.
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

    /// An error says what is wrong.
    fn see(&mut self, fact: &Fact<'_>) -> Result<(), String>;
}

/// What was violated, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub invariant: &'static str,
    pub what: String,
}

impl Violation {
    pub(crate) fn new(invariant: &'static str, what: String) -> Self {
        Self { invariant, what }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.invariant, self.what)
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
                Box::<lives_stay_apart::LivesStayApart>::default(),
                Box::<terminal_is_final::TerminalIsFinal>::default(),
                Box::<updates_in_order::UpdatesInOrder>::default(),
                Box::<acknowledged_not_resent::AcknowledgedNotResent>::default(),
                Box::<no_orphan_container::NoOrphanContainer>::default(),
                Box::<nested_ends_first::NestedEndsFirst>::default(),
                Box::<waits_are_answered::WaitsAreAnswered>::default(),
                Box::<kills_end::KillsEnd>::default(),
                Box::<times_end::TimesEnd>::default(),
                Box::<gone_stays_gone::GoneStaysGone>::default(),
                Box::<visible_is_durable::VisibleIsDurable>::default(),
                Box::<nothing_acknowledged_is_lost::NothingAcknowledgedIsLost>::default(),
                Box::<volumes_stay::VolumesStay>::default(),
                Box::<ends_are_true::EndsAreTrue>::default(),
                Box::<users_are_authorized::UsersAreAuthorized>::default(),
                Box::<constraints_hold::ConstraintsHold>::default(),
                Box::<quota_not_exceeded::QuotaNotExceeded>::default(),
                Box::<tallies_match::TalliesMatch>::default(),
            ],
            first: None,
        }
    }

    pub(crate) fn see(&mut self, fact: &Fact<'_>) {
        for check in &mut self.all {
            if self.first.is_none()
                && let Err(what) = check.see(fact)
            {
                self.first = Some(Violation::new(check.name(), what));
            }
        }
    }

    /// A violation found elsewhere.
    pub(crate) fn fail(&mut self, invariant: &'static str, what: String) {
        self.first.get_or_insert(Violation::new(invariant, what));
    }

    pub(crate) fn violation(&mut self) -> Option<Violation> {
        self.first.take()
    }
}

/// The start of a uuid, as traces show it.
fn short(uuid: &[u8]) -> String {
    uuid.iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}
