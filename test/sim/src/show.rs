//! One trace line per input and effect; repetitions have none.

use tepui_core_agent as agent;
use tepui_core_master as master;
use tepui_proto::mesos::v1::{self as pb, executor, scheduler};
use tepui_proto::tepui::agent::v1 as link;
use tepui_types::{Answer, ContainerEvent, ContainerOp};

fn word<T: std::fmt::Debug>(r#type: Option<T>) -> String {
    r#type.map_or_else(|| "nothing".into(), |r#type| format!("{:?}", r#type))
}

fn status(status: &pb::TaskStatus) -> String {
    let uuid = match &status.uuid {
        Some(uuid) => uuid.iter().take(4).map(|byte| format!("{byte:02x}")).collect(),
        None => String::from("-"),
    };
    let reason = status.reason.map_or_else(String::new, |reason| format!(" {reason:?}"));
    format!("{} {:?} {uuid}{reason}", status.task_id.value, status.state)
}

fn uuid_text(uuid: &[u8]) -> String {
    uuid.iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

fn answer<T>(answer: &Answer<T>) -> String {
    match answer {
        Answer::Accepted => "accepted".into(),
        Answer::Ok | Answer::NoContent | Answer::Body(_) => "ok".into(),
        Answer::Refused(refusal) => format!("refused {refusal}"),
    }
}

pub(crate) fn master_input(input: &master::Input) -> String {
    match input {
        master::Input::Scheduler { conn, call, .. } => format!("#{} {}", conn.0, scheduler_call(call)),
        master::Input::SchedulerClosed { conn } => format!("#{} scheduler closed", conn.0),
        master::Input::Agent { conn, call, .. } => format!("#{} {}", conn.0, link_call(call)),
        master::Input::AgentClosed { conn } => format!("#{} agent closed", conn.0),
        master::Input::Operator { conn, call, .. } => format!("#{} operator {}", conn.0, word(call.r#type)),
        master::Input::OperatorClosed { conn } => format!("#{} operator closed", conn.0),
        master::Input::Whitelist { .. } => "whitelist".into(),
        master::Input::DiskRoom(_) => "disk room".into(),
        master::Input::Explain { conn, .. } => format!("#{} explain", conn.0),
    }
}

fn scheduler_call(call: &scheduler::Call) -> String {
    use scheduler::call::Type;
    let name = format!("{} {}", call.framework_id.value, word(call.r#type));
    match call.r#type {
        Some(Type::ACCEPT) => {
            let operations = call.accept.operations.iter().map(|operation| {
                let tasks =
                    operation.launch.task_infos.iter().chain(&operation.launch_group.task_group.tasks);
                let tasks: Vec<_> = tasks.map(|task| task.task_id.value.as_str()).collect();
                format!("{} {}{}", word(operation.r#type), tasks.join(","), operation.id.value)
            });
            let operations: Vec<_> = operations.collect();
            let offers: Vec<_> = call.accept.offer_ids.iter().map(|id| id.value.as_str()).collect();
            format!("{name} {} [{}]", offers.join(","), operations.join("; "))
        }
        Some(Type::KILL) => format!("{name} {}", call.kill.task_id.value),
        Some(Type::ACKNOWLEDGE) => {
            format!("{name} {} {}", call.acknowledge.task_id.value, uuid_text(&call.acknowledge.uuid))
        }
        Some(Type::RECONCILE) => {
            let tasks: Vec<_> = call.reconcile.tasks.iter().map(|task| task.task_id.value.as_str()).collect();
            format!("{name} {}", tasks.join(","))
        }
        Some(Type::SHUTDOWN) => format!("{name} {}", call.shutdown.executor_id.value),
        _ => name,
    }
}

fn link_call(call: &link::Call) -> String {
    use link::call::Type;
    let name = word(call.r#type);
    match call.r#type {
        Some(Type::SUBSCRIBE) => {
            let subscribe = &call.subscribe;
            let tasks = subscribe.tasks.iter().map(|task| format!("{}={:?}", task.task_id.value, task.state));
            let tasks: Vec<_> = tasks.collect();
            let executors: Vec<_> =
                subscribe.executors.iter().map(|executor| executor.executor_id.value.as_str()).collect();
            format!(
                "{name} {} {} tasks [{}] executors [{}] operations {}",
                subscribe.agent_info.hostname,
                subscribe.agent_info.id.value,
                tasks.join(" "),
                executors.join(" "),
                subscribe.operations.len()
            )
        }
        Some(Type::UPDATE) => {
            format!("{name} {} latest {:?}", status(&call.update.status), call.update.latest_state)
        }
        Some(Type::UPDATE_OPERATION) => format!("{name} {:?}", call.update_operation.status.state),
        Some(Type::EXITED_EXECUTOR) => format!("{name} {}", call.exited_executor.executor_id.value),
        _ => name,
    }
}

pub(crate) fn master_effect(effect: &master::Effect) -> Option<String> {
    Some(match effect {
        master::Effect::Answer { conn, answer: Answer::Refused(refusal) } => {
            format!("#{} refused {refusal}", conn.0)
        }
        master::Effect::Answer { .. } => return None,
        master::Effect::OpenScheduler { conn, .. } => format!("#{} open", conn.0),
        master::Effect::Scheduler { conn, event } => format!("#{} {}", conn.0, scheduler_event(event)?),
        master::Effect::CloseScheduler { conn } | master::Effect::CloseAgent { conn } => {
            format!("#{} close", conn.0)
        }
        master::Effect::OpenAgent { .. } => return None,
        master::Effect::Agent { conn, event } | master::Effect::Kill { conn, event } => {
            format!("#{} {}", conn.0, link_event(event))
        }
        master::Effect::OpenOperator { .. }
        | master::Effect::Operator { .. }
        | master::Effect::CloseOperator { .. }
        | master::Effect::Explained { .. }
        | master::Effect::SlackTakenBack { .. }
        | master::Effect::Transition(_)
        | master::Effect::Publish { .. } => return None,
        master::Effect::Halt { why } => format!("halt: {why}"),
    })
}

fn scheduler_event(event: &scheduler::Event) -> Option<String> {
    use scheduler::event::Type;
    let name = word(event.r#type);
    Some(match event.r#type {
        Some(Type::HEARTBEAT) => return None,
        Some(Type::OFFERS) => {
            let offers = event.offers.offers.iter().map(|offer| {
                let amounts = offer.resources.iter().map(|resource| {
                    let reserved = if resource.reservations.is_empty() { "" } else { "!" };
                    let volume = if resource.disk.is_set() { "v" } else { "" };
                    format!("{}{reserved}{volume}:{}", resource.name, resource.scalar.value)
                });
                let amounts: Vec<_> = amounts.collect();
                format!("{}@{} {}", offer.id.value, offer.agent_id.value, amounts.join(" "))
            });
            format!("{name} {}", offers.collect::<Vec<_>>().join(", "))
        }
        Some(Type::RESCIND) => format!("{name} {}", event.rescind.offer_id.value),
        Some(Type::UPDATE) => format!("{name} {}", status(&event.update.status)),
        Some(Type::UPDATE_OPERATION_STATUS) => {
            let status = &event.update_operation_status.status;
            format!("{name} {} {:?}", status.operation_id.value, status.state)
        }
        Some(Type::FAILURE) => {
            format!("{name} {} {}", event.failure.agent_id.value, event.failure.executor_id.value)
        }
        Some(Type::ERROR) => format!("{name} {}", event.error.message),
        _ => name,
    })
}

pub(crate) fn link_event(event: &link::Event) -> String {
    use link::event::Type;
    let name = word(event.r#type);
    match event.r#type {
        Some(Type::SUBSCRIBED) => {
            let missing = event.subscribed.missing_tasks.iter().map(|task| task.task_id.value.as_str());
            let missing: Vec<_> = missing.collect();
            let operations = event.subscribed.missing_operations.len();
            let id = &event.subscribed.agent_id.value;
            format!("{name} {id} missing [{}] operations {operations}", missing.join(" "))
        }
        Some(Type::LAUNCH) => {
            let task = &event.launch.task;
            let executor = event.launch.launch_executor;
            format!("{name} {} {} {executor:?}", task.task_id.value, task.executor.executor_id.value)
        }
        Some(Type::LAUNCH_GROUP) => {
            let tasks = event.launch_group.task_group.tasks.iter().map(|task| task.task_id.value.as_str());
            let executor = &event.launch_group.executor.executor_id.value;
            format!("{name} {executor} {}", tasks.collect::<Vec<_>>().join(","))
        }
        Some(Type::KILL) => format!("{name} {}", event.kill.task_id.value),
        Some(Type::ACKNOWLEDGE) => {
            format!("{name} {} {}", event.acknowledge.task_id.value, uuid_text(&event.acknowledge.uuid))
        }
        Some(Type::SHUTDOWN_FRAMEWORK) => format!("{name} {}", event.shutdown_framework.framework_id.value),
        Some(Type::SHUTDOWN_EXECUTOR) => format!("{name} {}", event.shutdown_executor.executor_id.value),
        Some(Type::SHUTDOWN) => format!("{name} {}", event.shutdown.message),
        Some(Type::APPLY_OPERATION) => format!("{name} {}", word(event.apply_operation.operation.r#type)),
        _ => name,
    }
}

pub(crate) fn agent_input(input: &agent::Input) -> Option<String> {
    Some(match input {
        agent::Input::Start => return None,
        agent::Input::LinkUp { link } => format!("link {} up", link.0),
        agent::Input::LinkEvent { event, .. } => link_event(event),
        agent::Input::LinkDown { link, reason } => format!("link {} down: {reason}", link.0),
        agent::Input::Executor { conn, call, .. } => format!("#{} {}", conn.0, executor_call(call)),
        agent::Input::ExecutorClosed { conn } => format!("#{} executor closed", conn.0),
        agent::Input::Operator { conn, call, .. } => format!("#{} {}", conn.0, word(call.r#type)),
        agent::Input::OperatorClosed { conn } => format!("#{} caller closed", conn.0),
        agent::Input::Container(event) => container_event(event),
        agent::Input::Unregister => "unregister".into(),
        agent::Input::DiskUsage { .. }
        | agent::Input::DiskRoom(_)
        | agent::Input::Sandboxes { .. }
        | agent::Input::Used { .. }
        | agent::Input::Load(_)
        | agent::Input::Memory { .. } => return None,
    })
}

fn executor_call(call: &executor::Call) -> String {
    use executor::call::Type;
    let name = format!("{} {}", call.executor_id.value, word(call.r#type));
    match call.r#type {
        Some(Type::SUBSCRIBE) => {
            let tasks = call.subscribe.unacknowledged_tasks.iter().map(|task| task.task_id.value.clone());
            let updates = call.subscribe.unacknowledged_updates.iter().map(|update| status(&update.status));
            let (tasks, updates): (Vec<_>, Vec<_>) = (tasks.collect(), updates.collect());
            format!("{name} tasks [{}] updates [{}]", tasks.join(" "), updates.join(", "))
        }
        Some(Type::UPDATE) => format!("{name} {}", status(&call.update.status)),
        _ => name,
    }
}

fn container_event(event: &ContainerEvent) -> String {
    match event {
        ContainerEvent::Recovered { containers } => {
            let alive = containers.iter().filter(|container| container.ended.is_none()).count();
            format!("recovered {} containers, {alive} alive", containers.len())
        }
        ContainerEvent::Launched { id, .. } => format!("{id} launched"),
        ContainerEvent::LaunchFailed { id, message, .. } => format!("{id} not launched: {message}"),
        ContainerEvent::UpdateFailed { id, .. } => format!("{id} not updated"),
        ContainerEvent::Examined { id, killed } => format!("{id} killed for memory: {}", killed.is_some()),
        ContainerEvent::Exited { id, termination } => format!("{id} exited {:?}", termination.status),
        ContainerEvent::NoSuchContainer { id } => format!("{id} is not there"),
        ContainerEvent::PathDone { path, .. } => format!("{path} done"),
    }
}

pub(crate) fn agent_effect(effect: &agent::Effect) -> Option<String> {
    Some(match effect {
        agent::Effect::Connect { link } => format!("connect {}", link.0),
        agent::Effect::Master { call, .. } => link_call(call),
        agent::Effect::Answer { answer: Answer::Accepted, .. } => return None,
        agent::Effect::Answer { conn, answer: other } => format!("#{} {}", conn.0, answer(other)),
        agent::Effect::OpenExecutor { conn } => format!("#{} open", conn.0),
        agent::Effect::Executor { conn, event } | agent::Effect::Kill { conn, event } => {
            format!("#{} {}", conn.0, executor_event(event))
        }
        agent::Effect::CloseExecutor { conn } => format!("#{} close", conn.0),
        agent::Effect::Container(op) => container_op(op),
        agent::Effect::Publish { .. } | agent::Effect::Transition(_) => return None,
        agent::Effect::Exit { message, failed } => format!("exit (failed: {failed}): {message}"),
    })
}

fn executor_event(event: &executor::Event) -> String {
    use executor::event::Type;
    let name = word(event.r#type);
    match event.r#type {
        Some(Type::LAUNCH) => format!("{name} {}", event.launch.task.task_id.value),
        Some(Type::LAUNCH_GROUP) => {
            let tasks = event.launch_group.task_group.tasks.iter().map(|task| task.task_id.value.as_str());
            format!("{name} {}", tasks.collect::<Vec<_>>().join(","))
        }
        Some(Type::KILL) => format!("{name} {}", event.kill.task_id.value),
        Some(Type::ACKNOWLEDGED) => {
            let acknowledged = &event.acknowledged;
            format!("{name} {} {}", acknowledged.task_id.value, uuid_text(&acknowledged.uuid))
        }
        _ => name,
    }
}

fn container_op(op: &ContainerOp) -> String {
    match op {
        ContainerOp::Recover { known } => format!("recover {} containers", known.len()),
        ContainerOp::Launch(spec) => format!("launch {}", spec.id),
        ContainerOp::Update { id, .. } => format!("update {id}"),
        ContainerOp::Examine { id } => format!("examine {id}"),
        ContainerOp::Signal { id, signal } => format!("signal {signal} {id}"),
        ContainerOp::Destroy { id } => format!("destroy {id}"),
        ContainerOp::Evict { id, .. } => format!("evict {id}"),
        ContainerOp::Remove { id, .. } => format!("remove {id}"),
        ContainerOp::RemovePath { path } => format!("remove {path}"),
        ContainerOp::CreateVolume { path } => format!("create volume {path}"),
        ContainerOp::DestroyVolume { path } => format!("destroy volume {path}"),
    }
}
