//! The scheduler of one service: follows its plans with offers of the master, recovers failed pods, and removes what is not needed.
//!
//! Fed with events of the master and commands of operators. A launch, a reservation and a release are recorded before the master
//! learns of them, so that a scheduler that is killed at any moment continues from its records.
//! Invariants: a task instance has at most one task that is not terminal, unless its agent is out of contact and it was replaced; a
//! reservation belongs to one pod or is garbage; an accepted offer is held no longer.
//! Never: a clock, a socket, a decision about the HTTP API.

mod assumed;
mod command;
mod config;
mod container;
mod context;
mod effect;
mod evaluate;
mod garbage;
mod input;
mod launch;
mod need;
mod obstacle;
mod offers;
mod placeable;
mod plans;
mod record;
mod recovery;
mod render;
mod replacement;
mod rules;
mod session;
mod site;
mod state;
mod target;
mod task;
mod task_info;
mod update;
mod view;
mod work;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tepui_fsm::{Budget, Deadlines, Fsm, Mono, Now, Outbox, Rng};
use tepui_types::{AgentId, OfferId};

pub use config::{Config, ExecutorOverhead, Timing, default_role};
pub use effect::{Accept, Answer, Effect};
pub use input::{AgentFacts, Command, Input, Origin, Parameters, RequestId};
pub use record::{
    ConfigurationId, Garbage, Launch, Override, OverrideProgress, OverrideTarget, Owner, Pod, Record,
    RecoverError, Reservation, ReservedVolume, Status, Stray, TaskKey,
};
pub use session::framework_info;
pub use site::text as attribute_text;
pub use task::Task;
pub use view::{
    Counters, EndpointView, Evaluation, HealthView, OffersView, PhaseTasksView, PhaseView, PlanTasksView,
    PlanView, PodTypeView, PodView, StepTasksView, StepView, TaskDescription, TaskStatusView, TaskView, View,
};

use crate::plan::backoff::Millis;
use crate::plan::{Candidate, PlanState, PodInstance};
use offers::Offers;
use rules::Rules;

type Out = Outbox<Scheduler>;

/// Rounds of work in one turn; more are done in the next.
const ROUNDS_MAX: usize = 1000;

#[derive(Debug)]
pub struct Scheduler {
    config: Config,
    rng: Rng,
    /// All that is recorded, with the plans that follow from it.
    state: View,
    task_ids: BTreeMap<String, TaskKey>,
    /// Reservations by their id.
    owned: BTreeMap<String, PodInstance>,
    operations: BTreeMap<String, Operation>,
    /// Statuses and overrides that were read before their launch.
    orphans: BTreeMap<TaskKey, Orphan>,
    plan_states: BTreeMap<String, Arc<(ConfigurationId, PlanState)>>,
    rules: Rules,
    offers: Offers,
    /// Offers of calls that got no answer.
    undeclined: Vec<OfferId>,
    /// What this turn accepts, by agent and role.
    accepts: BTreeMap<(AgentId, String), Accept>,
    agents: BTreeMap<AgentId, AgentFacts>,
    /// The last offer that was evaluated for new pods of a type, and for pods that have an agent.
    evaluated_new: BTreeMap<String, u64>,
    evaluated: BTreeMap<PodInstance, u64>,
    /// The steps of the last round of work.
    candidates: Vec<Candidate>,
    timers: Deadlines<Timer>,
    /// Tasks whose state the master has not told since the last subscription.
    unreconciled: BTreeSet<String>,
    reconcile_delay: std::time::Duration,
    /// Pods whose recovery may have changed.
    recheck: BTreeSet<PodInstance>,
    /// Steps that waited for offers in the last turn.
    known_work: Vec<Candidate>,
    /// Whether agents may be hidden by a filter of a decline.
    is_filtered: bool,
    /// A revive waits for its time.
    is_revive_due: bool,
    rescan_offers: bool,
    last_revive: Option<Mono>,
    /// Delays from the records have been set against the clock.
    is_restored: bool,
    is_finished: bool,
    /// TEARDOWN was sent and is not answered.
    is_deregistering: bool,
    /// Roles or capabilities are not those of the start.
    is_framework_changed: bool,
    /// Something came that steps may depend on.
    is_dirty: bool,
    changed: bool,
    unfinished: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Operation {
    /// For a pod, on an agent: the pod may be elsewhere meanwhile.
    Reserve(PodInstance, AgentId),
    /// Of the garbage with this id.
    Release(String),
}

#[derive(Clone, Debug, Default)]
struct Orphan {
    status: Option<Arc<Status>>,
    override_: Option<Override>,
}

/// What waits for offers: new pods of a type all wait for the same, others for their own agent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum WaitKey {
    New(String),
    Existing(PodInstance),
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    Kill(String),
    CallsLost,
    Offer(OfferId),
    Revive,
    Reconcile,
    ReconcileImplicit,
    ReconcileOperations,
    Backoff,
    Replace(PodInstance),
    Assumed(String),
}

impl Scheduler {
    /// A scheduler that continues from its records; without any, a new one. The first command is `SetTarget`.
    pub fn recover(
        config: Config,
        records: impl IntoIterator<Item = (String, Vec<u8>)>,
        rng: Rng,
    ) -> Result<Self, RecoverError> {
        let mut scheduler = Self::empty(config, rng);
        for (key, value) in records {
            let record = record::read(&key, &value)?;
            if let Record::Service(name) = &record
                && *name != scheduler.config.service
            {
                let error =
                    format!("it is the store of service {name:?}, not of {:?}", scheduler.config.service);
                return Err(RecoverError { key, error });
            }
            scheduler.adopt(&record);
        }
        scheduler.orphans.clear();
        if let Some(id) = &scheduler.state.target
            && !scheduler.state.configurations.contains_key(id)
        {
            let error = format!("configuration {id} has no record");
            return Err(RecoverError { key: "target".to_owned(), error });
        }
        scheduler.state.uninstalling = scheduler.state.properties.contains_key(plans::UNINSTALLING);
        let uninstalled = &scheduler.state.uninstalled;
        scheduler.is_finished = uninstalled.is_some() && *uninstalled != scheduler.config.reinstall;
        scheduler.rebuild();
        Ok(scheduler)
    }

    fn empty(config: Config, rng: Rng) -> Self {
        Self {
            state: View::new(&config),
            reconcile_delay: config.timing.reconcile_initial,
            config,
            rng,
            task_ids: BTreeMap::new(),
            owned: BTreeMap::new(),
            operations: BTreeMap::new(),
            orphans: BTreeMap::new(),
            plan_states: BTreeMap::new(),
            rules: Rules::default(),
            offers: Offers::default(),
            undeclined: Vec::new(),
            accepts: BTreeMap::new(),
            agents: BTreeMap::new(),
            evaluated_new: BTreeMap::new(),
            evaluated: BTreeMap::new(),
            candidates: Vec::new(),
            timers: Deadlines::new(),
            unreconciled: BTreeSet::new(),
            recheck: BTreeSet::new(),
            known_work: Vec::new(),
            is_filtered: false,
            is_revive_due: false,
            rescan_offers: false,
            last_revive: None,
            is_restored: false,
            is_finished: false,
            is_deregistering: false,
            is_framework_changed: false,
            is_dirty: true,
            changed: true,
            unfinished: false,
        }
    }

    pub fn framework_id(&self) -> Option<&str> {
        self.state.framework_id.as_deref()
    }

    /// The framework that was uninstalled, if the service is not to be installed again: there is nothing left to do.
    pub fn finished(&self) -> Option<&str> {
        self.state.uninstalled.as_deref().filter(|_| self.is_finished)
    }

    pub fn config(&self) -> &Config {
        &self.config
    }

    pub fn view(&self) -> Arc<View> {
        Arc::new(self.state.clone())
    }
}

fn millis(now: Now) -> Millis {
    now.mono.0 / 1_000_000
}

fn mono(millis: Millis) -> Mono {
    Mono(millis.saturating_mul(1_000_000))
}

impl Fsm for Scheduler {
    type Input = Input;
    type Record = Record;
    type Effect = Effect;

    fn step(&mut self, now: Now, input: Input, out: &mut Out) {
        if self.is_finished {
            return self.step_finished(input, out);
        }
        self.restore(now);
        // Answers to operations change steps only if they fail.
        self.is_dirty |= !matches!(input, Input::OperationUpdate(_) | Input::Rescinded(_));
        match input {
            Input::Subscribed { framework_id } => self.on_subscribed(now, framework_id, out),
            Input::Disconnected => self.on_disconnected(),
            Input::CallsLost { offers } => self.on_calls_lost(now, offers),
            Input::Offers(offers) => self.on_offers(now, &offers, out),
            Input::Rescinded(offer) => drop(self.take_offer(&offer)),
            Input::Update(status) => self.on_update(now, &status, out),
            Input::OperationUpdate(status) => self.on_operation(&status, out),
            Input::AgentFailed(agent) => self.on_agent_failed(&agent, out),
            Input::Failed(message) => self.on_failed(message, out),
            Input::Deregistered => self.finish(out),
            Input::Agents(agents) => self.on_agents(agents, out),
            Input::Command { request, command } => {
                let answer = self.on_command(now, command, out);
                out.effect(Effect::Reply { request, answer });
            }
        }
    }

    fn settle(&mut self, now: Now, budget: &mut Budget<'_>, out: &mut Out) {
        self.restore(now);
        self.run_timers(now, out);
        self.is_dirty |= core::mem::take(&mut self.unfinished);
        if !self.is_finished && core::mem::take(&mut self.is_dirty) {
            self.recover_pods(now, out);
            self.work(now, budget, out);
            self.scan_offers(out);
            self.send_accepts(out);
            self.balance(now, out);
            if let Some(at) = self.state.backoff.deadline(millis(now)) {
                self.timers.set(Timer::Backoff, mono(at));
            }
        }
        if !self.is_finished {
            self.watch_operations(now);
        }
        if core::mem::take(&mut self.changed) {
            self.state.at = millis(now);
            out.effect(Effect::Publish(self.view()));
        }
    }

    fn deadline(&self) -> Option<Mono> {
        if self.unfinished { Some(Mono(0)) } else { self.timers.next() }
    }
}

impl Scheduler {
    fn run_timers(&mut self, now: Now, out: &mut Out) {
        while let Some(timer) = self.timers.pop_due(now.mono) {
            self.is_dirty = true;
            match timer {
                Timer::CallsLost => self.repeat_calls(now, out),
                Timer::Kill(task) => self.on_kill_timeout(now, &task, out),
                Timer::Offer(offer) => self.on_offer_timeout(&offer, out),
                // What was delayed is due: the turn goes on with it.
                Timer::Backoff => self.changed = true,
                Timer::Revive => (),
                Timer::Reconcile => self.reconcile(now, out),
                Timer::ReconcileImplicit => self.reconcile_implicitly(now, out),
                Timer::ReconcileOperations => self.reconcile_operations(out),
                Timer::Assumed(operation) => self.on_assumed_timeout(&operation, out),
                Timer::Replace(pod) => self.on_replace_timeout(now, &pod, out),
            }
        }
    }
}

#[cfg(test)]
mod tests;
