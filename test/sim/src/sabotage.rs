//! Deliberate faults of the simulator that checkers must detect. None of them is in the machines.

use std::time::Duration;

use tepui_core_agent::{Config, Effect, Record};
use tepui_proto::mesos::v1::TaskState;
use tepui_proto::mesos::v1::executor::event::Type;
use tepui_swarm::{Kind, Update};
use tepui_types::{TaskStateExt, Termination};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sabotage {
    #[default]
    None,
    /// The master's effects do not wait for its records.
    MasterBarrier,
    /// An agent's effects do not wait for its records.
    AgentBarrier,
    /// Updates are acknowledged to executors before they are stored.
    AcknowledgedFirst,
    /// An agent's disk loses stored acknowledgements.
    LostAcknowledgements,
    /// An agent's disk loses stored updates.
    LostUpdates,
    /// An agent's disk loses containers of the API.
    LostContainers,
    /// Nested containers survive their parent.
    NestedLeftBehind,
    /// Agents receive a wrong exit status of containers.
    ForgedStatus,
    /// Executors receive a wrong exit status of their tasks.
    ForgedExits,
    /// A disk reverts to an earlier commit without detection.
    SilentRollback,
    /// Masters that do not lead any more can write.
    Unfenced,
    /// Masters and agents have no rules.
    NoAuthorization,
    /// Agents wait indefinitely for executors that do not kill their tasks.
    EndlessKills,
    /// Agents answer everything twice.
    RepeatedAnswers,
    /// The Swarm manager's effects do not wait for its records.
    SwarmBarrier,
    /// The disk of the Swarm manager loses containers.
    LostSwarmRecords,
    /// Docker engines that come back start all of their containers.
    RepeatedStarts,
    /// Launches of the Swarm manager name the other kind of resources.
    ForgedKinds,
    /// Every rename of a container gives it the same name.
    ForgedNames,
    /// The Swarm manager receives all terminal states as TASK_FINISHED.
    ForgedEnds,
}

impl Sabotage {
    /// Whether the master's effects leave before their time.
    pub(crate) fn bypasses_master_barrier(self) -> bool {
        self == Sabotage::MasterBarrier
    }

    /// Whether this effect of an agent leaves before its time.
    pub(crate) fn bypasses_barrier(self, effect: &Effect) -> bool {
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
            | Sabotage::RepeatedAnswers
            | Sabotage::SwarmBarrier
            | Sabotage::LostSwarmRecords
            | Sabotage::RepeatedStarts
            | Sabotage::ForgedKinds
            | Sabotage::ForgedNames
            | Sabotage::ForgedEnds => false,
        }
    }

    /// Whether an agent's disk loses this record.
    pub(crate) fn loses_record(self, record: &Record) -> bool {
        match (self, record) {
            (Sabotage::LostAcknowledgements, Record::Update { update, .. }) => update.acknowledged,
            (Sabotage::LostUpdates, Record::Update { update, .. }) => !update.acknowledged,
            (Sabotage::LostContainers, Record::Container(_)) => true,
            _ => false,
        }
    }

    /// Whether the Swarm manager's effects leave before their time.
    pub(crate) fn bypasses_swarm_barrier(self) -> bool {
        self == Sabotage::SwarmBarrier
    }

    /// Whether the Swarm manager's disk loses this record.
    pub(crate) fn loses_swarm_record(self, record: &tepui_swarm::Record) -> bool {
        self == Sabotage::LostSwarmRecords && matches!(record, tepui_swarm::Record::Container(_))
    }

    /// An effect of the Swarm manager, as it becomes visible.
    pub(crate) fn forge_kind(self, mut effect: tepui_swarm::Effect) -> tepui_swarm::Effect {
        if let (Sabotage::ForgedKinds, tepui_swarm::Effect::Accept(launch)) = (self, &mut effect) {
            launch.kind = match launch.kind {
                Kind::Regular => Kind::Revocable,
                Kind::Revocable => Kind::Regular,
            };
        }
        effect
    }

    /// The name that an engine gives to a container.
    pub(crate) fn forge_name(self, name: String) -> String {
        if self == Sabotage::ForgedNames { "name0".into() } else { name }
    }

    /// An update as the Swarm manager receives it.
    pub(crate) fn forge_end(self, mut update: Update) -> Update {
        if self == Sabotage::ForgedEnds && update.state.is_terminal() {
            (update.state, update.reason) = (TaskState::TASK_FINISHED, None);
        }
        update
    }

    /// The termination reported to an agent.
    pub(crate) fn forge(self, mut termination: Termination) -> Termination {
        if self == Sabotage::ForgedStatus {
            termination.status = termination.status.map(|status| status ^ 0x100);
        }
        termination
    }

    /// The exit status reported to an executor.
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
