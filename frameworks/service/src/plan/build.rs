//! Plans out of a service spec and what is stored of its tasks.

use std::sync::Arc;

use super::{Phase, Plan, PodInstance, Progress, Step, StepTask, Strategy, TaskState, Work};
use crate::spec::{Goal, PhaseSpec, PlanSpec, PodSpec, ServiceSpec};

/// Makes an id for each phase and step.
pub type Ids<'i> = &'i mut dyn FnMut() -> String;

/// What is stored of a task instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskRecord {
    pub task_id: String,
    pub state: TaskState,
    /// Whether it was launched with the target configuration.
    pub is_current: bool,
    pub permanently_failed: bool,
}

impl TaskRecord {
    fn reached(&self, goal: Goal) -> bool {
        match (goal, self.state) {
            (Goal::Running, TaskState::Running { ready: true }) | (Goal::Finish, TaskState::Finished) => {
                self.is_current
            }
            (Goal::Once, TaskState::Finished) => true,
            (Goal::Running | Goal::Finish | Goal::Once, _) => false,
        }
    }
}

/// The stored record of a task instance, by its pod instance and its name in the spec.
pub type Records<'r> = &'r dyn Fn(&PodInstance, &str) -> Option<TaskRecord>;

/// The plan named `deploy`: the spec's `update` plan once a deployment was complete, else its `deploy` plan, else one serial
/// phase for each pod.
pub fn deploy(spec: &ServiceSpec, was_deployed: bool, records: Records<'_>, ids: Ids<'_>) -> Plan {
    let update = spec.plan("update").filter(|_| was_deployed);
    match update.or_else(|| spec.plan("deploy")) {
        Some(plan) => from_spec("deploy", spec, plan, records, ids),
        None => {
            let phase = |pod: &PodSpec| PhaseSpec {
                name: pod.name.clone(),
                pod: pod.name.clone(),
                parallel: false,
                canary: false,
                steps: None,
            };
            let phases = spec.pods.iter().map(phase).collect();
            let generated = PlanSpec { name: "deploy".to_owned(), parallel: false, phases };
            from_spec("deploy", spec, &generated, records, ids)
        }
    }
}

/// Plans besides `deploy` and `update`; they wait for `start`.
pub fn custom(spec: &ServiceSpec, records: Records<'_>, ids: Ids<'_>) -> Vec<Plan> {
    let others = spec.plans.iter().filter(|plan| plan.name != "deploy" && plan.name != "update");
    others
        .map(|plan| {
            let mut plan = from_spec(&plan.name, spec, plan, records, ids);
            plan.hold();
            plan
        })
        .collect()
}

fn from_spec(name: &str, spec: &ServiceSpec, plan: &PlanSpec, records: Records<'_>, ids: Ids<'_>) -> Plan {
    let mut phases = Vec::new();
    for phase in &plan.phases {
        let pod = spec.pod(&phase.pod).expect("a checked spec names existing pods");
        phases.push(self::phase(phase, pod, records, ids));
    }
    let strategy = if plan.parallel { Strategy::Parallel } else { Strategy::Serial };
    Plan::new(name, strategy, phases)
}

fn phase(spec: &PhaseSpec, pod: &PodSpec, records: Records<'_>, ids: Ids<'_>) -> Phase {
    let mut steps = Vec::new();
    // In a parallel phase pods are independent, and the steps of one pod follow each other.
    let mut before: Vec<Vec<usize>> = Vec::new();
    for index in 0..pod.count {
        let instance = PodInstance { pod: pod.name.clone(), index };
        let all = vec![pod.tasks.iter().map(|task| task.name.clone()).collect::<Vec<_>>()];
        let groups = spec.steps.as_ref().and_then(|steps| steps.groups(index)).unwrap_or(&all);
        for (position, group) in groups.iter().enumerate() {
            before.push(if position == 0 { Vec::new() } else { vec![steps.len() - 1] });
            steps.push(launch(&instance, pod, group, records, ids));
        }
    }
    let strategy = match (spec.parallel, &spec.steps) {
        (false, _) => Strategy::Serial,
        (true, None) => Strategy::Parallel,
        (true, Some(_)) => Strategy::Dependency(Arc::new(before)),
    };
    let phase = Phase::new(ids(), spec.name.clone(), strategy, steps);
    if spec.canary { phase.with_canary() } else { phase }
}

fn launch(pod: &PodInstance, spec: &PodSpec, group: &[String], records: Records<'_>, ids: Ids<'_>) -> Step {
    let task = |name: &String| {
        let goal = spec.task(name).expect("a checked spec names existing tasks").goal;
        let (progress, task_id) = progress(goal, records(pod, name));
        StepTask { name: name.clone(), goal, task_id, progress }
    };
    Step::launch(ids(), pod.clone(), group.iter().map(task).collect())
}

/// How far a stored task is. One that is being launched is followed, not launched again.
fn progress(goal: Goal, record: Option<TaskRecord>) -> (Progress, Option<String>) {
    let Some(record) = record else { return (Progress::Pending, None) };
    if record.permanently_failed || record.reached(goal) {
        return (Progress::Complete, Some(record.task_id));
    }
    if !record.is_current {
        return (Progress::Pending, None);
    }
    let progress = match record.state {
        TaskState::Starting => Progress::Starting,
        TaskState::Running { .. } => Progress::Started,
        TaskState::Failed => Progress::Delayed,
        TaskState::Finished | TaskState::Lost | TaskState::GoneByOperator => Progress::Pending,
    };
    (progress, Some(record.task_id))
}

/// A pod instance that the spec has no more: its tasks and the reservations that it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecommissionedPod {
    pub pod: PodInstance,
    /// Names of task instances.
    pub tasks: Vec<String>,
    pub resources: Vec<String>,
}

/// Removes pods one after the other: unknown types by name, then types in reverse order of the spec, highest index first.
pub fn decommission(spec: &ServiceSpec, mut pods: Vec<DecommissionedPod>, ids: Ids<'_>) -> Plan {
    let place = |pod: &str| spec.pods.iter().position(|own| own.name == pod);
    pods.sort_by(|a, b| {
        let order = |pod: &DecommissionedPod| place(&pod.pod.pod).map(|place| spec.pods.len() - place);
        let types = order(a).cmp(&order(b)).then_with(|| a.pod.pod.cmp(&b.pod.pod));
        types.then_with(|| b.pod.index.cmp(&a.pod.index))
    });
    let mut phases = Vec::new();
    for pod in pods {
        let mut steps: Vec<Step> = pod.tasks.iter().map(|task| kill("kill", task, ids)).collect();
        steps.extend(pod.resources.iter().map(|resource| unreserve(resource, ids)));
        steps.extend(pod.tasks.iter().map(|task| {
            let work = Work::EraseTask { task: task.clone(), progress: Progress::Pending };
            Step::new(ids(), format!("erase-{task}"), work)
        }));
        phases.push(Phase::new(ids(), pod.pod.name(), Strategy::Serial, steps));
    }
    Plan::new("decommission", Strategy::Serial, phases)
}

fn kill(verb: &str, task: &str, ids: Ids<'_>) -> Step {
    let work = Work::KillTask { task: task.to_owned(), progress: Progress::Pending };
    Step::new(ids(), format!("{verb}-{task}"), work)
}

fn unreserve(resource: &str, ids: Ids<'_>) -> Step {
    let work = Work::Unreserve { resource: resource.to_owned(), progress: Progress::Pending };
    Step::new(ids(), format!("unreserve-{resource}"), work)
}

/// Kills all tasks and unreserves the resources of each agent, all at once; the framework is deregistered at the end.
pub fn uninstall(task_ids: &[String], resources: &[(String, Vec<String>)], ids: Ids<'_>) -> Plan {
    let mut phases = Vec::new();
    let steps = task_ids.iter().map(|task| kill("kill-task", task, ids)).collect();
    phases.push(Phase::new(ids(), "kill-tasks".to_owned(), Strategy::Parallel, steps));
    for (agent, resources) in resources {
        let steps = resources.iter().map(|resource| unreserve(resource, ids)).collect();
        phases.push(Phase::new(ids(), format!("unreserve-resources-{agent}"), Strategy::Parallel, steps));
    }
    let work = Work::Deregister { progress: Progress::Pending };
    let step = Step::new(ids(), "deregister".to_owned(), work);
    phases.push(Phase::new(ids(), "deregister-service".to_owned(), Strategy::Serial, vec![step]));
    let last = phases.len() - 1;
    let before =
        (0..=last).map(|phase| if phase == last { (0..last).collect() } else { Vec::new() }).collect();
    Plan::new("deploy", Strategy::Dependency(Arc::new(before)), phases)
}
