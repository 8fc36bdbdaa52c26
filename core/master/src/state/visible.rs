//! The state as one principal may view it.
//!
//! Invisible parts are absent: frameworks, tasks, executors, roles, and resources reserved for roles. Documents are
//! rendered from this instead of the whole state.

use alloc::sync::Arc;
use alloc::vec::Vec;

use tepui_authz::{Action, Authorizer, Subject};
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::master::Event;
use tepui_proto::mesos::v1::master::event::Type;
use tepui_resources::{Resource, Resources};
use tepui_types::{FrameworkId, TaskId};

use super::{Agent, Executor, Framework, Map, Operation, Recent, State, Tallies, Task};

impl State {
    /// What `subject` may see of it. Cheap if there are no rules.
    pub fn visible_to(&self, authorizer: &Authorizer, subject: Subject<'_>) -> State {
        match authorizer.is_set() {
            true => Viewer { authorizer, subject }.state(self),
            false => self.clone(),
        }
    }
}

/// What `subject` may see of an event, given the state after it; none if nothing.
pub fn event_seen(
    state: &State,
    event: &Event,
    authorizer: &Authorizer,
    subject: Subject<'_>,
) -> Option<Event> {
    let viewer = Viewer { authorizer, subject };
    let framework = |id: &pb::FrameworkID| {
        let id = FrameworkId::from(id);
        let live = state.frameworks.get(&id);
        live.or_else(|| state.completed_frameworks.get(&id))
            .filter(|framework| viewer.can_view_framework(framework))
    };
    let user_seen = |user: &str| viewer.is_authorized(Action::ViewFramework, user);
    let seen = match event.r#type.unwrap_or(Type::UNKNOWN) {
        Type::TASK_ADDED => {
            let task = &event.task_added.task;
            let user = task.user.as_deref().filter(|user| !user.is_empty());
            framework(&task.framework_id)
                .is_some_and(|it| viewer.is_authorized(Action::ViewTask, user.unwrap_or(&it.info.user)))
        }
        Type::TASK_UPDATED => framework(&event.task_updated.framework_id).is_some_and(|it| {
            let id = TaskId::from(&*event.task_updated.status.task_id);
            let live = it.tasks.get(&id).or_else(|| it.unreachable_tasks.get(&id));
            match live.or_else(|| it.completed_tasks.get(&id)) {
                Some(task) => viewer.can_view_task(task, it),
                None => viewer.is_authorized(Action::ViewTask, &it.info.user),
            }
        }),
        Type::FRAMEWORK_ADDED => user_seen(&event.framework_added.framework.framework_info.user),
        Type::FRAMEWORK_UPDATED => user_seen(&event.framework_updated.framework.framework_info.user),
        Type::FRAMEWORK_REMOVED => user_seen(&event.framework_removed.framework_info.user),
        Type::AGENT_ADDED => return Some(viewer.agent_added(event)),
        Type::UNKNOWN | Type::SUBSCRIBED | Type::HEARTBEAT | Type::ERROR | Type::AGENT_REMOVED => true,
    };
    seen.then(|| event.clone())
}

/// The principal whose view is computed.
struct Viewer<'a> {
    authorizer: &'a Authorizer,
    subject: Subject<'a>,
}

impl Viewer<'_> {
    fn is_authorized(&self, action: Action, object: &str) -> bool {
        self.authorizer.allows(self.subject, action, Some(object))
    }

    fn state(&self, all: &State) -> State {
        let frameworks: Map<_, _> = all
            .frameworks
            .iter()
            .filter(|(_, framework)| self.can_view_framework(framework))
            .map(|(id, framework)| (id.clone(), self.framework(framework)))
            .collect();
        let completed = all
            .completed_frameworks
            .filter_map(|one| self.can_view_framework(one).then(|| self.framework(one)));
        let mut seen = State { frameworks, completed_frameworks: completed, ..all.clone() };
        seen.agents = all.agents.iter().map(|(id, agent)| (id.clone(), self.agent(agent, &seen))).collect();
        seen.recovered_agents =
            all.recovered_agents.iter().map(|(id, info)| (id.clone(), self.agent_info(info))).collect();
        seen.offers = all
            .offers
            .iter()
            .filter(|(_, offer)| seen.frameworks.contains_key(&offer.framework_id))
            .filter(|(_, offer)| self.is_authorized(Action::ViewRole, &offer.role))
            .map(|(id, offer)| (id.clone(), offer.clone()))
            .collect();
        seen.weights = all
            .weights
            .iter()
            .filter(|(role, _)| self.is_authorized(Action::ViewRole, role))
            .map(|(role, weight)| (role.clone(), *weight))
            .collect();
        seen.quotas = all
            .quotas
            .iter()
            .filter(|(role, _)| self.is_authorized(Action::GetQuota, role))
            .map(|(role, quota)| (role.clone(), quota.clone()))
            .collect();
        seen.roles = all.roles.as_ref().map(|roles| {
            Arc::new(
                roles
                    .iter()
                    .filter(|role| self.is_authorized(Action::ViewRole, role))
                    .cloned()
                    .collect::<Vec<_>>(),
            )
        });
        if !self.authorizer.allows(self.subject, Action::GetMaintenanceSchedule, None) {
            seen.schedule = Arc::default();
        }
        if !self.authorizer.allows(self.subject, Action::GetMaintenanceStatus, None) {
            seen.machines = Map::default();
        }
        seen.framework_counters = all
            .framework_counters
            .iter()
            .filter(|(id, _)| seen.frameworks.contains_key(id) || seen.completed_frameworks.contains(id))
            .map(|(id, counters)| (id.clone(), counters.clone()))
            .collect();
        seen.tallies = Tallies::of(&seen);
        seen
    }

    fn can_view_framework(&self, framework: &Framework) -> bool {
        self.is_authorized(Action::ViewFramework, &framework.info.user)
    }

    fn framework(&self, all: &Framework) -> Arc<Framework> {
        let mut info = pb::FrameworkInfo::clone(&all.info);
        info.roles.retain(|role| self.is_authorized(Action::ViewRole, role));
        let is_seen = |task: &&Arc<Task>| self.can_view_task(task, all);
        let recent =
            |list: &Recent<_, Arc<Task>>| list.filter_map(|task| is_seen(&task).then(|| task.clone()));
        Arc::new(Framework {
            info: Arc::new(info),
            tasks: all.tasks.values().filter(is_seen).map(|task| (task.id.clone(), task.clone())).collect(),
            unreachable_tasks: recent(&all.unreachable_tasks),
            completed_tasks: recent(&all.completed_tasks),
            ..all.clone()
        })
    }

    fn can_view_task(&self, task: &Task, framework: &Framework) -> bool {
        let user = task.task.user.as_deref().filter(|user| !user.is_empty());
        self.is_authorized(Action::ViewTask, user.unwrap_or(&framework.info.user))
    }

    fn can_view_executor(&self, executor: &Executor, framework: &Framework) -> bool {
        let user = executor.info.command.user.as_deref();
        self.is_authorized(Action::ViewExecutor, user.unwrap_or(&framework.info.user))
    }

    fn agent(&self, all: &Agent, seen: &State) -> Arc<Agent> {
        let tasks = all.tasks.iter().filter(|(framework, task)| {
            seen.frameworks.get(framework).is_some_and(|framework| framework.tasks.contains_key(task))
        });
        let executors = all.executors.iter().filter(|((framework, _), executor)| {
            let framework = seen.frameworks.get(framework);
            framework.is_some_and(|framework| self.can_view_executor(executor, framework))
        });
        let operations = all.operations.iter().filter(|(_, operation)| {
            let framework = operation.framework_id.as_ref();
            framework.is_none_or(|framework| seen.frameworks.contains_key(framework))
                && self.can_view_operation(operation)
        });
        Arc::new(Agent {
            info: self.agent_info(&all.info),
            total: self.resources(&all.total),
            tasks: tasks.cloned().collect(),
            executors: executors.map(|(key, executor)| (key.clone(), executor.clone())).collect(),
            operations: operations.map(|(uuid, operation)| (*uuid, operation.clone())).collect(),
            ..all.clone()
        })
    }

    fn agent_info(&self, all: &Arc<pb::AgentInfo>) -> Arc<pb::AgentInfo> {
        match all.resources.iter().all(|resource| self.can_view_resource(resource)) {
            true => all.clone(),
            false => {
                let mut info = pb::AgentInfo::clone(all);
                info.resources.retain(|resource| self.can_view_resource(resource));
                Arc::new(info)
            }
        }
    }

    fn can_view_resource(&self, resource: &pb::Resource) -> bool {
        let roles = resource.reservations.iter().filter_map(|reservation| reservation.role.as_deref());
        let old = resource.role.as_deref().filter(|role| *role != "*");
        roles.chain(old).all(|role| self.is_authorized(Action::ViewRole, role))
    }

    /// By the roles of its resources; an operation that cannot be read belongs to none.
    fn can_view_operation(&self, operation: &Operation) -> bool {
        let info = tepui_resources::Operation::from_proto(&operation.operation.info).ok().flatten();
        info.is_some_and(|info| info.resources().all(|resource| self.can_view_roles_of(resource)))
    }

    fn agent_added(&self, event: &Event) -> Event {
        let mut event = event.clone();
        let agent = event.agent_added.get_or_insert_default().agent.get_or_insert_default();
        agent.total_resources.retain(|resource| self.can_view_resource(resource));
        agent
            .agent_info
            .get_or_insert_default()
            .resources
            .retain(|resource| self.can_view_resource(resource));
        event
    }

    /// Resources of which every role may be seen.
    fn resources(&self, all: &Resources) -> Resources {
        all.filter(|resource| self.can_view_roles_of(resource))
    }

    fn can_view_roles_of(&self, resource: &Resource) -> bool {
        let reserved = resource.reservations().iter().map(|reservation| &reservation.role);
        let mut roles = reserved.chain(resource.allocation());
        roles.all(|role| self.is_authorized(Action::ViewRole, role.as_str()))
    }
}
