//! What the agent makes visible.

use alloc::boxed::Box;
use alloc::string::String;

use tepui_proto::mesos::v1::{agent, executor};
use tepui_proto::tepui::agent::v1 as link;
use tepui_types::{Answer, ConnId, ContainerOp};

use crate::LinkId;
use crate::state::transition::Transition;

/// One thing to be made visible, in order.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Opens a link to the leading master, closing the one before. Answered by LinkUp or LinkDown.
    Connect {
        link: LinkId,
    },
    /// Sends a call up the link; dropped if the link is not the current one.
    Master {
        link: LinkId,
        call: Box<link::Call>,
    },
    /// Answers the request on `conn` and ends it.
    Answer {
        conn: ConnId,
        answer: Answer<agent::Response>,
    },
    /// Answers an executor's SUBSCRIBE with 200; events follow on `conn`.
    OpenExecutor {
        conn: ConnId,
    },
    Executor {
        conn: ConnId,
        event: Box<executor::Event>,
    },
    /// The same for a KILL of a task that its executor has reported: it overtakes no launch.
    Kill {
        conn: ConnId,
        event: Box<executor::Event>,
    },
    CloseExecutor {
        conn: ConnId,
    },
    Container(ContainerOp),
    /// An entity is in another state; for the log.
    Transition(Box<Transition>),
    /// The newest state for readers. At most one per turn.
    Publish {
        state: crate::State,
    },
    /// The process must exit: it was told to, or cannot continue.
    Exit {
        message: String,
        failed: bool,
    },
}

impl Effect {
    /// Heartbeats, and kills of delivered tasks: an executor ignores the kill of an unknown one.
    pub(crate) fn is_independent(&self) -> bool {
        match self {
            Effect::Kill { .. } => true,
            Effect::Master { call, .. } => {
                call.r#type == Some(link::call::Type::PONG) && call.in_order != Some(true)
            }
            Effect::Executor { event, .. } => event.r#type == Some(executor::event::Type::HEARTBEAT),
            Effect::Answer { answer, .. } => answer.is_insufficient_storage(),
            Effect::Connect { .. }
            | Effect::OpenExecutor { .. }
            | Effect::CloseExecutor { .. }
            | Effect::Container(_)
            | Effect::Transition(_)
            | Effect::Publish { .. }
            | Effect::Exit { .. } => false,
        }
    }
}
