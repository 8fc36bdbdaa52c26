//! The audit trail: principal, action, entity, address and outcome.
//!
//! A handler notes on its request what the request is about to do; whether it was allowed is in the answer. Decisions
//! of a machine after the answer has begun are recorded where they become visible. Entries go to a sink that never
//! waits. Absent: environments, `data`, commands, secrets; long values are cut.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use http::StatusCode;
use serde_json::{Map, Value};

use crate::body::Body;
use crate::principal::Principal;
use crate::respond::Response;

/// The longest value of an entry.
const VALUE_BYTES_MAX: usize = 512;
/// Claims of a token that say which executor it belongs to; others are not written.
const EXECUTOR_CLAIMS: [&str; 3] = ["fid", "eid", "cid"];

/// What a request does, as its handler found out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deed {
    action: &'static str,
    /// Names of ids and what they are, as in `framework_id`.
    entity: Vec<(&'static str, String)>,
    /// Recorded where it is allowed.
    only_refusals: bool,
    logged: Logged,
}

/// Which of its entries the ordinary log has as well, because nothing else writes a line about them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Logged {
    Never,
    WhenRefused,
    Always,
}

impl Deed {
    /// `action` as the call is named in v1.
    pub fn new(action: &'static str) -> Self {
        Self { action, entity: Vec::new(), only_refusals: false, logged: Logged::Never }
    }

    pub fn on(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.entity.push((name, value.into()));
        self
    }

    /// That it was allowed is recorded elsewhere.
    pub fn only_refusals(self) -> Self {
        Self { only_refusals: true, ..self }
    }

    /// Nothing else logs that it was refused.
    pub fn log_refusals(self) -> Self {
        Self { logged: Logged::WhenRefused, ..self }
    }

    /// Nothing else logs it.
    pub fn log(self) -> Self {
        Self { logged: Logged::Always, ..self }
    }
}

/// What is noted on a request. A cheap clone that outlives it.
#[derive(Clone, Debug, Default)]
pub(crate) struct AuditNote(Arc<Noted>);

#[derive(Debug, Default)]
struct Noted {
    deed: OnceLock<(Deed, Option<Principal>)>,
    uid: OnceLock<u32>,
    is_recorded: AtomicBool,
}

impl AuditNote {
    /// The first deed counts.
    pub fn set(&self, deed: Deed, principal: Option<Principal>) {
        let _ = self.0.deed.set((deed, principal));
    }

    pub fn set_uid(&self, uid: u32) {
        let _ = self.0.uid.set(uid);
    }
}

/// Where a request came from and what was noted on it, kept until it is answered. If it is dropped before, because the peer has
/// closed its connection, the entry says that the outcome is unknown: the call may have been carried out.
#[derive(Debug)]
pub struct Witness {
    pub(crate) audit: Audit,
    pub(crate) peer: SocketAddr,
    pub(crate) note: AuditNote,
}

/// One line of the trail.
#[derive(Clone, Debug, Default)]
pub struct Entry<'e> {
    pub action: &'e str,
    pub outcome: Outcome,
    pub status: Option<u16>,
    pub principal: Option<&'e Principal>,
    pub peer: Option<SocketAddr>,
    /// Of a process of this machine that did not authenticate.
    pub uid: Option<u32>,
    pub entity: &'e [(&'static str, String)],
    pub reason: Option<&'e str>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outcome {
    #[default]
    Allowed,
    Refused,
    /// It was not the caller's fault.
    Failed,
    /// The connection was closed before the answer.
    Unknown,
}

impl Outcome {
    fn of(status: StatusCode) -> Self {
        match status.as_u16() {
            ..400 => Outcome::Allowed,
            400..500 => Outcome::Refused,
            500.. => Outcome::Failed,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Outcome::Allowed => "allowed",
            Outcome::Refused => "refused",
            Outcome::Failed => "failed",
            Outcome::Unknown => "unknown",
        }
    }
}

/// Takes entries over and never waits.
type Sink = dyn Fn(&str) + Send + Sync;

/// Writes the trail of one program. A cheap clone; without a sink only the ordinary log has lines.
#[derive(Clone, Default)]
pub struct Audit {
    program: &'static str,
    sink: Option<Arc<Sink>>,
}

impl fmt::Debug for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Audit").field("program", &self.program).finish_non_exhaustive()
    }
}

impl Audit {
    pub fn new(program: &'static str, sink: Option<Arc<Sink>>) -> Self {
        Self { program, sink }
    }

    /// Whether entries go anywhere.
    pub fn is_on(&self) -> bool {
        self.sink.is_some()
    }

    /// Writes one entry.
    pub fn record(&self, entry: &Entry<'_>) {
        if let Some(sink) = &self.sink {
            sink(&entry.object(self.program).to_string());
        }
    }
}

impl Witness {
    /// Records what was noted, with the answer.
    pub fn conclude(&self, response: &Response) {
        let status = response.status();
        let reason = match (status.as_u16() >= 400, response.body()) {
            (true, Body::Bytes(bytes)) => str::from_utf8(bytes).ok(),
            _ => None,
        };
        self.settle(Some(status), reason);
    }

    /// Records what was noted before the answer, which comes much later.
    pub fn allow(&self) {
        self.settle(Some(StatusCode::OK), None);
    }

    fn settle(&self, status: Option<StatusCode>, reason: Option<&str>) {
        let noted = &self.note.0;
        let Some((deed, principal)) = noted.deed.get() else { return };
        let outcome = status.map_or(Outcome::Unknown, Outcome::of);
        if deed.only_refusals && matches!(outcome, Outcome::Allowed | Outcome::Unknown)
            || noted.is_recorded.swap(true, Ordering::Relaxed)
        {
            return;
        }
        let entry = Entry {
            action: deed.action,
            outcome,
            status: status.map(|status| status.as_u16()),
            principal: principal.as_ref(),
            peer: Some(self.peer),
            uid: noted.uid.get().copied(),
            entity: &deed.entity,
            reason,
        };
        self.audit.record(&entry);
        match (deed.logged, outcome) {
            (Logged::Always, Outcome::Allowed) => {
                tracing::info!(
                    action = entry.action, principal = entry.principal_name(), uid = entry.uid, peer = %self.peer,
                    entity = entry.entity_text(), "call accepted"
                );
            }
            (Logged::Never, _) | (_, Outcome::Unknown) | (Logged::WhenRefused, Outcome::Allowed) => (),
            (Logged::Always | Logged::WhenRefused, Outcome::Refused | Outcome::Failed) => {
                tracing::warn!(
                    action = entry.action, principal = entry.principal_name(), uid = entry.uid, peer = %self.peer,
                    entity = entry.entity_text(), status = entry.status, reason = entry.reason, "call rejected"
                );
            }
        }
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        self.settle(None, None);
    }
}

impl Entry<'_> {
    fn object(&self, program: &str) -> Value {
        let mut object = Map::new();
        let mut put = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                object.insert(name.to_owned(), value);
            }
        };
        put("program", Some(program.into()));
        put("action", Some(self.action.into()));
        put("outcome", Some(self.outcome.name().into()));
        put("status", self.status.map(Value::from));
        put("principal", self.principal_name().map(|name| cut(name).into()));
        put("executor", self.principal.and_then(executor));
        put("peer", self.peer.map(|peer| peer.to_string().into()));
        put("uid", self.uid.map(Value::from));
        for (name, value) in self.entity {
            put(name, Some(cut(value).into()));
        }
        put("reason", self.reason.map(|reason| cut(reason.trim_end()).into()));
        Value::Object(object)
    }

    fn principal_name(&self) -> Option<&str> {
        self.principal.and_then(|principal| principal.name.as_deref())
    }

    fn entity_text(&self) -> String {
        let named: Vec<String> =
            self.entity.iter().map(|(name, value)| format!("{name}={}", cut(value))).collect();
        named.join(" ")
    }
}

/// Of a token without a name: the executor it was made for.
fn executor(principal: &Principal) -> Option<Value> {
    let claims: BTreeMap<&str, String> =
        EXECUTOR_CLAIMS.iter().filter_map(|name| Some((*name, cut(principal.claims.get(*name)?)))).collect();
    (!claims.is_empty()).then(|| claims.into_iter().map(|(name, value)| (name, Value::from(value))).collect())
}

fn cut(text: &str) -> String {
    match text.len() > VALUE_BYTES_MAX {
        true => format!("{}…", &text[..text.floor_char_boundary(VALUE_BYTES_MAX)]),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use expect_test::expect;

    use super::*;
    use crate::HttpError;
    use crate::respond::empty;

    fn trail(run: impl FnOnce(&Audit)) -> String {
        let lines: Arc<Mutex<Vec<String>>> = Arc::default();
        let written = Arc::clone(&lines);
        let sink = move |line: &str| written.lock().unwrap().push(line.to_owned());
        run(&Audit::new("master", Some(Arc::new(sink))));
        let lines = lines.lock().unwrap();
        lines.join("\n")
    }

    fn witness(audit: &Audit, deed: Deed, principal: Option<Principal>) -> Witness {
        let note = AuditNote::default();
        note.set(deed, principal);
        Witness { audit: audit.clone(), peer: "10.0.0.7:4000".parse().unwrap(), note }
    }

    #[test]
    fn audit_entries_have_principal_action_entity_and_peer() {
        let text = trail(|audit| {
            let ops = Some(Principal::named("ops"));
            let allowed = witness(audit, Deed::new("TEARDOWN").on("framework_id", "F1"), ops.clone());
            allowed.conclude(&empty(StatusCode::OK));
            allowed.conclude(&empty(StatusCode::OK));
            let refused = witness(audit, Deed::new("MARK_AGENT_GONE").on("agent_id", "S1"), ops);
            refused.conclude(&HttpError::forbidden().into());
            let local = witness(audit, Deed::new("LAUNCH_CONTAINER").on("container_id", "c"), None);
            local.note.set_uid(1000);
            local.conclude(&HttpError::unavailable("full").into());
            let claims = [("fid", "F"), ("eid", "E"), ("cid", "C"), ("other", "hidden")];
            let claims = claims.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
            let executor = Some(Principal { name: None, claims });
            witness(audit, Deed::new("KILL_CONTAINER"), executor).conclude(&empty(StatusCode::OK));
            witness(audit, Deed::new("SUBSCRIBE").only_refusals(), None).conclude(&empty(StatusCode::OK));
        });
        expect![[r#"
            {"action":"TEARDOWN","framework_id":"F1","outcome":"allowed","peer":"10.0.0.7:4000","principal":"ops","program":"master","status":200}
            {"action":"MARK_AGENT_GONE","agent_id":"S1","outcome":"refused","peer":"10.0.0.7:4000","principal":"ops","program":"master","reason":"403 Forbidden.","status":403}
            {"action":"LAUNCH_CONTAINER","container_id":"c","outcome":"failed","peer":"10.0.0.7:4000","program":"master","reason":"full","status":503,"uid":1000}
            {"action":"KILL_CONTAINER","executor":{"cid":"C","eid":"E","fid":"F"},"outcome":"allowed","peer":"10.0.0.7:4000","program":"master","status":200}"#]]
        .assert_eq(&text);
    }

    /// Who hangs up cannot keep what was done out of the audit log.
    #[test]
    fn calls_of_closed_connections_are_recorded() {
        let text = trail(|audit| {
            drop(witness(
                audit,
                Deed::new("TEARDOWN").on("framework_id", "F1"),
                Some(Principal::named("ops")),
            ));
            drop(witness(audit, Deed::new("SUBSCRIBE").only_refusals(), None));
        });
        expect![[r#"{"action":"TEARDOWN","framework_id":"F1","outcome":"unknown","peer":"10.0.0.7:4000","principal":"ops","program":"master"}"#]]
        .assert_eq(&text);
    }

    #[test]
    fn long_audit_values_are_truncated() {
        let long = "ä".repeat(VALUE_BYTES_MAX);
        let text = trail(|audit| {
            audit.record(&Entry { action: "A", reason: Some(&long), ..Entry::default() });
        });
        let entry: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(entry["reason"].as_str().unwrap(), format!("{}…", "ä".repeat(VALUE_BYTES_MAX / 2)));
    }
}
