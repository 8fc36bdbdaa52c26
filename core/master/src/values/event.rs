//! The messages of the master, in one place: events for schedulers and agents.
//!
//! Pure constructors. Absent: recipients.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::scheduler;
use tepui_proto::mesos::v1::scheduler::event::Type;
use tepui_proto::tepui::agent::v1 as link;
use tepui_types::{AgentId, ExecutorId, FrameworkId, OfferId, TaskId};

/// Heartbeat interval of an idle stream.
pub const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(15);

/// Events for schedulers.
pub(crate) mod to_scheduler {
    use super::*;
    use scheduler::event;

    type Event = Arc<scheduler::Event>;

    fn of(r#type: Type) -> scheduler::Event {
        scheduler::Event { r#type: Some(r#type), ..Default::default() }
    }

    pub(crate) fn subscribed(framework_id: &FrameworkId, master_info: &pb::MasterInfo) -> Event {
        let subscribed = event::Subscribed {
            framework_id: framework_id.to_proto().into(),
            heartbeat_interval_seconds: Some(HEARTBEAT_INTERVAL.as_secs_f64()),
            master_info: master_info.clone().into(),
            ..Default::default()
        };
        Arc::new(scheduler::Event { subscribed: subscribed.into(), ..of(Type::SUBSCRIBED) })
    }

    pub(crate) fn heartbeat() -> Event {
        Arc::new(of(Type::HEARTBEAT))
    }

    pub(crate) fn error(message: impl Into<String>) -> Event {
        let error = event::Error { message: message.into(), ..Default::default() };
        Arc::new(scheduler::Event { error: error.into(), ..of(Type::ERROR) })
    }

    pub(crate) fn offers(offers: Vec<pb::Offer>) -> Event {
        let offers = event::Offers { offers, ..Default::default() };
        Arc::new(scheduler::Event { offers: offers.into(), ..of(Type::OFFERS) })
    }

    pub(crate) fn rescind(offer_id: &OfferId) -> Event {
        let rescind = event::Rescind { offer_id: offer_id.to_proto().into(), ..Default::default() };
        Arc::new(scheduler::Event { rescind: rescind.into(), ..of(Type::RESCIND) })
    }

    pub(crate) fn inverse_offers(inverse_offers: Vec<pb::InverseOffer>) -> Event {
        let offers = event::InverseOffers { inverse_offers, ..Default::default() };
        Arc::new(scheduler::Event { inverse_offers: offers.into(), ..of(Type::INVERSE_OFFERS) })
    }

    pub(crate) fn rescind_inverse_offer(id: &OfferId) -> Event {
        let rescind =
            event::RescindInverseOffer { inverse_offer_id: id.to_proto().into(), ..Default::default() };
        Arc::new(scheduler::Event {
            rescind_inverse_offer: rescind.into(),
            ..of(Type::RESCIND_INVERSE_OFFER)
        })
    }

    pub(crate) fn update(status: pb::TaskStatus) -> Event {
        let update = event::Update { status: status.into(), ..Default::default() };
        Arc::new(scheduler::Event { update: update.into(), ..of(Type::UPDATE) })
    }

    pub(crate) fn update_operation_status(status: pb::OperationStatus) -> Event {
        let update = event::UpdateOperationStatus { status: status.into(), ..Default::default() };
        Arc::new(scheduler::Event {
            update_operation_status: update.into(),
            ..of(Type::UPDATE_OPERATION_STATUS)
        })
    }

    pub(crate) fn message(agent_id: &AgentId, executor_id: &pb::ExecutorID, data: Vec<u8>) -> Event {
        let message = event::Message {
            agent_id: agent_id.to_proto().into(),
            executor_id: executor_id.clone().into(),
            data,
            ..Default::default()
        };
        Arc::new(scheduler::Event { message: message.into(), ..of(Type::MESSAGE) })
    }

    /// An agent is removed.
    pub(crate) fn agent_failure(agent_id: &AgentId) -> Event {
        let failure = event::Failure { agent_id: agent_id.to_proto().into(), ..Default::default() };
        Arc::new(scheduler::Event { failure: failure.into(), ..of(Type::FAILURE) })
    }

    /// An executor ended.
    pub(crate) fn executor_failure(agent_id: &AgentId, executor_id: &ExecutorId, status: i32) -> Event {
        let failure = event::Failure {
            agent_id: agent_id.to_proto().into(),
            executor_id: executor_id.to_proto().into(),
            status: Some(status),
            ..Default::default()
        };
        Arc::new(scheduler::Event { failure: failure.into(), ..of(Type::FAILURE) })
    }
}

/// Events for agents.
pub(crate) mod to_agent {
    use super::*;
    use link::event::{self, Type};

    fn of(r#type: Type) -> link::Event {
        link::Event { r#type: Some(r#type), ..Default::default() }
    }

    pub(crate) fn subscribed(subscribed: event::Subscribed) -> link::Event {
        link::Event { subscribed: subscribed.into(), ..of(Type::SUBSCRIBED) }
    }

    pub(crate) fn ping() -> link::Event {
        of(Type::PING)
    }

    pub(crate) fn ping_in_order() -> link::Event {
        link::Event { in_order: Some(true), ..of(Type::PING) }
    }

    pub(crate) fn launch(launch: event::Launch) -> link::Event {
        link::Event { launch: launch.into(), ..of(Type::LAUNCH) }
    }

    pub(crate) fn launch_group(group: event::LaunchGroup) -> link::Event {
        link::Event { launch_group: group.into(), ..of(Type::LAUNCH_GROUP) }
    }

    pub(crate) fn kill(
        framework_id: &FrameworkId,
        task_id: &TaskId,
        kill_policy: Option<pb::KillPolicy>,
    ) -> link::Event {
        let kill = event::Kill {
            framework_id: framework_id.to_proto().into(),
            task_id: task_id.to_proto().into(),
            kill_policy: kill_policy.into(),
            ..Default::default()
        };
        link::Event { kill: kill.into(), ..of(Type::KILL) }
    }

    pub(crate) fn shutdown_executor(framework_id: &FrameworkId, executor_id: &pb::ExecutorID) -> link::Event {
        let shutdown = event::ShutdownExecutor {
            framework_id: framework_id.to_proto().into(),
            executor_id: executor_id.clone().into(),
            ..Default::default()
        };
        link::Event { shutdown_executor: shutdown.into(), ..of(Type::SHUTDOWN_EXECUTOR) }
    }

    pub(crate) fn shutdown_framework(framework_id: &FrameworkId) -> link::Event {
        let shutdown =
            event::ShutdownFramework { framework_id: framework_id.to_proto().into(), ..Default::default() };
        link::Event { shutdown_framework: shutdown.into(), ..of(Type::SHUTDOWN_FRAMEWORK) }
    }

    pub(crate) fn acknowledge(framework_id: &FrameworkId, task_id: &TaskId, uuid: Vec<u8>) -> link::Event {
        let acknowledge = event::Acknowledge {
            framework_id: framework_id.to_proto().into(),
            task_id: task_id.to_proto().into(),
            uuid,
            ..Default::default()
        };
        link::Event { acknowledge: acknowledge.into(), ..of(Type::ACKNOWLEDGE) }
    }

    pub(crate) fn apply_operation(operation: event::ApplyOperation) -> link::Event {
        link::Event { apply_operation: operation.into(), ..of(Type::APPLY_OPERATION) }
    }

    pub(crate) fn acknowledge_operation(operation_uuid: &[u8], status_uuid: Vec<u8>) -> link::Event {
        let uuid = pb::UUID { value: operation_uuid.into(), ..Default::default() };
        let acknowledge =
            event::AcknowledgeOperation { operation_uuid: uuid.into(), status_uuid, ..Default::default() };
        link::Event { acknowledge_operation: acknowledge.into(), ..of(Type::ACKNOWLEDGE_OPERATION) }
    }

    pub(crate) fn message(
        framework_id: &FrameworkId,
        executor_id: &pb::ExecutorID,
        data: Vec<u8>,
    ) -> link::Event {
        let message = event::Message {
            framework_id: framework_id.to_proto().into(),
            executor_id: executor_id.clone().into(),
            data,
            ..Default::default()
        };
        link::Event { message: message.into(), ..of(Type::MESSAGE) }
    }

    pub(crate) fn update_framework(info: &pb::FrameworkInfo) -> link::Event {
        let update = event::UpdateFramework { framework_info: info.clone().into(), ..Default::default() };
        link::Event { update_framework: update.into(), ..of(Type::UPDATE_FRAMEWORK) }
    }

    pub(crate) fn drain(config: pb::DrainConfig) -> link::Event {
        let drain = event::Drain { config: config.into(), ..Default::default() };
        link::Event { drain: drain.into(), ..of(Type::DRAIN) }
    }

    pub(crate) fn shutdown(message: impl Into<String>) -> link::Event {
        let shutdown = event::Shutdown { message: message.into(), ..Default::default() };
        link::Event { shutdown: shutdown.into(), ..of(Type::SHUTDOWN) }
    }
}
