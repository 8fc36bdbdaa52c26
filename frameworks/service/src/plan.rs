//! Plans: phases of steps, which of them may go on, and what operators do to them.
//!
//! Pure: time, ids and task states enter as arguments. Statuses are computed, never stored.

pub mod backoff;
mod build;
mod phase;
mod status;
mod step;
mod strategy;

use std::collections::BTreeMap;

pub use build::{DecommissionedPod, Ids, TaskRecord, custom, decommission, deploy, uninstall};
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    pub plan: usize,
    pub phase: usize,
    pub step: usize,
}

impl Plan {
    pub fn new(name: &str, strategy: Strategy, phases: Vec<Phase>) -> Plan {
        Plan { name: name.to_owned(), phases, strategy, errors: Vec::new(), interrupted: false }
    }

    pub fn status(&self, now: Millis, backoff: &Backoff) -> Status {
        let children: Vec<Status> = self.phases.iter().map(|phase| phase.status(now, backoff)).collect();
        let eligible: Vec<Status> =
            self.allowed_phases(&children).into_iter().map(|phase| children[phase]).collect();
        let parent = Parent { has_errors: !self.errors.is_empty(), interrupted: self.interrupted };
        aggregate(parent, &children, &eligible)
    }

    fn allowed_phases(&self, children: &[Status]) -> Vec<usize> {
        let complete: Vec<bool> = children.iter().map(|status| *status == Status::Complete).collect();
        self.strategy.allowed(&complete)
    }

    /// Phases and steps that may go on now; none of an interrupted plan.
    fn eligible_steps(&self, now: Millis, backoff: &Backoff) -> Vec<(usize, usize)> {
        if self.interrupted || !self.errors.is_empty() {
            return Vec::new();
        }
        let children: Vec<Status> = self.phases.iter().map(|phase| phase.status(now, backoff)).collect();
        let steps = |phase: usize| {
            self.phases[phase].eligible_steps(now, backoff).into_iter().map(move |step| (phase, step))
        };
        self.allowed_phases(&children).into_iter().flat_map(steps).collect()
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
                let Some(step) = unique_step(phase, step) else {
                    return Outcome::NotFound(format!("Step {step}"));
                };
                match step.status(now, backoff) == to {
                    true => return Outcome::AlreadyDone,
                    false if is_restart => step.restart(backoff),
                    false => step.set(Progress::Complete),
                }
                Outcome::Done
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
        for step in self.phases.iter_mut().flat_map(|phase| &mut phase.steps) {
            step.parameters.clone_from(parameters);
        }
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

    pub fn on_task(&mut self, now: Millis, task_id: &str, state: TaskState, backoff: &mut Backoff) {
        for step in self.phases.iter_mut().flat_map(|phase| &mut phase.steps) {
            step.on_task(now, task_id, state, backoff);
        }
    }
}

fn unique_step<'p>(phase: &'p mut Phase, name: &str) -> Option<&'p mut Step> {
    let mut steps = phase.steps.iter_mut().filter(|step| step.name == name || step.id == name);
    let step = steps.next()?;
    steps.next().is_none().then_some(step)
}

/// The steps to work on, plans with higher priority first. A step whose tasks another step is launching is left out.
pub fn candidates(plans: &[Plan], now: Millis, backoff: &Backoff) -> Vec<Candidate> {
    let mut dirty: Vec<(Candidate, &PodInstance, &[StepTask])> = Vec::new();
    for (plan, phase, step, work) in all_steps(plans) {
        if let Work::Launch { pod, tasks } = &work.work
            && !plans[plan].interrupted
            && matches!(work.status(now, backoff), Status::Prepared | Status::Starting)
        {
            dirty.push((Candidate { plan, phase, step }, pod, tasks));
        }
    }
    let mut chosen = Vec::new();
    for (plan, own) in plans.iter().enumerate() {
        for (phase, step) in own.eligible_steps(now, backoff) {
            let candidate = Candidate { plan, phase, step };
            let Work::Launch { pod, tasks } = &own.phases[phase].steps[step].work else {
                chosen.push(candidate);
                continue;
            };
            let overlaps = |(other, others_pod, others): &(Candidate, &PodInstance, &[StepTask])| {
                *other != candidate
                    && *others_pod == pod
                    && tasks.iter().any(|task| others.iter().any(|other| other.name == task.name))
            };
            if !dirty.iter().any(overlaps) {
                chosen.push(candidate);
                dirty.push((candidate, pod, tasks));
            }
        }
    }
    chosen
}

fn all_steps(plans: &[Plan]) -> impl Iterator<Item = (usize, usize, usize, &Step)> {
    plans.iter().enumerate().flat_map(|(plan, own)| {
        own.phases.iter().enumerate().flat_map(move |(phase, own)| {
            own.steps.iter().enumerate().map(move |(step, own)| (plan, phase, step, own))
        })
    })
}

#[cfg(test)]
mod tests;
