//! `/explain/framework/<id>` and `/explain/role/<role>`: explanations of offers, in plain words and counts.
//!
//! The machine computes findings on request; here they become JSON with a sentence for each, on other threads than
//! the machine's. Frameworks and roles that the reader may not view stay unnamed.

use std::sync::Arc;

use tepui_authz::{Action, Authorizer};
use tepui_core_master::explain::{
    Borrowing, Capability, ClientReport, Finding, FrameworkReport, Place, Reason, Report, RoleReport, Subject,
};
use tepui_core_master::{AgentLink, Input, State};
use tepui_fsm::Mono;
use tepui_http::subject;
use tepui_http::{Encoding, Exchanges, HttpError, Principal, Query, Renderings, Request, Response, json};
use tepui_proto::json::JsonWriter;
use tepui_proto::mesos::v1::DrainState;
use tepui_resources::{Name, Quantities, Role, Scalar};
use tepui_types::{ConnId, FrameworkId};

use crate::documents::Key;
use crate::program::{Kind, Program};

/// What an endpoint explains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SubjectKind {
    Framework,
    Role,
}

pub(crate) async fn explain(
    program: &Program,
    kind: SubjectKind,
    rest: Vec<String>,
    request: Request,
) -> Result<Response, HttpError> {
    let name = rest.join("/");
    if name.is_empty() {
        return Err(HttpError::not_found());
    }
    let subject = match kind {
        SubjectKind::Framework => Subject::Framework(FrameworkId::new(name)),
        SubjectKind::Role => Subject::Role(Role::from(name.as_str())),
    };
    check(program, &subject, &request)?;
    let exchange = program.exchanges.begin(Kind::Operator, Encoding::Json, &request);
    program.send(Input::Explain { conn: exchange.conn, subject }).await?;
    Ok(exchange.answered().await)
}

/// 403 for a reader that may not view the framework or role.
fn check(program: &Program, subject: &Subject, request: &Request) -> Result<(), HttpError> {
    match subject {
        Subject::Role(role) => program.documents.allowed(request, Action::ViewRole, Some(role.as_str())),
        Subject::Framework(id) => match program.documents.visible_to(request).frameworks.contains_key(id) {
            true => Ok(()),
            false => Err(HttpError::not_found()),
        },
    }
}

/// Writes the machine's findings for the requester, on other threads than the machine's.
pub(crate) struct Explainer {
    pub exchanges: Exchanges<Kind>,
    pub authorizer: Authorizer,
    pub renderings: Renderings<Key>,
}

impl Explainer {
    /// Answers a request with what the machine found at `now`. Never waits.
    pub fn answer(&self, conn: ConnId, now: Mono, report: Box<Report>, state: Arc<State>) {
        let (exchanges, authorizer) = (self.exchanges.clone(), self.authorizer.clone());
        self.renderings.run(move || {
            let principal = exchanges.principal(conn);
            let seen = state.visible_to(&authorizer, subject(principal.as_ref()));
            let reader = Reader { seen: &seen, authorizer: &authorizer, principal: principal.as_ref(), now };
            exchanges.answer(conn, |_| json(&Query::default(), document(&reader, &report)));
        });
    }
}

/// The reader of the answer, and the time of the findings.
pub(crate) struct Reader<'a> {
    /// As the reader may see it.
    pub seen: &'a State,
    pub authorizer: &'a Authorizer,
    pub principal: Option<&'a Principal>,
    /// The machine's time of asking.
    pub now: Mono,
}

impl Reader<'_> {
    fn can_view_role(&self, role: &Role) -> bool {
        self.authorizer.allows(subject(self.principal), Action::ViewRole, Some(role.as_str()))
    }

    fn can_view_framework(&self, id: &FrameworkId) -> bool {
        self.seen.frameworks.contains_key(id)
    }

    /// `framework m-0001`, or a text that does not identify it.
    fn framework(&self, id: &FrameworkId) -> String {
        if self.can_view_framework(id) { format!("framework {id}") } else { "another framework".into() }
    }

    fn role(&self, role: &Role) -> String {
        if self.can_view_role(role) { format!("role {role}") } else { "another role".into() }
    }
}

/// The answer, without what its reader may not see of others.
pub(crate) fn document(reader: &Reader<'_>, report: &Report) -> Vec<u8> {
    let mut w = JsonWriter::new();
    match report {
        Report::Framework(report) => framework(&mut w, reader, report),
        Report::Role(report) => role(&mut w, reader, report),
    }
    w.into_vec()
}

fn framework(w: &mut JsonWriter, reader: &Reader<'_>, report: &FrameworkReport) {
    let (state, now) = (reader.seen, reader.now);
    let name = state.frameworks.get(&report.framework).map(|framework| framework.info.name.as_str());
    w.object(|w| {
        w.field("framework_id", report.framework.as_str());
        w.field("name", name.unwrap_or_default());
        w.field("active", &report.active);
        w.object_field("agents", |w| {
            w.field("registered", &(state.agents.size() as u64));
            w.field("unreachable", &(state.unreachable_agents.size() as u64));
            w.field("recovering", &(state.recovered_agents.size() as u64));
        });
        w.array_field("roles", |w| {
            for client_report in &report.roles {
                w.object(|w| {
                    self::client_report(w, now, client_report, report.active);
                    w.array_field("reasons", |w| {
                        client_report.findings.iter().for_each(|one| finding(w, reader, one, words));
                    });
                    w.object_field("slack", |w| {
                        borrowing(w, &client_report.borrowing);
                        w.array_field("reasons", |w| {
                            client_report.slack.iter().for_each(|one| finding(w, reader, one, slack_words));
                        });
                    });
                });
            }
        });
    });
}

fn client_report(w: &mut JsonWriter, now: Mono, client_report: &ClientReport, active: bool) {
    w.field("framework_id", client_report.framework.as_str());
    w.field("role", client_report.role.as_str());
    w.field("suppressed", &client_report.suppressed);
    w.field("share", &client_report.share);
    quantities(w, "held", &client_report.held);
    place(w, client_report.place);
    let text = match (active, client_report.suppressed) {
        (false, _) => "not connected".to_owned(),
        (true, true) => "suppressed: the framework requested no offers in this role".to_owned(),
        (true, false) => place_text(client_report.place),
    };
    w.field("place_text", text.as_str());
    let ago = client_report.last_offered.map(|at| seconds(at, now));
    w.optional_field("last_offered_seconds_ago", ago.as_ref());
    let text = ago.map_or_else(|| "never".to_owned(), |ago| format!("{} ago", time(ago)));
    w.field("last_offered_text", text.as_str());
}

/// The place among borrowers, for which nothing but what is lent counts.
fn borrowing(w: &mut JsonWriter, borrowing: &Borrowing) {
    quantities(w, "borrowed", &borrowing.borrowed);
    w.field("share", &borrowing.share);
    place(w, borrowing.place);
    let text = match borrowing.place {
        Some(_) => place_text(borrowing.place),
        None => "nothing can be lent to it".to_owned(),
    };
    w.field("place_text", text.as_str());
}

fn role(w: &mut JsonWriter, reader: &Reader<'_>, report: &RoleReport) {
    w.object(|w| {
        w.field("role", report.role.as_str());
        w.field("weight", &report.weight);
        w.field("share", &report.share);
        place(w, report.place);
        w.field("place_text", place_text(report.place).as_str());
        quantities(w, "held", &report.held);
        if let Some(quota) = &report.quota {
            w.object_field("quota", |w| {
                quantities(w, "guarantees", &quota.guarantees);
                amounts(w, "limits", quota.limits.iter());
            });
        }
        quantities(w, "consumed", &report.consumed);
        quantities(w, "required", &report.required);
        quantities(w, "surplus", &report.surplus);
        w.object_field("slack", |w| borrowing(w, &report.borrowing));
        w.array_field("frameworks", |w| {
            for one in report.frameworks.iter().filter(|one| reader.can_view_framework(&one.framework)) {
                w.object(|w| {
                    client_report(w, reader.now, one, one.active);
                    w.object_field("slack", |w| borrowing(w, &one.borrowing));
                });
            }
        });
    });
}

fn place(w: &mut JsonWriter, place: Option<Place>) {
    if let Some(Place { place, of }) = place {
        w.field("place", &(place as u64));
        w.field("of", &(of as u64));
    }
}

/// `2nd of 5`.
fn place_text(place: Option<Place>) -> String {
    let Some(Place { place, of }) = place else {
        return "no framework in this role can receive offers".to_owned();
    };
    let ending = match (place % 10, place % 100) {
        (1, hundred) if hundred != 11 => "st",
        (2, hundred) if hundred != 12 => "nd",
        (3, hundred) if hundred != 13 => "rd",
        _ => "th",
    };
    format!("{place}{ending} of {of}")
}

fn finding(
    w: &mut JsonWriter,
    reader: &Reader<'_>,
    finding: &Finding,
    words: fn(&Reason, &Reader<'_>) -> String,
) {
    let agents = match finding.agents {
        1 => "1 agent".to_owned(),
        more => format!("{more} agents"),
    };
    w.object(|w| {
        w.field("agents", &(finding.agents as u64));
        w.field("reason", code(&finding.reason));
        w.field("text", format!("{agents}: {}", words(&finding.reason, reader)).as_str());
        w.field("example_agent_id", finding.example.as_str());
    });
}

/// For programs.
fn code(reason: &Reason) -> &'static str {
    match reason {
        Reason::Waiting => "WAITING",
        Reason::Offered { .. } => "OFFERED",
        Reason::AgentInactive => "AGENT_INACTIVE",
        Reason::NotWhitelisted => "NOT_WHITELISTED",
        Reason::LacksCapability(_) => "LACKS_CAPABILITY",
        Reason::OfferConstraint => "OFFER_CONSTRAINT",
        Reason::HeldInOffer { .. } => "HELD_IN_OFFER",
        Reason::ReservedFor(_) => "RESERVED",
        Reason::InUse => "IN_USE",
        Reason::BelowMinAllocatable => "BELOW_MIN_ALLOCATABLE",
        Reason::Refused { .. } => "FILTERED",
        Reason::QuotaLimit { .. } => "QUOTA_LIMIT",
        Reason::Headroom { .. } => "QUOTA_HEADROOM",
        Reason::Borrows => "BORROWS",
        Reason::OthersFirst => "OTHERS_FIRST",
        Reason::NothingReserved => "NOTHING_RESERVED",
        Reason::NotLent(_) => "NOT_LENT",
        Reason::LentTo(_) => "LENT",
        Reason::Suppressed => "SUPPRESSED",
        Reason::FrameworkInactive => "FRAMEWORK_INACTIVE",
    }
}

/// For people.
fn words(reason: &Reason, reader: &Reader<'_>) -> String {
    let now = reader.now;
    match reason {
        Reason::Waiting => {
            "no obstacle: other frameworks are served first, or the next batch allocation is pending".into()
        }
        Reason::Offered { since } => {
            format!("offered to it already, for {}, and not answered yet", time(seconds(*since, now)))
        }
        Reason::AgentInactive => inactive(reader.seen),
        Reason::NotWhitelisted => "not on the whitelist".into(),
        Reason::LacksCapability(capability) => lacking(*capability),
        Reason::Suppressed => "only suppressed: REVIVE requests offers again".into(),
        Reason::FrameworkInactive => "the framework is not connected".into(),
        Reason::OfferConstraint => "excluded by its own offer constraints".into(),
        Reason::HeldInOffer { by, since } => {
            let (by, since) = (reader.framework(by), time(seconds(*since, now)));
            format!("held in an outstanding offer by {by} for {since}")
        }
        Reason::ReservedFor(role) => format!("free resources are reserved for {}", reader.role(role)),
        Reason::InUse => "all that is fit for it is in use".into(),
        Reason::BelowMinAllocatable => "suitable free resources are smaller than the minimum offer".into(),
        Reason::Refused { until, refused } => format!(
            "filtered for another {} after it declined {refused}; REVIVE removes the filter",
            time(seconds(now, *until))
        ),
        Reason::QuotaLimit { role, .. } if !reader.can_view_role(role) => {
            "a role above it has reached its quota limit".into()
        }
        Reason::QuotaLimit { role, consumed, limits } => {
            let full = limits.iter().map(|(name, limit)| format!("{name} {} of {limit}", consumed.get(name)));
            format!("role {role} has reached its quota limit: {}", full.collect::<Vec<_>>().join(", "))
        }
        Reason::Headroom { required } => {
            format!("free resources are held back for unmet guarantees: {required}")
        }
        Reason::Borrows
        | Reason::OthersFirst
        | Reason::NothingReserved
        | Reason::NotLent(_)
        | Reason::LentTo(_) => slack_words(reason, reader),
    }
}

/// For people, about what others leave idle.
fn slack_words(reason: &Reason, reader: &Reader<'_>) -> String {
    match reason {
        Reason::Waiting => {
            "something idle can be lent to it; others come first, or it waits for a batch".into()
        }
        Reason::Offered { since } => {
            let since = time(seconds(*since, reader.now));
            format!("lent to it in an offer, for {since}, and not answered yet")
        }
        Reason::Borrows => "lent to it and in use".into(),
        Reason::OthersFirst => "declined as a loan: other borrowers are served first".into(),
        Reason::NothingReserved => "nothing is reserved there that could be lent".into(),
        Reason::NotLent(None) => "nothing is lent in this cluster (--allocation_slack)".into(),
        Reason::NotLent(Some(owner)) => {
            format!("reservations of {} are not lent (--allocation_slack_opt_out)", reader.role(owner))
        }
        Reason::LentTo(framework) => {
            format!("idle reserved resources are lent to {}", reader.framework(framework))
        }
        Reason::ReservedFor(_) => "idle resources are reserved for its own role and offered directly".into(),
        Reason::InUse => "the owners use their reservations".into(),
        Reason::BelowMinAllocatable => {
            "what could be lent is less than the smallest offer: it is added to an ordinary offer".into()
        }
        Reason::LacksCapability(Capability::RevocableResources) => {
            "the framework lacks REVOCABLE_RESOURCES, so nothing is lent to it".into()
        }
        Reason::AgentInactive
        | Reason::Suppressed
        | Reason::FrameworkInactive
        | Reason::NotWhitelisted
        | Reason::LacksCapability(_)
        | Reason::OfferConstraint
        | Reason::HeldInOffer { .. }
        | Reason::Refused { .. }
        | Reason::QuotaLimit { .. }
        | Reason::Headroom { .. } => words(reason, reader),
    }
}

/// Which agents are not offered at all, by what became of them.
fn inactive(state: &State) -> String {
    let mut counts = [
        ("draining", 0),
        ("drained", 0),
        ("deactivated", 0),
        ("not connected", 0),
        ("under disk pressure", 0),
    ];
    for agent in state.agents.values() {
        let drain = agent.drain.as_ref().map(|drain| drain.info.state);
        let at = match (drain, &agent.link) {
            (Some(DrainState::DRAINING), _) => 0,
            (Some(DrainState::DRAINED), _) => 1,
            _ if agent.deactivated => 2,
            (_, AgentLink::Silent { .. }) => 3,
            (_, AgentLink::Connected { .. }) if agent.disk_pressure.is_some() => 4,
            (_, AgentLink::Connected { .. }) => continue,
        };
        counts[at].1 += 1;
    }
    let some: Vec<String> = counts
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(what, count)| format!("{count} {what}"))
        .collect();
    match some.is_empty() {
        true => "not connected, deactivated, draining or under disk pressure a moment ago".into(),
        false => format!("not offered ({})", some.join(", ")),
    }
}

fn lacking(capability: Capability) -> String {
    match capability {
        Capability::GpuResources => "it has GPUs, and the framework lacks GPU_RESOURCES",
        Capability::RegionAware => "it is in another region, and the framework lacks REGION_AWARE",
        Capability::RevocableResources => {
            "free resources are revocable, and the framework lacks REVOCABLE_RESOURCES"
        }
        Capability::SharedResources => "free resources are shared, and the framework lacks SHARED_RESOURCES",
        Capability::ReservationRefinement => {
            "free resources have a refined reservation, and the framework lacks RESERVATION_REFINEMENT"
        }
        Capability::MultiRole => "the agent lacks MULTI_ROLE, which the framework has",
        Capability::HierarchicalRole => "the agent lacks HIERARCHICAL_ROLE, which the role needs",
    }
    .to_owned()
}

fn seconds(from: Mono, to: Mono) -> f64 {
    to.0.saturating_sub(from.0) as f64 / 1e9
}

/// `0.4 s`, `42 s`, `7 min`, `3 h`, `2 days`.
fn time(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 9.95 => format!("{seconds:.1} s"),
        seconds if seconds < 600.0 => format!("{seconds:.0} s"),
        seconds if seconds < 7_200.0 => format!("{:.0} min", seconds / 60.0),
        seconds if seconds < 172_800.0 => format!("{:.0} h", seconds / 3_600.0),
        seconds => format!("{:.0} days", seconds / 86_400.0),
    }
}

fn quantities(w: &mut JsonWriter, key: &str, quantities: &Quantities) {
    amounts(w, key, quantities.iter());
}

fn amounts<'a>(w: &mut JsonWriter, key: &str, amounts: impl Iterator<Item = (&'a Name, Scalar)>) {
    w.object_field(key, |w| {
        for (name, amount) in amounts {
            w.field(name.as_str(), &amount.to_f64());
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_and_durations_are_formatted() {
        for (place, text) in [(1, "1st of 200"), (2, "2nd of 200"), (3, "3rd of 200"), (11, "11th of 200")] {
            assert_eq!(place_text(Some(Place { place, of: 200 })), text);
        }
        for (place, text) in [(112, "112th of 200"), (121, "121st of 200")] {
            assert_eq!(place_text(Some(Place { place, of: 200 })), text);
        }
        for (seconds, text) in [
            (0.0, "0.0 s"),
            (4.26, "4.3 s"),
            (42.0, "42 s"),
            (900.0, "15 min"),
            (1e5, "28 h"),
            (1e6, "12 days"),
        ] {
            assert_eq!(time(seconds), text);
        }
    }
}
