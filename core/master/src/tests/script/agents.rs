//! Agents: their messages to the master, and their records.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::task_status::Reason;
use tepui_proto::tepui::agent::v1 as link;
use tepui_types::ConnId;

use super::words::{is_resource, list, operation_state, option, task_state};
use super::{Agent, Script};
use crate::Input;

/// Agents.
impl Script {
    pub(super) fn agent(&mut self, name: &str, words: &[&str]) {
        use pb::agent_info::capability::Type;
        let resources: Vec<&str> = words.iter().copied().filter(|word| is_resource(word)).collect();
        let mut capabilities = std::vec![
            Type::MULTI_ROLE,
            Type::HIERARCHICAL_ROLE,
            Type::RESERVATION_REFINEMENT,
            Type::RESIZE_VOLUME,
            Type::AGENT_OPERATION_FEEDBACK,
            Type::AGENT_DRAINING,
            Type::TASK_RESOURCE_LIMITS,
        ];
        if words.contains(&"no-draining") {
            capabilities.retain(|it| *it != Type::AGENT_DRAINING);
        }
        if words.contains(&"no-feedback") {
            capabilities.retain(|it| *it != Type::AGENT_OPERATION_FEEDBACK);
        }
        let claimed = option(words, "id-of").map(|other| self.agents[other].id.clone());
        let info = pb::AgentInfo {
            id: claimed.map(|value| pb::AgentID { value, ..Default::default() }).into(),
            hostname: option(words, "host").unwrap_or(name).into(),
            resources: list(&resources),
            domain: option(words, "zone").map(domain).into(),
            ..Default::default()
        };
        let capability = |r#type| pb::agent_info::Capability { r#type: Some(r#type), ..Default::default() };
        let subscribe = link::call::Subscribe {
            agent_info: info.into(),
            version: "1.12.0".into(),
            pid: format!("slave(1)@{}:5051", option(words, "ip").unwrap_or(name)),
            capabilities: capabilities.into_iter().map(capability).collect(),
            total_resources: list(&resources),
            ..Default::default()
        };
        self.agents.insert(name.into(), Agent { subscribe, ..Default::default() });
        self.subscribe_agent(name);
    }

    pub(super) fn subscribe_agent(&mut self, name: &str) {
        let conn = self.connect(name);
        let frameworks: Vec<pb::FrameworkInfo> = self.frameworks.values().map(|it| it.info.clone()).collect();
        let agent = self.agents.get_mut(name).expect("an agent");
        agent.conn = conn;
        agent.deaf = false;
        let tasks: Vec<pb::Task> = agent.tasks.values().cloned().collect();
        let frameworks =
            frameworks.into_iter().filter(|it| tasks.iter().any(|task| *task.framework_id == *it.id));
        let subscribe = link::call::Subscribe {
            frameworks: frameworks.collect(),
            tasks,
            executors: agent.executors(),
            ..agent.subscribe.clone()
        };
        self.agent_calls(
            name,
            link::Call {
                r#type: Some(link::call::Type::SUBSCRIBE),
                subscribe: subscribe.into(),
                ..Default::default()
            },
        );
    }

    pub(super) fn agent_calls(&mut self, name: &str, call: link::Call) {
        let conn = ConnId(self.agents[name].conn);
        let principal = Some(name.into()); // Each agent has a credential of its own.
        self.step(Input::Agent { conn, principal, call: Box::new(call) });
    }

    pub(super) fn agent_does(&mut self, name: &str, verb: &str, words: &[&str]) {
        use link::call::Type;
        let of = |r#type| link::Call { r#type: Some(r#type), ..Default::default() };
        match (verb, words) {
            ("close", []) => {
                let conn = ConnId(self.agents[name].conn);
                self.step(Input::AgentClosed { conn });
            }
            ("back", []) => self.subscribe_agent(name),
            ("deaf", []) => self.agents.get_mut(name).expect("an agent").deaf = true,
            ("repeats", [task]) => {
                let call = self.agents[name].said[*task].clone();
                self.agent_calls(name, call);
            }
            ("moves", words) => {
                let agent = self.agents.get_mut(name).expect("an agent");
                agent.subscribe.agent_info.get_or_insert_default().hostname =
                    option(words, "host").expect("host").into();
            }
            ("pong", []) => self.agent_calls(name, of(Type::PONG)),
            ("leave", []) => self.agent_calls(name, of(Type::UNREGISTER)),
            // The agent never got it, or forgot it.
            // It remembers the operations that the master knows on it.
            ("keeps", []) => {
                let id = tepui_types::AgentId::new(self.agents[name].id.as_str());
                let operations = self.master.agent(&id).expect("it is registered").operations.clone();
                let operations = operations.values().map(|it| it.operation.clone()).collect();
                self.agents.get_mut(name).expect("an agent").subscribe.operations = operations;
            }
            // All of the framework ended there, tasks under this executor too.
            ("remembers", [framework, executor, share]) => {
                let isolation = link::call::Isolation {
                    framework_id: (*self.frameworks[*framework].info.id).clone().into(),
                    executor_id: pb::ExecutorID { value: (*executor).into(), ..Default::default() }.into(),
                    shares_cgroups: *share == "true",
                    ..Default::default()
                };
                self.agents.get_mut(name).expect("an agent").subscribe.isolations.push(isolation);
            }
            ("completed", [task]) => {
                let agent = self.agents.get_mut(name).expect("an agent");
                let task = agent.tasks.remove(*task).expect("a task");
                agent.subscribe.completed_tasks.push(task);
            }
            ("lost", [task]) => drop(self.agents.get_mut(name).and_then(|agent| agent.tasks.remove(*task))),
            ("update", [task, state, rest @ ..]) => self.update(name, task, state, rest),
            ("exited", [framework, executor]) => {
                let exited = link::call::ExitedExecutor {
                    framework_id: (*self.frameworks[*framework].info.id).clone().into(),
                    executor_id: pb::ExecutorID { value: (*executor).into(), ..Default::default() }.into(),
                    status: 0,
                    ..Default::default()
                };
                self.agents.get_mut(name).expect("an agent").subscribe.executors.clear();
                self.agent_calls(
                    name,
                    link::Call { exited_executor: exited.into(), ..of(Type::EXITED_EXECUTOR) },
                );
            }
            ("resources", resources) => {
                let update =
                    link::call::UpdateResources { total_resources: list(resources), ..Default::default() };
                let agent = self.agents.get_mut(name).expect("an agent");
                agent.subscribe.total_resources = update.total_resources.clone();
                self.agent_calls(
                    name,
                    link::Call { update_resources: update.into(), ..of(Type::UPDATE_RESOURCES) },
                );
            }
            // Its disk is short of room (`on`), or has room again.
            ("disk", [pressure]) => {
                let report = link::call::DiskPressure {
                    is_on: *pressure == "on",
                    available_bytes: Some(3 << 20),
                    ..Default::default()
                };
                let agent = self.agents.get_mut(name).expect("an agent");
                agent.subscribe.disk_pressure = report.clone().into();
                self.agent_calls(
                    name,
                    link::Call { disk_pressure: report.into(), ..of(Type::DISK_PRESSURE) },
                );
            }
            ("operation", [state]) => self.update_operation(name, state),
            ("says", [framework, executor]) => {
                let message = link::call::Message {
                    framework_id: (*self.frameworks[*framework].info.id).clone().into(),
                    executor_id: pb::ExecutorID { value: (*executor).into(), ..Default::default() }.into(),
                    ..Default::default()
                };
                self.agent_calls(name, link::Call { message: message.into(), ..of(Type::MESSAGE) });
            }
            _ => panic!("what does agent {name} do with '{verb}'?"),
        }
    }

    pub(super) fn update(&mut self, name: &str, task: &str, state: &str, words: &[&str]) {
        let uuid = self.uuid();
        let agent = self.agents.get_mut(name).expect("an agent");
        let latest = task_state(option(words, "latest").unwrap_or(state));
        let known = agent.tasks.get_mut(task);
        let framework_id = match (&known, option(words, "of")) {
            (Some(known), _) => known.framework_id.value.clone(),
            (None, Some(framework)) => self.frameworks[framework].info.id.value.clone(),
            (None, None) => panic!("whose task is {task}?"),
        };
        let status = pb::TaskStatus {
            task_id: pb::TaskID { value: task.into(), ..Default::default() }.into(),
            state: task_state(state),
            source: Some(pb::task_status::Source::SOURCE_EXECUTOR),
            reason: words.contains(&"preempted").then_some(Reason::REASON_CONTAINER_PREEMPTED),
            uuid: Some(uuid),
            ..Default::default()
        };
        if let Some(known) = known {
            known.state = latest;
            known.status_update_state = Some(status.state);
            known.statuses.push(status.clone());
        }
        let update = link::call::Update {
            framework_id: pb::FrameworkID { value: framework_id, ..Default::default() }.into(),
            status: status.into(),
            latest_state: latest,
            ..Default::default()
        };
        let r#type = Some(link::call::Type::UPDATE);
        let call = link::Call { r#type, update: update.into(), ..Default::default() };
        self.agents.get_mut(name).expect("an agent").said.insert(task.into(), call.clone());
        self.agent_calls(name, call);
    }

    /// The state of the oldest operation on an agent.
    pub(super) fn update_operation(&mut self, name: &str, state: &str) {
        let id = tepui_types::AgentId::new(self.agents[name].id.as_str());
        let agent = self.master.agent(&id).expect("it is registered");
        let operation = agent.operations.values().next().expect("an operation").operation.clone();
        let uuid = pb::UUID { value: self.uuid(), ..Default::default() };
        let state = operation_state(state);
        let status = pb::OperationStatus { state, uuid: uuid.into(), ..Default::default() };
        let update = link::call::UpdateOperation {
            framework_id: operation.framework_id.clone(),
            operation_uuid: (*operation.uuid).clone().into(),
            status: status.into(),
            latest_state: state,
            ..Default::default()
        };
        let r#type = Some(link::call::Type::UPDATE_OPERATION);
        self.agent_calls(name, link::Call { r#type, update_operation: update.into(), ..Default::default() });
    }

    pub(super) fn uuid(&mut self) -> Vec<u8> {
        self.uuids += 1;
        u128::from(self.uuids).to_be_bytes().to_vec()
    }
}

impl Agent {
    pub(super) fn take_task(&mut self, info: &pb::TaskInfo, framework: &pb::FrameworkInfo) {
        let task = pb::Task {
            name: info.name.clone(),
            task_id: info.task_id.clone(),
            framework_id: (*framework.id).clone().into(),
            executor_id: info.executor.as_option().map(|it| (*it.executor_id).clone()).into(),
            agent_id: info.agent_id.clone(),
            state: pb::TaskState::TASK_STAGING,
            resources: info.resources.clone(),
            container: info.container.clone(),
            ..Default::default()
        };
        self.tasks.insert(info.task_id.value.clone(), task);
        if let Some(executor) = info.executor.as_option()
            && !self.subscribe.executors.iter().any(|known| known.executor_id == executor.executor_id)
        {
            self.subscribe.executors.push(executor.clone());
        }
    }

    pub(super) fn executors(&self) -> Vec<pb::ExecutorInfo> {
        self.subscribe.executors.clone()
    }
}

/// `zone`, which is in the region `r`, or `region/zone`.
pub(in crate::tests) fn domain(place: &str) -> pb::DomainInfo {
    use pb::domain_info::FaultDomain;
    use pb::domain_info::fault_domain::{RegionInfo, ZoneInfo};
    let (region, zone) = place.split_once('/').unwrap_or(("r", place));
    let fault = FaultDomain {
        region: RegionInfo { name: region.into(), ..Default::default() }.into(),
        zone: ZoneInfo { name: zone.into(), ..Default::default() }.into(),
        ..Default::default()
    };
    pb::DomainInfo { fault_domain: fault.into(), ..Default::default() }
}
