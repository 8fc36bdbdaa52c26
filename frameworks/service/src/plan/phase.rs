//! A phase: steps under a strategy, with canaries that wait for an operator.
//!
//! Steps that are complete cost nothing: statuses and eligible steps are computed from the others. A clone shares its steps.

use std::sync::Arc;

use rpds::{RedBlackTreeSetSync, VectorSync};

use super::backoff::{Backoff, Millis};
use super::status::{Parent, Status, aggregate};
use super::step::{PodInstance, Progress, Step};
use super::strategy::Strategy;

/// Steps that a canary phase holds back, each until a `continue` of its own.
const CANARY_STEPS: usize = 2;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phase {
    pub id: String,
    pub name: String,
    pub strategy: Strategy,
    steps: VectorSync<Arc<Step>>,
    /// Steps that are not complete.
    open: RedBlackTreeSetSync<usize>,
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
        let open = (0..steps.len()).filter(|step| !steps[*step].is_complete()).collect();
        let steps = steps.into_iter().map(Arc::new).collect();
        Phase { id, name, strategy, steps, open, interrupted: false, canary: None }
    }

    /// Holds back the first steps that are not complete.
    pub fn with_canary(mut self) -> Phase {
        let steps: Vec<usize> = self.open.iter().copied().take(CANARY_STEPS).collect();
        for step in &steps {
            self.update(*step, |step| step.hold(true));
        }
        self.canary = Some(Canary { steps, released: 0 });
        self
    }

    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().map(|step| &**step)
    }

    pub fn step(&self, step: usize) -> Option<&Step> {
        self.steps.get(step).map(|step| &**step)
    }

    /// Positions of the steps that are not complete.
    pub fn open(&self) -> impl Iterator<Item = usize> {
        self.open.iter().copied()
    }

    /// Changes a step. The only way to do so: it keeps track of what is complete.
    pub fn update<R>(&mut self, step: usize, change: impl FnOnce(&mut Step) -> R) -> Option<R> {
        let own = Arc::make_mut(self.steps.get_mut(step)?);
        let result = change(own);
        match (own.is_complete(), self.open.contains(&step)) {
            (true, true) => drop(self.open.remove_mut(&step)),
            (false, false) => self.open.insert_mut(step),
            (true, false) | (false, true) => (),
        }
        Some(result)
    }

    fn update_all(&mut self, mut change: impl FnMut(&mut Step)) {
        for step in 0..self.steps.len() {
            self.update(step, &mut change);
        }
    }

    pub fn strategy_name(&self) -> String {
        match self.canary {
            Some(_) => format!("{}-canary", self.strategy),
            None => self.strategy.to_string(),
        }
    }

    /// The statuses of steps that are not complete, by their positions.
    fn statuses(&self, now: Millis, backoff: &Backoff) -> Vec<(usize, Status)> {
        self.open.iter().map(|step| (*step, self.steps[*step].status(now, backoff))).collect()
    }

    pub fn status(&self, now: Millis, backoff: &Backoff) -> Status {
        let open = self.statuses(now, backoff);
        let eligible: Vec<Status> = self.eligible(&open).into_iter().map(|(_, status)| status).collect();
        let mut children: Vec<Status> = open.into_iter().map(|(_, status)| status).collect();
        if children.len() < self.steps.len() {
            children.push(Status::Complete);
        }
        aggregate(Parent { has_errors: false, interrupted: self.interrupted }, &children, &eligible)
    }

    /// Steps that may go on now.
    pub fn eligible_steps(&self, now: Millis, backoff: &Backoff) -> Vec<usize> {
        let steps = self.eligible(&self.statuses(now, backoff));
        steps.into_iter().filter(|(_, status)| *status != Status::Delayed).map(|(step, _)| step).collect()
    }

    fn eligible(&self, open: &[(usize, Status)]) -> Vec<(usize, Status)> {
        if self.interrupted {
            return Vec::new();
        }
        let is_open = |step: usize| self.open.contains(&step);
        let mut steps = self.strategy.allowed(open, |(step, _)| *step, is_open);
        if let Some(canary) = self.canary.as_ref().filter(|canary| canary.released < canary.steps.len()) {
            steps.retain(|(step, _)| canary.steps[..canary.released].contains(step));
        }
        steps.retain(|(_, status)| !matches!(status, Status::Waiting | Status::Error));
        steps
    }

    /// Whether something waits for a `continue`.
    pub fn is_held(&self) -> bool {
        self.interrupted || self.canary.as_ref().is_some_and(|canary| canary.released < canary.steps.len())
    }

    /// Canaries that were released.
    pub(super) fn released(&self) -> usize {
        self.canary.as_ref().map_or(0, |canary| canary.released)
    }

    pub fn is_complete(&self) -> bool {
        self.open.is_empty()
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
        let next = self.canary.as_mut().and_then(|canary| {
            let step = canary.steps.get(canary.released).copied()?;
            canary.released += 1;
            Some(step)
        });
        if let Some(step) = next {
            self.update(step, |step| step.hold(false));
        }
    }

    pub fn force_complete(&mut self) {
        self.update_all(|step| step.force(Progress::Complete));
    }

    pub fn restart(&mut self, backoff: &mut Backoff) {
        self.interrupted = false;
        self.update_all(|step| step.restart(backoff));
    }

    pub(super) fn discard_stored(&mut self, stored: &dyn Fn(&PodInstance, &str) -> Option<String>) {
        for step in self.open().collect::<Vec<usize>>() {
            self.update(step, |step| step.discard_stored(stored));
        }
    }

    pub(super) fn set_parameters(&mut self, parameters: &std::collections::BTreeMap<String, String>) {
        self.update_all(|step| step.parameters.clone_from(parameters));
    }
}
