//! What occupies the engine of one agent, kept as it changes: scheduling looks at agents, never at all containers.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use tepui_types::TaskId;

use super::{Container, Phase};
use crate::agent::Agent;
use crate::occupant::Occupant;

#[derive(Clone, Debug, Default)]
pub(super) struct Occupancy {
    own: BTreeMap<TaskId, Arc<Container>>,
    /// How many of them wait for another node.
    moving: usize,
    /// Containers of others, by their place in the last list of the engine.
    foreign: Vec<usize>,
}

impl Occupancy {
    pub fn put(&mut self, task: TaskId, container: Arc<Container>) {
        self.moving += usize::from(container.phase == Phase::Rescheduling);
        if let Some(before) = self.own.insert(task, container) {
            self.moving -= usize::from(before.phase == Phase::Rescheduling);
        }
    }

    pub fn remove(&mut self, task: &TaskId) {
        if let Some(before) = self.own.remove(task) {
            self.moving -= usize::from(before.phase == Phase::Rescheduling);
        }
    }

    pub fn set_foreign(&mut self, foreign: Vec<usize>) {
        self.foreign = foreign;
    }

    pub fn own(&self) -> &BTreeMap<TaskId, Arc<Container>> {
        &self.own
    }

    /// Containers on the engine: ours, whether the engine shows them yet or not, and those of others.
    pub fn len(&self) -> usize {
        self.own.len() - self.moving + self.foreign.len()
    }

    pub fn occupants<'a>(&'a self, agent: &'a Agent) -> impl Iterator<Item = &'a Occupant> {
        let own = self.own.values().filter(|it| it.phase != Phase::Rescheduling).map(|it| &it.occupant);
        own.chain(self.foreign(agent))
    }

    pub fn foreign<'a>(&'a self, agent: &'a Agent) -> impl Iterator<Item = &'a Occupant> {
        let listed = agent.engine().map(|engine| engine.occupants.as_slice()).unwrap_or_default();
        self.foreign.iter().filter_map(|at| listed.get(*at))
    }
}
