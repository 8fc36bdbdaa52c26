//! Everything the agent owns: the published state and private bookkeeping; sending.
//!
//! Absent: decisions (handlers) and the dispatch of inputs (`machine`).

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use core::time::Duration;

use tepui_fsm::{Deadlines, Outbox, Rng};
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::{agent, executor as executor_api};
use tepui_proto::tepui::agent::v1 as link_api;
use tepui_types::{Answer, ConnId, ContainerId, ContainerOp, ExecutorId, FrameworkId, Status, TaskId};

use crate::state::State;
use crate::state::bookkeeping::{
    EarlySubscription, Evicting, Link, Oversubscription, Recovery, Releasing, Requests, Slack, Streams,
    Timer, Touched, UnusedPaths, Uuid, WaitingUpdates,
};
use crate::state::transition::Transition;
use crate::{Config, Effect};

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
    /// Containers of executors that are being launched, and the executor that subscribed before its launch was reported.
    pub(crate) launching: BTreeMap<ContainerId, Option<EarlySubscription>>,
    pub(crate) executors_by_container: BTreeMap<ContainerId, (FrameworkId, ExecutorId)>,
    /// Updates of executors whose containers are being inspected.
    pub(crate) waiting_updates: BTreeMap<ContainerId, WaitingUpdates>,
    /// Containers that executors are about to launch for tasks that are over: they are not.
    pub(crate) never_launched: BTreeSet<ContainerId>,
    /// Tasks that the agent reported as terminal before their executor, by its container, named a container of theirs.
    pub(crate) unnamed_tasks: BTreeMap<ContainerId, BTreeSet<TaskId>>,
    /// Operator calls that are not answered yet.
    pub(crate) requests: Requests,
    pub(crate) gc: UnusedPaths,
    /// How long each operation's acknowledgement is waited for.
    pub(crate) operation_patience: BTreeMap<Uuid, Duration>,
    pub(crate) recovery: Recovery,
    /// The newest number of something that is over.
    pub(crate) history_newest: u64,
    pub(crate) slack: Slack,
    pub(crate) oversubscription: Oversubscription,
    pub(crate) evicting: Evicting,
    pub(crate) releasing: Releasing,
    /// Entities for the next reconcile pass.
    pub(crate) touched: Touched,
    /// Its termination is announced.
    pub(crate) ended: bool,
    /// The version readers have.
    pub(crate) published: u64,
}

impl Agent {
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

    /// Sends a call to the master if the agent is subscribed; otherwise the next SUBSCRIBE contains the information.
    pub(crate) fn send_to_master(&self, call: link_api::Call, out: &mut Out) {
        if let Some(link) = self.link.subscribed() {
            out.effect(Effect::Master { link, call: Box::new(call) });
        }
    }

    pub(crate) fn send_to_executor(&self, conn: Option<ConnId>, event: executor_api::Event, out: &mut Out) {
        if let Some(conn) = conn {
            out.effect(Effect::Executor { conn, event: Box::new(event) });
        }
    }

    pub(crate) fn answer(&self, conn: ConnId, answer: Answer<agent::Response>, out: &mut Out) {
        out.effect(Effect::Answer { conn, answer });
    }

    pub(crate) fn reject(&self, conn: ConnId, status: Status, message: impl Into<String>, out: &mut Out) {
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
