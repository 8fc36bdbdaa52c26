//! ACCEPT and its operations.

use alloc::vec::Vec;

use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::scheduler::call;

use super::Script;
use super::words::{filters, is_resource, list, offer_ids, option};

/// ACCEPT.
impl Script {
    pub(super) fn accept(&mut self, name: &str, words: &[&str]) {
        let mut parts = words.split(|word| *word == ":");
        let head = parts.next().expect("offers");
        let rest: Vec<&str> = parts.flatten().copied().collect();
        let agent = self.offered_agent(head);
        let operations = rest.split(|word| *word == ";").filter(|words| !words.is_empty());
        let accept = call::Accept {
            offer_ids: offer_ids(head),
            operations: operations.map(|words| operation(words, &agent)).collect(),
            filters: filters(head).into(),
            ..Default::default()
        };
        self.call(name, call::Type::ACCEPT, |call| call.accept = accept.into());
    }

    pub(super) fn offered_agent(&self, head: &[&str]) -> pb::AgentID {
        let ids = offer_ids(head);
        let offer = ids.iter().find_map(|id| self.master.state().offers.get(&id.into()));
        offer.map_or_else(
            || pb::AgentID { value: "m-S0".into(), ..Default::default() },
            |it| it.agent_id.to_proto(),
        )
    }
}

pub(super) fn operation(words: &[&str], agent: &pb::AgentID) -> pb::offer::Operation {
    use pb::offer::operation::{self, Type};
    let of = |r#type| pb::offer::Operation { r#type: Some(r#type), ..Default::default() };
    let id = option(words, "id").map(|id| pb::OperationID { value: id.into(), ..Default::default() });
    let made = match words {
        ["launch", task, rest @ ..] => {
            let launch = operation::Launch {
                task_infos: std::vec![task_info(task, rest, agent)],
                ..Default::default()
            };
            pb::offer::Operation { launch: launch.into(), ..of(Type::LAUNCH) }
        }
        ["group", executor, rest @ ..] => {
            let tasks =
                rest.iter().filter(|word| !word.contains(':')).map(|task| task_info(task, rest, agent));
            let tasks = tasks.map(|task| pb::TaskInfo { command: task.command, ..task }).collect();
            let mut executor = default_executor(executor, option(rest, "fw"));
            if option(rest, "executor") == Some("revocable") {
                executor.resources = list(&["cpus?:0.1", "mem?:32", "disk?:32"]);
            }
            executor.container = option(rest, "executor-share").map(container).into();
            let group = operation::LaunchGroup {
                executor: executor.into(),
                task_group: pb::TaskGroupInfo { tasks, ..Default::default() }.into(),
                ..Default::default()
            };
            pb::offer::Operation { launch_group: group.into(), ..of(Type::LAUNCH_GROUP) }
        }
        ["reserve", rest @ ..] => {
            let reserve = operation::Reserve { resources: list(rest), ..Default::default() };
            pb::offer::Operation { reserve: reserve.into(), ..of(Type::RESERVE) }
        }
        ["unreserve", rest @ ..] => {
            let unreserve = operation::Unreserve { resources: list(rest), ..Default::default() };
            pb::offer::Operation { unreserve: unreserve.into(), ..of(Type::UNRESERVE) }
        }
        ["create", rest @ ..] => {
            let create = operation::Create { volumes: list(rest), ..Default::default() };
            pb::offer::Operation { create: create.into(), ..of(Type::CREATE) }
        }
        ["destroy", rest @ ..] => {
            let destroy = operation::Destroy { volumes: list(rest), ..Default::default() };
            pb::offer::Operation { destroy: destroy.into(), ..of(Type::DESTROY) }
        }
        ["grow", volume, addition, ..] => {
            let (volume, addition) = (list(&[volume]).remove(0), list(&[addition]).remove(0));
            let grow = operation::GrowVolume {
                volume: volume.into(),
                addition: addition.into(),
                ..Default::default()
            };
            pb::offer::Operation { grow_volume: grow.into(), ..of(Type::GROW_VOLUME) }
        }
        ["shrink", volume, by, ..] => {
            let subtract = pb::value::Scalar { value: by.parse().expect("an amount"), ..Default::default() };
            let volume = list(&[volume]).remove(0);
            let shrink = operation::ShrinkVolume {
                volume: volume.into(),
                subtract: subtract.into(),
                ..Default::default()
            };
            pb::offer::Operation { shrink_volume: shrink.into(), ..of(Type::SHRINK_VOLUME) }
        }
        _ => panic!("what operation is {words:?}?"),
    };
    pb::offer::Operation { id: id.into(), ..made }
}

pub(super) fn task_info(id: &str, words: &[&str], agent: &pb::AgentID) -> pb::TaskInfo {
    let resources: Vec<&str> = words.iter().copied().filter(|word| is_resource(word)).collect();
    let run_as = |user: &str| pb::CommandInfo {
        value: Some("true".into()),
        user: Some(user.into()),
        ..Default::default()
    };
    let mut executor = option(words, "exec").map(custom_executor);
    if let (Some(executor), Some(user)) = (&mut executor, option(words, "exec-as")) {
        executor.command = run_as(user).into();
    }
    let command = pb::CommandInfo { user: option(words, "as").map(Into::into), ..run_as("") };
    let health_check = option(words, "health-as").map(|user| pb::HealthCheck {
        r#type: Some(pb::health_check::Type::COMMAND),
        command: run_as(user).into(),
        ..Default::default()
    });
    let check = option(words, "check-as").map(|user| pb::CheckInfo {
        r#type: Some(pb::check_info::Type::COMMAND),
        command: pb::check_info::Command { command: run_as(user).into(), ..Default::default() }.into(),
        ..Default::default()
    });
    pb::TaskInfo {
        name: id.into(),
        task_id: pb::TaskID { value: id.into(), ..Default::default() }.into(),
        agent_id: agent.clone().into(),
        resources: list(&resources),
        command: executor.is_none().then_some(command).into(),
        executor: executor.into(),
        container: option(words, "docker-user").map(docker).or(option(words, "share").map(container)).into(),
        health_check: health_check.into(),
        check: check.into(),
        ..Default::default()
    }
}

/// A Docker container with a user of its own.
fn docker(user: &str) -> pb::ContainerInfo {
    let parameter = pb::Parameter { key: "user".into(), value: user.into(), ..Default::default() };
    let docker = pb::container_info::DockerInfo {
        image: "image".into(),
        parameters: std::vec![parameter],
        ..Default::default()
    };
    pb::ContainerInfo {
        r#type: pb::container_info::Type::DOCKER,
        docker: docker.into(),
        ..Default::default()
    }
}

/// `share:false` has cgroups of its own.
fn container(share: &str) -> pb::ContainerInfo {
    let linux = pb::LinuxInfo { share_cgroups: Some(share == "true"), ..Default::default() };
    let r#type = pb::container_info::Type::MESOS;
    pb::ContainerInfo { r#type, linux_info: linux.into(), ..Default::default() }
}

/// `e` holds half a cpu.
pub(super) fn custom_executor(id: &str) -> pb::ExecutorInfo {
    pb::ExecutorInfo {
        executor_id: pb::ExecutorID { value: id.into(), ..Default::default() }.into(),
        command: pb::CommandInfo { value: Some("executor".into()), ..Default::default() }.into(),
        resources: list(&["cpus:0.5"]),
        ..Default::default()
    }
}

pub(super) fn default_executor(id: &str, framework_id: Option<&str>) -> pb::ExecutorInfo {
    let framework_id = framework_id.map(|id| pb::FrameworkID { value: id.into(), ..Default::default() });
    pb::ExecutorInfo {
        r#type: Some(pb::executor_info::Type::DEFAULT),
        executor_id: pb::ExecutorID { value: id.into(), ..Default::default() }.into(),
        framework_id: framework_id.into(),
        resources: list(&["cpus:0.1", "mem:32", "disk:32"]),
        ..Default::default()
    }
}
