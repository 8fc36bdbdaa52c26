//! Inputs and effects in one line each, so that a trace reads as a story.

use core::fmt;

use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::{master, scheduler};
use tepui_proto::tepui::agent::v1 as link;
use tepui_resources::Resources;
use tepui_types::Answer;

use crate::{Effect, Input};

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Input::Scheduler { conn, call, .. } => write!(f, "scheduler {}: {}", conn.0, SchedulerCall(call)),
            Input::SchedulerClosed { conn } => write!(f, "scheduler {}: closed", conn.0),
            Input::Agent { conn, call, .. } => write!(f, "agent {}: {}", conn.0, AgentCall(call)),
            Input::AgentClosed { conn } => write!(f, "agent {}: closed", conn.0),
            Input::Operator { conn, call, .. } => {
                write!(f, "operator {}: {:?}", conn.0, call.r#type.unwrap_or(master::call::Type::UNKNOWN))
            }
            Input::OperatorClosed { conn } => write!(f, "operator {}: closed", conn.0),
            Input::Whitelist { hosts: Some(hosts) } => write!(f, "whitelist of {} hosts", hosts.len()),
            Input::Whitelist { hosts: None } => write!(f, "no whitelist"),
            Input::DiskRoom(room) if room.is_short => write!(f, "registry's disk is short of room"),
            Input::DiskRoom(_) => write!(f, "registry's disk has room"),
            Input::Explain { conn, subject } => write!(f, "operator {}: explain {subject:?}", conn.0),
        }
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Effect::Answer { conn, answer } => write!(f, "{} <- {}", conn.0, Answered(answer)),
            Effect::OpenScheduler { conn, .. } => write!(f, "scheduler {} opened", conn.0),
            Effect::Scheduler { conn, event } => {
                write!(f, "scheduler {} <- {}", conn.0, SchedulerEvent(event))
            }
            Effect::CloseScheduler { conn } => write!(f, "scheduler {} closed", conn.0),
            Effect::OpenAgent { conn } => write!(f, "agent {} opened", conn.0),
            Effect::Agent { conn, event } | Effect::Kill { conn, event } => {
                write!(f, "agent {} <- {}", conn.0, AgentEvent(event))
            }
            Effect::CloseAgent { conn } => write!(f, "agent {} closed", conn.0),
            Effect::OpenOperator { conn, state, next } => {
                write!(f, "operator {} opened at {} <- {}", conn.0, state.version, OperatorEvent(next))
            }
            Effect::Operator { event } => write!(f, "operators <- {}", OperatorEvent(event)),
            Effect::CloseOperator { conn } => write!(f, "operator {} closed", conn.0),
            Effect::Explained { conn, .. } => write!(f, "operator {} <- an explanation", conn.0),
            Effect::SlackTakenBack { agent_id, took } => {
                write!(f, "slack of {agent_id} reclaimed after {took:?}")
            }
            Effect::Transition(transition) => write!(f, "log {transition:?}"),
            Effect::Halt { why } => write!(f, "halt: {why}"),
            Effect::Publish { state } => write!(f, "publish {}", state.version),
        }
    }
}

struct SchedulerCall<'a>(&'a scheduler::Call);

impl fmt::Display for SchedulerCall<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use scheduler::call::Type;
        let call = self.0;
        let r#type = call.r#type.unwrap_or(Type::UNKNOWN);
        write!(f, "{:?}", r#type)?;
        if call.framework_id.is_set() {
            write!(f, " of {}", call.framework_id.value)?;
        }
        match r#type {
            Type::ACCEPT => {
                let (offers, operations) = (&call.accept.offer_ids, &call.accept.operations);
                offers.iter().try_for_each(|id| write!(f, " {}", id.value))?;
                operations.iter().try_for_each(|operation| write!(f, " {}", OfferOperation(operation)))
            }
            Type::DECLINE => call.decline.offer_ids.iter().try_for_each(|id| write!(f, " {}", id.value)),
            Type::KILL => write!(f, " {}", call.kill.task_id.value),
            Type::ACKNOWLEDGE => write!(f, " {}", call.acknowledge.task_id.value),
            Type::RECONCILE => {
                call.reconcile.tasks.iter().try_for_each(|task| write!(f, " {}", task.task_id.value))
            }
            Type::UNKNOWN
            | Type::SUBSCRIBE
            | Type::TEARDOWN
            | Type::ACCEPT_INVERSE_OFFERS
            | Type::DECLINE_INVERSE_OFFERS
            | Type::REVIVE
            | Type::SHUTDOWN
            | Type::ACKNOWLEDGE_OPERATION_STATUS
            | Type::RECONCILE_OPERATIONS
            | Type::MESSAGE
            | Type::REQUEST
            | Type::SUPPRESS
            | Type::UPDATE_FRAMEWORK => Ok(()),
        }
    }
}

struct OfferOperation<'a>(&'a pb::offer::Operation);

impl fmt::Display for OfferOperation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operation = self.0;
        write!(f, "{:?}", operation.r#type.unwrap_or(pb::offer::operation::Type::UNKNOWN))?;
        let tasks = operation.launch.task_infos.iter().chain(&operation.launch_group.task_group.tasks);
        tasks.map(|task| &task.task_id.value).try_for_each(|id| write!(f, " {id}"))
    }
}

struct AgentCall<'a>(&'a link::Call);

impl fmt::Display for AgentCall<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use link::call::Type;
        let call = self.0;
        let r#type = call.r#type.unwrap_or(Type::UNKNOWN);
        write!(f, "{:?}", r#type)?;
        match r#type {
            Type::SUBSCRIBE => {
                let info = &call.subscribe.agent_info;
                write!(f, " {} {} with {} tasks", info.hostname, info.id.value, call.subscribe.tasks.len())
            }
            Type::UPDATE => write!(f, " {}", Status(&call.update.status)),
            Type::UPDATE_OPERATION => write!(f, " {:?}", call.update_operation.latest_state),
            Type::EXITED_EXECUTOR => write!(f, " {}", call.exited_executor.executor_id.value),
            Type::MESSAGE => write!(f, " of {}", call.message.executor_id.value),
            Type::DISK_PRESSURE => write!(f, " {}", if call.disk_pressure.is_on { "on" } else { "off" }),
            Type::PONG if call.in_order == Some(true) => f.write_str(" in order"),
            Type::UNKNOWN | Type::PONG | Type::UPDATE_RESOURCES | Type::UNREGISTER => Ok(()),
        }
    }
}

struct Answered<'a>(&'a Answer<master::Response>);

impl fmt::Display for Answered<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Answer::Accepted => f.write_str("202"),
            Answer::Ok => f.write_str("200"),
            Answer::NoContent => f.write_str("204"),
            Answer::Body(response) => write!(f, "200 {:?}", response.r#type),
            Answer::Refused(refusal) => write!(f, "{refusal}"),
        }
    }
}

struct SchedulerEvent<'a>(&'a scheduler::Event);

impl fmt::Display for SchedulerEvent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use scheduler::event::Type;
        let event = self.0;
        let r#type = event.r#type.unwrap_or(Type::UNKNOWN);
        write!(f, "{:?}", r#type)?;
        match r#type {
            Type::SUBSCRIBED => write!(f, " {}", event.subscribed.framework_id.value),
            Type::OFFERS => event.offers.offers.iter().try_for_each(|offer| write!(f, " {}", Offered(offer))),
            Type::RESCIND => write!(f, " {}", event.rescind.offer_id.value),
            Type::UPDATE => write!(f, " {}", Status(&event.update.status)),
            Type::UPDATE_OPERATION_STATUS => {
                let status = &event.update_operation_status.status;
                write!(f, " {} {:?}", status.operation_id.value, status.state)?;
                status.message.iter().try_for_each(|message| write!(f, " \"{message}\""))
            }
            Type::MESSAGE => write!(f, " from {}", event.message.executor_id.value),
            Type::FAILURE => {
                let (failure, executor) = (&event.failure, event.failure.executor_id.as_option());
                write!(f, " of {}", failure.agent_id.value)?;
                executor.iter().try_for_each(|id| write!(f, " {} {}", id.value, failure.status.unwrap_or(0)))
            }
            Type::ERROR => write!(f, " \"{}\"", event.error.message),
            Type::INVERSE_OFFERS => event
                .inverse_offers
                .inverse_offers
                .iter()
                .try_for_each(|offer| write!(f, " {} of {}", offer.id.value, offer.agent_id.value)),
            Type::RESCIND_INVERSE_OFFER => {
                write!(f, " {}", event.rescind_inverse_offer.inverse_offer_id.value)
            }
            Type::UNKNOWN | Type::HEARTBEAT => Ok(()),
        }
    }
}

struct Offered<'a>(&'a pb::Offer);

impl fmt::Display for Offered<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let offer = self.0;
        write!(f, "{} of {} ({})", offer.id.value, offer.agent_id.value, Listed(&offer.resources))
    }
}

struct Listed<'a>(&'a [pb::Resource]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Resources::from_proto(self.0) {
            Ok(resources) => write!(f, "{resources}"),
            Err(why) => write!(f, "{why}"),
        }
    }
}

struct Status<'a>(&'a pb::TaskStatus);

impl fmt::Display for Status<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = self.0;
        write!(f, "{} {:?}", status.task_id.value, status.state)?;
        status.reason.iter().try_for_each(|reason| write!(f, " {reason:?}"))?;
        status.message.iter().try_for_each(|message| write!(f, " \"{message}\""))
    }
}

struct AgentEvent<'a>(&'a link::Event);

impl fmt::Display for AgentEvent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use link::event::Type;
        let event = self.0;
        let r#type = event.r#type.unwrap_or(Type::UNKNOWN);
        write!(f, "{:?}", r#type)?;
        match r#type {
            Type::SUBSCRIBED => {
                write!(f, " {}", event.subscribed.agent_id.value)?;
                let missing = &event.subscribed.missing_tasks;
                missing.iter().try_for_each(|task| write!(f, " missing {}", task.task_id.value))?;
                match event.subscribed.missing_operations.len() {
                    0 => Ok(()),
                    operations => write!(f, " missing {operations} operations"),
                }
            }
            Type::LAUNCH => {
                let task = &event.launch.task;
                write!(f, " {} ({})", task.task_id.value, Listed(&task.resources))?;
                event.launch.launch_executor.iter().try_for_each(|new| write!(f, "{}", executor(*new)))
            }
            Type::LAUNCH_GROUP => {
                let group = &event.launch_group;
                group.task_group.tasks.iter().try_for_each(|task| write!(f, " {}", task.task_id.value))?;
                write!(f, "{}", executor(group.launch_executor))
            }
            Type::KILL => write!(f, " {}", event.kill.task_id.value),
            Type::SHUTDOWN_EXECUTOR => write!(f, " {}", event.shutdown_executor.executor_id.value),
            Type::SHUTDOWN_FRAMEWORK => write!(f, " {}", event.shutdown_framework.framework_id.value),
            Type::ACKNOWLEDGE => write!(f, " {}", event.acknowledge.task_id.value),
            Type::APPLY_OPERATION => write!(f, " {}", OfferOperation(&event.apply_operation.operation)),
            Type::MESSAGE => write!(f, " to {}", event.message.executor_id.value),
            Type::UPDATE_FRAMEWORK => write!(f, " {}", event.update_framework.framework_info.id.value),
            Type::SHUTDOWN => write!(f, " \"{}\"", event.shutdown.message),
            Type::PING if event.in_order == Some(true) => f.write_str(" in order"),
            Type::UNKNOWN | Type::PING | Type::ACKNOWLEDGE_OPERATION | Type::DRAIN => Ok(()),
        }
    }
}

fn executor(new: bool) -> &'static str {
    if new { " with a new executor" } else { " with its executor" }
}

struct OperatorEvent<'a>(&'a master::Event);

impl fmt::Display for OperatorEvent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use master::event::Type;
        let event = self.0;
        let r#type = event.r#type.unwrap_or(Type::UNKNOWN);
        write!(f, "{:?}", r#type)?;
        match r#type {
            Type::TASK_ADDED => write!(f, " {}", event.task_added.task.task_id.value),
            Type::TASK_UPDATED => {
                let updated = &event.task_updated;
                write!(f, " {} {:?}", updated.status.task_id.value, updated.status.state)?;
                match updated.status.state == updated.state {
                    true => Ok(()),
                    false => write!(f, ", by now {:?}", updated.state),
                }
            }
            Type::AGENT_ADDED => write!(f, " {}", event.agent_added.agent.agent_info.id.value),
            Type::AGENT_REMOVED => write!(f, " {}", event.agent_removed.agent_id.value),
            Type::FRAMEWORK_ADDED => {
                write!(f, " {}", event.framework_added.framework.framework_info.id.value)
            }
            Type::FRAMEWORK_UPDATED => {
                write!(f, " {}", event.framework_updated.framework.framework_info.id.value)
            }
            Type::FRAMEWORK_REMOVED => write!(f, " {}", event.framework_removed.framework_info.id.value),
            Type::UNKNOWN | Type::SUBSCRIBED | Type::HEARTBEAT | Type::ERROR => Ok(()),
        }
    }
}
