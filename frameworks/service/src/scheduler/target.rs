//! The target configuration: whether a new spec may follow the old one, and which tasks it changes.

use std::collections::BTreeSet;
use std::sync::Arc;

use tepui_fsm::Now;

use super::need::uses_host_ports;
use super::record::{Launch, Override, OverrideProgress, OverrideTarget, Record, TaskKey};
use super::session::{framework_info, recorded_roles, spec_roles};
use super::{Answer, Origin, Out, Scheduler, plans};
use crate::plan::PodInstance;
use crate::spec::{PodSpec, ServiceSpec, Volume};

impl Scheduler {
    /// Makes a spec the target, if it may follow the old one.
    pub(super) fn set_target(
        &mut self,
        now: Now,
        spec: ServiceSpec,
        origin: Origin,
        out: &mut Out,
    ) -> Answer {
        if self.state.uninstalling {
            return Answer::Rejected(vec![
                "the service is being uninstalled, which cannot be undone".to_owned(),
            ]);
        }
        if spec.name != self.config.service {
            let error =
                format!("name: {:?} -> {:?}: a service keeps its name", self.config.service, spec.name);
            return Answer::Rejected(vec![error]);
        }
        let old = self.target().map(|(id, spec)| (id.to_owned(), spec.clone()));
        if let Some((id, old)) = &old {
            if origin == Origin::Start && self.uploaded_over() == Some(&spec) {
                return Answer::Target { configuration: id.clone(), changed: false };
            }
            let errors = forbidden_changes(old, &spec);
            if let Some(deploy) = self.state.plans.first_mut() {
                deploy.errors.clone_from(&errors);
                self.changed = true;
            }
            if !errors.is_empty() {
                return Answer::Rejected(errors);
            }
            if **old == spec {
                let marks = self.upload_mark(origin, None);
                marks.into_iter().for_each(|mark| self.apply(mark, out));
                return Answer::Target { configuration: id.clone(), changed: false };
            }
        }
        let id = self.rng.uuid_text();
        let mut batch =
            vec![Record::Configuration(id.clone(), Arc::new(spec.clone())), Record::Target(id.clone())];
        batch.extend(self.state.uninstalled.is_some().then_some(Record::Uninstalled(None)));
        batch.extend(self.upload_mark(origin, old.as_ref().map(|(id, _)| id.as_str())));
        batch.extend(self.new_roles(&spec));
        batch.extend(self.adopted_tasks(&id, &spec));
        // What operators did to plans of the old target does not concern the new one.
        batch.extend(self.plan_states.keys().map(|name| Record::Plan(name.clone(), None)));
        batch.extend(self.leaving_marks(&spec));
        let framework = framework_info(&self.config, &self.state);
        let had_policy = old.is_some_and(|(_, old)| old.replacement.is_some());
        self.apply(Record::Batch(batch), out);
        if framework.is_some() && framework != framework_info(&self.config, &self.state) {
            self.is_framework_changed = true;
            self.update_framework(out);
        }
        self.forget_configurations(out);
        self.rebuild();
        self.follow_policy(now, !had_policy, out);
        self.kill_obsolete(now, &spec, out);
        Answer::Target { configuration: id, changed: true }
    }

    /// The spec of the files that an uploaded one replaced.
    fn uploaded_over(&self) -> Option<&ServiceSpec> {
        let id = self.state.properties.get(plans::UPLOADED_OVER)?;
        let id = std::str::from_utf8(id).ok()?;
        self.state.configurations.get(id).map(|spec| &**spec)
    }

    /// Notes which configuration of the files an upload replaces, until the files replace the upload.
    fn upload_mark(&self, origin: Origin, old: Option<&str>) -> Option<Record> {
        let key = plans::UPLOADED_OVER.to_owned();
        let is_marked = self.state.properties.contains_key(&key);
        match origin {
            Origin::Upload if !is_marked => old.map(|old| Record::Property(key, Some(old.as_bytes().into()))),
            Origin::Upload => None,
            Origin::Start | Origin::Files => is_marked.then_some(Record::Property(key, None)),
        }
    }

    /// Roles besides that of the service, if the spec adds some.
    fn new_roles(&self, spec: &ServiceSpec) -> Option<Record> {
        let recorded = recorded_roles(&self.state);
        let mut roles = spec_roles(&self.config, spec);
        roles.remove(&self.config.role);
        roles.extend(recorded.iter().cloned());
        let text = roles.iter().map(String::as_str).collect::<Vec<_>>().join("\n");
        let record = Record::Property(plans::ROLES.to_owned(), Some(text.as_bytes().into()));
        (roles != recorded).then_some(record)
    }

    /// Tasks that are the same in the new spec belong to it: they are not launched again.
    fn adopted_tasks(&self, id: &str, spec: &ServiceSpec) -> Vec<Record> {
        let mut records = Vec::new();
        for task in self.state.tasks.values() {
            let key = &task.launch.key;
            let old = self.state.configurations.get(&task.launch.configuration);
            let pods = old.and_then(|old| old.pod(&key.pod.pod)).zip(spec.pod(&key.pod.pod));
            if pods.is_some_and(|(old, new)| is_equivalent(old, new, &key.task)) {
                let launch = Launch { configuration: id.to_owned(), ..(*task.launch).clone() };
                records.push(Record::Launch(Arc::new(launch)));
            }
        }
        records
    }

    /// Configurations that are neither the target nor that of a task.
    pub(super) fn forget_configurations(&mut self, out: &mut Out) {
        let mut used: BTreeSet<&str> =
            self.state.tasks.values().map(|task| task.launch.configuration.as_str()).collect();
        used.extend(self.state.target.as_deref());
        let replaced = self.state.properties.get(plans::UPLOADED_OVER);
        used.extend(replaced.and_then(|id| std::str::from_utf8(id).ok()));
        let all = self.state.configurations.keys();
        let unused: Vec<Record> = all
            .filter(|id| !used.contains(id.as_str()))
            .map(|id| Record::ConfigurationForgotten(id.clone()))
            .collect();
        if !unused.is_empty() {
            self.apply(Record::Batch(unused), out);
        }
    }

    /// Marks for tasks of pods that the spec has no more, and none for those that it has again.
    fn leaving_marks(&self, spec: &ServiceSpec) -> Vec<Record> {
        let is_leaving = |pod: &PodInstance| spec.pod(&pod.pod).is_none_or(|own| pod.index >= own.count);
        let mut records = Vec::new();
        for (key, task) in self.state.tasks.iter() {
            let is_marked = task.override_.is_some_and(|own| own.target == OverrideTarget::Decommissioned);
            match (is_leaving(&key.pod), is_marked) {
                (true, false) => {
                    let progress = OverrideProgress::Pending;
                    let own = Override { target: OverrideTarget::Decommissioned, progress };
                    records.push(Record::Override(key.clone(), Some(own)));
                }
                (false, true) => records.push(Record::Override(key.clone(), None)),
                (true, true) | (false, false) => (),
            }
        }
        records
    }

    /// Tasks that a pod of the spec has no more; they are forgotten when they are down.
    pub(super) fn kill_obsolete(&mut self, now: Now, spec: &ServiceSpec, out: &mut Out) {
        let is_obsolete = |key: &TaskKey| {
            let pod = spec.pod(&key.pod.pod).filter(|pod| key.pod.index < pod.count);
            pod.is_some_and(|pod| pod.task(&key.task).is_none())
        };
        let obsolete: Vec<TaskKey> =
            self.state.tasks.keys().filter(|key| is_obsolete(key)).cloned().collect();
        for key in obsolete {
            self.kill(now, &key, out);
        }
    }

    pub(super) fn uninstall(&mut self, out: &mut Out) -> Answer {
        if self.state.uninstalling {
            return Answer::AlreadyDone;
        }
        let value = Some(b"true".as_slice().into());
        self.apply(Record::Property(plans::UNINSTALLING.to_owned(), value), out);
        self.state.uninstalling = true;
        let pods: Vec<PodInstance> = self.state.pods.keys().cloned().collect();
        for pod in pods {
            if self.is_pod_down(&pod) {
                self.release_pod(&pod, out);
            }
        }
        self.rebuild();
        Answer::Done
    }
}

/// Whether a task is the same in two specs of its pod: neither it, nor its resources, nor what all tasks of the pod share differs.
fn is_equivalent(old: &PodSpec, new: &PodSpec, task: &str) -> bool {
    let (Some(old_task), Some(new_task)) = (old.task(task), new.task(task)) else { return false };
    let shared = |pod: &PodSpec| PodSpec {
        count: 0,
        allow_decommission: false,
        placement: Vec::new(),
        tasks: Vec::new(),
        resource_sets: Vec::new(),
        ..pod.clone()
    };
    old_task == new_task
        && old.resource_set(&old_task.resource_set) == new.resource_set(&new_task.resource_set)
        && shared(old) == shared(new)
}

/// Changes that the pods which run do not allow.
fn forbidden_changes(old: &ServiceSpec, new: &ServiceSpec) -> Vec<String> {
    let mut errors = Vec::new();
    if old.user != new.user {
        errors.push(format!(
            "scheduler.user: {:?} -> {:?}: the user cannot change, because files of volumes belong to it",
            old.user, new.user
        ));
    }
    for pod in &old.pods {
        match new.pod(&pod.name) {
            None if !pod.allow_decommission => errors.push(format!(
                "pods.{}: removed: a pod cannot be removed unless allow-decommission was true before",
                pod.name
            )),
            None => (),
            Some(other) => forbidden_pod_changes(pod, other, &mut errors),
        }
    }
    errors
}

fn forbidden_pod_changes(old: &PodSpec, new: &PodSpec, errors: &mut Vec<String>) {
    let name = &old.name;
    if new.count < old.count && !new.allow_decommission {
        errors.push(format!(
            "pods.{name}.count: {} -> {}: instances cannot be removed unless allow-decommission is true",
            old.count, new.count
        ));
    }
    if old.pre_reserved_role != new.pre_reserved_role {
        errors.push(format!(
            "pods.{name}.pre-reserved-role: {:?} -> {:?}: the role of reservations cannot change",
            old.pre_reserved_role, new.pre_reserved_role
        ));
    }
    if uses_host_ports(old) != uses_host_ports(new) {
        errors.push(format!(
            "pods.{name}.networks: a pod cannot change between host ports and addresses of its own"
        ));
    }
    if volumes_differ(&old.volumes, &new.volumes) {
        errors.push(format!("pods.{name}.volumes: volumes cannot change, because they hold data"));
    }
    for task in &old.tasks {
        let sets = |pod: &PodSpec| {
            let set = &pod.task(&task.name)?.resource_set;
            pod.resource_set(set).map(|set| set.volumes.clone())
        };
        if let (Some(before), Some(after)) = (sets(old), sets(new))
            && volumes_differ(&before, &after)
        {
            errors.push(format!(
                "pods.{name}.tasks.{}.volumes: volumes cannot change, because they hold data",
                task.name
            ));
        }
    }
}

/// The order of volumes does not matter.
fn volumes_differ(old: &[Volume], new: &[Volume]) -> bool {
    old.len() != new.len() || old.iter().any(|volume| !new.contains(volume))
}
