//! What the master makes visible.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use core::time::Duration;

use tepui_fsm::Mono;
use tepui_proto::mesos::v1::{master, scheduler};
use tepui_proto::tepui::agent::v1 as link;
use tepui_types::{AgentId, Answer, ConnId};

use crate::State;
use crate::state::transition::Transition;
use crate::values::explain::Report;

/// One thing to be made visible, in order.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Answers the request on `conn` and ends it.
    Answer {
        conn: ConnId,
        answer: Answer<master::Response>,
    },
    /// Answers a scheduler's SUBSCRIBE with 200 and this Mesos-Stream-Id; events follow on `conn`.
    OpenScheduler {
        conn: ConnId,
        stream_id: String,
    },
    Scheduler {
        conn: ConnId,
        event: Arc<scheduler::Event>,
    },
    /// Ends the stream after everything sent before.
    CloseScheduler {
        conn: ConnId,
    },
    /// Answers an agent's SUBSCRIBE with 200; events follow on `conn`.
    OpenAgent {
        conn: ConnId,
    },
    Agent {
        conn: ConnId,
        event: Box<link::Event>,
    },
    /// The same for a KILL of a task that its agent has reported: it overtakes no launch.
    Kill {
        conn: ConnId,
        event: Box<link::Event>,
    },
    CloseAgent {
        conn: ConnId,
    },
    /// Answers an operator's SUBSCRIBE with 200 and starts its stream with this snapshot as SUBSCRIBED, then `next`.
    OpenOperator {
        conn: ConnId,
        state: Box<State>,
        next: Arc<master::Event>,
    },
    /// An event for every operator's stream that was opened before.
    Operator {
        event: Arc<master::Event>,
    },
    CloseOperator {
        conn: ConnId,
    },
    /// Answers a question on `conn` and ends it. `now` is what its times are to be compared with.
    Explained {
        conn: ConnId,
        now: Mono,
        report: Box<Report>,
    },
    /// Borrowers released the reclaimed resources of an agent, after this time.
    SlackTakenBack {
        agent_id: AgentId,
        took: Duration,
    },
    /// An entity is in another state; for the log.
    Transition(Box<Transition>),
    /// This process must end; why, for an operator to read.
    Halt {
        why: String,
    },
    /// The newest state for readers. At most one per turn.
    Publish {
        state: Arc<State>,
    },
}

/// Effects are moved several times on their way out: what is large is kept elsewhere.
const _: () = assert!(size_of::<Effect>() <= 64);

impl Effect {
    /// Heartbeats, and kills of tasks that their agents have. An agent would report another task as unknown, and
    /// start it when the launch arrives.
    pub(crate) fn is_independent(&self) -> bool {
        match self {
            Effect::Kill { .. } => true,
            Effect::Agent { event, .. } => {
                event.r#type == Some(link::event::Type::PING) && event.in_order != Some(true)
            }
            Effect::Scheduler { event, .. } => event.r#type == Some(scheduler::event::Type::HEARTBEAT),
            Effect::Operator { event } => event.r#type == Some(master::event::Type::HEARTBEAT),
            Effect::Answer { answer, .. } => answer.is_insufficient_storage(),
            Effect::OpenScheduler { .. }
            | Effect::CloseScheduler { .. }
            | Effect::OpenAgent { .. }
            | Effect::CloseAgent { .. }
            | Effect::OpenOperator { .. }
            | Effect::CloseOperator { .. }
            | Effect::Explained { .. }
            | Effect::SlackTakenBack { .. }
            | Effect::Transition(_)
            | Effect::Halt { .. }
            | Effect::Publish { .. } => false,
        }
    }
}
