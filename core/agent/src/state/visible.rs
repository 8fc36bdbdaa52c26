//! The agent's state as one principal may see it: what is not to be seen is simply not there.

use alloc::sync::Arc;

use tepui_authz::{Action, Authorizer, Subject};
use tepui_proto::mesos::v1 as pb;
use tepui_resources::{Operation, Resource};
use tepui_types::FrameworkId;

use super::{Container, Executor, Framework, State, Task};

/// What is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Frameworks, executors and tasks.
    Everything,
    /// Sandboxes and nothing else.
    Sandboxes,
    /// Containers and nothing else.
    Containers,
}

impl State {
    /// What `subject` may see of it. Cheap if there are no rules.
    pub fn visible_to(
        self: &Arc<Self>,
        authorizer: &Authorizer,
        subject: Subject<'_>,
        look: Look,
    ) -> Arc<State> {
        if !authorizer.is_set() && subject != Subject::Claims {
            return self.clone();
        }
        Arc::new(Viewer { authorizer, subject, look }.state(self))
    }
}

struct Viewer<'a> {
    authorizer: &'a Authorizer,
    subject: Subject<'a>,
    look: Look,
}

impl Viewer<'_> {
    fn is_authorized(&self, action: Action, user: &str) -> bool {
        self.authorizer.allows(self.subject, action, Some(user))
    }

    fn state(&self, all: &State) -> State {
        let is_seen =
            |framework: &&Arc<Framework>| self.look != Look::Everything || self.can_view_framework(framework);
        let live = all.frameworks.values().filter(is_seen);
        let completed = all.completed_frameworks.iter().filter(is_seen);
        let containers = all.containers.iter().filter(|(_, one)| self.container(all, one));
        let operations = all.operations.iter().filter(|(_, one)| self.can_view_operation(all, one));
        State {
            info: self.info(&all.info),
            total: all.total.filter(|resource| self.can_view_resource(resource)),
            operations: operations.map(|(id, one)| (*id, one.clone())).collect(),
            containers: containers.map(|(id, one)| (id.clone(), one.clone())).collect(),
            frameworks: live.map(|framework| (framework.id.clone(), self.framework(framework))).collect(),
            completed_frameworks: completed.map(|framework| self.framework(framework)).collect(),
            ..all.clone()
        }
    }

    fn info(&self, all: &Arc<pb::AgentInfo>) -> Arc<pb::AgentInfo> {
        let mut info = pb::AgentInfo::clone(all);
        let is_role_seen = |role: &str| role == "*" || self.is_authorized(Action::ViewRole, role);
        info.resources.retain(|resource| {
            let roles = resource.reservations.iter().filter_map(|reservation| reservation.role.as_deref());
            roles.chain(resource.role.as_deref()).all(is_role_seen)
        });
        Arc::new(info)
    }

    fn can_view_resource(&self, resource: &Resource) -> bool {
        let reserved = resource.reservations().iter().map(|reservation| &reservation.role);
        let mut roles = reserved.chain(resource.allocation());
        roles.all(|role| self.is_authorized(Action::ViewRole, role.as_str()))
    }

    fn can_view_framework(&self, framework: &Framework) -> bool {
        self.is_authorized(Action::ViewFramework, &framework.info.user)
    }

    /// By its framework and the roles of its resources; an operation that cannot be read belongs to none.
    fn can_view_operation(&self, all: &State, operation: &pb::Operation) -> bool {
        let id = operation.framework_id.as_option().map(FrameworkId::from);
        let info = Operation::from_proto(&operation.info).ok().flatten();
        id.is_none_or(|id| self.can_view_framework_of(all, &id))
            && info.is_some_and(|info| info.resources().all(|resource| self.can_view_resource(resource)))
    }

    /// A framework without executors here is unknown, and its user with it.
    fn can_view_framework_of(&self, all: &State, id: &FrameworkId) -> bool {
        let completed = || all.completed_frameworks.iter().find(|framework| framework.id == *id);
        match all.frameworks.get(id).or_else(completed) {
            Some(framework) => self.can_view_framework(framework),
            None => self.authorizer.allows(self.subject, Action::ViewFramework, None),
        }
    }

    /// One that was launched by a call: as its executor's, or standing alone.
    fn container(&self, all: &State, container: &Container) -> bool {
        match all.executor_in(container.id.top()) {
            Some((framework, executor)) => {
                let user = executor.info.command.user.as_deref().unwrap_or(&framework.info.user);
                self.is_authorized(Action::ViewContainer, user)
            }
            None => self.authorizer.allows(self.subject, Action::ViewStandaloneContainer, None),
        }
    }

    fn framework(&self, all: &Framework) -> Arc<Framework> {
        let action = match self.look {
            Look::Everything => Action::ViewExecutor,
            Look::Sandboxes => Action::AccessSandbox,
            Look::Containers => Action::ViewContainer,
        };
        let is_seen = |executor: &&Arc<Executor>| {
            self.is_authorized(action, executor.info.command.user.as_deref().unwrap_or(&all.info.user))
        };
        let live = all.executors.values().filter(is_seen);
        let completed = all.completed_executors.iter().filter(is_seen);
        let mut seen = all.clone();
        seen.executors = live.map(|one| (one.id.clone(), self.executor(one, all))).collect();
        seen.completed_executors = completed.map(|one| self.executor(one, all)).collect();
        Arc::new(seen)
    }

    fn executor(&self, all: &Executor, framework: &Framework) -> Arc<Executor> {
        let is_seen = |task: &&Arc<Task>| {
            let user = task.task.user.as_deref().filter(|user| !user.is_empty());
            self.look != Look::Everything
                || self.is_authorized(Action::ViewTask, user.unwrap_or(&framework.info.user))
        };
        let mut seen = all.clone();
        let tasks = all.tasks.values().filter(is_seen);
        seen.tasks = tasks.map(|task| (task.id.clone(), task.clone())).collect();
        seen.completed_tasks = all.completed_tasks.iter().filter(is_seen).cloned().collect();
        Arc::new(seen)
    }
}
