//! Operations that frameworks gave an ID, by that ID.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use tepui_types::{AgentId, FrameworkId};

use super::{Operation, OperationUuid};

/// Index of operations with an ID.
#[derive(Debug, Default)]
pub(crate) struct Operations {
    by_id: BTreeMap<(FrameworkId, String), (AgentId, OperationUuid)>,
}

impl Operations {
    pub(crate) fn find(&self, framework_id: &FrameworkId, id: &str) -> Option<(AgentId, OperationUuid)> {
        self.by_id.get(&(framework_id.clone(), String::from(id))).cloned()
    }

    pub(crate) fn of(&self, framework_id: &FrameworkId) -> Vec<(AgentId, OperationUuid)> {
        let first = (framework_id.clone(), String::new());
        let of = self.by_id.range(first..).take_while(|((owner, _), _)| owner == framework_id);
        of.map(|(_, place)| place.clone()).collect()
    }

    /// How many a framework has, counted up to `most`.
    pub(crate) fn count_of(&self, framework_id: &FrameworkId, most: usize) -> usize {
        let first = (framework_id.clone(), String::new());
        let of = self.by_id.range(first..).take_while(|((owner, _), _)| owner == framework_id);
        of.take(most).count()
    }

    pub(crate) fn insert(&mut self, operation: &Operation) {
        if let Some(key) = key(operation) {
            self.by_id.insert(key, (operation.agent_id.clone(), operation.uuid));
        }
    }

    pub(crate) fn remove(&mut self, operation: &Operation) {
        if let Some(key) = key(operation)
            && self.by_id.get(&key).is_some_and(|(_, uuid)| *uuid == operation.uuid)
        {
            self.by_id.remove(&key);
        }
    }
}

fn key(operation: &Operation) -> Option<(FrameworkId, String)> {
    let id = operation.operation.info.id.as_option()?;
    Some((operation.framework_id.clone()?, id.value.clone()))
}
