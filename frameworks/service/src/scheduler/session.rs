//! The session with the master: subscription, reconciliation, the end of it.

use std::collections::BTreeSet;
use std::sync::Arc;

use tepui_fsm::Now;
use tepui_proto::mesos::v1 as pb;
use tepui_types::{AgentId, OfferId, TaskId};

use super::assumed::is_assumed;
use super::record::{OverrideProgress, Record, TaskKey};
use super::task::{Life, Task};
use super::{Config, Effect, Input, Operation, Out, Scheduler, Timer, View, millis, plans};
use crate::plan::PodInstance;
use crate::spec::ServiceSpec;

/// Task ids that ask for the state of an agent begin so.
const PROBE: &str = "probe__";
/// How long the master waits for a scheduler to come back.
const FAILOVER_TIMEOUT_SECS: f64 = 1_209_600.0;

/// The framework of a service, as its target has it; none without a target.
pub fn framework_info(config: &Config, state: &View) -> Option<pb::FrameworkInfo> {
    use pb::framework_info::capability::Type;
    let spec = state.configurations.get(state.target.as_deref()?)?;
    let mut roles = spec_roles(config, spec);
    roles.extend(recorded_roles(state));
    let framework_id = state.framework_id.as_deref();
    let mut capabilities = vec![Type::PARTITION_AWARE, Type::RESERVATION_REFINEMENT, Type::MULTI_ROLE];
    let wants_gpus = spec.pods.iter().flat_map(|pod| &pod.resource_sets).any(|set| set.gpus.is_some());
    capabilities.extend(wants_gpus.then_some(Type::GPU_RESOURCES));
    capabilities.extend(config.region.as_ref().map(|_| Type::REGION_AWARE));
    let capability = |own: Type| pb::framework_info::Capability { r#type: Some(own), ..Default::default() };
    Some(pb::FrameworkInfo {
        name: spec.name.clone(),
        user: spec.user.clone(),
        principal: Some(config.principal.clone().unwrap_or_else(|| spec.principal.clone())),
        id: framework_id.map(|id| pb::FrameworkID { value: id.to_owned(), ..Default::default() }).into(),
        failover_timeout: Some(FAILOVER_TIMEOUT_SECS),
        checkpoint: Some(true),
        roles: roles.into_iter().collect(),
        webui_url: spec.web_url.clone(),
        capabilities: capabilities.into_iter().map(capability).collect(),
        ..Default::default()
    })
}

/// Roles that pods have, or had, besides that of the service.
pub(super) fn recorded_roles(state: &View) -> BTreeSet<String> {
    let recorded = state.properties.get(plans::ROLES);
    let text = recorded.and_then(|value| std::str::from_utf8(value).ok()).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Roles of the pods of a spec.
pub(super) fn spec_roles(config: &Config, spec: &ServiceSpec) -> BTreeSet<String> {
    let pods = spec.pods.iter().map(|pod| pod_role(config, &pod.pre_reserved_role));
    pods.chain([config.role.clone()]).collect()
}

/// The role of a pod: that of the service, or a child of the pre-reserved role.
pub(super) fn pod_role(config: &Config, pre_reserved: &str) -> String {
    match pre_reserved {
        "" | "*" => config.role.clone(),
        role => format!("{role}/{}", config.role),
    }
}

/// Whether a task id asks for the state of its agent.
pub(super) fn is_probe(task: &str) -> bool {
    task.starts_with(PROBE)
}

impl Scheduler {
    /// Sends new roles and capabilities to the master. Repeated after each subscription, which has those of the
    /// start.
    pub(super) fn update_framework(&mut self, out: &mut Out) {
        if let Some(framework) = framework_info(&self.config, &self.state).filter(|_| self.state.connected) {
            self.state.suppressed = false;
            out.effect(Effect::UpdateFramework(Box::new(framework)));
        }
    }

    /// Earlier offers are void, and the master says what became of the tasks before offers are used.
    pub(super) fn on_subscribed(&mut self, now: Now, framework_id: String, out: &mut Out) {
        self.on_disconnected();
        self.state.connected = true;
        self.state.suppressed = false;
        // The master may remember declined offers, and a session the suppression, of an earlier subscription.
        self.is_revive_due |= self.state.framework_id.is_some();
        if self.state.framework_id.as_ref() != Some(&framework_id) {
            let service = Record::Service(self.config.service.clone());
            self.apply(Record::Batch(vec![service, Record::Framework(framework_id)]), out);
        }
        self.resume(now, out);
    }

    /// Says again what the master may not know, and asks it what we may not.
    fn resume(&mut self, now: Now, out: &mut Out) {
        if self.is_framework_changed {
            self.update_framework(out);
        }
        let open = self.state.tasks.values().filter(|task| task.life() != Life::Dead);
        self.unreconciled = open.map(|task| task.launch.task_id.clone()).collect();
        self.unreconciled.extend(self.state.strays.keys().cloned());
        self.reconcile_delay = self.config.timing.reconcile_initial;
        self.reconcile(now, out);
        self.reconcile_implicitly(now, out);
        self.reconcile_operations(out);
        self.repeat_kills(now, out);
    }

    /// Calls without an answer: the master may have received them or not. They are made up for after a while, all at once.
    pub(super) fn on_calls_lost(&mut self, now: Now, offers: Vec<OfferId>) {
        if !self.state.connected {
            return; // The next subscription makes up for them.
        }
        self.undeclined.extend(offers);
        if self.timers.get(&Timer::CallsLost).is_none() {
            self.timers.set(Timer::CallsLost, now.mono + self.config.timing.kill_retry);
        }
    }

    pub(super) fn repeat_calls(&mut self, now: Now, out: &mut Out) {
        // First, so that an ACCEPT that still arrives launches nothing that is answered as unknown.
        let offers = core::mem::take(&mut self.undeclined);
        self.is_deregistering = false;
        self.decline(offers, self.config.timing.refuse_unfit, out);
        self.state.suppressed = false;
        self.is_revive_due = true;
        self.resume(now, out);
    }

    /// Kills that follow from records may have been lost with the scheduler that decided them.
    fn repeat_kills(&mut self, now: Now, out: &mut Out) {
        let replaced = self.state.pods.values().filter(|pod| pod.is_replaced);
        let replaced: Vec<PodInstance> = replaced.map(|pod| pod.instance.clone()).collect();
        for pod in replaced {
            self.replace_pod(now, &pod, out);
        }
        let restarting = self.state.pods.values().flat_map(|pod| &pod.restarting);
        let restarting: Vec<TaskKey> = restarting.filter_map(|id| self.task_ids.get(id).cloned()).collect();
        let is_pending =
            |task: &&Arc<Task>| task.override_.is_some_and(|own| own.progress == OverrideProgress::Pending);
        let overridden: Vec<TaskKey> =
            self.state.tasks.values().filter(is_pending).map(|task| task.launch.key.clone()).collect();
        for key in restarting.into_iter().chain(overridden) {
            self.kill(now, &key, out);
        }
        if let Some((_, spec)) = self.target() {
            let spec = spec.clone();
            self.kill_obsolete(now, &spec, out);
        }
    }

    /// Agents that hold something of ours where nothing runs: nothing would tell that such an agent is gone.
    fn silent_agents(&self) -> BTreeSet<AgentId> {
        let pods = self.state.pods.values().filter(|pod| self.is_silent(&pod.instance)).map(|pod| &pod.agent);
        let garbage = self.state.garbage.values().map(|own| &own.agent);
        pods.chain(garbage).map(|agent| AgentId::new(agent.as_str())).collect()
    }

    /// Reconciles a task that never existed: the answer shows the state of its agent.
    pub(super) fn probe(&mut self, agents: impl IntoIterator<Item = AgentId>, out: &mut Out) {
        let task = |agent: &AgentId| TaskId::new(format!("{PROBE}{}__{agent}", self.config.service));
        let probes: Vec<_> = agents.into_iter().map(|agent| (task(&agent), Some(agent))).collect();
        if self.state.connected && !probes.is_empty() {
            out.effect(Effect::Reconcile(probes));
        }
    }

    pub(super) fn on_disconnected(&mut self) {
        self.state.connected = false;
        self.is_deregistering = false;
        self.changed = true;
        self.undeclined.clear();
        self.timers.clear(&Timer::CallsLost);
        self.void_offers();
    }

    /// Requests the states of tasks that the master has not told yet, at growing intervals.
    pub(super) fn reconcile(&mut self, now: Now, out: &mut Out) {
        if self.unreconciled.is_empty() || !self.state.connected {
            return;
        }
        let agent = |id: &String| {
            let task = self.task_ids.get(id).and_then(|key| self.state.tasks.get(key));
            let agent = task.map(|task| &task.launch.agent);
            agent.or_else(|| self.state.strays.get(id)?.agent.as_ref()).map(|own| AgentId::new(own.as_str()))
        };
        let tasks = self.unreconciled.iter().map(|id| (TaskId::new(id.as_str()), agent(id)));
        out.effect(Effect::Reconcile(tasks.collect()));
        self.timers.set(Timer::Reconcile, now.mono + self.reconcile_delay);
        self.reconcile_delay = (self.reconcile_delay * 2).min(self.config.timing.reconcile_max);
    }

    pub(super) fn reconcile_implicitly(&mut self, now: Now, out: &mut Out) {
        if self.state.connected {
            out.effect(Effect::Reconcile(Vec::new()));
        }
        // The master answers for tasks that it knows; of one that an agent lost while it was unreachable it may know nothing.
        let unreachable = self.state.tasks.values().filter(|task| task.life() == Life::Unreachable);
        let unreachable = unreachable.map(|task| (&task.launch.task_id, Some(&task.launch.agent)));
        let strays = self.state.strays.values().map(|own| (&own.task_id, own.agent.as_ref()));
        let unreachable: Vec<_> = unreachable
            .chain(strays)
            .map(|(id, agent)| (TaskId::new(id.as_str()), agent.map(|agent| AgentId::new(agent.as_str()))))
            .collect();
        if self.state.connected && !unreachable.is_empty() {
            out.effect(Effect::Reconcile(unreachable));
        }
        self.probe(self.silent_agents(), out);
        self.timers.set(Timer::ReconcileImplicit, now.mono + self.config.timing.reconcile_implicit);
    }

    pub(super) fn reconcile_operations(&mut self, out: &mut Out) {
        if !self.state.connected {
            return;
        }
        let agent = |operation: &Operation| match operation {
            Operation::Reserve(_, agent) => Some(agent.clone()),
            Operation::Release(id) => self.state.garbage.get(id).map(|own| AgentId::new(own.agent.as_str())),
        };
        let asked = self.operations.iter().filter(|(id, _)| !is_assumed(id));
        let pending: Vec<(String, AgentId)> =
            asked.filter_map(|(id, own)| Some((id.clone(), agent(own)?))).collect();
        if !pending.is_empty() {
            out.effect(Effect::ReconcileOperations(pending));
        }
    }

    /// An operation without an answer is reconciled: the call that carried it may be lost.
    pub(super) fn watch_operations(&mut self, now: Now) {
        self.watch_assumed(now);
        let timer = Timer::ReconcileOperations;
        match self.operations.is_empty() {
            true => drop(self.timers.clear(&timer)),
            false if self.timers.get(&timer).is_none() => {
                self.timers.set(timer, now.mono + self.config.timing.reconcile_max)
            }
            false => (),
        }
    }

    /// The master ended the session. At the end of an uninstallation it has removed the framework, and the answer was lost.
    pub(super) fn on_failed(&mut self, message: String, out: &mut Out) {
        if self.state.properties.contains_key(plans::DEREGISTERING) {
            return self.finish(out);
        }
        out.effect(Effect::Stop(format!(
            "the master ended the session: {message}; if another scheduler of service {:?} runs, stop one of them",
            self.config.service
        )));
    }

    /// Delays in the records end at a time of day; the clock that timers use is known from the first input on.
    pub(super) fn restore(&mut self, now: Now) {
        if core::mem::replace(&mut self.is_restored, true) {
            return;
        }
        let delays: Vec<(String, u64, u64)> = self
            .state
            .tasks
            .iter()
            .filter_map(|(key, task)| task.status.delay.map(|(length, until)| (key.name(), length, until)))
            .collect();
        for (task, length_ms, until_ns) in delays {
            let left = (until_ns.saturating_sub(now.wall.0) / 1_000_000).min(length_ms);
            self.state.backoff.restore(&task, length_ms, millis(now) + left);
        }
        let failing: Vec<_> =
            self.state.pods.values().filter(|pod| pod.failing_since_ns.is_some()).cloned().collect();
        for pod in failing {
            self.watch_failure(now, &pod);
        }
    }

    /// After the end, commands are answered and nothing else happens.
    pub(super) fn step_finished(&mut self, input: Input, out: &mut Out) {
        if let Input::Command { request, .. } = input {
            let answer = super::Answer::Invalid("the service is uninstalled".to_owned());
            out.effect(Effect::Reply { request, answer });
        }
    }
}
