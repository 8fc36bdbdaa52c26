//! A view in the shapes of the HTTP API.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tepui_proto::Enumeration as _;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::wire;

use super::record::{OverrideProgress, OverrideTarget, Stray, TaskKey};
use super::task::{Life, Task};
use super::task_info::{self, dns_name};
use super::view::{
    Absence, EndpointView, HealthView, OffersView, PhaseTasksView, PhaseView, PlanTasksView, PlanView,
    PodTypeView, PodView, StepTasksView, StepView, TaskDescription, TaskStatusView, TaskView, View,
};
use super::{WaitKey, plans};
use crate::plan::{Phase, Plan, PodInstance, Progress, Status, Step, StepTask, Work};

impl View {
    /// In order of priority.
    pub fn plan_names(&self) -> Vec<String> {
        self.plans.iter().map(|plan| plan.name.clone()).collect()
    }

    pub fn plan(&self, name: &str) -> Option<PlanView> {
        self.plans.iter().find(|plan| plan.name == name).map(|plan| self.plan_view(plan))
    }

    fn plan_view(&self, plan: &Plan) -> PlanView {
        let eligible: BTreeSet<(usize, usize)> =
            plan.eligible_steps(self.at, &self.backoff).into_iter().collect();
        let phase = |(at, phase): (usize, &Phase)| {
            let turn = match plan.is_interrupted() || phase.is_held() {
                true => "waits for an operator to continue the plan or the phase",
                false => "waits for its turn in the plan",
            };
            let turn = |step: usize| (!eligible.contains(&(at, step))).then_some(turn);
            let steps = phase.steps().enumerate();
            PhaseView {
                id: phase.id.clone(),
                name: phase.name.clone(),
                steps: steps.map(|(step, own)| self.step_view(own, turn(step))).collect(),
                strategy: phase.strategy_name(),
                status: phase.status(self.at, &self.backoff).to_string(),
            }
        };
        PlanView {
            name: plan.name.clone(),
            phases: plan.phases.iter().enumerate().map(phase).collect(),
            errors: plan.errors.clone(),
            strategy: plan.strategy.to_string(),
            status: self.plan_status(plan).to_string(),
        }
    }

    fn plan_status(&self, plan: &Plan) -> Status {
        plan.status(self.at, &self.backoff)
    }

    fn step_view(&self, step: &Step, turn: Option<&str>) -> StepView {
        let status = step.status(self.at, &self.backoff);
        let shown = match &step.work {
            Work::Launch { pod, .. } if self.is_paused(pod) => match status {
                Status::Complete => "PAUSED".to_owned(),
                status if status.is_running() => "PAUSING".to_owned(),
                status => status.to_string(),
            },
            _ => status.to_string(),
        };
        StepView {
            id: step.id.clone(),
            status: shown,
            name: step.name.clone(),
            message: self.step_message(step, status, turn),
            errors: step.errors.clone(),
        }
    }

    /// What a step waits for, in words.
    fn step_message(&self, step: &Step, status: Status, turn: Option<&str>) -> String {
        let text = match &step.work {
            Work::Launch { pod, tasks } => match status {
                Status::Pending | Status::Prepared => Some(self.wait_message(pod, tasks, turn)),
                Status::Delayed => {
                    let ends = tasks
                        .iter()
                        .filter_map(|task| self.backoff.delayed_until(self.at, &pod.task_name(&task.name)));
                    let left = ends.max().map(|end| end.saturating_sub(self.at).div_ceil(1000));
                    left.map(|left| format!("launched again in {left} s, after {}", self.last_failure(pod)))
                }
                Status::Starting => Some("waits for TASK_RUNNING".to_owned()),
                Status::Started => Some("waits for the readiness check or the end of the task".to_owned()),
                Status::Waiting => Some("waits for an operator: plan resume".to_owned()),
                Status::Error | Status::InProgress | Status::Complete => None,
            },
            Work::KillTask { task, .. } if status != Status::Complete => Some(self.kill_message(task)),
            Work::Unreserve { resource, .. } if status != Status::Complete => {
                Some(self.release_message(resource))
            }
            Work::Deregister { .. }
                if status != Status::Complete && self.properties.contains_key(plans::DEREGISTERING) =>
            {
                Some("waits for the master to remove the framework".to_owned())
            }
            Work::KillTask { .. }
            | Work::Unreserve { .. }
            | Work::EraseTask { .. }
            | Work::Deregister { .. } => None,
        };
        match text {
            Some(text) => format!("{} ({status}): {text}", step.name),
            None => format!("{} ({status})", step.name),
        }
    }

    /// `name`: of the task, or its id.
    fn kill_message(&self, name: &str) -> String {
        let task =
            self.tasks.values().find(|task| task.launch.task_id == name || task.launch.key.name() == name);
        match task.filter(|task| task.life() == Life::Unreachable) {
            Some(task) => format!(
                "agent {} is unreachable, the task may still run there; the step completes when the agent is back, marked as \
                 gone or removed, or is forced by an operator",
                task.launch.hostname
            ),
            None => "waits for the task to terminate".to_owned(),
        }
    }

    fn release_message(&self, resource: &str) -> String {
        match self.garbage.get(resource) {
            Some(own) if own.operation.is_some() => format!("waits for agent {} to release it", own.hostname),
            Some(own) => {
                let is_unreachable = self.absences.get(&own.agent) == Some(&Absence::Unreachable);
                let reason = match is_unreachable {
                    true => {
                        ", which is unreachable; the step completes when the agent is back or removed, or is forced by an operator"
                    }
                    false => "",
                };
                format!("waits for an offer of agent {}{reason}", own.hostname)
            }
            None => "waits for the tasks of its pod to terminate".to_owned(),
        }
    }

    /// Why a pod is not launched: what its tasks, its agent or the offers lack.
    fn wait_message(&self, pod: &PodInstance, tasks: &[StepTask], turn: Option<&str>) -> String {
        let reason = self.unplaceable.get(&pod.pod).filter(|_| !self.pods.contains_key(pod));
        if let Some(reason) = reason {
            return reason.clone();
        }
        if let Some(turn) = turn {
            return turn.to_owned();
        }
        let stray = tasks.iter().find_map(|own| self.stray_back(&TaskKey::new(pod, &own.name)));
        if let Some(stray) = stray {
            let agent = stray.agent.as_deref().unwrap_or("unknown");
            let id = &stray.task_id;
            return format!("waits for {id} on agent {agent} to terminate, which was replaced and is back");
        }
        let is_open = |task: &&Task| {
            let own = tasks.iter().find(|own| own.name == task.launch.key.task);
            own.is_some_and(|own| own.progress <= Progress::Prepared)
        };
        let tasks: Vec<&Task> = self.tasks_of_pod(pod).into_iter().filter(is_open).collect();
        let agent = self.pods.get(pod).map(|own| own.agent.as_str());
        let is_held = |task: &&&Task| task.life() == Life::Unreachable && agent == Some(&*task.launch.agent);
        if let Some(task) = tasks.iter().find(is_held) {
            return format!(
                "agent {} is {}, {} may still run there; the pod continues when the agent is back, or is replaced by `pod replace {}`",
                task.launch.hostname,
                task.agent_state(),
                task.launch.key.name(),
                pod.name()
            );
        }
        if let Some(task) = tasks.iter().find(|task| task.life() == Life::Live) {
            return format!("waits for {} to terminate", task.launch.key.name());
        }
        let Some(own) = self.pods.get(pod) else {
            let wait = self.waits.get(&WaitKey::New(pod.pod.clone()));
            return wait.map_or_else(|| "no offers yet".to_owned(), |wait| wait.to_string());
        };
        let wait = self.waits.get(&WaitKey::Existing(pod.clone()));
        let reason = wait.map_or_else(|| "no offers yet".to_owned(), |wait| wait.to_string());
        format!("waits for the reservations on agent {}; {reason}", own.hostname)
    }

    /// A task of the instance that was replaced, is back and not down yet.
    pub(super) fn stray_back(&self, key: &TaskKey) -> Option<&Stray> {
        let start = task_info::id(&self.service, &key.name(), "");
        let own = self.strays.range(start.clone()..).take_while(|(id, _)| id.starts_with(&start));
        own.map(|(_, stray)| &**stray).find(|stray| stray.is_back)
    }

    fn last_failure(&self, pod: &PodInstance) -> String {
        let tasks = self.tasks_of_pod(pod);
        let failed = tasks
            .iter()
            .find(|task| task.life() == Life::Dead && task.state() != pb::TaskState::TASK_FINISHED);
        failed.map_or_else(
            || "a failure".to_owned(),
            |task| {
                let message = Some(task.status.message.as_str()).filter(|text| !text.is_empty());
                let message = message.map(|text| format!(": {text}")).unwrap_or_default();
                format!("{} of {}{message}", task.status.state, task.launch.key.name())
            },
        )
    }

    fn tasks_of_pod(&self, pod: &PodInstance) -> Vec<&Task> {
        let first = TaskKey { pod: pod.clone(), task: String::new() };
        let own = self.tasks.range(first..).take_while(|(key, _)| key.pod == *pod);
        own.map(|(_, task)| &**task).collect()
    }

    /// All pod instances: those of the target, and those that are not removed yet.
    fn instances(&self) -> BTreeMap<PodInstance, ()> {
        let target = self.target.as_ref().and_then(|id| self.configurations.get(id));
        let pods = target.into_iter().flat_map(|spec| &spec.pods);
        let of = |pod: &crate::spec::PodSpec| {
            let name = pod.name.clone();
            (0..pod.count).map(move |index| PodInstance { pod: name.clone(), index })
        };
        let mut all: BTreeMap<PodInstance, ()> = pods.flat_map(of).map(|pod| (pod, ())).collect();
        all.extend(self.tasks.keys().map(|key| (key.pod.clone(), ())));
        all
    }

    /// Sorted.
    pub fn pod_names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.instances().keys().map(PodInstance::name).collect();
        names.sort();
        names
    }

    pub fn pods(&self) -> Vec<PodTypeView> {
        let mut types: Vec<PodTypeView> = Vec::new();
        for pod in self.instances().keys() {
            if types.last().is_none_or(|own| own.name != pod.pod) {
                types.push(PodTypeView { name: pod.pod.clone(), instances: Vec::new() });
            }
            if let Some(own) = types.last_mut() {
                own.instances.push(self.pod_view(pod));
            }
        }
        types
    }

    pub fn pod(&self, name: &str) -> Option<PodView> {
        self.find_instance(name).map(|pod| self.pod_view(&pod))
    }

    fn find_instance(&self, name: &str) -> Option<PodInstance> {
        let (pod, index) = name.rsplit_once('-')?;
        let pod = PodInstance { pod: pod.to_owned(), index: index.parse().ok()? };
        self.instances().contains_key(&pod).then_some(pod)
    }

    fn pod_view(&self, pod: &PodInstance) -> PodView {
        let target = self.target.as_ref().and_then(|id| self.configurations.get(id));
        let spec = target.and_then(|spec| spec.pod(&pod.pod));
        let mut names: Vec<&str> =
            spec.iter().flat_map(|spec| &spec.tasks).map(|task| task.name.as_str()).collect();
        let stored = self.tasks_of_pod(pod);
        names.extend(
            stored
                .iter()
                .map(|task| task.launch.key.task.as_str())
                .filter(|name| spec.is_none_or(|spec| spec.task(name).is_none())),
        );
        let task = |name: &str| {
            let own = self.tasks.get(&TaskKey::new(pod, name));
            TaskView {
                id: own.map(|task| task.launch.task_id.clone()),
                name: pod.task_name(name),
                status: own.map(|task| task_status(task)),
            }
        };
        PodView { name: pod.name(), tasks: names.into_iter().map(task).collect() }
    }

    pub fn pod_tasks(&self, name: &str) -> Option<Vec<TaskDescription>> {
        let pod = self.find_instance(name)?;
        let tasks = self.tasks_of_pod(&pod);
        let describe = |task: &&Task| {
            let info = wire::decode_record(&task.launch.info).ok()?;
            Some(TaskDescription { info, status: Some(status_proto(task)) })
        };
        Some(tasks.iter().filter_map(describe).collect())
    }

    /// Sorted.
    pub fn endpoint_names(&self) -> Vec<String> {
        self.endpoints().into_keys().collect()
    }

    pub fn endpoint(&self, name: &str) -> Option<EndpointView> {
        self.endpoints().remove(name)
    }

    /// Advertised ports of tasks that run.
    fn endpoints(&self) -> BTreeMap<String, EndpointView> {
        let mut all: BTreeMap<String, EndpointView> = BTreeMap::new();
        for task in self.tasks.values().filter(|task| task.life() == Life::Live) {
            let Ok(info) = wire::decode_record::<pb::TaskInfo>(&task.launch.info) else { continue };
            let external = pb::discovery_info::Visibility::EXTERNAL;
            for port in info.discovery.ports.ports.iter().filter(|port| port.visibility == Some(external)) {
                let name = port.name.clone().unwrap_or_default();
                let own = all.entry(name).or_insert_with(|| EndpointView {
                    address: Vec::new(),
                    dns: Vec::new(),
                    vip: None,
                });
                self.add_endpoint(own, task, port);
            }
        }
        all
    }

    fn add_endpoint(&self, endpoint: &mut EndpointView, task: &Task, port: &pb::Port) {
        let host = match task.status.addresses.as_slice() {
            [] => task.launch.hostname.clone(),
            [address] => address.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        endpoint.address.push(format!("{host}:{}", port.number));
        let (task_name, service) = (dns_name(&task.launch.key.name()), dns_name(&self.service));
        endpoint.dns.push(format!("{task_name}.{service}.{}:{}", self.service_tld, port.number));
        let vip = port.labels.labels.iter().find(|label| label.key.starts_with("VIP_"));
        if let Some((name, number)) = vip.and_then(|label| label.value.as_ref()?.rsplit_once(':')) {
            let service = self.service.replace('/', "");
            endpoint.vip = Some(format!("{name}.{service}.{}:{number}", self.vip_tld));
        }
    }

    /// Zones of task instances, for those whose agent has one.
    pub fn task_zones(&self) -> BTreeMap<String, String> {
        let zone = |task: &Task| {
            let pod = self.pods.get(&task.launch.key.pod)?;
            Some((task.launch.key.name(), pod.zone.clone()?))
        };
        self.tasks.values().filter_map(|task| zone(task)).collect()
    }

    /// The zone of the pod of a type that has an address.
    pub fn address_zone(&self, pod: &str, address: &str) -> Option<String> {
        let has_it = |task: &&Arc<Task>| {
            task.launch.key.pod.pod == pod && task.status.addresses.iter().any(|own| own == address)
        };
        let task = self.tasks.values().find(has_it)?;
        self.pods.get(&task.launch.key.pod)?.zone.clone()
    }

    /// A configuration as `/v1/configurations/{id}` has it.
    pub fn configuration(&self, id: &str) -> Option<serde_json::Value> {
        self.configurations.get(id).map(|spec| spec.served())
    }

    /// Content of a config template of a task.
    pub fn template(&self, configuration: &str, pod: &str, task: &str, config: &str) -> Option<&str> {
        let spec = self.configurations.get(configuration)?;
        let configs = &spec.pod(pod)?.task(task)?.configs;
        configs.iter().find(|own| own.name == config).map(|own| own.content.as_str())
    }

    /// The code of `/v1/health`.
    pub fn health(&self) -> HealthView {
        let mut reasons = Vec::new();
        for plan in &self.plans {
            reasons.push(format!("plan {} is {}", plan.name, self.plan_status(plan)));
        }
        HealthView { value: self.health_code(), reasons }
    }

    fn health_code(&self) -> u16 {
        if self.plans.iter().any(|plan| !plan.errors.is_empty()) {
            return 500;
        }
        if self.framework_id.is_none() {
            return 318;
        }
        let Some(deploy) = self.plans.first() else { return 503 };
        if let Some(code) = self.progress_code(deploy, [208, 204, 202]) {
            return code;
        }
        if deploy.is_interrupted() || self.plan_status(deploy) == Status::Waiting {
            return 207;
        }
        let recovery = self.plans.iter().find(|plan| plan.name == plans::RECOVERY);
        if let Some(code) = recovery.and_then(|plan| self.progress_code(plan, [208, 203, 205])) {
            return code;
        }
        if !deploy.is_complete() {
            return 503;
        }
        let is_running = |part: &str| {
            let named = self.plans.iter().filter(|plan| plan.name.contains(part));
            named.map(|plan| self.plan_status(plan)).any(Status::is_running)
        };
        match (is_running("restor"), is_running("back")) {
            (true, _) => 321,
            (false, true) => 320,
            (false, false) => 200,
        }
    }

    /// Codes for steps that are delayed, wait for offers, or start.
    fn progress_code(&self, plan: &Plan, codes: [u16; 3]) -> Option<u16> {
        let steps = plan.phases.iter().flat_map(|phase| phase.open().filter_map(|step| phase.step(step)));
        let statuses: Vec<Status> = steps.map(|step| step.status(self.at, &self.backoff)).collect();
        let any = |wanted: &[Status]| statuses.iter().any(|status| wanted.contains(status));
        if any(&[Status::Delayed]) {
            Some(codes[0])
        } else if any(&[Status::Pending, Status::Prepared]) {
            Some(codes[1])
        } else if any(&[Status::Starting, Status::Started]) {
            Some(codes[2])
        } else {
            None
        }
    }

    pub fn offers(&self) -> OffersView {
        self.evaluations.view()
    }

    /// Resource ids by hostname of their agent.
    pub fn reservations(&self) -> BTreeMap<String, Vec<String>> {
        let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for pod in self.pods.values() {
            let ids = pod.reservations.iter().map(|own| own.id.clone());
            all.entry(pod.hostname.clone()).or_default().extend(ids);
        }
        for garbage in self.garbage.values() {
            all.entry(garbage.hostname.clone()).or_default().push(garbage.id.clone());
        }
        all
    }

    pub fn task_statuses(&self) -> Vec<PlanTasksView> {
        let task = |pod: &PodInstance, name: &str| {
            let own = self.tasks.get(&TaskKey::new(pod, name));
            TaskStatusView {
                name: pod.task_name(name),
                task_status: own.map(|task| task.status.state.clone()).unwrap_or_default(),
                task_id: own.map(|task| task.launch.task_id.clone()).unwrap_or_default(),
            }
        };
        let step = |step: &Step| {
            let tasks = match &step.work {
                Work::Launch { pod, tasks } => tasks.iter().map(|own| task(pod, &own.name)).collect(),
                Work::KillTask { .. }
                | Work::Unreserve { .. }
                | Work::EraseTask { .. }
                | Work::Deregister { .. } => Vec::new(),
            };
            StepTasksView { name: step.name.clone(), task_status: tasks }
        };
        let phase = |phase: &Phase| PhaseTasksView {
            name: phase.name.clone(),
            steps: phase.steps().map(step).collect(),
        };
        let plan = |plan: &Plan| PlanTasksView {
            name: plan.name.clone(),
            phases: plan.phases.iter().map(phase).collect(),
        };
        self.plans.iter().map(plan).collect()
    }
}

/// The state without `TASK_`, or what an override does to the task.
fn task_status(task: &Task) -> String {
    let plain = || task.status.state.trim_start_matches("TASK_").to_owned();
    let Some(own) = task.override_ else { return plain() };
    let shown = match (own.target, own.progress) {
        (OverrideTarget::Paused, OverrideProgress::Complete) => "PAUSED",
        (OverrideTarget::Decommissioned, OverrideProgress::Complete) => "DECOMMISSIONED",
        (OverrideTarget::Paused, OverrideProgress::Pending | OverrideProgress::InProgress) => "PAUSING",
        (OverrideTarget::Decommissioned, OverrideProgress::Pending | OverrideProgress::InProgress) => {
            "DECOMMISSIONING"
        }
        (OverrideTarget::None, OverrideProgress::Pending | OverrideProgress::InProgress) => "STARTING",
        (OverrideTarget::None, OverrideProgress::Complete) => return plain(),
    };
    shown.to_owned()
}

fn status_proto(task: &Task) -> pb::TaskStatus {
    let own = &task.status;
    pb::TaskStatus {
        task_id: pb::TaskID { value: own.task_id.clone(), ..Default::default() }.into(),
        state: task.state(),
        message: Some(own.message.clone()).filter(|text| !text.is_empty()),
        reason: own.reason.as_deref().and_then(pb::task_status::Reason::from_proto_name),
        agent_id: pb::AgentID { value: task.launch.agent.clone(), ..Default::default() }.into(),
        timestamp: Some(own.at_ns as f64 / 1e9),
        healthy: own.healthy,
        ..Default::default()
    }
}
