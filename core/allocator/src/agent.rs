//! State of an agent in the allocator.

use tepui_resources::Quantities;
use tepui_types::AgentId;

use crate::AgentSpec;
use crate::bits::Bits;
use crate::ledger::Ledger;
use crate::owners::Owners;
use crate::slab::ClientSlot;

#[derive(Clone, Debug)]
pub(crate) struct Agent {
    pub(crate) id: AgentId,
    /// Its `total` is in the ledger.
    pub(crate) spec: AgentSpec,
    pub(crate) ledger: Ledger,
    pub(crate) owners: Owners,
    pub(crate) active: bool,
    pub(crate) whitelisted: bool,
    pub(crate) unavailable: bool,
    pub(crate) has_gpus: bool,
    /// In another region than the master.
    pub(crate) remote: bool,
    pub(crate) urgency: Urgency,
    /// Borrowers that were offered slack of it since one of them last used some.
    pub(crate) served: Bits<ClientSlot>,
    /// What guarantees can be met from here: its part of what is available.
    pub(crate) available: Quantities,
}

impl Agent {
    pub(crate) fn is_offerable(&self) -> bool {
        self.active && self.whitelisted
    }
}

/// Whether an agent changed, so that it takes part in the next run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Urgency {
    Nothing,
    /// With the next batch.
    Batch,
    /// Shortly, together with what else is released until then.
    Release,
    /// In this turn.
    Turn,
}
