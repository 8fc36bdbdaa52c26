//! The state machine: the dispatch of inputs to handlers, and the end of a turn.
//!
//! Top of this crate: uses every handler and is used by none.

mod boot;
mod due;

use alloc::sync::Arc;

use tepui_fsm::{Budget, Fsm, Mono, Now};
use tepui_registry::{Operation as Record, Registry};

use crate::counting::Arrival;
use crate::entities::{disk_pressure, drain, explanations, framework, offer, slack};
use crate::handlers::{agent, call, operator};
use crate::master::{Master, Out};
use crate::{Config, Effect, Input};

impl Fsm for Master {
    type Input = Input;
    type Record = Record;
    type Effect = Effect;

    fn step(&mut self, now: Now, input: Input, out: &mut Out) {
        boot::record_first(self, out);
        let (arrival, from) = (Arrival::of(self, &input), out.len());
        match input {
            Input::Scheduler { conn, stream_id, principal, call } => {
                call::take(self, now, call::Caller { conn, stream_id, principal }, *call, out);
            }
            Input::SchedulerClosed { conn } => framework::stream_ended(self, now, conn, out),
            Input::Agent { conn, principal, call } => {
                agent::take(self, now, (conn, principal.as_deref()), *call, out);
            }
            Input::AgentClosed { conn } => agent::closed::closed(self, now, conn, out),
            Input::Operator { conn, principal, call } => {
                operator::take(self, now, conn, principal.as_deref(), *call, out);
            }
            Input::OperatorClosed { conn } => operator::closed(self, conn),
            Input::Whitelist { hosts } => self.allocator.set_whitelist(hosts),
            Input::Explain { conn, subject } => explanations::explain(self, now, conn, &subject, out),
            Input::DiskRoom(room) => disk_pressure::room(self, now, room, out),
        }
        self.count_crossing(arrival, from, out);
    }

    fn settle(&mut self, now: Now, budget: &mut Budget<'_>, out: &mut Out) {
        boot::record_first(self, out);
        let from = out.len();
        due::run_due(self, now, budget, out);
        drain::finish(self, now, out);
        slack::take_back_everywhere(self, now, out);
        offer::allocate(self, now, budget, out);
        explanations::resume(self, now, budget, out);
        self.count_events(from, out);
        self.publish(out);
    }

    fn is_independent(effect: &Effect) -> bool {
        effect.is_independent()
    }

    fn deadline(&self) -> Option<Mono> {
        let allocation = self.allocator.deadline();
        let asked = (!self.inquiries.is_empty()).then_some(Mono(0));
        self.timers.next().into_iter().chain(allocation).chain(asked).min()
    }
}

impl Master {
    /// A master over what the registry remembers of its predecessors. What must be recorded at the start is recorded
    /// with the first step.
    pub fn new(config: Config, registry: Registry, now: Now) -> Self {
        boot::master(config, registry, now)
    }

    /// Makes the newest state visible to readers, if it is new.
    fn publish(&mut self, out: &mut Out) {
        self.count_filters();
        let changed = core::mem::take(&mut self.changed);
        if changed {
            self.state.version += 1;
            self.state.deactivated_agents = Arc::clone(&self.registry.deactivated);
        }
        if core::mem::take(&mut self.counted) || changed {
            out.effect(Effect::Publish { state: Arc::new(self.state.clone()) });
        }
    }
}

impl Master {
    /// Decline filters are the allocator's; readers are shown how many there are.
    fn count_filters(&mut self) {
        for (role, count) in self.allocator.recounted_filters() {
            self.counted = true;
            match count {
                0 => _ = self.state.offer_filters.remove_mut(role.as_str()),
                _ => self.state.offer_filters.insert_mut(role.as_str().into(), count),
            }
        }
    }
}
