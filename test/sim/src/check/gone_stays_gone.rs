//! Gone stays gone: an agent that was marked gone is never registered again, by this master or a later one.

use std::collections::BTreeSet;

use tepui_core_master::Effect;
use tepui_proto::tepui::agent::v1::event::Type;
use tepui_registry::Operation;
use tepui_types::AgentId;

use super::{Check, Fact};

#[derive(Debug, Default)]
pub(super) struct GoneStaysGone {
    gone: BTreeSet<AgentId>,
    /// Marked by records whose turns' effects are not released yet: an agent that registers and has nothing left to
    /// drain is SUBSCRIBED and marked as gone in one turn.
    marked: BTreeSet<AgentId>,
}

impl Check for GoneStaysGone {
    fn name(&self) -> &'static str {
        "gone_stays_gone"
    }

    fn observe(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        match fact {
            Fact::MasterStores(Operation::MarkGone { id, .. }) => {
                self.marked.insert(id.clone());
                Ok(())
            }
            Fact::MasterRestarts(registry) => {
                self.gone.append(&mut self.marked);
                self.none(
                    self.gone.iter().find(|id| !registry.gone.contains_key(id)),
                    "is not gone any more for a new master",
                )
            }
            Fact::MasterTurn(master) => {
                self.gone.append(&mut self.marked);
                self.none(master.state().agents.keys().find(|id| self.gone.contains(id)), "is registered")
            }
            Fact::MasterEffect(Effect::Agent { event, .. }) if event.r#type == Some(Type::SUBSCRIBED) => {
                let id = AgentId::from(&*event.subscribed.agent_id);
                self.none(self.gone.get(&id), "is told that it is subscribed")
            }
            _ => Ok(()),
        }
    }
}

impl GoneStaysGone {
    fn none(&self, id: Option<&AgentId>, event: &str) -> Result<(), String> {
        id.map_or(Ok(()), |id| Err(format!("{id} was marked gone and {event}")))
    }
}
