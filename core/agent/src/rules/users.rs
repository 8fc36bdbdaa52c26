//! The users that a framework may use on this agent: the checks of the master, repeated.
//!
//! Applied when tasks are admitted and when an executor launches a container. Absent: resolution of user names.

use alloc::format;
use alloc::string::String;

use tepui_authz::{Action, Subject};
use tepui_proto::mesos::v1 as pb;
use tepui_types::{ProcessUser, ROOT, docker_privilege, is_root, launch_users};

use crate::agent::Agent;
use crate::state::Executor;
use crate::state::launching::Launching;

/// Why a launch is not authorized here.
pub(crate) fn unauthorized(agent: &Agent, launching: &Launching) -> Option<String> {
    let (framework, executor) = (&launching.framework, &launching.executor);
    let no_root = launching.no_root || !may_use_root(agent, framework);
    for task in &launching.tasks {
        for ProcessUser { process, user } in launch_users(&framework.user, Some(executor), task) {
            if !allows(agent, framework, user) || no_root && is_root(user) {
                return Some(format!("Not authorized to launch as user '{user}' ({process}) on this agent"));
            }
        }
    }
    let containers = launching.tasks.iter().map(|task| &task.container).chain([&executor.container]);
    let mut privileges = containers.filter_map(|container| docker_privilege(container));
    let field = privileges.next().filter(|_| no_root)?;
    Some(format!("Not authorized to use '{field}' without the user 'root' on this agent"))
}

/// Whether this agent's rules allow a framework to use root.
pub(crate) fn may_use_root(agent: &Agent, framework: &pb::FrameworkInfo) -> bool {
    allows(agent, framework, ROOT)
}

/// Whether an executor may launch a container as a user: one that was authorized for it or for a task of its, or one that
/// a rule of this agent grants its framework. `None` is the agent's own user.
pub(crate) fn may_launch_as(
    agent: &Agent,
    framework: &pb::FrameworkInfo,
    executor: &Executor,
    user: Option<&str>,
) -> bool {
    if user == executor.user.as_deref() {
        return true;
    }
    let user = user.unwrap_or_default();
    let has = |task: &pb::TaskInfo| {
        launch_users(&framework.user, Some(&executor.info), task).iter().any(|one| one.user == user)
    };
    if executor.live_tasks().any(|task| has(&task.info)) {
        return true;
    }
    let is_granted = agent.config.authorizer.grants(subject(framework), Action::RunTask, Some(user));
    is_granted && !(executor.no_root && is_root(user))
}

fn allows(agent: &Agent, framework: &pb::FrameworkInfo, user: &str) -> bool {
    agent.config.authorizer.allows(subject(framework), Action::RunTask, Some(user))
}

fn subject(framework: &pb::FrameworkInfo) -> Subject<'_> {
    framework.principal.as_deref().into()
}
