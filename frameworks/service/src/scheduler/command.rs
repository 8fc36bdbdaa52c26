//! Commands of operators.

use std::sync::Arc;

use tepui_fsm::Now;

use super::record::{Override, OverrideProgress, OverrideTarget, Pod, Record, TaskKey};
use super::task::{Life, Task};
use super::{Answer, Command, Out, Scheduler, millis};
use crate::plan::{Action, Outcome, PodInstance};
use crate::spec::Goal;

/// Longest property that an operator may store.
const PROPERTY_BYTES_MAX: usize = 1024;
/// Longest name of a property.
const PROPERTY_NAME_BYTES_MAX: usize = 255;
/// Limit of the properties of a service, its own included.
const PROPERTIES_MAX: usize = 1000;

impl Scheduler {
    pub(super) fn on_command(&mut self, now: Now, command: Command, out: &mut Out) -> Answer {
        match command {
            Command::Plan { plan, action } => self.on_plan_action(now, &plan, action, out),
            Command::RestartPod { pod } => {
                self.on_pod(&pod, |scheduler, pod| scheduler.restart_pod(now, pod, out))
            }
            Command::ReplacePod { pod } => self.on_pod(&pod, |scheduler, pod| {
                scheduler.replace_pod(now, pod, out);
                None
            }),
            Command::PausePod { pod, tasks } => self.on_pod(&pod, |scheduler, pod| {
                scheduler.override_tasks(now, pod, &tasks, OverrideTarget::Paused, out)
            }),
            Command::ResumePod { pod, tasks } => self.on_pod(&pod, |scheduler, pod| {
                scheduler.override_tasks(now, pod, &tasks, OverrideTarget::None, out)
            }),
            Command::SetTarget { spec, origin } => self.set_target(now, *spec, origin, out),
            Command::Uninstall => self.uninstall(out),
            Command::PutProperty { key, value } => self.put_property(key, value, out),
        }
    }

    fn on_plan_action(&mut self, now: Now, name: &str, action: Action, out: &mut Out) -> Answer {
        if let Action::Start { parameters } = &action
            && let Some(bad) = parameters.keys().find(|name| !is_variable(name))
        {
            let rule = "a letter or underscore, then letters, digits or underscores are expected";
            return Answer::Invalid(format!("{bad:?} is not a name of a variable: {rule}"));
        }
        let Some(plan) = self.state.plans.iter_mut().find(|plan| plan.name == name) else {
            return Answer::NotFound(format!("Plan {name}"));
        };
        let is_new_run = matches!(action, Action::Start { .. } | Action::Restart { .. } | Action::Stop);
        let outcome = plan.apply(millis(now), action, &mut self.state.backoff);
        if is_new_run {
            let tasks = &self.state.tasks;
            let id = |task: &Arc<Task>| task.launch.task_id.clone();
            plan.discard_stored(&|pod, task| tasks.get(&TaskKey::new(pod, task)).map(id));
        }
        let state = plan.operator_state();
        if let (Outcome::Done, Some(target), false) =
            (&outcome, self.state.target.clone(), self.state.uninstalling)
        {
            self.apply(Record::Plan(name.to_owned(), Some(Arc::new((target, state)))), out);
        }
        self.changed = true;
        let pods = self.state.tasks.keys().map(|key| key.pod.clone());
        self.recheck.extend(pods);
        match outcome {
            Outcome::Done => Answer::Done,
            Outcome::AlreadyDone => Answer::AlreadyDone,
            Outcome::NotFound(element) => Answer::NotFound(element),
            Outcome::MissingPhase => Answer::Invalid("Missing phase".to_owned()),
        }
    }

    /// A command for a pod instance that has tasks; all of them are affected unless it names some.
    fn on_pod(
        &mut self,
        name: &str,
        command: impl FnOnce(&mut Scheduler, &PodInstance) -> Option<Result<Vec<String>, Answer>>,
    ) -> Answer {
        let Some(pod) = self.find_pod(name) else { return Answer::NotFound(format!("Pod {name}")) };
        let all = self.pod_tasks(&pod).iter().map(|task| task.launch.key.name()).collect();
        if self.state.uninstalling {
            return Answer::Invalid("the service is being uninstalled".to_owned());
        }
        self.changed = true;
        match command(self, &pod) {
            None => Answer::Pod { pod: name.to_owned(), tasks: all },
            Some(Ok(tasks)) => Answer::Pod { pod: name.to_owned(), tasks },
            Some(Err(answer)) => answer,
        }
    }

    fn find_pod(&self, name: &str) -> Option<PodInstance> {
        let (pod, index) = name.rsplit_once('-')?;
        let pod = PodInstance { pod: pod.to_owned(), index: index.parse().ok()? };
        (!self.pod_tasks(&pod).is_empty()).then_some(pod)
    }

    fn restart_pod(
        &mut self,
        now: Now,
        pod: &PodInstance,
        out: &mut Out,
    ) -> Option<Result<Vec<String>, Answer>> {
        let tasks = self.pod_tasks(pod);
        if let Some(record) = self.state.pods.get(pod) {
            let alive = tasks.iter().filter(|task| task.life() != Life::Dead);
            let restarting = alive.map(|task| task.launch.task_id.clone()).collect();
            let record = Pod { restarting, ..(**record).clone() };
            self.apply(Record::Pod(Arc::new(record)), out);
        }
        for task in tasks {
            self.clear_delay(&task, out);
            self.kill(now, &task.launch.key, out);
        }
        self.recheck.insert(pod.clone());
        None
    }

    /// Pauses or resumes tasks: they are killed, and launched again as the override says.
    fn override_tasks(
        &mut self,
        now: Now,
        pod: &PodInstance,
        names: &[String],
        target: OverrideTarget,
        out: &mut Out,
    ) -> Option<Result<Vec<String>, Answer>> {
        let tasks = self.pod_tasks(pod);
        let is_named = |key: &TaskKey, name: &str| key.task == name || key.name() == name;
        let unknown = names.iter().find(|name| !tasks.iter().any(|task| is_named(&task.launch.key, name)));
        if let Some(name) = unknown {
            return Some(Err(Answer::NotFound(format!("Task {name}"))));
        }
        let mut changed = Vec::new();
        for task in tasks {
            let key = &task.launch.key;
            let is_wanted = names.is_empty() || names.iter().any(|name| is_named(key, name));
            let old = task.override_.map_or(OverrideTarget::None, |own| own.target);
            let is_changed = old != target && old != OverrideTarget::Decommissioned;
            if !is_wanted || self.goal(&task) != Some(Goal::Running) {
                continue;
            }
            changed.push(key.name());
            if is_changed {
                let own = Override { target, progress: OverrideProgress::Pending };
                self.put_override(key, Some(own), out);
                self.clear_delay(&task, out);
                self.kill(now, key, out);
            }
        }
        self.recheck.insert(pod.clone());
        Some(Ok(changed))
    }

    fn put_property(&mut self, key: String, value: Vec<u8>, out: &mut Out) -> Answer {
        if value.len() > PROPERTY_BYTES_MAX {
            return Answer::Invalid(format!(
                "{} bytes are too many; {PROPERTY_BYTES_MAX} is the limit",
                value.len()
            ));
        }
        if key.len() > PROPERTY_NAME_BYTES_MAX {
            return Answer::Invalid(format!("the name is longer than {PROPERTY_NAME_BYTES_MAX} bytes"));
        }
        let properties = &self.state.properties;
        if properties.size() >= PROPERTIES_MAX && !properties.contains_key(&key) {
            return Answer::Invalid(format!(
                "{PROPERTIES_MAX} properties are stored already, which is the limit"
            ));
        }
        self.apply(Record::Property(key, Some(value.into())), out);
        Answer::Done
    }
}

fn is_variable(name: &str) -> bool {
    let is_first = |c: char| c.is_ascii_alphabetic() || c == '_';
    name.starts_with(is_first) && name.chars().all(|c| is_first(c) || c.is_ascii_digit())
}
