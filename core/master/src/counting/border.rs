//! What crosses the machine's border: calls that were taken in, events that were sent.

use tepui_fsm::Item;
use tepui_proto::mesos::v1::offer::operation::Type as OperationType;
use tepui_proto::mesos::v1::scheduler;
use tepui_proto::mesos::v1::scheduler::call::Type;
use tepui_proto::mesos::v1::scheduler::event::Type as EventType;
use tepui_proto::tepui::agent::v1 as link;
use tepui_types::{Answer, ConnId, FrameworkId};

use crate::master::{Master, Out};
use crate::values::counters::{Counter, OfferFate};
use crate::{Effect, Input};

/// What of an input is counted, kept until it is known what came of it.
pub(crate) struct Arrival {
    conn: ConnId,
    counters: [Option<Counter>; 2],
    call: Option<(FrameworkId, Type)>,
}

impl Arrival {
    pub(crate) fn of(master: &Master, input: &Input) -> Option<Self> {
        match input {
            Input::Scheduler { conn, call, .. } => {
                let kind = call.r#type?;
                let id = FrameworkId::from(&*call.framework_id);
                Some(Self {
                    conn: *conn,
                    counters: [scheduler_call(call, kind), None],
                    call: Some((id, kind)),
                })
            }
            Input::Agent { conn, call, .. } => {
                let counter = agent_call(call, master.links.contains_key(conn));
                // Messages on a link without a subscriber are dropped.
                let dropped = counter.is_none().then_some(Counter::DroppedMessages);
                let heard = call.r#type != Some(link::call::Type::PONG);
                heard.then_some(Self { conn: *conn, counters: [counter, dropped], call: None })
            }
            Input::SchedulerClosed { .. }
            | Input::AgentClosed { .. }
            | Input::Operator { .. }
            | Input::OperatorClosed { .. }
            | Input::Whitelist { .. }
            | Input::DiskRoom(_)
            | Input::Explain { .. } => None,
        }
    }
}

impl Master {
    /// Counts an input, and everything that was sent since the outbox had `from` items.
    pub(crate) fn count_crossing(&mut self, arrival: Option<Arrival>, from: usize, out: &Out) {
        if let Some(arrival) = arrival
            && !is_refused(arrival.conn, from, out)
        {
            arrival.counters.into_iter().flatten().for_each(|counter| self.count(counter));
            if let Some((id, kind)) = arrival.call {
                // A new framework gets its id with its stream.
                let id = self.schedulers.get(&arrival.conn).cloned().unwrap_or(id);
                self.count_for(&id, |counters| counters.calls.add(kind, 1));
            }
        }
        self.count_events(from, out);
    }

    /// Counts the events sent to frameworks since the outbox had `from` items.
    pub(crate) fn count_events(&mut self, from: usize, out: &Out) {
        for item in &out.items()[from..] {
            let Item::Effect(Effect::Scheduler { conn, event }) = item else { continue };
            let (Some(id), Some(kind)) = (self.schedulers.get(conn).cloned(), event.r#type) else { continue };
            self.count_for(&id, |counters| counters.events.add(kind, 1));
            match kind {
                EventType::OFFERS => self.count_offers(&id, OfferFate::Sent, event.offers.offers.len()),
                EventType::RESCIND => self.count_offers(&id, OfferFate::Rescinded, 1),
                EventType::UNKNOWN
                | EventType::SUBSCRIBED
                | EventType::INVERSE_OFFERS
                | EventType::RESCIND_INVERSE_OFFER
                | EventType::UPDATE
                | EventType::UPDATE_OPERATION_STATUS
                | EventType::MESSAGE
                | EventType::FAILURE
                | EventType::ERROR
                | EventType::HEARTBEAT => (),
            }
        }
    }
}

fn is_refused(conn: ConnId, from: usize, out: &Out) -> bool {
    out.items()[from..].iter().any(|item| {
        matches!(item, Item::Effect(Effect::Answer { conn: to, answer: Answer::Refused(_) }) if *to == conn)
    })
}

fn scheduler_call(call: &scheduler::Call, kind: Type) -> Option<Counter> {
    let launches = |kind: Option<OperationType>| {
        matches!(kind, Some(OperationType::LAUNCH | OperationType::LAUNCH_GROUP))
    };
    match kind {
        Type::SUBSCRIBE if call.framework_id.is_set() => Some(Counter::MessagesReregisterFramework),
        Type::SUBSCRIBE => Some(Counter::MessagesRegisterFramework),
        Type::TEARDOWN => Some(Counter::MessagesUnregisterFramework),
        Type::ACCEPT if call.accept.operations.iter().any(|operation| launches(operation.r#type)) => {
            Some(Counter::MessagesLaunchTasks)
        }
        // An ACCEPT that uses nothing is a DECLINE.
        Type::ACCEPT if call.accept.operations.is_empty() => Some(Counter::MessagesDeclineOffers),
        Type::DECLINE => Some(Counter::MessagesDeclineOffers),
        Type::REVIVE => Some(Counter::MessagesReviveOffers),
        Type::SUPPRESS => Some(Counter::MessagesSuppressOffers),
        Type::KILL => Some(Counter::MessagesKillTask),
        Type::ACKNOWLEDGE => Some(Counter::MessagesStatusUpdateAcknowledgement),
        Type::ACKNOWLEDGE_OPERATION_STATUS => Some(Counter::MessagesOperationStatusUpdateAcknowledgement),
        Type::RECONCILE => Some(Counter::MessagesReconcileTasks),
        Type::RECONCILE_OPERATIONS => Some(Counter::MessagesReconcileOperations),
        Type::MESSAGE => Some(Counter::MessagesFrameworkToExecutor),
        Type::REQUEST => Some(Counter::MessagesResourceRequest),
        Type::UNKNOWN
        | Type::ACCEPT
        | Type::ACCEPT_INVERSE_OFFERS
        | Type::DECLINE_INVERSE_OFFERS
        | Type::SHUTDOWN
        | Type::UPDATE_FRAMEWORK => None,
    }
}

fn agent_call(call: &link::Call, linked: bool) -> Option<Counter> {
    use link::call::Type;
    match call.r#type? {
        Type::SUBSCRIBE if call.subscribe.agent_info.id.is_set() => Some(Counter::MessagesReregisterAgent),
        Type::SUBSCRIBE => Some(Counter::MessagesRegisterAgent),
        Type::UPDATE if linked => Some(Counter::MessagesStatusUpdate),
        Type::UPDATE_OPERATION if linked => Some(Counter::MessagesOperationStatusUpdate),
        Type::EXITED_EXECUTOR if linked => Some(Counter::MessagesExitedExecutor),
        Type::MESSAGE if linked => Some(Counter::MessagesExecutorToFramework),
        Type::UPDATE_RESOURCES | Type::DISK_PRESSURE if linked => Some(Counter::MessagesUpdateAgent),
        Type::UNREGISTER if linked => Some(Counter::MessagesUnregisterAgent),
        Type::UPDATE
        | Type::UPDATE_OPERATION
        | Type::EXITED_EXECUTOR
        | Type::MESSAGE
        | Type::UPDATE_RESOURCES
        | Type::DISK_PRESSURE
        | Type::UNREGISTER
        | Type::PONG
        | Type::UNKNOWN => None,
    }
}
