//! A phase: steps under a strategy, with canaries that wait for an operator.

use super::backoff::{Backoff, Millis};
use super::status::{Parent, Status, aggregate};
use super::step::{Progress, Step};
use super::strategy::Strategy;

/// Steps that a canary phase holds back, each until a `continue` of its own.
const CANARY_STEPS: usize = 2;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phase {
    pub id: String,
    pub name: String,
    pub steps: Vec<Step>,
    pub strategy: Strategy,
    pub(super) interrupted: bool,
    /// Steps that go first, and how many of them are released.
    canary: Option<Canary>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Canary {
    steps: Vec<usize>,
    released: usize,
}

impl Phase {
    pub fn new(id: String, name: String, strategy: Strategy, steps: Vec<Step>) -> Phase {
        Phase { id, name, steps, strategy, interrupted: false, canary: None }
    }

    /// Holds back the first steps that are not complete.
    pub fn with_canary(mut self, now: Millis, backoff: &Backoff) -> Phase {
        let open = |step: &usize| self.steps[*step].status(now, backoff) != Status::Complete;
        let steps: Vec<usize> = (0..self.steps.len()).filter(open).take(CANARY_STEPS).collect();
        for step in &steps {
            self.steps[*step].hold(true);
        }
        self.canary = Some(Canary { steps, released: 0 });
        self
    }

    pub fn strategy_name(&self) -> String {
        match self.canary {
            Some(_) => format!("{}-canary", self.strategy),
            None => self.strategy.to_string(),
        }
    }

    pub fn status(&self, now: Millis, backoff: &Backoff) -> Status {
        let children: Vec<Status> = self.steps.iter().map(|step| step.status(now, backoff)).collect();
        let eligible: Vec<Status> = self.eligible(&children).into_iter().map(|step| children[step]).collect();
        aggregate(Parent { has_errors: false, interrupted: self.interrupted }, &children, &eligible)
    }

    /// Steps that may go on now.
    pub fn eligible_steps(&self, now: Millis, backoff: &Backoff) -> Vec<usize> {
        let children: Vec<Status> = self.steps.iter().map(|step| step.status(now, backoff)).collect();
        let mut steps = self.eligible(&children);
        steps.retain(|step| children[*step] != Status::Delayed);
        steps
    }

    fn eligible(&self, children: &[Status]) -> Vec<usize> {
        if self.interrupted {
            return Vec::new();
        }
        let complete: Vec<bool> = children.iter().map(|status| *status == Status::Complete).collect();
        let mut steps = self.strategy.allowed(&complete);
        if let Some(canary) = self.canary.as_ref().filter(|canary| canary.released < canary.steps.len()) {
            steps.retain(|step| canary.steps[..canary.released].contains(step));
        }
        steps.retain(|step| !matches!(children[*step], Status::Waiting | Status::Error));
        steps
    }

    /// Whether something waits for a `continue`.
    pub fn is_held(&self) -> bool {
        self.interrupted || self.canary.as_ref().is_some_and(|canary| canary.released < canary.steps.len())
    }

    pub fn interrupt(&mut self) {
        self.interrupted = true;
    }

    /// Ends an interruption; without one, releases the next canary.
    pub fn proceed(&mut self) {
        if self.interrupted {
            self.interrupted = false;
            return;
        }
        if let Some(canary) = &mut self.canary
            && let Some(step) = canary.steps.get(canary.released)
        {
            self.steps[*step].hold(false);
            canary.released += 1;
        }
    }

    pub fn force_complete(&mut self) {
        self.steps.iter_mut().for_each(|step| step.set(Progress::Complete));
    }

    pub fn restart(&mut self, backoff: &mut Backoff) {
        self.interrupted = false;
        self.steps.iter_mut().for_each(|step| step.restart(backoff));
    }
}
