//! The launch of tasks of a pod: conflicts first, then offers, then records, then the accept.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tepui_fsm::Now;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::wire;
use tepui_resources::Format;
use tepui_types::AgentId;

use super::context::{Context, port_key};
use super::evaluate::{Ask, Held, Match, evaluate};
use super::garbage::{operation, operation_id, unreserve};
use super::need::{Need, needs, uses_host_ports};
use super::obstacle::{Obstacle, explain, phrase};
use super::record::{
    Garbage, Launch, Override, OverrideProgress, OverrideTarget, Owner, Pod, Record, Status, TaskKey,
};
use super::session::pod_role;
use super::site::Site;
use super::task::{Life, Task};
use super::task_info;
use super::{Evaluation, Out, Scheduler, WaitKey, plans};
use crate::plan::{Candidate, PodInstance, Progress, StepTask};
use crate::spec::{PodSpec, ServiceSpec, Subject};

type OperationType = pb::offer::operation::Type;

/// Ports of pods on networks of their own.
const NETWORK_PORTS: std::ops::RangeInclusive<u64> = 1025..=2025;
const ISOLATOR: &str = "docker/volume";

/// A launch of tasks of one pod.
struct Attempt {
    candidate: Candidate,
    instance: PodInstance,
    configuration: String,
    spec: Arc<ServiceSpec>,
    tasks: Vec<String>,
    parameters: BTreeMap<String, String>,
    step: String,
}

impl Attempt {
    fn pod(&self) -> Option<&PodSpec> {
        self.spec.pod(&self.instance.pod)
    }

    fn owners(&self) -> BTreeSet<Owner> {
        let pod = self.pod();
        let set = |task: &String| Some(Owner::Set(pod?.task(task)?.resource_set.clone()));
        self.tasks.iter().filter_map(set).collect()
    }
}

impl Scheduler {
    pub(super) fn work_on_launch(
        &mut self,
        now: Now,
        candidate: Candidate,
        pod: &PodInstance,
        tasks: &[StepTask],
        out: &mut Out,
    ) {
        if !self.state.connected || !self.unreconciled.is_empty() {
            return;
        }
        let Some(attempt) = self.attempt(candidate, pod, tasks) else { return };
        if !self.clear_conflicts(now, &attempt, out) {
            return;
        }
        let key = match self.state.pods.contains_key(pod) {
            true => WaitKey::Existing(pod.clone()),
            false => WaitKey::New(pod.pod.clone()),
        };
        let first = self.last_evaluated(&key);
        let (mut last, mut avoided) = (first, None);
        let agent_left = self.agent_left(&attempt);
        while let Some((number, agent)) = self.next_agent(&key, last) {
            if Some(&agent) == agent_left.as_ref() {
                avoided.get_or_insert(last);
            } else if self.evaluate_agent(now, &attempt, &key, &agent, out) {
                // What is left of the offer, or was passed over, may be enough for another pod.
                self.set_evaluated(key, avoided.unwrap_or(last));
                return;
            }
            last = number;
        }
        if let (Some(before), Some(agent)) = (avoided, agent_left)
            && self.evaluate_agent(now, &attempt, &key, &agent, out)
        {
            return self.set_evaluated(key, before);
        }
        self.set_evaluated(key, last);
        let Candidate { plan, phase, step } = candidate;
        let was_pending = tasks.iter().any(|task| task.progress <= Progress::Pending);
        if was_pending && last > first {
            self.state.plans[plan].update(phase, step, |step| step.on_no_match());
            self.changed = true;
        }
    }

    /// The agent that a pod without reservations was on before: the last choice, because the pod may have failed there.
    fn agent_left(&self, attempt: &Attempt) -> Option<AgentId> {
        if self.state.pods.contains_key(&attempt.instance) {
            return None;
        }
        let task = self.state.tasks.get(&TaskKey::new(&attempt.instance, attempt.tasks.first()?))?;
        Some(AgentId::new(task.launch.agent.as_str()))
    }

    /// The last offer that was evaluated.
    fn last_evaluated(&self, key: &WaitKey) -> u64 {
        let last = match key {
            WaitKey::New(pod) => self.evaluated_new.get(pod),
            WaitKey::Existing(pod) => self.evaluated.get(pod),
        };
        last.copied().unwrap_or(0)
    }

    fn set_evaluated(&mut self, key: WaitKey, last: u64) {
        match key {
            WaitKey::New(pod) => self.evaluated_new.insert(pod, last),
            WaitKey::Existing(pod) => self.evaluated.insert(pod, last),
        };
    }

    /// What the step launches now, with the configuration to launch it with.
    fn attempt(&mut self, candidate: Candidate, pod: &PodInstance, tasks: &[StepTask]) -> Option<Attempt> {
        let plan = &self.state.plans[candidate.plan];
        let step = plan.step(candidate.phase, candidate.step)?;
        let stored = (plan.name == plans::RECOVERY).then(|| self.configuration_of(pod)).flatten();
        let configuration = stored.or_else(|| self.state.target.clone())?;
        let spec = self.state.configurations.get(&configuration)?.clone();
        let open = tasks.iter().filter(|task| task.progress <= Progress::Prepared);
        let attempt = Attempt {
            candidate,
            instance: pod.clone(),
            configuration,
            tasks: open.map(|task| task.name.clone()).collect(),
            parameters: step.parameters.clone(),
            step: step.name.clone(),
            spec,
        };
        if attempt.tasks.is_empty() {
            return None;
        }
        if attempt.owners().len() < attempt.tasks.len() {
            let error = "tasks of one resource set cannot be launched together".to_owned();
            let Candidate { plan, phase, step } = candidate;
            self.state.plans[plan].update(phase, step, |step| step.errors = vec![error]);
            self.changed = true;
            return None;
        }
        Some(attempt)
    }

    /// The configuration of a pod's tasks, those that run first.
    fn configuration_of(&self, pod: &PodInstance) -> Option<String> {
        let tasks = self.pod_tasks(pod);
        let live = tasks.iter().find(|task| task.life() != Life::Dead);
        let task = live.or(tasks.first())?;
        let id = &task.launch.configuration;
        self.state.configurations.contains_key(id).then(|| id.clone())
    }

    /// Kills tasks that hold the resources of the launch; false while some are not down.
    fn clear_conflicts(&mut self, now: Now, attempt: &Attempt, out: &mut Out) -> bool {
        let Some(pod) = attempt.pod() else { return false };
        if attempt.tasks.iter().any(|task| self.has_stray(&TaskKey::new(&attempt.instance, task))) {
            return false;
        }
        let record = self.state.pods.get(&attempt.instance);
        let is_replaced = record.is_some_and(|pod| pod.is_replaced);
        let agent = record.filter(|_| !is_replaced).map(|pod| pod.agent.clone());
        let owners = attempt.owners();
        let set = |task: &str| pod.task(task).map(|own| Owner::Set(own.resource_set.clone()));
        let tasks = self.pod_tasks(&attempt.instance);
        let conflicts = tasks.iter().filter(|task| {
            let name = &task.launch.key.task;
            let shares = set(name).is_none_or(|set| owners.contains(&set));
            match task.life() {
                Life::Dead => false,
                // A pod that was replaced leaves an agent out of contact behind, wherever it is now.
                Life::Unreachable => shares && agent.as_deref() == Some(&*task.launch.agent),
                Life::Live => is_replaced || shares,
            }
        });
        let conflicts: Vec<Arc<Task>> = conflicts.cloned().collect();
        for task in conflicts.iter().filter(|task| task.life() == Life::Live) {
            self.kill(now, &task.launch.key, out);
        }
        if conflicts.is_empty() && is_replaced {
            self.release_pod(&attempt.instance, out);
        }
        conflicts.is_empty()
    }

    /// The next agent with offers that were not evaluated.
    fn next_agent(&self, key: &WaitKey, last: u64) -> Option<(u64, AgentId)> {
        match key {
            WaitKey::New(_) => {
                let held = self.offers.next_after(last)?;
                Some((held.number, held.site.agent.clone()))
            }
            WaitKey::Existing(pod) => {
                let agent = AgentId::new(self.state.pods.get(pod)?.agent.as_str());
                let newest = self.offers.of_agent(&agent).iter().map(|held| held.number).max()?;
                (newest > last).then_some((newest, agent))
            }
        }
    }

    /// Evaluates the offers of one agent, and launches if they fit.
    fn evaluate_agent(
        &mut self,
        now: Now,
        attempt: &Attempt,
        key: &WaitKey,
        agent: &AgentId,
        out: &mut Out,
    ) -> bool {
        let Some(pod) = attempt.pod() else { return false };
        let offers: Vec<Held> = self.offers.of_agent(agent).into_iter().cloned().collect();
        let Some(site) = offers.first().map(|held| held.site.clone()) else { return false };
        self.state.counters.offers_processed += 1;
        let executor = self.running_executor(&attempt.instance);
        let mut owners = attempt.owners();
        if executor.is_none() {
            owners.insert(Owner::Executor);
        }
        let mut obstacles = self.agent_obstacles(pod, key, &site);
        if let Some(own) = &executor
            && !offers.iter().any(|held| held.executors.contains(&own.executor_id.value))
        {
            obstacles.push(Obstacle::NoExecutor(own.executor_id.value.clone()));
        }
        let needs = needs(pod, &self.config.executor);
        let found = self.match_offers(attempt, pod, &needs, &owners, &offers);
        let found = match found {
            Ok(found) if obstacles.is_empty() => Some(found),
            Ok(_) => None,
            Err(others) => {
                obstacles.extend(others);
                None
            }
        };
        self.log_evaluation(now, attempt, &offers, &obstacles);
        match found {
            Some(found) => {
                self.launch(now, attempt, &site, executor, found, out);
                true
            }
            None => {
                self.note_wait(key, agent, &obstacles);
                self.reject_assumed(&attempt.instance, &obstacles, out);
                false
            }
        }
    }

    fn match_offers(
        &mut self,
        attempt: &Attempt,
        pod: &PodSpec,
        needs: &[Need],
        owners: &BTreeSet<Owner>,
        offers: &[Held],
    ) -> Result<Match, Vec<Obstacle>> {
        let role = pod_role(&self.config, &pod.pre_reserved_role);
        let identity = self.identity(&role, &pod.pre_reserved_role).ok_or_else(Vec::new)?;
        let record = self.state.pods.get(&attempt.instance).cloned();
        let ask = Ask { needs, owners, pod: record.as_deref(), identity: &identity };
        let offers: Vec<&Held> = offers.iter().collect();
        let rng = &mut self.rng;
        evaluate(&ask, &offers, &mut || rng.uuid_text())
    }

    /// Why an agent cannot be used, whatever it offers.
    fn agent_obstacles(&self, pod: &PodSpec, key: &WaitKey, site: &Site) -> Vec<Obstacle> {
        let mut obstacles = Vec::new();
        if let WaitKey::New(_) = key
            && let Err(rule) = self.rules.check(&pod.name, site)
        {
            obstacles.push(Obstacle::Excluded(rule));
        }
        obstacles.extend(self.facts_obstacles(pod, &site.agent));
        obstacles
    }

    /// What is known of the agent against it.
    pub(super) fn facts_obstacles(&self, pod: &PodSpec, agent: &AgentId) -> Vec<Obstacle> {
        let mut obstacles = Vec::new();
        let Some(facts) = self.agents.get(agent) else { return obstacles };
        if facts.is_deactivated {
            obstacles.push(Obstacle::Deactivated);
        }
        if !pod.external_volumes.is_empty() {
            if facts.isolators.as_ref().is_some_and(|all| !all.iter().any(|own| own == ISOLATOR)) {
                obstacles.push(Obstacle::NoIsolator);
            }
            let plugins = facts.volume_plugins.as_ref();
            for volume in &pod.external_volumes {
                if plugins.is_some_and(|all| !all.contains(&volume.plugin)) {
                    obstacles.push(Obstacle::NoPlugin(volume.plugin.clone()));
                }
            }
        }
        obstacles
    }

    /// The executor of the pod's running tasks, which further tasks join.
    fn running_executor(&self, pod: &PodInstance) -> Option<pb::ExecutorInfo> {
        let executor_id = &self.state.pods.get(pod)?.executor_id;
        let tasks = self.pod_tasks(pod);
        let is_running = |task: &&Arc<Task>| {
            task.life() == Life::Live
                && task.state() != pb::TaskState::TASK_KILLING
                && task.launch.executor_id == *executor_id
        };
        let task = tasks.iter().find(is_running)?;
        let info: pb::TaskInfo = wire::decode_record(&task.launch.info).ok()?;
        info.executor.into_option()
    }

    fn note_wait(&mut self, key: &WaitKey, agent: &AgentId, obstacles: &[Obstacle]) {
        let mut wait = self.state.waits.get(key).cloned().unwrap_or_default();
        Arc::make_mut(&mut wait).insert(agent.clone(), phrase(obstacles));
        self.state.waits.insert_mut(key.clone(), wait);
        self.changed = true;
    }

    fn log_evaluation(&mut self, now: Now, attempt: &Attempt, offers: &[Held], obstacles: &[Obstacle]) {
        let text = |held: &Held| format!("{} of {} ({})", held.id, held.site.hostname, held.resources);
        let log = Arc::make_mut(&mut self.state.evaluations);
        log.push(
            Evaluation {
                timestamp: now.wall.0 / 1_000_000,
                pod_instance_name: attempt.step.clone(),
                outcome: if obstacles.is_empty() { "pass" } else { "fail" }.to_owned(),
                explanation: explain(obstacles),
                offer: offers.iter().map(text).collect::<Vec<_>>().join("; "),
            },
            offers.first().map(|held| held.site.agent.as_str()),
            obstacles.iter().map(Obstacle::stage),
        );
    }

    /// Records the pod and its tasks, then accepts the offers.
    fn launch(
        &mut self,
        now: Now,
        attempt: &Attempt,
        site: &Site,
        executor: Option<pb::ExecutorInfo>,
        found: Match,
        out: &mut Out,
    ) {
        let Some(pod_spec) = attempt.pod() else { return };
        let reserve_id = self.operation_id(&site.agent);
        let mut pod = self.new_pod(attempt, site, &found, &reserve_id);
        assign_network_ports(pod_spec, &mut pod);
        let context = Context {
            config: &self.config,
            spec: &attempt.spec,
            pod: pod_spec,
            instance: &attempt.instance,
            configuration: &attempt.configuration,
            site,
            ports: &pod.ports,
            parameters: &attempt.parameters,
            references_region: self.rules.references(&pod_spec.name, &Subject::Region),
            references_zone: self.rules.references(&pod_spec.name, &Subject::Zone),
        };
        let framework_id = self.state.framework_id.clone().unwrap_or_default();
        let executor = executor.unwrap_or_else(|| {
            let id = task_info::id(&self.config.service, &pod_spec.name, &self.rng.uuid_text());
            let resources = found.resources.get(&Owner::Executor).map(Vec::as_slice).unwrap_or_default();
            task_info::executor(&context, &framework_id, &id, resources)
        });
        let mut infos = Vec::new();
        for name in &attempt.tasks {
            let Some(task) = pod_spec.task(name) else { continue };
            let instance = attempt.instance.task_name(name);
            let id = task_info::id(&self.config.service, &instance, &self.rng.uuid_text());
            let set = Owner::Set(task.resource_set.clone());
            let resources = found.resources.get(&set).map(Vec::as_slice).unwrap_or_default();
            let key = TaskKey::new(&attempt.instance, name);
            let is_paused = self.state.tasks.get(&key).is_some_and(|task| task.is_paused());
            infos.push((key, task_info::task(&context, task, &id, resources, is_paused)));
        }
        pod.executor_id.clone_from(&executor.executor_id.value);
        let operations = operations(&found, &reserve_id, &executor, &infos);
        self.record_launch(now, attempt, pod, &found, &executor, infos, out);
        self.use_offers(site.agent.clone(), &found.offers, &found.consumed, operations);
    }

    fn new_pod(&self, attempt: &Attempt, site: &Site, found: &Match, reserve_id: &str) -> Pod {
        let reserved: BTreeSet<&str> = found
            .reserve
            .iter()
            .filter_map(|resource| resource.reservation()?.labels.as_ref()?.iter().last()?.1.as_deref())
            .collect();
        let mut pod = match self.state.pods.get(&attempt.instance) {
            Some(pod) => (**pod).clone(),
            None => Pod {
                instance: attempt.instance.clone(),
                agent: site.agent.as_str().to_owned(),
                hostname: site.hostname.clone(),
                region: site.region.clone(),
                zone: site.zone.clone(),
                attributes: site.attributes.clone(),
                reservations: Vec::new(),
                ports: BTreeMap::new(),
                executor_id: String::new(),
                is_replaced: false,
                restarting: Vec::new(),
                failing_since_ns: None,
                ready_since_ns: None,
            },
        };
        pod.restarting.retain(|id| self.is_alive(id));
        let is_kept = |id: &str| found.reservations.iter().all(|own| own.id != id);
        let is_needed = |id: &str| found.obsolete.iter().all(|own| own.id != id);
        let is_known = |id: &str| pod.reservations.iter().any(|own| own.id == id);
        let known: BTreeSet<String> =
            found.reservations.iter().filter(|own| is_known(&own.id)).map(|own| own.id.clone()).collect();
        pod.reservations.retain(|own| is_kept(&own.id) && is_needed(&own.id));
        for own in &found.reservations {
            let mut own = own.clone();
            // One that grows exists already, whatever becomes of the operation.
            if reserved.contains(own.id.as_str()) && !known.contains(&own.id) {
                own.operation = Some(reserve_id.to_owned());
            }
            if let (Owner::Set(set), Some((name, number))) = (&own.owner, &own.port) {
                pod.ports.insert(port_key(set, name), *number);
            }
            pod.reservations.push(own);
        }
        pod
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one launch")]
    fn record_launch(
        &mut self,
        now: Now,
        attempt: &Attempt,
        pod: Pod,
        found: &Match,
        executor: &pb::ExecutorInfo,
        infos: Vec<(TaskKey, pb::TaskInfo)>,
        out: &mut Out,
    ) {
        let garbage = |own: &super::Reservation| {
            Record::Garbage(Arc::new(Garbage {
                id: own.id.clone(),
                agent: pod.agent.clone(),
                hostname: pod.hostname.clone(),
                pod: Some(pod.instance.clone()),
                reserving: own.operation.clone(),
                operation: None,
            }))
        };
        let garbage: Vec<Record> = found.obsolete.iter().map(garbage).collect();
        self.rescan_offers |= !garbage.is_empty();
        let (agent, hostname) = (pod.agent.clone(), pod.hostname.clone());
        let mut batch = vec![Record::Pod(Arc::new(pod))];
        batch.extend(garbage);
        let mut launched = Vec::new();
        for (key, mut info) in infos {
            launched.push((key.task.clone(), info.task_id.value.clone()));
            info.executor = executor.clone().into();
            let launch = Launch {
                task_id: info.task_id.value.clone(),
                configuration: attempt.configuration.clone(),
                agent: agent.clone(),
                hostname: hostname.clone(),
                executor_id: executor.executor_id.value.clone(),
                info: wire::encode(&info).into(),
                key,
            };
            let delay = self.state.tasks.get(&launch.key).and_then(|task| task.status.delay);
            let status = Status { delay, ..Status::staging(&launch, now.wall.0) };
            batch.extend(self.launched_override(&launch.key));
            batch.extend(self.stray_of(&launch.key));
            batch.push(Record::Launch(Arc::new(launch)));
            batch.push(Record::Status(Arc::new(status)));
        }
        self.apply(Record::Batch(batch), out);
        let Candidate { plan, phase, step } = attempt.candidate;
        self.state.plans[plan].update(phase, step, |step| step.on_launch(&launched));
        self.state.waits.remove_mut(&WaitKey::Existing(attempt.instance.clone()));
    }

    /// The override of a task that is launched with it.
    fn launched_override(&self, key: &TaskKey) -> Option<Record> {
        let own = self.state.tasks.get(key)?.override_?;
        let launched = Override { progress: OverrideProgress::InProgress, ..own };
        (own.target != OverrideTarget::Decommissioned).then(|| Record::Override(key.clone(), Some(launched)))
    }

    /// The task that was launched with an override runs. Without a launch it is the task that the override is to replace.
    pub(super) fn complete_override(&mut self, key: &TaskKey, out: &mut Out) {
        let Some(own) = self.state.tasks.get(key).and_then(|task| task.override_) else { return };
        let complete = Override { progress: OverrideProgress::Complete, ..own };
        match (own.progress, own.target) {
            (OverrideProgress::InProgress, OverrideTarget::None) => self.put_override(key, None, out),
            (OverrideProgress::InProgress, OverrideTarget::Paused) => {
                self.put_override(key, Some(complete), out)
            }
            (OverrideProgress::InProgress, OverrideTarget::Decommissioned)
            | (OverrideProgress::Pending | OverrideProgress::Complete, _) => (),
        }
    }
}

/// Dynamic ports of pods with addresses of their own: chosen by us, kept as long as the pod is where it is.
fn assign_network_ports(spec: &PodSpec, pod: &mut Pod) {
    for set in &spec.resource_sets {
        for port in &set.ports {
            let key = port_key(&set.id, &port.name);
            if uses_host_ports(spec) || (port.port == 0 && pod.ports.contains_key(&key)) {
                continue;
            }
            let taken: BTreeSet<u64> = pod.ports.values().copied().collect();
            let fixed = |number: &u64| {
                spec.resource_sets.iter().flat_map(|set| &set.ports).any(|own| u64::from(own.port) == *number)
            };
            let number = match port.port {
                0 => NETWORK_PORTS.into_iter().find(|number| !taken.contains(number) && !fixed(number)),
                port => Some(u64::from(port)),
            };
            pod.ports.extend(number.map(|number| (key, number)));
        }
    }
}

/// In the order in which the master carries them out.
fn operations(
    found: &Match,
    reserve_id: &str,
    executor: &pb::ExecutorInfo,
    tasks: &[(TaskKey, pb::TaskInfo)],
) -> Vec<pb::offer::Operation> {
    use pb::offer::operation::{Create, LaunchGroup, Reserve};
    let mut all: Vec<pb::offer::Operation> =
        found.unreserve.iter().map(|resource| unreserve(resource, None)).collect();
    let protos =
        |all: &[tepui_resources::Resource]| all.iter().map(|own| own.to_proto(Format::Post)).collect();
    if !found.reserve.is_empty() {
        all.push(pb::offer::Operation {
            id: operation_id(reserve_id.to_owned()).into(),
            reserve: Reserve { resources: protos(&found.reserve), ..Default::default() }.into(),
            ..operation(OperationType::RESERVE)
        });
    }
    if !found.create.is_empty() {
        all.push(pb::offer::Operation {
            create: Create { volumes: protos(&found.create), ..Default::default() }.into(),
            ..operation(OperationType::CREATE)
        });
    }
    // A group for each task: the failure of one does not kill the others.
    for (_, task) in tasks {
        let task_group = pb::TaskGroupInfo { tasks: vec![task.clone()], ..Default::default() };
        let launch_group = LaunchGroup {
            executor: executor.clone().into(),
            task_group: task_group.into(),
            ..Default::default()
        };
        all.push(pb::offer::Operation {
            launch_group: launch_group.into(),
            ..operation(OperationType::LAUNCH_GROUP)
        });
    }
    all
}
