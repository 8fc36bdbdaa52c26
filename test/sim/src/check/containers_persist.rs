//! Containers persist: one that a client was told of stays on the manager's records until a client removes it or the engine
//! does (`--rm`), and there is one record of it.

use std::collections::BTreeSet;

use tepui_swarm::View;

use super::{Check, Fact};
use crate::swarm::CREATE_LABEL;

#[derive(Debug, Default)]
pub(super) struct ContainersPersist {
    answered: BTreeSet<u64>,
    unwanted: BTreeSet<u64>,
}

impl Check for ContainersPersist {
    fn name(&self) -> &'static str {
        "containers_persist"
    }

    fn observe(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        match fact {
            Fact::ContainerAnswered { create } => drop(self.answered.insert(*create)),
            Fact::ContainerUnwanted { create } => drop(self.unwanted.insert(*create)),
            Fact::SwarmTurn(view) => {
                let recorded = creates(view)?;
                let mut kept = self.answered.difference(&self.unwanted);
                if let Some(lost) = kept.find(|create| !recorded.contains(create)) {
                    return Err(format!("create {lost} was answered and is on no record"));
                }
            }
            _ => (),
        }
        Ok(())
    }
}

fn creates(view: &View) -> Result<BTreeSet<u64>, String> {
    let mut creates = BTreeSet::new();
    for container in view.containers.values() {
        let number = container.occupant.labels.get(CREATE_LABEL).and_then(|text| text.parse().ok());
        let number = number.ok_or_else(|| format!("{} has lost the labels of its create", container.task))?;
        if !creates.insert(number) {
            return Err(format!("create {number} has two records"));
        }
    }
    Ok(creates)
}
