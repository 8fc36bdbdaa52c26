//! Plans: phases of steps, which of them may go on, and what operators do to them.
//!
//! Pure: time, ids and task states enter as arguments. Statuses are computed, never stored.

pub mod backoff;
mod build;
mod held;
mod phase;
mod status;
mod step;
mod strategy;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use build::{DecommissionedPod, Ids, TaskRecord, custom, decommission, deploy, uninstall};
pub use held::PlanState;
pub use phase::Phase;
pub use status::Status;
pub use step::{PodInstance, Progress, Step, StepTask, TaskState, Work};
pub use strategy::Strategy;

use backoff::{Backoff, Millis};
use status::{Parent, aggregate};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    pub name: String,
    pub phases: Vec<Phase>,
    pub strategy: Strategy,
    /// Why the plan cannot be followed, as a spec that may not be changed so.
    pub errors: Vec<String>,
    interrupted: bool,
    by_pod: Arc<BTreeMap<PodInstance, Vec<(usize, usize)>>>,
    /// Whether several steps launch tasks of one pod instance.
    has_shared_pods: bool,
}

/// What an operator does to a plan, a phase or a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    Interrupt { phase: Option<String> },
    Continue { phase: Option<String> },
    ForceComplete { phase: Option<String>, step: Option<String> },
    Restart { phase: Option<String>, step: Option<String> },
    Start { parameters: BTreeMap<String, String> },
    Stop,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Done,
    /// Nothing to do: it is so already.
    AlreadyDone,
    /// No phase or step has the name or id; or several steps have.
    NotFound(String),
    /// A step without its phase.
    MissingPhase,
}

/// A step of a set of plans.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Candidate {
    pub plan: usize,
    pub phase: usize,
    pub step: usize,
}

impl Plan {
    pub fn new(name: &str, strategy: Strategy, phases: Vec<Phase>) -> Plan {
        let mut plan = Plan {
            name: name.to_owned(),
            phases: Vec::new(),
            strategy,
            errors: Vec::new(),
            interrupted: false,
            by_pod: Arc::default(),
            has_shared_pods: false,
        };
        plan.set_phases(phases);
        plan
    }

    /// Replaces the phases; steps are found by their pods again.
    pub fn set_phases(&mut self, phases: Vec<Phase>) {
        let by_pod = index(&phases);
        self.has_shared_pods = by_pod.values().any(|steps| steps.len() > 1);
        self.by_pod = Arc::new(by_pod);
        self.phases = phases;
    }

    pub fn status(&self, now: Millis, backoff: &Backoff) -> Status {
        let children: Vec<Status> = self.phases.iter().map(|phase| phase.status(now, backoff)).collect();
        let eligible: Vec<Status> = self.allowed_phases().into_iter().map(|phase| children[phase]).collect();
        let parent = Parent { has_errors: !self.errors.is_empty(), interrupted: self.interrupted };
        aggregate(parent, &children, &eligible)
    }

    fn allowed_phases(&self) -> Vec<usize> {
        let is_open = |phase: usize| self.phases.get(phase).is_some_and(|phase| !phase.is_complete());
        let open: Vec<usize> = (0..self.phases.len()).filter(|phase| is_open(*phase)).collect();
        self.strategy.allowed(&open, |phase| *phase, is_open)
    }

    /// Phases and steps that may go on now; none of an interrupted plan.
    pub fn eligible_steps(&self, now: Millis, backoff: &Backoff) -> Vec<(usize, usize)> {
        if self.interrupted || !self.errors.is_empty() {
            return Vec::new();
        }
        let steps = |phase: usize| {
            self.phases[phase].eligible_steps(now, backoff).into_iter().map(move |step| (phase, step))
        };
        self.allowed_phases().into_iter().flat_map(steps).collect()
    }

    pub fn is_interrupted(&self) -> bool {
        self.interrupted
    }

    pub fn is_complete(&self) -> bool {
        self.errors.is_empty() && self.phases.iter().all(Phase::is_complete)
    }

    pub fn step(&self, phase: usize, step: usize) -> Option<&Step> {
        self.phases.get(phase)?.step(step)
    }

    pub fn update<R>(&mut self, phase: usize, step: usize, change: impl FnOnce(&mut Step) -> R) -> Option<R> {
        self.phases.get_mut(phase)?.update(step, change)
    }

    /// Steps that launch tasks of a pod instance, as phase and step.
    pub fn steps_of(&self, pod: &PodInstance) -> &[(usize, usize)] {
        self.by_pod.get(pod).map_or(&[], Vec::as_slice)
    }

    /// Applies an operator's action.
    pub fn apply(&mut self, now: Millis, action: Action, backoff: &mut Backoff) -> Outcome {
        match action {
            Action::Interrupt { phase } => self.interrupt(now, phase.as_deref(), backoff),
            Action::Continue { phase } => self.proceed(now, phase.as_deref(), backoff),
            Action::ForceComplete { phase, step } => {
                self.change(now, phase.as_deref(), step.as_deref(), backoff, Status::Complete)
            }
            Action::Restart { phase, step } => {
                self.change(now, phase.as_deref(), step.as_deref(), backoff, Status::Pending)
            }
            Action::Start { parameters } => self.start(now, &parameters, backoff),
            Action::Stop => {
                self.restart(backoff);
                self.interrupted = true;
                Outcome::Done
            }
        }
    }

    pub fn hold(&mut self) {
        self.interrupted = true;
    }

    /// For steps that have launched nothing, what became of stored tasks does not count, not for the next scheduler either.
    pub fn discard_stored(&mut self, stored: &dyn Fn(&PodInstance, &str) -> Option<String>) {
        self.phases.iter_mut().for_each(|phase| phase.discard_stored(stored));
    }

    fn interrupt(&mut self, now: Millis, phase: Option<&str>, backoff: &Backoff) -> Outcome {
        let Some(name) = phase else {
            if self.interrupted || self.status(now, backoff) == Status::Complete {
                return Outcome::AlreadyDone;
            }
            self.interrupted = true;
            return Outcome::Done;
        };
        self.on_phase(name, |phase| {
            if phase.interrupted || phase.status(now, backoff) == Status::Complete {
                return Outcome::AlreadyDone;
            }
            phase.interrupt();
            Outcome::Done
        })
    }

    fn proceed(&mut self, now: Millis, phase: Option<&str>, backoff: &Backoff) -> Outcome {
        let Some(name) = phase else {
            if !self.interrupted || self.status(now, backoff) == Status::Complete {
                return Outcome::AlreadyDone;
            }
            self.interrupted = false;
            return Outcome::Done;
        };
        self.on_phase(name, |phase| {
            if !phase.is_held() || phase.status(now, backoff) == Status::Complete {
                return Outcome::AlreadyDone;
            }
            phase.proceed();
            Outcome::Done
        })
    }

    /// Forces completion or restarts; `AlreadyDone` if the element has the status.
    fn change(
        &mut self,
        now: Millis,
        phase: Option<&str>,
        step: Option<&str>,
        backoff: &mut Backoff,
        to: Status,
    ) -> Outcome {
        let is_restart = to == Status::Pending;
        match (phase, step) {
            (None, Some(_)) => Outcome::MissingPhase,
            (None, None) if self.status(now, backoff) == to => Outcome::AlreadyDone,
            (None, None) if is_restart => {
                self.restart(backoff);
                Outcome::Done
            }
            (None, None) => {
                self.phases.iter_mut().for_each(Phase::force_complete);
                Outcome::Done
            }
            (Some(name), None) => self.on_phase(name, |phase| {
                match phase.status(now, backoff) == to {
                    true => return Outcome::AlreadyDone,
                    false if is_restart => phase.restart(backoff),
                    false => phase.force_complete(),
                }
                Outcome::Done
            }),
            (Some(name), Some(step)) => self.on_phase(name, |phase| {
                let found = unique_step(phase, step).and_then(|at| {
                    phase.update(at, |step| match step.status(now, backoff) == to {
                        true => Outcome::AlreadyDone,
                        false => {
                            if is_restart {
                                step.restart(backoff)
                            } else {
                                step.force(Progress::Complete)
                            }
                            Outcome::Done
                        }
                    })
                });
                found.unwrap_or_else(|| Outcome::NotFound(format!("Step {step}")))
            }),
        }
    }

    fn restart(&mut self, backoff: &mut Backoff) {
        self.interrupted = false;
        self.phases.iter_mut().for_each(|phase| phase.restart(backoff));
    }

    fn start(
        &mut self,
        now: Millis,
        parameters: &BTreeMap<String, String>,
        backoff: &mut Backoff,
    ) -> Outcome {
        if self.status(now, backoff) == Status::Complete {
            self.restart(backoff);
        }
        self.phases.iter_mut().for_each(|phase| phase.set_parameters(parameters));
        self.interrupted = false;
        Outcome::Done
    }

    /// The first phase with the name or id.
    fn on_phase(&mut self, name: &str, apply: impl FnOnce(&mut Phase) -> Outcome) -> Outcome {
        match self.phases.iter_mut().find(|phase| phase.name == name || phase.id == name) {
            Some(phase) => apply(phase),
            None => Outcome::NotFound(format!("Phase {name}")),
        }
    }

    /// A task of a pod instance changed its state.
    pub fn on_task(
        &mut self,
        now: Millis,
        pod: &PodInstance,
        task_id: &str,
        state: TaskState,
        backoff: &mut Backoff,
    ) {
        let by_pod = self.by_pod.clone();
        for (phase, step) in by_pod.get(pod).into_iter().flatten() {
            let launched = self.step(*phase, *step).is_some_and(|step| step.has_task(task_id));
            if launched {
                self.update(*phase, *step, |step| step.on_task(now, task_id, state, backoff));
            }
        }
    }
}

fn index(phases: &[Phase]) -> BTreeMap<PodInstance, Vec<(usize, usize)>> {
    let mut by_pod: BTreeMap<PodInstance, Vec<(usize, usize)>> = BTreeMap::new();
    for (at, phase) in phases.iter().enumerate() {
        for (step, own) in phase.steps().enumerate() {
            if let Work::Launch { pod, .. } = &own.work {
                by_pod.entry(pod.clone()).or_default().push((at, step));
            }
        }
    }
    by_pod
}

fn unique_step(phase: &Phase, name: &str) -> Option<usize> {
    let mut steps = phase.steps().enumerate().filter(|(_, step)| step.name == name || step.id == name);
    let (at, _) = steps.next()?;
    steps.next().is_none().then_some(at)
}

/// The steps to work on, plans with higher priority first. A step whose tasks another step is launching is left out.
pub fn candidates(plans: &[Plan], now: Millis, backoff: &Backoff) -> Vec<Candidate> {
    let mut chosen = Vec::new();
    let mut taken = BTreeSet::new();
    let mut open = plans.iter().filter(|plan| !plan.phases.iter().all(Phase::is_complete));
    let can_overlap = open.next().is_some_and(|plan| plan.has_shared_pods) || open.next().is_some();
    for (plan, own) in plans.iter().enumerate() {
        for (phase, step) in own.eligible_steps(now, backoff) {
            let candidate = Candidate { plan, phase, step };
            if !can_overlap {
                chosen.push(candidate);
            } else if !overlaps(plans, candidate, &taken, now, backoff) {
                chosen.push(candidate);
                taken.insert(candidate);
            }
        }
    }
    chosen
}

/// Whether another step of the pod launches one of the tasks, or was chosen to.
fn overlaps(
    plans: &[Plan],
    candidate: Candidate,
    taken: &BTreeSet<Candidate>,
    now: Millis,
    backoff: &Backoff,
) -> bool {
    let own = plans[candidate.plan].step(candidate.phase, candidate.step);
    let Some(Step { work: Work::Launch { pod, tasks }, .. }) = own else { return false };
    plans.iter().enumerate().any(|(plan, other)| {
        other.steps_of(pod).iter().any(|(phase, step)| {
            let place = Candidate { plan, phase: *phase, step: *step };
            let Some(step) = other.step(*phase, *step).filter(|_| place != candidate) else { return false };
            let Work::Launch { tasks: others, .. } = &step.work else { return false };
            let is_busy = || {
                !other.interrupted && matches!(step.status(now, backoff), Status::Prepared | Status::Starting)
            };
            !step.is_complete()
                && tasks.iter().any(|task| others.iter().any(|other| other.name == task.name))
                && (taken.contains(&place) || is_busy())
        })
    })
}

#[cfg(test)]
mod tests;
