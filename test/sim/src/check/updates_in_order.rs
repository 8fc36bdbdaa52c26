//! Updates in order: a framework receives the updates of a task in the order of their creation, without gaps, each only
//! after it acknowledged the previous one. Until then the same update may be resent, and any update of earlier instances of
//! the same id.

use std::collections::{BTreeMap, BTreeSet};

use tepui_proto::mesos::v1::task_status::Reason;
use tepui_types::ContainerId;

use super::{Check, Fact, short};

type Task = (String, String);
type Uuid = Vec<u8>;

#[derive(Debug, Default)]
pub(super) struct UpdatesInOrder {
    /// In the order in which executors made them.
    made: BTreeMap<Task, BTreeMap<ContainerId, Vec<Uuid>>>,
    /// In the order in which frameworks first received them.
    received: BTreeMap<Task, Vec<Uuid>>,
    acknowledged: BTreeSet<Uuid>,
    /// Heard in earlier lives.
    past: BTreeSet<Uuid>,
}

impl Check for UpdatesInOrder {
    fn name(&self) -> &'static str {
        "updates_in_order"
    }

    fn observe(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        match fact {
            Fact::ExecutorUpdates { executor, container, status, uuid } => {
                let key = (executor.framework_id.clone(), status.task_id.value.clone());
                let made = self.made.entry(key).or_default().entry((*container).clone());
                made.or_default().push(uuid.to_vec());
                Ok(())
            }
            Fact::FrameworkLaunches { id, task } => {
                let key = ((*id).to_string(), (*task).to_string());
                self.made.remove(&key);
                self.past.extend(self.received.remove(&key).unwrap_or_default());
                Ok(())
            }
            Fact::FrameworkAcknowledges { uuid, .. } => {
                self.acknowledged.insert(uuid.to_vec());
                Ok(())
            }
            Fact::FrameworkSees { id, status } => match &status.uuid {
                // About a task it never had, an agent that crashed makes a new update.
                Some(_) if status.reason == Some(Reason::REASON_RECONCILIATION) => Ok(()),
                Some(uuid) if self.past.contains(uuid) => Ok(()),
                Some(uuid) => self.on_event(((*id).to_string(), status.task_id.value.clone()), uuid),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }
}

impl UpdatesInOrder {
    fn on_event(&mut self, task: Task, uuid: &Uuid) -> Result<(), String> {
        let received = self.received.entry(task.clone()).or_default();
        if received.last() == Some(uuid) {
            return Ok(());
        }
        if received.contains(uuid) {
            return Err(format!("{}: {} comes again after a later one", task.1, short(uuid)));
        }
        if let Some(before) = received.last().filter(|before| !self.acknowledged.contains(*before)) {
            let (before, uuid) = (short(before), short(uuid));
            return Err(format!("{}: {uuid} comes before {before} is acknowledged", task.1));
        }
        let mut made = self.made.get(&task).into_iter().flat_map(BTreeMap::values);
        let made = made.find(|made| made.contains(uuid)).map(Vec::as_slice).unwrap_or_default();
        let earlier = made.iter().take_while(|made| *made != uuid);
        let is_executors = made.contains(uuid);
        if let Some(missed) = earlier.filter(|_| is_executors).find(|made| !received.contains(made)) {
            return Err(format!("{}: {} comes, but {} never did", task.1, short(uuid), short(missed)));
        }
        received.push(uuid.clone());
        Ok(())
    }
}
