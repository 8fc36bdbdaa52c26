//! The state machine: the dispatch of inputs and due timers to handlers, and the end of a turn.
//!
//! Top of this crate: uses every handler and is used by none.

use tepui_fsm::{Budget, Fsm, Mono, Now};

use crate::agent::{Agent, Out};
use crate::entities::reconcile::reconcile;
use crate::entities::{link, operations, oversubscription, status};
use crate::handlers::{containers, executor, master, operator, recover, timeouts};
use crate::rules::{disk_pressure, eviction, gc};
use crate::state::bookkeeping::Timer;
use crate::{Effect, Input, Record};

impl Fsm for Agent {
    type Input = Input;
    type Record = Record;
    type Effect = Effect;

    fn step(&mut self, now: Now, input: Input, out: &mut Out) {
        match input {
            Input::Start => recover::start(self, now, out),
            Input::LinkUp { link } => link::up(self, now, link, out),
            Input::LinkEvent { link, event } => {
                if link::record_contact(self, now, link) {
                    master::event(self, now, *event, out);
                }
            }
            Input::LinkDown { link, reason } => link::down(self, now, link, reason, out),
            Input::Executor { conn, sender, call } => executor::call(self, now, (conn, sender), *call, out),
            Input::ExecutorClosed { conn } => executor::closed(self, conn, out),
            Input::Operator { conn, sender, call } => operator::call(self, conn, &sender, *call, out),
            Input::OperatorClosed { conn } => operator::closed(self, conn, out),
            Input::Container(event) => containers::event(self, now, event, out),
            Input::Unregister => master::unregister(self, now, out),
            Input::Used { samples } => oversubscription::used(self, now, &samples),
            Input::Load(load) => oversubscription::loaded(self, now, load, out),
            Input::Memory { machine, containers } => eviction::measured(self, machine, containers, out),
            Input::DiskUsage { used } => gc::disk_used(self, now, used, out),
            Input::DiskRoom(room) => disk_pressure::room(self, now, room, out),
            Input::Sandboxes { available_bytes, sandboxes } => {
                eviction::sandboxes_measured(self, now, available_bytes, sandboxes, out);
            }
        }
        reconcile(self, now, out);
    }

    fn settle(&mut self, now: Now, _budget: &mut Budget<'_>, out: &mut Out) {
        while let Some(timer) = self.timers.pop_due(now.mono) {
            self.due(now, timer, out);
            reconcile(self, now, out);
        }
        let (removals, waits) = (self.gc.len(), self.requests.pending_waits());
        if (self.state.path_removals_pending, self.state.container_waits_pending) != (removals, waits) {
            self.state.path_removals_pending = removals;
            self.state.container_waits_pending = waits;
            self.state.touch();
        }
        if self.published != self.state.version {
            self.published = self.state.version;
            out.effect(Effect::Publish { state: self.state.clone() });
        }
    }

    fn is_independent(effect: &Effect) -> bool {
        effect.is_independent()
    }

    fn deadline(&self) -> Option<Mono> {
        self.timers.next()
    }
}

impl Agent {
    fn due(&mut self, now: Now, timer: Timer, out: &mut Out) {
        match timer {
            Timer::Connect => link::connect(self, now, out),
            Timer::LinkSilent => link::silent(self, now, out),
            Timer::Reregistration => recover::reregistration_over(self, now, out),
            Timer::Registration(framework, executor) => {
                timeouts::registration(self, now, &framework, &executor, out);
            }
            Timer::Shutdown(framework, executor) => timeouts::shutdown(self, &framework, &executor, out),
            Timer::Kill(framework, task) => timeouts::kill(self, now, &framework, &task, out),
            Timer::Completion(framework, task) => timeouts::completion(self, now, &framework, &task, out),
            Timer::Heartbeat(framework, executor) => executor::heartbeat(self, now, framework, executor, out),
            Timer::Retry(framework, task) => status::retry(self, now, framework, task, out),
            Timer::RetryOperation(uuid) => operations::retry(self, now, uuid, out),
            Timer::Collect => gc::collect(self, now, out),
            Timer::Estimate => oversubscription::due(self, now, out),
        }
    }
}
