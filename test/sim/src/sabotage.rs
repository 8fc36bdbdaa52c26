//! Ways to break the mechanism on purpose, to see that the checkers notice. None of them is in the machines.

use tepui_core_agent::Record;

use crate::net::Node;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sabotage {
    #[default]
    None,
    /// The master's effects do not wait for its records.
    MasterBarrier,
    /// An agent's effects do not wait for its records.
    AgentBarrier,
    /// An agent's disk loses acknowledgements that it said it wrote.
    LostAcknowledgements,
    /// An agent's disk loses updates that it said it wrote.
    LostUpdates,
}

impl Sabotage {
    pub(crate) fn releases_early(self, node: Node) -> bool {
        match (self, node) {
            (Sabotage::MasterBarrier, Node::Master) | (Sabotage::AgentBarrier, Node::Agent(_)) => true,
            (Sabotage::MasterBarrier, Node::Agent(_)) | (Sabotage::AgentBarrier, Node::Master) => false,
            (Sabotage::None | Sabotage::LostAcknowledgements | Sabotage::LostUpdates, _) => false,
        }
    }

    pub(crate) fn loses(self, record: &Record) -> bool {
        match (self, record) {
            (Sabotage::LostAcknowledgements, Record::Update { update, .. }) => update.acknowledged,
            (Sabotage::LostUpdates, Record::Update { update, .. }) => !update.acknowledged,
            (_, _) => false,
        }
    }
}
