//! The agent itself: which input goes to which handler, which timer means what, and when readers get a new snapshot.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use core::time::Duration;

use tepui_fsm::{Budget, Deadlines, Fsm, Mono, Now, Outbox, Rng};
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::{agent, executor as executor_api};
use tepui_proto::tepui::agent::v1 as link_api;
use tepui_types::{Answer, ConnId, ContainerId, ContainerOp, ExecutorId, FrameworkId, Status, TaskId};

use crate::eviction::{Evicting, Releasing};
use crate::gc::Unused;
use crate::link::Link;
use crate::operations::Uuid;
use crate::operator::Requests;
use crate::oversubscription::Oversubscription;
use crate::recover::Recovery;
use crate::slack::Slack;
use crate::state::State;
use crate::status::Streams;
use crate::transition::Transition;
use crate::{Config, Effect, Input, Record};
use crate::{
    containers, disk_pressure, eviction, executor, gc, lifecycle, link, master, operations, operator,
    oversubscription, recover, status,
};

pub(crate) type Out = Outbox<Agent>;

/// The agent of one machine.
#[derive(Debug)]
pub struct Agent {
    pub(crate) config: Config,
    pub(crate) rng: Rng,
    pub(crate) state: State,
    pub(crate) link: Link,
    pub(crate) streams: Streams,
    pub(crate) timers: Deadlines<Timer>,
    /// The open event streams of executors.
    pub(crate) conns: BTreeMap<ConnId, (FrameworkId, ExecutorId)>,
    pub(crate) executors_by_container: BTreeMap<ContainerId, (FrameworkId, ExecutorId)>,
    /// What executors said while their containers are looked at.
    pub(crate) waiting_updates: BTreeMap<ContainerId, executor::Waiting>,
    /// Operator calls that are not answered yet.
    pub(crate) requests: Requests,
    pub(crate) gc: Unused,
    /// How long each operation's acknowledgement is waited for.
    pub(crate) operation_patience: BTreeMap<Uuid, Duration>,
    pub(crate) recovery: Recovery,
    /// The newest number of something that is over.
    pub(crate) history_newest: u64,
    pub(crate) slack: Slack,
    pub(crate) oversubscription: Oversubscription,
    pub(crate) evicting: Evicting,
    pub(crate) releasing: Releasing,
    /// It said that it ends.
    pub(crate) ended: bool,
    /// The version readers have.
    pub(crate) published: u64,
}

/// What a deadline is for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// Open a link to the master.
    Connect,
    /// The link was silent, or did not come up, for too long.
    LinkSilent,
    /// Executors had their time to come back after a restart.
    Reregistration,
    /// The executor had its time to subscribe.
    Registration(FrameworkId, ExecutorId),
    /// The executor had its time to end.
    Shutdown(FrameworkId, ExecutorId),
    /// The executor had its time to end a task.
    Kill(FrameworkId, TaskId),
    /// The task had its time to end, and its executor to end it.
    Completion(FrameworkId, TaskId),
    /// The executor's stream needs a sign of life.
    Heartbeat(FrameworkId, ExecutorId),
    /// The head of a status update stream was not acknowledged.
    Retry(FrameworkId, TaskId),
    /// The outcome of an operation was not acknowledged.
    RetryOperation(Uuid),
    /// A directory was kept long enough.
    Collect,
    /// A new estimate of what may be offered again.
    Estimate,
}

impl Fsm for Agent {
    type Input = Input;
    type Record = Record;
    type Effect = Effect;

    fn step(&mut self, now: Now, input: Input, out: &mut Out) {
        match input {
            Input::Start => recover::start(self, now, out),
            Input::LinkUp { link } => link::up(self, now, link, out),
            Input::LinkEvent { link, event } => {
                if link::heard(self, now, link) {
                    master::event(self, now, *event, out);
                }
            }
            Input::LinkDown { link, reason } => link::down(self, now, link, reason, out),
            Input::Executor { conn, call } => executor::call(self, now, conn, *call, out),
            Input::ExecutorClosed { conn } => executor::closed(self, conn, out),
            Input::Operator { conn, caller, call } => operator::call(self, conn, caller, *call, out),
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
    }

    fn settle(&mut self, now: Now, _budget: &mut Budget<'_>, out: &mut Out) {
        while let Some(timer) = self.timers.pop_due(now.mono) {
            self.due(now, timer, out);
        }
        if self.state.path_removals_pending != self.gc.len() {
            self.state.path_removals_pending = self.gc.len();
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
                lifecycle::registration_over(self, now, &framework, &executor, out);
            }
            Timer::Shutdown(framework, executor) => lifecycle::grace_over(self, &framework, &executor, out),
            Timer::Kill(framework, task) | Timer::Completion(framework, task) => {
                lifecycle::time_over(self, now, &framework, &task, out);
            }
            Timer::Heartbeat(framework, executor) => executor::heartbeat(self, now, framework, executor, out),
            Timer::Retry(framework, task) => status::retry(self, now, framework, task, out),
            Timer::RetryOperation(uuid) => operations::retry(self, now, uuid, out),
            Timer::Collect => gc::collect(self, now, out),
            Timer::Estimate => oversubscription::due(self, now, out),
        }
    }

    /// The newest state, as the next snapshot will show it.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// As the master named it; empty before.
    pub(crate) fn id(&self) -> String {
        self.state.info.id.value.clone()
    }

    pub(crate) fn id_proto(&self) -> Option<pb::AgentID> {
        self.state.info.id.as_option().cloned()
    }

    /// Sends a call to the master if the agent is subscribed; what it misses is told when it subscribes again.
    pub(crate) fn tell_master(&self, call: link_api::Call, out: &mut Out) {
        if let Some(link) = self.link.subscribed() {
            out.effect(Effect::Master { link, call: Box::new(call) });
        }
    }

    pub(crate) fn tell_executor(&self, conn: Option<ConnId>, event: executor_api::Event, out: &mut Out) {
        if let Some(conn) = conn {
            out.effect(Effect::Executor { conn, event: Box::new(event) });
        }
    }

    pub(crate) fn answer(&self, conn: ConnId, answer: Answer<agent::Response>, out: &mut Out) {
        out.effect(Effect::Answer { conn, answer });
    }

    pub(crate) fn refuse(&self, conn: ConnId, status: Status, message: impl Into<String>, out: &mut Out) {
        self.answer(conn, Answer::refused(status, message), out);
    }

    /// Passes a transition to the log.
    pub(crate) fn log(transition: Transition, out: &mut Out) {
        out.effect(Effect::Transition(Box::new(transition)));
    }

    pub(crate) fn container(&self, op: ContainerOp, out: &mut Out) {
        out.effect(Effect::Container(op));
    }
}
