//! Users of the processes of a launch: executor, task, checks.
//!
//! Shared by the master, which authorizes them at admission, and the agent, which authorizes them again and limits the
//! containers that an executor launches to them.
//! Invariant: no process of a launch runs as a user that [`launch_users`] leaves out.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use tepui_proto::mesos::v1 as pb;

/// The user of the agent itself, as far as authorization is concerned.
pub const ROOT: &str = "root";

/// Options of `docker run` that give a container other users or more privileges than its task's user has.
const PRIVILEGED_PARAMETERS: [&str; 11] = [
    "cap-add",
    "cgroup-parent",
    "device",
    "device-cgroup-rule",
    "group-add",
    "pid",
    "privileged",
    "runtime",
    "security-opt",
    "user",
    "userns",
];

/// A process of a launch and its user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessUser<'a> {
    /// The field that decides, as error messages name it.
    pub process: &'static str,
    /// Empty for the agent's own user.
    pub user: &'a str,
}

/// Every user that processes of a task run as. A task without a custom executor runs in a generated one, which has the
/// task's user. A check without a user runs as its task or its executor.
pub fn launch_users<'a>(
    framework_user: &'a str,
    executor: Option<&'a pb::ExecutorInfo>,
    task: &'a pb::TaskInfo,
) -> Vec<ProcessUser<'a>> {
    let executor_user = executor.and_then(|executor| command_user(&executor.command));
    let inherited = executor_user.unwrap_or(framework_user);
    let task_user = command_user(&task.command).unwrap_or(inherited);
    let mut all = alloc::vec![ProcessUser { process: "task", user: task_user }];
    if executor.is_some() {
        all.push(ProcessUser { process: "executor", user: inherited });
    }
    for (process, command) in
        [("health_check", &task.health_check.command), ("check", &task.check.command.command)]
    {
        all.extend(command_user(command).map(|user| ProcessUser { process, user }));
    }
    all
}

/// The user that a command names. An empty name is none.
pub fn command_user(command: &pb::CommandInfo) -> Option<&str> {
    command.user.as_deref().filter(|user| !user.is_empty())
}

/// Whether the name means root; an empty name is the agent's own user.
pub fn is_root(user: &str) -> bool {
    user.is_empty() || user == ROOT
}

/// The first option of a Docker container that exceeds the rights of its task's user and requires root.
pub fn docker_privilege(container: &pb::ContainerInfo) -> Option<String> {
    let docker = container.docker.as_option()?;
    if docker.privileged == Some(true) {
        return Some("container.docker.privileged".into());
    }
    let parameter = docker.parameters.iter().find(|one| PRIVILEGED_PARAMETERS.contains(&one.key.as_str()))?;
    Some(format!("container.docker.parameters '{}'", parameter.key))
}

#[cfg(test)]
mod tests {
    use tepui_proto::json;

    use super::*;

    fn shown(executor: &str, task: &str) -> String {
        let parse = |text: &str| text.replace('\'', "\"");
        let executor: Option<pb::ExecutorInfo> = (!executor.is_empty()).then(|| {
            let text = format!("{{'executor_id':{{'value':'e'}},{executor}}}");
            json::from_slice(parse(&text).as_bytes()).expect("an executor")
        });
        let text = format!("{{'name':'t','task_id':{{'value':'t'}},'agent_id':{{'value':'a'}}{task}}}");
        let task: pb::TaskInfo = json::from_slice(parse(&text).as_bytes()).expect("a task");
        let users = launch_users("svc", executor.as_ref(), &task);
        let shown: Vec<String> = users.iter().map(|one| format!("{}={}", one.process, one.user)).collect();
        shown.join(" ")
    }

    #[test]
    fn every_process_of_a_launch_has_a_user() {
        let custom = "'type':'CUSTOM','command':{'value':'x','user':'alice'}";
        for (executor, task, expected) in [
            ("", "", "task=svc"),
            ("", ",'command':{'value':'x','user':''}", "task=svc"),
            ("", ",'command':{'value':'x','user':'nobody'}", "task=nobody"),
            ("'type':'DEFAULT'", ",'command':{'value':'x','user':'nobody'}", "task=nobody executor=svc"),
            (custom, "", "task=alice executor=alice"),
            (custom, ",'command':{'value':'x','user':'nobody'}", "task=nobody executor=alice"),
            ("'command':{'value':'x','user':'root'}", "", "task=root executor=root"),
            (
                "'type':'DEFAULT'",
                ",'health_check':{'type':'COMMAND','command':{'value':'x','user':'root'}}",
                "task=svc executor=svc health_check=root",
            ),
            (
                "'type':'DEFAULT'",
                ",'check':{'type':'COMMAND','command':{'command':{'value':'x','user':'root'}}}",
                "task=svc executor=svc check=root",
            ),
            ("", ",'health_check':{'type':'COMMAND','command':{'value':'x'}}", "task=svc"),
        ] {
            assert_eq!(shown(executor, task), expected, "{executor} {task}");
        }
        assert!(is_root("root") && is_root("") && !is_root("nobody"));
    }

    #[test]
    fn docker_options_that_exceed_the_user_are_detected() {
        for (docker, expected) in [
            ("", None),
            (",'privileged':false", None),
            (",'privileged':true", Some("container.docker.privileged")),
            (",'parameters':[{'key':'user','value':'0'}]", Some("container.docker.parameters 'user'")),
            (
                ",'parameters':[{'key':'env','value':'A=1'},{'key':'cap-add','value':'ALL'}]",
                Some("container.docker.parameters 'cap-add'"),
            ),
            (",'parameters':[{'key':'hostname','value':'h'}]", None),
        ] {
            let text = format!("{{'type':'DOCKER','docker':{{'image':'i'{docker}}}}}").replace('\'', "\"");
            let container: pb::ContainerInfo = json::from_slice(text.as_bytes()).expect("a container");
            assert_eq!(docker_privilege(&container).as_deref(), expected, "{docker}");
        }
    }
}
