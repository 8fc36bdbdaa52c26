//! Ways to break the mechanism on purpose, to see that the checkers notice. None of them is in the machines.

use tepui_core_agent::{Effect, Record};
use tepui_proto::mesos::v1::executor::event::Type;

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
            | Sabotage::LostUpdates => false,
        }
    }

    /// Whether an agent's disk loses this record.
    pub(crate) fn loses(self, record: &Record) -> bool {
        let Record::Update { update, .. } = record else { return false };
        match self {
            Sabotage::LostAcknowledgements => update.acknowledged,
            Sabotage::LostUpdates => !update.acknowledged,
            Sabotage::None
            | Sabotage::MasterBarrier
            | Sabotage::AgentBarrier
            | Sabotage::AcknowledgedFirst => false,
        }
    }
}
