//! Frameworks and operators: their calls.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::framework_info::capability::Type as Capability;
use tepui_proto::mesos::v1::master;
use tepui_proto::mesos::v1::scheduler::{Call, call};
use tepui_types::ConnId;

use super::words::{filters, offer_ids, option, options};
use super::{Framework, Script};
use crate::Input;

/// Frameworks.
impl Script {
    pub(super) fn framework(&mut self, name: &str, words: &[&str]) {
        let mut capabilities = Vec::new();
        for (word, capability) in [
            ("multi", Capability::MULTI_ROLE),
            ("pa", Capability::PARTITION_AWARE),
            ("refine", Capability::RESERVATION_REFINEMENT),
            ("revocable", Capability::REVOCABLE_RESOURCES),
            ("shares", Capability::SHARED_RESOURCES),
        ] {
            if words.contains(&word) {
                capabilities
                    .push(pb::framework_info::Capability { r#type: Some(capability), ..Default::default() });
            }
        }
        let roles: Vec<String> = options(words, "role").map(String::from).collect();
        let multi = words.contains(&"multi");
        let id = option(words, "id").map(|id| pb::FrameworkID { value: id.into(), ..Default::default() });
        let old = self.frameworks.get(name).filter(|_| !words.contains(&"new"));
        let known = old.and_then(|known| known.info.id.as_option().cloned());
        let info = pb::FrameworkInfo {
            user: option(words, "user").unwrap_or("me").into(),
            name: name.into(),
            id: id.or(known).into(),
            failover_timeout: option(words, "failover").map(|seconds| seconds.parse().expect("seconds")),
            checkpoint: words.contains(&"checkpoint").then_some(true),
            role: (!multi).then(|| roles.first().cloned()).flatten(),
            roles: if multi { roles } else { Vec::new() },
            principal: option(words, "principal").map(String::from),
            capabilities,
            ..Default::default()
        };
        let suppressed = options(words, "suppress").map(String::from).collect();
        self.frameworks.insert(name.into(), Framework { info, suppressed, ..Default::default() });
        self.subscribe_framework(name);
    }

    pub(super) fn subscribe_framework(&mut self, name: &str) {
        let conn = self.connect(name);
        let framework = self.frameworks.get_mut(name).expect("a framework");
        framework.conn = conn;
        let subscribe = call::Subscribe {
            framework_info: framework.info.clone().into(),
            suppressed_roles: framework.suppressed.clone(),
            ..Default::default()
        };
        let call = Call {
            framework_id: framework.info.id.clone(),
            r#type: Some(call::Type::SUBSCRIBE),
            subscribe: subscribe.into(),
            ..Default::default()
        };
        self.step(Input::Scheduler {
            conn: ConnId(conn),
            stream_id: None,
            principal: None,
            call: Box::new(call),
        });
    }

    /// A call on the framework's newest stream; the answer is printed unless it is 202.
    pub(super) fn call(&mut self, name: &str, r#type: call::Type, change: impl FnOnce(&mut Call)) {
        let conn = self.connect(name);
        let framework = &self.frameworks[name];
        let stream_id = Some(framework.stream_id.clone());
        let mut call =
            Call { framework_id: framework.info.id.clone(), r#type: Some(r#type), ..Default::default() };
        change(&mut call);
        let before = self.said.len();
        self.step(Input::Scheduler { conn: ConnId(conn), stream_id, principal: None, call: Box::new(call) });
        let accepted = format!("{name} <- 202\n");
        if let Some(rest) = self.said[before..].strip_prefix(&accepted).map(String::from) {
            self.said.replace_range(before.., &rest);
        }
        self.conns.remove(&conn);
    }

    /// A call as it came over the wire: `post [stream:id] [principal:p] {json}`.
    pub(super) fn post(&mut self, line: &str) {
        let (head, body) = line.split_at(line.find('{').expect("a JSON object"));
        let head: Vec<&str> = head.split_whitespace().collect();
        let call: Call = tepui_proto::json::from_slice(body.as_bytes()).expect("a call");
        let known = |name: &str| self.frameworks.get(name).map(|framework| framework.stream_id.clone());
        let stream_id = option(&head, "stream").map(|id| known(id).unwrap_or_else(|| id.into()));
        let principal = option(&head, "principal").map(String::from);
        let conn = ConnId(self.connect("caller"));
        self.frameworks.entry("caller".into()).or_default();
        self.step(Input::Scheduler { conn, stream_id, principal, call: Box::new(call) });
    }

    pub(super) fn framework_does(&mut self, name: &str, verb: &str, words: &[&str]) {
        use call::Type;
        match (verb, words) {
            ("close", []) => {
                let conn = ConnId(self.frameworks[name].conn);
                self.step(Input::SchedulerClosed { conn });
            }
            ("back", []) => self.subscribe_framework(name),
            ("accept", words) => self.accept(name, words),
            ("decline", words) => {
                let decline = call::Decline {
                    offer_ids: offer_ids(words),
                    filters: filters(words).into(),
                    ..Default::default()
                };
                self.call(name, Type::DECLINE, |call| call.decline = decline.into());
            }
            ("leaves", words) => {
                let accept = call::AcceptInverseOffers {
                    inverse_offer_ids: offer_ids(words),
                    filters: filters(words).into(),
                    ..Default::default()
                };
                self.call(name, Type::ACCEPT_INVERSE_OFFERS, |call| {
                    call.accept_inverse_offers = accept.into();
                });
            }
            ("stays", words) => {
                let decline = call::DeclineInverseOffers {
                    inverse_offer_ids: offer_ids(words),
                    filters: filters(words).into(),
                    ..Default::default()
                };
                self.call(name, Type::DECLINE_INVERSE_OFFERS, |call| {
                    call.decline_inverse_offers = decline.into();
                });
            }
            ("ack", [task]) => self.ack(name, task),
            ("repeats-ack", [task]) => {
                let earlier = self.frameworks[name].earlier[*task].clone();
                self.acknowledge(name, task, earlier);
            }
            ("ack-operation", [id]) => self.ack_operation(name, id),
            ("kill", [task]) => {
                let (task_id, agent_id) = self.task_at(task);
                let kill =
                    call::Kill { task_id: task_id.into(), agent_id: agent_id.into(), ..Default::default() };
                self.call(name, Type::KILL, |call| call.kill = kill.into());
            }
            ("reconcile", tasks) => {
                let tasks = tasks.iter().map(|task| {
                    let (task_id, agent_id) = self.task_at(task);
                    call::reconcile::Task {
                        task_id: task_id.into(),
                        agent_id: agent_id.into(),
                        ..Default::default()
                    }
                });
                let reconcile = call::Reconcile { tasks: tasks.collect(), ..Default::default() };
                self.call(name, Type::RECONCILE, |call| call.reconcile = reconcile.into());
            }
            ("shutdown", [executor, agent]) => {
                let shutdown = call::Shutdown {
                    executor_id: pb::ExecutorID { value: (*executor).into(), ..Default::default() }.into(),
                    agent_id: self.agent_id(agent).into(),
                    ..Default::default()
                };
                self.call(name, Type::SHUTDOWN, |call| call.shutdown = shutdown.into());
            }
            ("says", [executor, agent]) => {
                let message = call::Message {
                    executor_id: pb::ExecutorID { value: (*executor).into(), ..Default::default() }.into(),
                    agent_id: self.agent_id(agent).into(),
                    ..Default::default()
                };
                self.call(name, Type::MESSAGE, |call| call.message = message.into());
            }
            ("suppress", roles) => {
                let roles = roles.iter().map(|role| String::from(*role)).collect();
                self.call(name, Type::SUPPRESS, |call| {
                    call.suppress = call::Suppress { roles, ..Default::default() }.into();
                });
            }
            ("revive", roles) => {
                let roles = roles.iter().map(|role| String::from(*role)).collect();
                self.call(name, Type::REVIVE, |call| {
                    call.revive = call::Revive { roles, ..Default::default() }.into();
                });
            }
            ("roles", roles) => self.update_framework(name, roles),
            ("lists", []) => self.list(name),
            ("reconcile-operations", operations) => self.reconcile_operations(name, operations),
            ("teardown", []) => self.call(name, Type::TEARDOWN, |_| ()),
            _ => panic!("what does framework {name} do with '{verb}'?"),
        }
    }

    /// What the master remembers of a framework's tasks.
    pub(super) fn list(&mut self, name: &str) {
        let id = tepui_types::FrameworkId::new(self.frameworks[name].info.id.value.as_str());
        let framework = self.master.framework(&id).expect("it is registered").clone();
        let live = framework.tasks.values().map(|task| ("live", task));
        let unreachable = framework.unreachable_tasks.iter().map(|task| ("unreachable", task));
        let completed = framework.completed_tasks.iter().map(|task| ("completed", task));
        for (what, task) in live.chain(unreachable).chain(completed) {
            self.say(&format!("{what} {} {:?}", task.id, task.state()));
        }
    }

    pub(super) fn reconcile_operations(&mut self, name: &str, operations: &[&str]) {
        let operations = operations.iter().map(|operation| {
            let (id, agent_id) = self.task_at(operation);
            let operation_id = pb::OperationID { value: id.value, ..Default::default() };
            call::reconcile_operations::Operation {
                operation_id: operation_id.into(),
                agent_id: agent_id.into(),
                ..Default::default()
            }
        });
        let reconcile = call::ReconcileOperations { operations: operations.collect(), ..Default::default() };
        self.call(name, call::Type::RECONCILE_OPERATIONS, |call| {
            call.reconcile_operations = reconcile.into()
        });
    }

    pub(super) fn update_framework(&mut self, name: &str, roles: &[&str]) {
        let framework = self.frameworks.get_mut(name).expect("a framework");
        framework.info.roles = roles.iter().map(|role| String::from(*role)).collect();
        let update =
            call::UpdateFramework { framework_info: framework.info.clone().into(), ..Default::default() };
        self.call(name, call::Type::UPDATE_FRAMEWORK, |call| call.update_framework = update.into());
    }

    pub(super) fn ack(&mut self, name: &str, task: &str) {
        let update = self.frameworks[name].updates[task].clone();
        self.acknowledge(name, task, update);
    }

    fn acknowledge(&mut self, name: &str, task: &str, (agent_id, uuid): (String, Vec<u8>)) {
        let acknowledge = call::Acknowledge {
            agent_id: pb::AgentID { value: agent_id, ..Default::default() }.into(),
            task_id: pb::TaskID { value: task.into(), ..Default::default() }.into(),
            uuid,
            ..Default::default()
        };
        self.call(name, call::Type::ACKNOWLEDGE, |call| call.acknowledge = acknowledge.into());
    }

    pub(super) fn ack_operation(&mut self, name: &str, id: &str) {
        let status = self.frameworks[name].operations[id].clone();
        let acknowledge = call::AcknowledgeOperationStatus {
            agent_id: status.agent_id.clone(),
            operation_id: (*status.operation_id).clone().into(),
            uuid: status.uuid.value.clone(),
            ..Default::default()
        };
        self.call(name, call::Type::ACKNOWLEDGE_OPERATION_STATUS, |call| {
            call.acknowledge_operation_status = acknowledge.into();
        });
    }

    /// `t1` or `t1@A`.
    pub(super) fn task_at(&self, text: &str) -> (pb::TaskID, Option<pb::AgentID>) {
        let (task, agent) = text.split_once('@').map_or((text, None), |(task, agent)| (task, Some(agent)));
        (pb::TaskID { value: task.into(), ..Default::default() }, agent.map(|agent| self.agent_id(agent)))
    }

    pub(super) fn agent_id(&self, name: &str) -> pb::AgentID {
        let value = self.agents.get(name).map_or(name, |agent| &agent.id).into();
        pb::AgentID { value, ..Default::default() }
    }
}

/// Operators.
impl Script {
    pub(super) fn operator(&mut self, words: &[&str]) {
        use master::call::{self, Type};
        let of = |r#type| master::Call { r#type: Some(r#type), ..Default::default() };
        let call = match words {
            ["subscribe"] => of(Type::SUBSCRIBE),
            ["gone", agent] => {
                let gone =
                    call::MarkAgentGone { agent_id: self.agent_id(agent).into(), ..Default::default() };
                master::Call { mark_agent_gone: gone.into(), ..of(Type::MARK_AGENT_GONE) }
            }
            ["teardown", framework] => {
                let known = self.frameworks.get(*framework).map(|it| it.info.id.value.clone());
                let framework_id = pb::FrameworkID {
                    value: known.unwrap_or_else(|| String::from(*framework)),
                    ..Default::default()
                };
                let teardown = call::Teardown { framework_id: framework_id.into(), ..Default::default() };
                master::Call { teardown: teardown.into(), ..of(Type::TEARDOWN) }
            }
            ["unknown"] => of(Type::UNKNOWN),
            _ => panic!("what does an operator do with {words:?}?"),
        };
        let conn = ConnId(self.connect("operator"));
        self.step(Input::Operator { conn, principal: None, call: Box::new(call) });
    }
    /// A call as it came over the wire.
    pub(super) fn operator_call(&mut self, line: &str) {
        let mut body = String::from(line.trim_start_matches("call").trim());
        for (name, agent) in self.agents.iter().rev() {
            body = body.replace(&format!("@{name}\""), &format!("{}\"", agent.id));
        }
        let call: master::Call = tepui_proto::json::from_slice(body.as_bytes()).expect("a call");
        let conn = ConnId(self.connect("operator"));
        self.step(Input::Operator { conn, principal: None, call: Box::new(call) });
    }
}
