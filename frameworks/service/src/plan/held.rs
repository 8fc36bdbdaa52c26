//! What operators did to a plan, in a form that survives the scheduler.
//!
//! Progress is not part of it: that follows from the tasks.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Plan, Progress};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanState {
    interrupted: bool,
    /// By name.
    phases: BTreeMap<String, PhaseState>,
    parameters: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct PhaseState {
    interrupted: bool,
    /// Canaries that were released.
    released: usize,
    /// Steps that were forced to be complete.
    forced: Vec<String>,
    /// Tasks of runs before the last restart of a step, by its name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    discarded: BTreeMap<String, Vec<String>>,
}

impl Plan {
    pub fn operator_state(&self) -> PlanState {
        let mut phases = BTreeMap::new();
        for phase in &self.phases {
            let forced = phase.steps().filter(|step| step.is_forced()).map(|step| step.name.clone());
            let own = PhaseState {
                interrupted: phase.interrupted,
                released: phase.released(),
                forced: forced.collect(),
                discarded: phase
                    .steps()
                    .filter(|step| !step.discarded().is_empty())
                    .map(|step| (step.name.clone(), step.discarded().to_vec()))
                    .collect(),
            };
            if own != PhaseState::default() {
                phases.insert(phase.name.clone(), own);
            }
        }
        let first = self.phases.first().and_then(|phase| phase.step(0));
        let parameters = first.map(|step| step.parameters.clone()).unwrap_or_default();
        PlanState { interrupted: self.interrupted, phases, parameters }
    }

    /// Does the same to a plan that was built anew. Phases and steps that it does not have are left out.
    pub fn restore(&mut self, state: &PlanState) {
        self.interrupted = state.interrupted;
        for phase in &mut self.phases {
            phase.set_parameters(&state.parameters);
            let Some(own) = state.phases.get(&phase.name) else { continue };
            let names: Vec<String> = phase.steps().map(|step| step.name.clone()).collect();
            for (at, name) in names.iter().enumerate() {
                if let Some(ids) = own.discarded.get(name) {
                    phase.update(at, |step| step.discard(ids));
                }
            }
            for _ in 0..own.released {
                phase.proceed();
            }
            phase.interrupted = own.interrupted;
            let forced: Vec<usize> = phase
                .steps()
                .enumerate()
                .filter(|(_, step)| own.forced.contains(&step.name))
                .map(|(at, _)| at)
                .collect();
            for step in forced {
                phase.update(step, |step| step.force(Progress::Complete));
            }
        }
    }
}
