//! Changes of the recorded entities: each is applied and recorded in one place, with the indexes that follow from it.

use std::sync::Arc;

use tepui_types::AgentId;

use super::record::{Garbage, Launch, Override, Pod, Record, Status, TaskKey};
use super::task::{Life, Task};
use super::{Operation, Out, Scheduler};
use crate::plan::PodInstance;
use crate::spec::ServiceSpec;

impl Scheduler {
    pub(super) fn apply(&mut self, record: Record, out: &mut Out) {
        self.adopt(&record);
        self.changed = true;
        out.record(record);
    }

    /// Applies a record, read or new.
    pub(super) fn adopt(&mut self, record: &Record) {
        let state = &mut self.state;
        match record {
            Record::Service(_) => (),
            Record::Framework(id) => state.framework_id = Some(id.clone()),
            Record::Target(id) => state.target = Some(id.clone()),
            Record::Configuration(id, spec) => state.configurations.insert_mut(id.clone(), spec.clone()),
            Record::ConfigurationForgotten(id) => drop(state.configurations.remove_mut(id)),
            Record::Pod(pod) => self.adopt_pod(pod.clone()),
            Record::PodForgotten(pod) => self.forget_pod(pod),
            Record::Launch(launch) => self.adopt_launch(launch.clone()),
            Record::Status(status) => self.adopt_status(status.clone()),
            Record::TaskForgotten(key) => {
                if let Some(task) = state.tasks.get(key).cloned() {
                    self.task_ids.remove(&task.launch.task_id);
                    self.state.tasks.remove_mut(key);
                }
                self.orphans.remove(key);
            }
            Record::Override(key, own) => match state.tasks.get_mut(key) {
                Some(task) => Arc::make_mut(task).override_ = *own,
                None => self.orphans.entry(key.clone()).or_default().override_ = *own,
            },
            Record::Stray(stray) => state.strays.insert_mut(stray.task_id.clone(), stray.clone()),
            Record::StrayForgotten(id) => drop(state.strays.remove_mut(id)),
            Record::Garbage(garbage) => {
                if let (Some(operation), Some(pod)) = (&garbage.reserving, &garbage.pod) {
                    let agent = AgentId::new(garbage.agent.as_str());
                    self.operations.insert(operation.clone(), Operation::Reserve(pod.clone(), agent));
                }
                if let Some(operation) = &garbage.operation {
                    self.operations.insert(operation.clone(), Operation::Release(garbage.id.clone()));
                }
                state.garbage.insert_mut(garbage.id.clone(), garbage.clone());
            }
            Record::GarbageForgotten(id) => {
                if let Some(operation) = state.garbage.get(id).and_then(|own| own.operation.clone()) {
                    self.operations.remove(&operation);
                }
                state.garbage.remove_mut(id);
            }
            Record::Property(key, Some(value)) => state.properties.insert_mut(key.clone(), value.clone()),
            Record::Property(key, None) => drop(state.properties.remove_mut(key)),
            Record::Plan(name, Some(own)) => drop(self.plan_states.insert(name.clone(), own.clone())),
            Record::Plan(name, None) => drop(self.plan_states.remove(name)),
            Record::Uninstalled(id) => {
                state.uninstalled.clone_from(id);
                if id.is_some() {
                    (state.framework_id, state.target) = (None, None);
                }
            }
            Record::Batch(records) => records.iter().for_each(|record| self.adopt(record)),
        }
    }

    fn adopt_pod(&mut self, pod: Arc<Pod>) {
        self.unlink_pod(&pod.instance);
        for reservation in &pod.reservations {
            self.owned.insert(reservation.id.clone(), pod.instance.clone());
            if let Some(operation) = &reservation.operation {
                let agent = AgentId::new(pod.agent.as_str());
                self.operations.insert(operation.clone(), Operation::Reserve(pod.instance.clone(), agent));
            }
        }
        self.rules.count(&pod, true);
        self.state.pods.insert_mut(pod.instance.clone(), pod);
    }

    fn forget_pod(&mut self, pod: &PodInstance) {
        self.unlink_pod(pod);
        self.state.pods.remove_mut(pod);
        // An agent that was excluded by a count may be free again.
        self.evaluated.clear();
        self.evaluated_new.clear();
    }

    fn unlink_pod(&mut self, pod: &PodInstance) {
        let Some(old) = self.state.pods.get(pod).cloned() else { return };
        self.rules.count(&old, false);
        for reservation in &old.reservations {
            self.owned.remove(&reservation.id);
            if let Some(operation) = &reservation.operation {
                self.operations.remove(operation);
            }
        }
    }

    fn adopt_launch(&mut self, launch: Arc<Launch>) {
        let key = launch.key.clone();
        let old = self.state.tasks.get(&key).cloned();
        if let Some(old) = &old {
            self.task_ids.remove(&old.launch.task_id);
        }
        self.task_ids.insert(launch.task_id.clone(), key.clone());
        let orphan = self.orphans.remove(&key).unwrap_or_default();
        let status = match (orphan.status, &old) {
            (Some(status), _) => status,
            (None, Some(old)) => old.status.clone(),
            (None, None) => Arc::new(Status::staging(&launch, 0)),
        };
        let override_ = orphan.override_.or(old.and_then(|old| old.override_));
        self.state.tasks.insert_mut(key, Arc::new(Task { launch, status, override_ }));
    }

    fn adopt_status(&mut self, status: Arc<Status>) {
        match self.state.tasks.get_mut(&status.key) {
            Some(task) => Arc::make_mut(task).status = status,
            // Records are read in the order of their keys: the launch follows.
            None => {
                let orphan = self.orphans.entry(status.key.clone()).or_default();
                orphan.status = Some(status);
            }
        }
    }

    /// Tasks of a pod instance.
    pub(super) fn pod_tasks(&self, pod: &PodInstance) -> Vec<Arc<Task>> {
        let first = TaskKey { pod: pod.clone(), task: String::new() };
        let own = self.state.tasks.range(first..).take_while(|(key, _)| key.pod == *pod);
        own.map(|(_, task)| task.clone()).collect()
    }

    pub(super) fn target(&self) -> Option<(&str, &Arc<ServiceSpec>)> {
        let id = self.state.target.as_deref()?;
        Some((id, self.state.configurations.get(id)?))
    }

    pub(super) fn put_override(&mut self, key: &TaskKey, own: Option<Override>, out: &mut Out) {
        if self.state.tasks.get(key).is_some_and(|task| task.override_ != own) {
            self.apply(Record::Override(key.clone(), own), out);
        }
    }

    /// Turns the reservations of a pod into garbage. Its next launch is on any agent.
    pub(super) fn release_pod(&mut self, instance: &PodInstance, out: &mut Out) {
        let Some(pod) = self.state.pods.get(instance).cloned() else { return };
        let garbage = pod.reservations.iter().map(|own| {
            Record::Garbage(Arc::new(Garbage {
                id: own.id.clone(),
                agent: pod.agent.clone(),
                hostname: pod.hostname.clone(),
                pod: Some(instance.clone()),
                reserving: own.operation.clone(),
                operation: None,
            }))
        });
        let mut batch = vec![Record::PodForgotten(instance.clone())];
        batch.extend(garbage);
        self.apply(Record::Batch(batch), out);
        self.rescan_offers = true;
        // The pod may go to any agent now, and its reservations are offered by the one that it leaves.
        self.is_revive_due |= self.is_filtered;
        // The agent may have left the cluster.
        self.probe([AgentId::new(pod.agent.as_str())], out);
    }

    /// Whether the task of an id is not terminal.
    pub(super) fn is_alive(&self, id: &str) -> bool {
        let task = self.task_ids.get(id).and_then(|key| self.state.tasks.get(key));
        task.is_some_and(|task| task.life() != Life::Dead)
    }

    /// An operator is not kept waiting by the delay of a task, nor is the next scheduler.
    pub(super) fn clear_delay(&mut self, task: &Task, out: &mut Out) {
        self.state.backoff.clear(&task.launch.key.name());
        if task.status.delay.is_some() {
            let status = Status { delay: None, ..(*task.status).clone() };
            self.apply(Record::Status(Arc::new(status)), out);
        }
    }

    /// Whether nothing of the pod may run, not even out of contact.
    pub(super) fn is_silent(&self, instance: &PodInstance) -> bool {
        self.pod_tasks(instance).iter().all(|task| task.life() == Life::Dead)
    }

    /// Whether no task of the pod runs within contact.
    pub(super) fn is_pod_down(&self, instance: &PodInstance) -> bool {
        self.pod_tasks(instance).iter().all(|task| task.life() != Life::Live)
    }
}

impl Status {
    /// What is recorded before a launch.
    pub(super) fn staging(launch: &Launch, at_ns: u64) -> Status {
        Status {
            key: launch.key.clone(),
            task_id: launch.task_id.clone(),
            state: "TASK_STAGING".to_owned(),
            is_ready: false,
            healthy: None,
            reason: None,
            message: String::new(),
            addresses: Vec::new(),
            at_ns,
            delay: None,
        }
    }
}
