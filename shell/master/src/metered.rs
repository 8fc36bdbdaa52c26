//! The machine with a stopwatch: how long turns take in which the allocator runs. Decides nothing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tepui_core_master::{Effect, Input, Master, State};
use tepui_fsm::{Budget, Fsm, Mono, Now, Outbox};
use tepui_registry::Operation as Record;
use tepui_runtime::{Clock, Timings};

/// How long times are kept.
const TIMES_KEPT: Duration = Duration::from_secs(3600);

/// How long the allocator's runs took, and how long what they serve had waited.
#[derive(Debug)]
pub(crate) struct AllocationTimes {
    pub run: Timings,
    pub latency: Timings,
    /// How long borrowers kept what was wanted back.
    pub take_back: Timings,
}

impl Default for AllocationTimes {
    fn default() -> Self {
        let [run, latency, take_back] = [TIMES_KEPT; 3].map(Timings::new);
        Self { run, latency, take_back }
    }
}

pub(crate) struct Metered {
    pub master: Master,
    pub clock: Clock,
    pub times: Arc<AllocationTimes>,
}

impl Metered {
    pub fn state(&self) -> &State {
        self.master.state()
    }
}

impl Fsm for Metered {
    type Input = Input;
    type Record = Record;
    type Effect = Effect;

    fn step(&mut self, now: Now, input: Input, out: &mut Outbox<Self>) {
        inside(out, |out| self.master.step(now, input, out));
    }

    fn settle(&mut self, now: Now, budget: &mut Budget<'_>, out: &mut Outbox<Self>) {
        let runs = self.state().counters.allocation_runs;
        let waited = self.clock.now().mono.since(now.mono);
        let began = Instant::now();
        inside(out, |out| self.master.settle(now, budget, out));
        if self.state().counters.allocation_runs != runs {
            self.times.run.add(began, began.elapsed());
            self.times.latency.add(began, waited);
        }
    }

    fn is_independent(effect: &Effect) -> bool {
        Master::is_independent(effect)
    }

    fn deadline(&self) -> Option<Mono> {
        self.master.deadline()
    }
}

/// The same outbox, for the inner machine.
fn inside(out: &mut Outbox<Metered>, run: impl FnOnce(&mut Outbox<Master>)) {
    let mut inner = Outbox::from(out.take());
    run(&mut inner);
    *out = Outbox::from(inner.take());
}
