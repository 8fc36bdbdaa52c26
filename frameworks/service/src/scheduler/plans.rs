//! Which plans there are: built from the target, the tasks and their states, whenever one of the specs changes.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::record::{OverrideTarget, TaskKey};
use super::rules::Rules;
use super::task::{Life, Task};
use super::{Scheduler, View};
use crate::plan::{self, DecommissionedPod, Plan, PodInstance, Strategy, TaskRecord};
use crate::spec::ServiceSpec;

pub(super) const RECOVERY: &str = "recovery";
/// Property: a deployment was complete.
pub(super) const LAST_UPDATE: &str = "last-completed-update-type";
/// Property: the service is being removed.
pub(super) const UNINSTALLING: &str = "uninstalling";
/// Property: nothing is left on the cluster but the framework, and TEARDOWN may have removed that as well.
pub(super) const DEREGISTERING: &str = "deregistering";
/// Property: the configuration of the files that an uploaded spec replaced.
pub(super) const UPLOADED_OVER: &str = "uploaded-over";
/// Property: roles of the framework besides that of the service, one for each line. None is removed: what removed pods
/// have reserved is offered to theirs.
pub(super) const ROLES: &str = "roles";
/// Property: time of the last automatic replacement, in nanoseconds since 1970.
pub(super) const LAST_REPLACEMENT: &str = "last-replacement";

impl Scheduler {
    /// Builds all plans from what is stored.
    pub(super) fn rebuild(&mut self) {
        self.changed = true;
        self.known_work.clear();
        self.candidates.clear();
        if self.state.uninstalling {
            let mut rng = self.rng.fork();
            self.state.plans = vec![uninstall(&self.state, &mut || rng.uuid_text())];
            return;
        }
        let Some((_, spec)) = self.target() else { return };
        let spec = spec.clone();
        self.rules =
            Rules::new(&spec, self.config.region.as_deref(), self.state.pods.values().map(|pod| &**pod));
        self.evaluated.clear();
        self.evaluated_new.clear();
        self.state.waits = super::view::Map::new_sync();
        let mut rng = self.rng.fork();
        let mut ids = || rng.uuid_text();
        self.state.plans = plans(&self.state, &spec, &mut ids);
        for plan in &mut self.state.plans {
            let own = self.plan_states.get(&plan.name);
            if let Some(own) = own.filter(|own| Some(&own.0) == self.state.target.as_ref()) {
                plan.restore(&own.1);
            }
        }
        let pods = self.state.tasks.keys().map(|key| key.pod.clone());
        self.recheck = pods.collect();
        self.check_placeable();
    }
}

fn plans(state: &View, spec: &ServiceSpec, ids: plan::Ids<'_>) -> Vec<Plan> {
    let record = |pod: &PodInstance, task: &str| {
        let task = state.tasks.get(&TaskKey::new(pod, task))?;
        Some(task_record(state, task))
    };
    let was_deployed = state.properties.contains_key(LAST_UPDATE);
    let mut plans = vec![
        plan::deploy(spec, was_deployed, &record, ids),
        Plan::new(RECOVERY, Strategy::Parallel, Vec::new()),
    ];
    let leaving = leaving_pods(state, spec);
    if !leaving.is_empty() {
        plans.push(plan::decommission(spec, leaving, ids));
    }
    plans.extend(plan::custom(spec, &record, ids));
    plans
}

fn task_record(state: &View, task: &Task) -> TaskRecord {
    TaskRecord {
        task_id: task.launch.task_id.clone(),
        state: task.plan_state(),
        is_current: Some(&task.launch.configuration) == state.target.as_ref(),
        permanently_failed: false,
    }
}

/// Pods that the spec has no more, with what is left of them.
fn leaving_pods(state: &View, spec: &ServiceSpec) -> Vec<DecommissionedPod> {
    let is_leaving = |pod: &PodInstance| spec.pod(&pod.pod).is_none_or(|own| pod.index >= own.count);
    let mut leaving: BTreeMap<PodInstance, DecommissionedPod> = BTreeMap::new();
    let mut add = |pod: &PodInstance, task: Option<String>, resource: Option<String>| {
        if is_leaving(pod) {
            let own = leaving.entry(pod.clone()).or_insert_with(|| DecommissionedPod {
                pod: pod.clone(),
                tasks: Vec::new(),
                resources: Vec::new(),
            });
            own.tasks.extend(task);
            own.resources.extend(resource);
        }
    };
    for key in state.tasks.keys() {
        add(&key.pod, Some(key.name()), None);
    }
    for (pod, own) in state.pods.iter() {
        own.reservations.iter().for_each(|own| add(pod, None, Some(own.id.clone())));
    }
    for garbage in state.garbage.values() {
        if let Some(pod) = &garbage.pod {
            add(pod, None, Some(garbage.id.clone()));
        }
    }
    leaving.into_values().collect()
}

fn uninstall(state: &View, ids: plan::Ids<'_>) -> Plan {
    let live = state.tasks.values().filter(|task| task.life() != Life::Dead);
    let tasks: Vec<String> = live.map(|task| task.launch.task_id.clone()).collect();
    let mut resources: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for pod in state.pods.values() {
        let own = pod.reservations.iter().map(|own| own.id.clone());
        resources.entry(&pod.hostname).or_default().extend(own);
    }
    for garbage in state.garbage.values() {
        resources.entry(&garbage.hostname).or_default().push(garbage.id.clone());
    }
    let resources: Vec<(String, Vec<String>)> =
        resources.into_iter().map(|(agent, ids)| (agent.to_owned(), ids)).collect();
    plan::uninstall(&tasks, &resources, ids)
}

impl View {
    /// Whether all tasks of a pod are paused, or about to be.
    pub(super) fn is_paused(&self, pod: &PodInstance) -> bool {
        let first = TaskKey { pod: pod.clone(), task: String::new() };
        let mut own = self.tasks.range(first..).take_while(|(key, _)| key.pod == *pod).map(|(_, task)| task);
        let is_paused =
            |task: &Arc<Task>| task.override_.is_some_and(|own| own.target == OverrideTarget::Paused);
        own.next().is_some_and(is_paused) && own.all(is_paused)
    }
}
