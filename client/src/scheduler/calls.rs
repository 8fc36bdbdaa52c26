//! One function per call of the scheduler API. The framework id is added when the call is sent ([`super::Link::stamp`]).

use tepui_proto::MessageField;
use tepui_proto::mesos::v1::scheduler::{Call, OfferConstraints, call};
use tepui_proto::mesos::v1::{
    AgentID, ExecutorID, Filters, FrameworkInfo, KillPolicy, OfferID, OperationStatus, Request,
    TaskGroupInfo, TaskID, TaskInfo, TaskStatus, offer,
};

fn call_of(kind: call::Type) -> Call {
    Call { r#type: Some(kind), ..Default::default() }
}

fn optional<T: Default>(value: Option<T>) -> MessageField<T> {
    value.map(MessageField::some).unwrap_or_default()
}

pub fn accept(
    offers: impl IntoIterator<Item = OfferID>,
    operations: Vec<offer::Operation>,
    filters: Option<Filters>,
) -> Call {
    let accept = call::Accept {
        offer_ids: offers.into_iter().collect(),
        operations,
        filters: optional(filters),
        ..Default::default()
    };
    Call { accept: accept.into(), ..call_of(call::Type::ACCEPT) }
}

/// The operation that launches tasks, for [`accept`].
pub fn launch(tasks: Vec<TaskInfo>) -> offer::Operation {
    let launch = offer::operation::Launch { task_infos: tasks, ..Default::default() };
    offer::Operation {
        r#type: Some(offer::operation::Type::LAUNCH),
        launch: launch.into(),
        ..Default::default()
    }
}

/// The operation that launches tasks together under one executor, for [`accept`].
pub fn launch_group(
    executor: tepui_proto::mesos::v1::ExecutorInfo,
    tasks: Vec<TaskInfo>,
) -> offer::Operation {
    let launch_group = offer::operation::LaunchGroup {
        executor: executor.into(),
        task_group: TaskGroupInfo { tasks, ..Default::default() }.into(),
        ..Default::default()
    };
    offer::Operation {
        r#type: Some(offer::operation::Type::LAUNCH_GROUP),
        launch_group: launch_group.into(),
        ..Default::default()
    }
}

pub fn decline(offers: impl IntoIterator<Item = OfferID>, filters: Option<Filters>) -> Call {
    let decline = call::Decline {
        offer_ids: offers.into_iter().collect(),
        filters: optional(filters),
        ..Default::default()
    };
    Call { decline: decline.into(), ..call_of(call::Type::DECLINE) }
}

pub fn accept_inverse_offers(offers: impl IntoIterator<Item = OfferID>, filters: Option<Filters>) -> Call {
    let accept_inverse_offers = call::AcceptInverseOffers {
        inverse_offer_ids: offers.into_iter().collect(),
        filters: optional(filters),
        ..Default::default()
    };
    Call { accept_inverse_offers: accept_inverse_offers.into(), ..call_of(call::Type::ACCEPT_INVERSE_OFFERS) }
}

pub fn decline_inverse_offers(offers: impl IntoIterator<Item = OfferID>, filters: Option<Filters>) -> Call {
    let decline_inverse_offers = call::DeclineInverseOffers {
        inverse_offer_ids: offers.into_iter().collect(),
        filters: optional(filters),
        ..Default::default()
    };
    Call {
        decline_inverse_offers: decline_inverse_offers.into(),
        ..call_of(call::Type::DECLINE_INVERSE_OFFERS)
    }
}

pub fn revive(roles: Vec<String>) -> Call {
    let revive = call::Revive { roles, ..Default::default() };
    Call { revive: revive.into(), ..call_of(call::Type::REVIVE) }
}

pub fn suppress(roles: Vec<String>) -> Call {
    let suppress = call::Suppress { roles, ..Default::default() };
    Call { suppress: suppress.into(), ..call_of(call::Type::SUPPRESS) }
}

pub fn kill(task: TaskID, agent: Option<AgentID>, policy: Option<KillPolicy>) -> Call {
    let kill = call::Kill {
        task_id: task.into(),
        agent_id: optional(agent),
        kill_policy: optional(policy),
        ..Default::default()
    };
    Call { kill: kill.into(), ..call_of(call::Type::KILL) }
}

pub fn shutdown(executor: ExecutorID, agent: AgentID) -> Call {
    let shutdown =
        call::Shutdown { executor_id: executor.into(), agent_id: agent.into(), ..Default::default() };
    Call { shutdown: shutdown.into(), ..call_of(call::Type::SHUTDOWN) }
}

/// `None` if the status needs no acknowledgement: it has no uuid, or comes from no agent.
pub fn acknowledge(status: &TaskStatus) -> Option<Call> {
    let uuid = status.uuid.clone()?;
    let acknowledge = call::Acknowledge {
        agent_id: status.agent_id.as_option()?.clone().into(),
        task_id: status.task_id.clone(),
        uuid,
        ..Default::default()
    };
    Some(Call { acknowledge: acknowledge.into(), ..call_of(call::Type::ACKNOWLEDGE) })
}

/// `None` if the status needs no acknowledgement.
pub fn acknowledge_operation(status: &OperationStatus) -> Option<Call> {
    let acknowledge = call::AcknowledgeOperationStatus {
        agent_id: status.agent_id.clone(),
        resource_provider_id: status.resource_provider_id.clone(),
        uuid: status.uuid.as_option()?.value.clone(),
        operation_id: status.operation_id.as_option()?.clone().into(),
        ..Default::default()
    };
    Some(Call {
        acknowledge_operation_status: acknowledge.into(),
        ..call_of(call::Type::ACKNOWLEDGE_OPERATION_STATUS)
    })
}

pub fn reconcile(tasks: impl IntoIterator<Item = (TaskID, Option<AgentID>)>) -> Call {
    let tasks = tasks.into_iter().map(|(task, agent)| call::reconcile::Task {
        task_id: task.into(),
        agent_id: optional(agent),
        ..Default::default()
    });
    let reconcile = call::Reconcile { tasks: tasks.collect(), ..Default::default() };
    Call { reconcile: reconcile.into(), ..call_of(call::Type::RECONCILE) }
}

pub fn reconcile_operations(operations: Vec<call::reconcile_operations::Operation>) -> Call {
    let reconcile_operations = call::ReconcileOperations { operations, ..Default::default() };
    Call { reconcile_operations: reconcile_operations.into(), ..call_of(call::Type::RECONCILE_OPERATIONS) }
}

pub fn message(agent: AgentID, executor: ExecutorID, data: Vec<u8>) -> Call {
    let message =
        call::Message { agent_id: agent.into(), executor_id: executor.into(), data, ..Default::default() };
    Call { message: message.into(), ..call_of(call::Type::MESSAGE) }
}

pub fn request(requests: Vec<Request>) -> Call {
    let request = call::Request { requests, ..Default::default() };
    Call { request: request.into(), ..call_of(call::Type::REQUEST) }
}

pub fn teardown() -> Call {
    call_of(call::Type::TEARDOWN)
}

/// Replaces the framework's description; the session uses it for every later subscription too.
pub fn update_framework(
    framework: FrameworkInfo,
    suppressed_roles: Vec<String>,
    offer_constraints: Option<OfferConstraints>,
) -> Call {
    let update_framework = call::UpdateFramework {
        framework_info: framework.into(),
        suppressed_roles,
        offer_constraints: optional(offer_constraints),
        ..Default::default()
    };
    Call { update_framework: update_framework.into(), ..call_of(call::Type::UPDATE_FRAMEWORK) }
}

pub(super) fn subscribe(
    framework: &FrameworkInfo,
    suppressed_roles: &[String],
    offer_constraints: &MessageField<OfferConstraints>,
) -> Call {
    let subscribe = call::Subscribe {
        framework_info: framework.clone().into(),
        suppressed_roles: suppressed_roles.to_vec(),
        offer_constraints: offer_constraints.clone(),
        ..Default::default()
    };
    Call { framework_id: framework.id.clone(), subscribe: subscribe.into(), ..call_of(call::Type::SUBSCRIBE) }
}
