//! Ways to break the mechanism on purpose, to see that the checkers notice. None of them is in the machines.

use std::time::Duration;

use tepui_core_agent::{Config, Effect, Record};
use tepui_proto::mesos::v1::executor::event::Type;
use tepui_types::Termination;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sabotage {
    #[default]
    None,
    /// The master's effects do not wait for its records.
    MasterBarrier,
    /// An agent's effects do not wait for its records.
    AgentBarrier,
    /// Executors hear that their updates are stored before they are.
    AcknowledgedFirst,
    /// An agent's disk loses acknowledgements that it said it wrote.
    LostAcknowledgements,
    /// An agent's disk loses updates that it said it wrote.
    LostUpdates,
    /// An agent's disk loses that it was asked for containers.
    LostContainers,
    /// What is nested in a container lives on when that ends.
    NestedLeftBehind,
    /// Agents are told another status than containers ended with.
    ForgedStatus,
    /// Executors are told another status than their tasks' processes ended with.
    ForgedExits,
    /// A disk goes back to an earlier commit, and nobody notices when it is opened.
    SilentRollback,
    /// Masters that do not lead any more can write.
    Unfenced,
    /// Masters and agents have no rules.
    NoAuthorization,
    /// Agents wait for ever for executors that do not end what they should.
    EndlessKills,
    /// Agents answer everything twice.
    RepeatedAnswers,
}

impl Sabotage {
    /// Whether the master's effects leave before their time.
    pub(crate) fn frees_master(self) -> bool {
        self == Sabotage::MasterBarrier
    }

    /// Whether this effect of an agent leaves before its time.
    pub(crate) fn frees(self, effect: &Effect) -> bool {
        match self {
            Sabotage::AgentBarrier => true,
            Sabotage::AcknowledgedFirst => {
                matches!(effect, Effect::Executor { event, .. } if event.r#type == Some(Type::ACKNOWLEDGED))
            }
            Sabotage::None
            | Sabotage::MasterBarrier
            | Sabotage::LostAcknowledgements
            | Sabotage::LostUpdates
            | Sabotage::LostContainers
            | Sabotage::NestedLeftBehind
            | Sabotage::ForgedStatus
            | Sabotage::ForgedExits
            | Sabotage::SilentRollback
            | Sabotage::Unfenced
            | Sabotage::NoAuthorization
            | Sabotage::EndlessKills
            | Sabotage::RepeatedAnswers => false,
        }
    }

    /// Whether an agent's disk loses this record.
    pub(crate) fn loses(self, record: &Record) -> bool {
        match (self, record) {
            (Sabotage::LostAcknowledgements, Record::Update { update, .. }) => update.acknowledged,
            (Sabotage::LostUpdates, Record::Update { update, .. }) => !update.acknowledged,
            (Sabotage::LostContainers, Record::Container(_)) => true,
            _ => false,
        }
    }

    /// What an agent is told of a container's end.
    pub(crate) fn forge(self, mut termination: Termination) -> Termination {
        if self == Sabotage::ForgedStatus {
            termination.status = termination.status.map(|status| status ^ 0x100);
        }
        termination
    }

    /// What an executor is told of the end of its task's process.
    pub(crate) fn forge_exit(self, status: i32) -> i32 {
        if self == Sabotage::ForgedExits { status ^ 0x100 } else { status }
    }

    /// How long after a task's time an agent waits for its executor.
    pub(crate) fn kill_margin(self) -> Duration {
        let usual = Config::default().executor_kill_margin;
        if self == Sabotage::EndlessKills { Duration::MAX } else { usual }
    }

    /// How often a call is answered.
    pub(crate) fn answers(self) -> u32 {
        if self == Sabotage::RepeatedAnswers { 2 } else { 1 }
    }
}
