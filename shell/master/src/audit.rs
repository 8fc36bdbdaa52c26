//! The master's part of the audit log.
//!
//! Calls are noted on their requests, whose answers contain whether they were allowed. Subscriptions, the admission
//! of agents and the operations of an ACCEPT are decided after the answer has begun: those entries are made of the
//! machine's transitions.

use std::net::SocketAddr;

use tepui_core_master::{Framework, State, Transition};
use tepui_http::{Audit, Deed, Entry, Exchanges, Outcome, Principal, Request};
use tepui_proto::Enumeration;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::task_status::Reason;
use tepui_proto::mesos::v1::{master, scheduler};
use tepui_types::ConnId;

use crate::log::operator::{Subject, subject};
use crate::program::Kind;

type Entity = Vec<(&'static str, String)>;

/// Notes a call of a scheduler that ends or changes something. What an ACCEPT launches is not noted: it is in the log.
pub(crate) fn note_scheduler(request: &Request, call: &scheduler::Call) {
    use scheduler::call::Type;
    let Some(kind) = call.r#type else { return };
    let deed = || Deed::new(kind.proto_name()).on("framework_id", call.framework_id.value.as_str());
    request.note(match kind {
        // Recorded when the machine has decided; only a call that is no call at all is refused by its answer.
        Type::SUBSCRIBE => deed().on("name", call.subscribe.framework_info.name.as_str()).only_refusals(),
        Type::TEARDOWN | Type::UPDATE_FRAMEWORK => deed(),
        Type::KILL => deed().on("task_id", call.kill.task_id.value.as_str()),
        Type::SHUTDOWN => deed()
            .on("executor_id", call.shutdown.executor_id.value.as_str())
            .on("agent_id", call.shutdown.agent_id.value.as_str()),
        _ => return,
    });
}

/// Notes a call of an operator that changes something, or opens the event stream.
pub(crate) fn note_operator(request: &Request, call: &master::Call) {
    let kind = call.r#type.unwrap_or_default();
    let Subject { agent_id, framework_id, roles, resources, machines, .. } = subject(kind, call);
    let parts = [
        ("agent_id", agent_id),
        ("framework_id", framework_id),
        ("roles", roles),
        ("resources", resources),
        ("machines", machines),
    ];
    let mut deed = Deed::new(kind.proto_name());
    for (name, value) in parts {
        if let Some(value) = value {
            deed = deed.on(name, value);
        }
    }
    if let Some(level) = call.set_logging_level.as_option() {
        deed = deed.on("level", level.level.to_string());
    }
    request.note(deed);
}

/// Records what the machine decided by itself.
pub(crate) struct Decisions {
    pub audit: Audit,
    pub exchanges: Exchanges<Kind>,
}

/// Where a decision comes from.
#[derive(Default)]
struct Source {
    peer: Option<SocketAddr>,
    principal: Option<Principal>,
}

impl Decisions {
    /// To be called before the effects behind the transition: those may close the connection it came from.
    pub fn observe(&self, state: &State, transition: &Transition) {
        if !self.audit.is_on() {
            return;
        }
        match transition {
            Transition::AgentRegistered { agent, .. } => {
                let entity = vec![
                    ("agent_id", agent.id.to_string()),
                    ("hostname", agent.info.hostname.clone()),
                    ("pid", agent.pid.to_string()),
                ];
                self.record("REGISTER_AGENT", &self.source(agent.conn()), entity, None);
            }
            Transition::AgentRejected { conn, agent_id, hostname, pid, reason } => {
                let mut entity = vec![("hostname", hostname.clone()), ("pid", pid.to_string())];
                entity.extend(agent_id.as_ref().map(|id| ("agent_id", id.to_string())));
                self.record("REGISTER_AGENT", &self.source(Some(*conn)), entity, Some(reason));
            }
            Transition::FrameworkSubscribed { framework, .. } => {
                let entity = subscription(framework.id.to_string(), &framework.info);
                self.record("SUBSCRIBE", &self.source(framework.conn()), entity, None);
            }
            Transition::FrameworkRejected { conn, info, reason } => {
                let entity = subscription(info.id.value.clone(), info);
                self.record("SUBSCRIBE", &self.source(Some(*conn)), entity, Some(reason));
            }
            _ => self.observe_accept(state, transition),
        }
    }

    /// What a framework did with its offers: operations, and tasks that it may not run.
    fn observe_accept(&self, state: &State, transition: &Transition) {
        match transition {
            Transition::TaskUpdated(update)
                if matches!(
                    update.reason,
                    Some(Reason::REASON_TASK_UNAUTHORIZED | Reason::REASON_TASK_GROUP_UNAUTHORIZED)
                ) =>
            {
                let entity = vec![
                    ("framework_id", update.framework_id.to_string()),
                    ("task_id", update.task_id.to_string()),
                    ("agent_id", update.agent_id.to_string()),
                ];
                let source = self.framework(state.frameworks.get(&update.framework_id).map(|it| &**it));
                self.record("LAUNCH", &source, entity, Some(update.message.as_deref().unwrap_or_default()));
            }
            Transition::OperationUpdated {
                operation, state: pb::OperationState::OPERATION_PENDING, ..
            } => {
                // Those of operators are noted as calls.
                let Some(id) = &operation.framework_id else { return };
                let kind = operation.operation.info.r#type.unwrap_or_default();
                let entity =
                    vec![("framework_id", id.to_string()), ("agent_id", operation.agent_id.to_string())];
                let source = self.framework(state.frameworks.get(id).map(|it| &**it));
                self.record(kind.proto_name(), &source, entity, None);
            }
            Transition::OperationRejected { framework_id, kind, reason, .. } => {
                let entity = vec![("framework_id", framework_id.to_string())];
                let source = self.framework(state.frameworks.get(framework_id).map(|it| &**it));
                self.record(kind.proto_name(), &source, entity, Some(reason));
            }
            _ => (),
        }
    }

    fn source(&self, conn: Option<ConnId>) -> Source {
        let origin = conn.and_then(|conn| self.exchanges.origin(conn));
        origin.map(|(peer, principal)| Source { peer: Some(peer), principal }).unwrap_or_default()
    }

    /// A framework without authentication still has a principal, which it named itself.
    fn framework(&self, framework: Option<&Framework>) -> Source {
        let Some(framework) = framework else { return Source::default() };
        let source = self.source(framework.conn());
        let named = framework.info.principal.as_deref().map(Principal::named);
        Source { principal: source.principal.or(named), ..source }
    }

    fn record(&self, action: &str, source: &Source, entity: Entity, refusal: Option<&str>) {
        self.audit.record(&Entry {
            action,
            outcome: if refusal.is_some() { Outcome::Refused } else { Outcome::Allowed },
            principal: source.principal.as_ref(),
            peer: source.peer,
            entity: &entity,
            reason: refusal,
            ..Entry::default()
        });
    }
}

fn subscription(id: String, info: &pb::FrameworkInfo) -> Entity {
    let mut entity = vec![("name", info.name.clone()), ("user", info.user.clone())];
    if !id.is_empty() {
        entity.push(("framework_id", id));
    }
    entity
}
