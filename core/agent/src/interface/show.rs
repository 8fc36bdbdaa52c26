//! One line for each input and effect, so that a trace of the agent reads as a story.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::executor;
use tepui_proto::tepui::agent::v1 as link;
use tepui_types::{Answer, ContainerEvent, ContainerOp};

use crate::{Effect, Input, LinkId, Load};

impl fmt::Display for LinkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "link {}", self.0)
    }
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Input::Start => write!(f, "start"),
            Input::LinkUp { link } => write!(f, "{link} is up"),
            Input::LinkEvent { link, event } => write!(f, "{link} -> {}", LinkEvent(event)),
            Input::LinkDown { link, reason } => write!(f, "{link} is down: {reason}"),
            Input::Executor { conn, call, .. } => write!(f, "conn {} -> {}", conn.0, ExecutorCall(call)),
            Input::ExecutorClosed { conn } => write!(f, "conn {} closed", conn.0),
            Input::Operator { conn, call, .. } => {
                write!(f, "conn {} -> {:?}", conn.0, call.r#type.unwrap_or_default())
            }
            Input::OperatorClosed { conn } => write!(f, "conn {} closed", conn.0),
            Input::Container(event) => write!(f, "container {}", EventLine(event)),
            Input::Unregister => write!(f, "unregister"),
            Input::Used { samples } => write!(f, "{} containers measured", samples.len()),
            Input::Load(load) => {
                let Load { five_minutes, fifteen_minutes, cpu_pressure, memory_pressure } = load;
                let (cpu, memory) = (cpu_pressure.unwrap_or(0.0), memory_pressure.unwrap_or(0.0));
                write!(f, "load {five_minutes} {fifteen_minutes}, pressure cpu {cpu}% memory {memory}%")
            }
            Input::Memory { containers, .. } => {
                write!(f, "memory of {} containers measured", containers.len())
            }
            Input::DiskUsage { used } => write!(f, "disk used {used}"),
            Input::DiskRoom(room) if room.is_short => write!(f, "disk is short of room"),
            Input::DiskRoom(_) => write!(f, "disk has room"),
            Input::Sandboxes { sandboxes, .. } => write!(f, "{} sandboxes measured", sandboxes.len()),
        }
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Effect::Connect { link } => write!(f, "connect {link}"),
            Effect::Master { call, .. } => write!(f, "master <- {}", LinkCall(call)),
            Effect::Answer { conn, answer } => match answer {
                Answer::Accepted => write!(f, "conn {} <- 202", conn.0),
                Answer::Ok => write!(f, "conn {} <- 200", conn.0),
                Answer::NoContent => write!(f, "conn {} <- 204", conn.0),
                Answer::Body(response) => {
                    write!(f, "conn {} <- 200 {:?}", conn.0, response.r#type.unwrap_or_default())
                }
                Answer::Refused(refusal) => write!(f, "conn {} <- {refusal}", conn.0),
            },
            Effect::OpenExecutor { conn } => write!(f, "conn {} <- 200, open", conn.0),
            Effect::Executor { conn, event } | Effect::Kill { conn, event } => {
                write!(f, "conn {} <- {}", conn.0, ExecutorEvent(event))
            }
            Effect::CloseExecutor { conn } => write!(f, "conn {} closes", conn.0),
            Effect::Container(op) => write!(f, "container {}", OpLine(op)),
            Effect::Transition(transition) => write!(f, "log {transition:?}"),
            Effect::Publish { state } => write!(f, "publish version {}", state.version),
            Effect::Exit { message, failed } => {
                write!(f, "exit{}: {message}", if *failed { " as failed" } else { "" })
            }
        }
    }
}

/// A status in one line.
struct Status<'a>(&'a pb::TaskStatus);

impl fmt::Display for Status<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.0.task_id.value, self.0.state)?;
        if let Some(reason) = self.0.reason {
            write!(f, " {reason:?}")?;
        }
        match &self.0.message {
            Some(message) => write!(f, " '{message}'"),
            None => Ok(()),
        }
    }
}

struct LinkCall<'a>(&'a link::Call);

impl fmt::Display for LinkCall<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let call = self.0;
        write!(f, "{:?}", call.r#type.unwrap_or_default())?;
        f.write_str(if call.in_order == Some(true) { " in order" } else { "" })?;
        if let Some(subscribe) = call.subscribe.as_option() {
            subscribe_line(f, subscribe)?;
        }
        if let Some(update) = call.update.as_option() {
            write!(f, " {}", Status(&update.status))?;
            if update.latest_state != update.status.state {
                write!(f, " latest {:?}", update.latest_state)?;
            }
        }
        if let Some(pressure) = call.disk_pressure.as_option() {
            write!(f, " {}", if pressure.is_on { "on" } else { "off" })?;
        }
        if let Some(update) = call.update_operation.as_option() {
            write!(f, " {:?}", update.status.state)?;
        }
        oversubscribed(f, &call.update_resources.oversubscribed_resources)?;
        if let Some(exited) = call.exited_executor.as_option() {
            write!(f, " {} status {}", exited.executor_id.value, exited.status)?;
        }
        if let Some(message) = call.message.as_option() {
            write!(f, " of {} ({} bytes)", message.executor_id.value, message.data.len())?;
        }
        Ok(())
    }
}

fn subscribe_line(f: &mut fmt::Formatter<'_>, subscribe: &link::call::Subscribe) -> fmt::Result {
    let id = subscribe.agent_info.id.as_option().map_or("new", |id| id.value.as_str());
    write!(f, " {id}")?;
    f.write_str(if subscribe.disk_pressure.is_set() { " under disk pressure" } else { "" })?;
    for task in &subscribe.tasks {
        write!(f, " task {} {:?}", task.task_id.value, task.state)?;
    }
    for executor in &subscribe.executors {
        write!(f, " executor {}", executor.executor_id.value)?;
    }
    for operation in &subscribe.operations {
        write!(f, " operation {:?}", operation.latest_status.state)?;
    }
    oversubscribed(f, &subscribe.oversubscribed_resources)
}

fn oversubscribed(f: &mut fmt::Formatter<'_>, resources: &[pb::Resource]) -> fmt::Result {
    for resource in resources {
        write!(f, " oversubscribed {}:{}", resource.name, resource.scalar.value)?;
    }
    Ok(())
}

struct LinkEvent<'a>(&'a link::Event);

impl fmt::Display for LinkEvent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let event = self.0;
        write!(f, "{:?}", event.r#type.unwrap_or_default())?;
        if let Some(subscribed) = event.subscribed.as_option() {
            write!(f, " as {}", subscribed.agent_id.value)?;
        }
        if let Some(launch) = event.launch.as_option() {
            write!(f, " {}", launch.task.task_id.value)?;
        }
        if let Some(group) = event.launch_group.as_option() {
            write!(f, " {}", task_ids(&group.task_group.tasks))?;
        }
        if let Some(kill) = event.kill.as_option() {
            write!(f, " {}", kill.task_id.value)?;
        }
        if let Some(acknowledge) = event.acknowledge.as_option() {
            write!(f, " {}", acknowledge.task_id.value)?;
        }
        Ok(())
    }
}

struct ExecutorCall<'a>(&'a executor::Call);

impl fmt::Display for ExecutorCall<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of {}", self.0.r#type.unwrap_or_default(), self.0.executor_id.value)?;
        match self.0.update.as_option() {
            Some(update) => write!(f, ": {}", Status(&update.status)),
            None => Ok(()),
        }
    }
}

struct ExecutorEvent<'a>(&'a executor::Event);

impl fmt::Display for ExecutorEvent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let event = self.0;
        write!(f, "{:?}", event.r#type.unwrap_or_default())?;
        if let Some(subscribed) = event.subscribed.as_option() {
            write!(f, " {}", subscribed.executor_info.executor_id.value)?;
        }
        if let Some(launch) = event.launch.as_option() {
            write!(f, " {}", launch.task.task_id.value)?;
        }
        if let Some(group) = event.launch_group.as_option() {
            write!(f, " {}", task_ids(&group.task_group.tasks))?;
        }
        if let Some(kill) = event.kill.as_option() {
            write!(f, " {}", kill.task_id.value)?;
            if let Some(grace) = kill.kill_policy.grace_period.as_option() {
                write!(f, " grace {}ns", grace.nanoseconds)?;
            }
        }
        if let Some(acknowledged) = event.acknowledged.as_option() {
            write!(f, " {}", acknowledged.task_id.value)?;
        }
        if let Some(message) = event.message.as_option() {
            write!(f, " ({} bytes)", message.data.len())?;
        }
        Ok(())
    }
}

fn task_ids(tasks: &[pb::TaskInfo]) -> String {
    let ids: Vec<&str> = tasks.iter().map(|task| task.task_id.value.as_str()).collect();
    ids.join(",")
}

struct OpLine<'a>(&'a ContainerOp);

impl fmt::Display for OpLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ContainerOp::Recover { known } => {
                write!(f, "recover")?;
                known.iter().try_for_each(|known| write!(f, " {}", known.id))
            }
            ContainerOp::Launch(spec) => write!(f, "launch {}{}", spec.id, Amounts(&spec.resources)),
            ContainerOp::Update { id, resources, .. } => write!(f, "update {id}{}", Amounts(resources)),
            ContainerOp::Examine { id } => write!(f, "examine {id}"),
            ContainerOp::Signal { id, signal } => write!(f, "signal {id} {signal}"),
            ContainerOp::Destroy { id } => write!(f, "destroy {id}"),
            ContainerOp::Evict { id, why } => {
                write!(f, "evict {id} '{}'", why.message.as_deref().unwrap_or_default())
            }
            ContainerOp::Remove { id, .. } => write!(f, "remove {id}"),
            ContainerOp::RemovePath { path } => write!(f, "remove path {path}"),
            ContainerOp::CreateVolume { path } => write!(f, "create volume {path}"),
            ContainerOp::DestroyVolume { path } => write!(f, "destroy volume {path}"),
        }
    }
}

/// The scalars among resources, after a blank.
struct Amounts<'a>(&'a [pb::Resource]);

impl fmt::Display for Amounts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, resource) in self.0.iter().enumerate() {
            let separator = if i == 0 { " " } else { ";" };
            match resource.scalar.as_option() {
                Some(amount) => write!(f, "{separator}{}:{}", resource.name, amount.value)?,
                None => write!(f, "{separator}{}", resource.name)?,
            }
        }
        Ok(())
    }
}

struct EventLine<'a>(&'a ContainerEvent);

impl fmt::Display for EventLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ContainerEvent::Recovered { containers } => {
                write!(f, "recovered")?;
                containers.iter().try_for_each(|container| {
                    write!(f, " {}{}", container.id, if container.ended.is_some() { " (ended)" } else { "" })
                })
            }
            ContainerEvent::Launched { id, pid } => write!(f, "{id} launched as pid {pid}"),
            ContainerEvent::LaunchFailed { id, stage, message } => {
                write!(f, "{id} not launched ({stage:?}): {message}")
            }
            ContainerEvent::UpdateFailed { id, message } => write!(f, "{id} not updated: {message}"),
            ContainerEvent::Examined { id, killed: None } => write!(f, "{id} was not short of memory"),
            ContainerEvent::Examined { id, killed: Some(_) } => write!(f, "{id} was short of memory"),
            ContainerEvent::Exited { id, termination } => match termination.status {
                Some(status) => write!(f, "{id} exited with status {status}"),
                None => write!(f, "{id} exited"),
            },
            ContainerEvent::NoSuchContainer { id } => write!(f, "{id} is not there"),
            ContainerEvent::PathDone { path, error: None } => write!(f, "path {path} done"),
            ContainerEvent::PathDone { path, error: Some(error) } => write!(f, "path {path}: {error}"),
        }
    }
}
