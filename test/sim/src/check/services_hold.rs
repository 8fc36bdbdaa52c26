//! Services hold: a task of a service is launched only if the tasks of the same instance before it have terminated, or are on an
//! agent out of contact; a complete service owns every reservation made for it; a plan that does not complete says why.

use std::collections::{BTreeMap, BTreeSet};

use tepui_proto::mesos::v1::{TaskState, TaskStatus};
use tepui_resources::Resources;
use tepui_service::scheduler::View;
use tepui_types::TaskStateExt;

use super::{Check, Fact};

/// Parts of messages that say why a step waits: for room, for its own agent, for an operator.
const REASONS: [&str; 3] = ["lack", "waits for agent", "excluded"];

#[derive(Debug, Default)]
pub(super) struct ServicesHold {
    /// Ids of frameworks that are services.
    services: BTreeSet<String>,
    /// Tasks by framework and instance, with their last states.
    tasks: BTreeMap<(String, String), BTreeMap<String, TaskState>>,
}

impl Check for ServicesHold {
    fn name(&self) -> &'static str {
        "services_hold"
    }

    fn observe(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        match fact {
            Fact::ServiceIs { id } => {
                self.services.insert((*id).to_owned());
                Ok(())
            }
            Fact::FrameworkLaunches { id, task } if self.services.contains(*id) => self.launch(id, task),
            // That a task runs counts from the decisions on that are made with the status known.
            Fact::FrameworkSees { id, status } if !may_run(status.state) => {
                self.update(id, status);
                Ok(())
            }
            Fact::ServiceKnows { id, status } => {
                self.update(id, status);
                Ok(())
            }
            Fact::ServiceComplete { view, totals } => complete(view, totals),
            Fact::ServiceWaits { view } => waits(view),
            _ => Ok(()),
        }
    }
}

impl ServicesHold {
    fn update(&mut self, id: &str, status: &TaskStatus) {
        let task = &status.task_id.value;
        let known = self.tasks.get_mut(&key(id, task)).and_then(|tasks| tasks.get_mut(task));
        if let Some(state) = known.filter(|state| !state.is_terminal()) {
            *state = status.state;
        }
    }

    fn launch(&mut self, id: &str, task: &str) -> Result<(), String> {
        let others = self.tasks.entry(key(id, task)).or_default();
        if let Some((other, state)) = others.iter().find(|(_, state)| may_run(**state)) {
            return Err(format!("{task} is launched while {other} is {state:?}"));
        }
        others.insert(task.to_owned(), TaskState::TASK_STAGING);
        Ok(())
    }
}

fn may_run(state: TaskState) -> bool {
    !state.is_terminal() && !matches!(state, TaskState::TASK_UNREACHABLE | TaskState::TASK_UNKNOWN)
}

/// Framework and instance of `<service>__<instance>__<uuid>`.
fn key(framework: &str, task: &str) -> (String, String) {
    let instance = task.rsplit_once("__").map_or(task, |(start, _)| start);
    (framework.to_owned(), instance.to_owned())
}

/// Every reservation with the label of the service belongs to one of its pods.
fn complete(view: &View, totals: &[Resources]) -> Result<(), String> {
    let owned: BTreeSet<&str> =
        view.pods.values().flat_map(|pod| &pod.reservations).map(|own| own.id.as_str()).collect();
    for total in totals {
        for resource in total.iter() {
            let labels = resource.reservation().and_then(|level| level.labels.as_ref());
            let label = |name: &str| {
                labels
                    .and_then(|all| all.iter().find(|(key, _)| key == name))
                    .and_then(|(_, value)| value.clone())
            };
            let is_ours = label("framework_id").is_some() && label("framework_id") == view.framework_id;
            if let Some(id) = label("resource_id").filter(|id| is_ours && !owned.contains(id.as_str())) {
                return Err(format!("{resource} belongs to no pod: {id}"));
            }
        }
    }
    Ok(())
}

/// In each open phase, a step names what it waits for.
fn waits(view: &View) -> Result<(), String> {
    for plan in view.plan_names().iter().filter_map(|name| view.plan(name)) {
        for phase in plan.phases.iter().filter(|phase| phase.status != "COMPLETE") {
            let steps = phase.steps.iter().filter(|step| step.status != "COMPLETE");
            let messages: Vec<&str> = steps.map(|step| step.message.as_str()).collect();
            if !messages.iter().any(|message| REASONS.iter().any(|reason| message.contains(reason))) {
                return Err(format!(
                    "phase {} is {} and does not say why: {messages:?}",
                    phase.name, phase.status
                ));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn update(check: &mut ServicesHold, task: &str, state: TaskState) {
        let task_id = tepui_proto::mesos::v1::TaskID { value: task.into(), ..Default::default() };
        let status = TaskStatus { task_id: task_id.into(), state, ..Default::default() };
        check.observe(&Fact::ServiceKnows { id: "F", status: &status }).expect("a status is no violation");
    }

    #[test]
    fn a_second_task_of_an_instance_is_detected_unless_the_first_is_out_of_contact() {
        let mut check = ServicesHold::default();
        let launch =
            |check: &mut ServicesHold, task| check.observe(&Fact::FrameworkLaunches { id: "F", task });
        launch(&mut check, "s__a-0-main__1").expect("not a service yet");
        check.observe(&Fact::ServiceIs { id: "F" }).expect("no violation");
        launch(&mut check, "s__a-0-main__2").expect("the first one");
        launch(&mut check, "s__a-1-main__3").expect("another instance");
        launch(&mut check, "s__a-0-main__4").expect_err("the first one may run");
        update(&mut check, "s__a-0-main__2", TaskState::TASK_UNREACHABLE);
        launch(&mut check, "s__a-0-main__5").expect("the first one is out of contact");
        update(&mut check, "s__a-0-main__5", TaskState::TASK_FAILED);
        update(&mut check, "s__a-0-main__2", TaskState::TASK_RUNNING);
        launch(&mut check, "s__a-0-main__6").expect_err("the first one is back");
    }
}
