//! Acknowledged, not resent: once an acknowledgement is on the agent's disk, its update never leaves the agent again.

use std::collections::BTreeSet;

use tepui_core_agent::{Effect, Record};
use tepui_proto::tepui::agent::v1::call::Type;

use super::{Check, Fact, short};

#[derive(Debug, Default)]
pub(super) struct AcknowledgedNotResent {
    stored: BTreeSet<(usize, Vec<u8>)>,
}

impl Check for AcknowledgedNotResent {
    fn name(&self) -> &'static str {
        "acknowledged_not_resent"
    }

    fn observe(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        match fact {
            Fact::AgentStores { agent, record: Record::Update { update, .. } } if update.acknowledged => {
                self.stored.insert((*agent, update.status.uuid.clone().unwrap_or_default()));
                Ok(())
            }
            Fact::AgentEffect { agent, effect: Effect::Master { call, .. } }
                if call.r#type == Some(Type::UPDATE) =>
            {
                let status = &call.update.status;
                let key = (*agent, status.uuid.clone().unwrap_or_default());
                match self.stored.contains(&key) {
                    true => {
                        Err(format!("A{agent} sends {} of {} again", short(&key.1), status.task_id.value))
                    }
                    false => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }
}
