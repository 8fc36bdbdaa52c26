//! Containers run once: no two containers of one create run at the same time, and none is started more often than clients
//! asked. One that moves when its node fails is started by the manager if it ran before, and may run on both sides of a
//! partition until that heals.

use std::collections::{BTreeMap, BTreeSet};

use super::{Check, Fact};

#[derive(Debug, Default)]
pub(super) struct ContainersRunOnce {
    /// Creates of running containers, by the engine's id.
    running: BTreeMap<String, u64>,
    /// Starts that clients asked for and that have not happened, by create.
    wanted: BTreeMap<u64, u32>,
    /// Creates whose containers have run.
    started: BTreeSet<u64>,
}

impl Check for ContainersRunOnce {
    fn name(&self) -> &'static str {
        "containers_run_once"
    }

    fn observe(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        match fact {
            Fact::ClientStarts { create } => *self.wanted.entry(*create).or_default() += 1,
            Fact::EngineStarts { create, moves, id } => {
                let twin = self.running.iter().find(|(_, other)| *other == create);
                if let (Some((other, _)), false) = (twin, moves) {
                    return Err(format!("create {create} runs twice, as {other} and {id}"));
                }
                self.running.insert((*id).into(), *create);
                let wanted = self.wanted.entry(*create).or_default();
                let is_moved = *moves && self.started.contains(create);
                if *wanted == 0 && !is_moved {
                    return Err(format!("create {create} is started as {id} without a request"));
                }
                *wanted = wanted.saturating_sub(1);
                self.started.insert(*create);
            }
            Fact::EngineStops { id } => drop(self.running.remove(*id)),
            Fact::SwarmRests(_) => {
                let mut creates: Vec<u64> = self.running.values().copied().collect();
                creates.sort_unstable();
                if let Some(twice) = creates.windows(2).find(|pair| pair[0] == pair[1]) {
                    return Err(format!("create {} runs twice at rest", twice[0]));
                }
            }
            _ => (),
        }
        Ok(())
    }
}
