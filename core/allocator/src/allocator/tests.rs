//! Scripts: agents, frameworks and moves as lines, grants as answers. The books are audited after every line.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use expect_test::{Expect, expect};
use tepui_fsm::{Budget, Mono, unlimited};
use tepui_resources::{
    Disk, DiskKind, DiskSource, Range, Reservation, Resource, Resources, Revocable, Role, Scalar, Value,
};
use tepui_types::{AgentId, FrameworkId};

use crate::{
    AgentCapabilities, AgentSpec, Allocator, Attribute, AttributeConstraint, AttributeValue, Domain,
    FrameworkCapabilities, FrameworkSpec, Grant, Holder, MinAllocatable, OfferConstraints, Options, Pattern,
    Predicate, Quota, Selector, Sorter,
};

mod properties;
mod quotas;
mod reference;
mod scripts;
mod slack;
mod slack_shares;

/// `cpus:4 mem(web):64 cpus!:2 disk(web)@v1:10 disk(web)@v2&:10 cpus(a,a/b):1 ports:31000-31009`: reservations in
/// brackets, `!` revocable, `~` allocation slack, `@` a persistent volume, `&` shared, `%` a whole mounted disk.
pub(super) fn resources(text: &str) -> Resources {
    text.split_whitespace().map(resource).collect()
}

fn resource(text: &str) -> Resource {
    let (what, value) = text.split_once(':').expect("name:value");
    let end = what.find(['(', '!', '~', '@', '&', '%']).unwrap_or(what.len());
    let value = match value.split_once('-') {
        Some((begin, end)) => {
            let range = Range::new(begin.parse().unwrap(), end.parse().unwrap()).unwrap();
            Value::Ranges([range].into_iter().collect())
        }
        None => Value::Scalar(Scalar::from_f64(value.parse().unwrap()).unwrap()),
    };
    let mut resource = Resource::new(&what[..end], value);
    if let Some((_, rest)) = what.split_once('(') {
        for role in rest.split_once(')').unwrap().0.split(',') {
            resource = resource.push_reservation(Reservation::dynamic(role));
        }
    }
    if what.contains('!') {
        resource = resource.with_revocable(Revocable::Plain);
    }
    if what.contains('~') {
        resource = resource.with_revocable(Revocable::AllocationSlack);
    }
    if let Some((_, volume)) = what.split_once('@') {
        resource = resource.with_disk(Some(Disk::persistent(volume.trim_end_matches('&'), "data")));
    }
    if what.contains('%') {
        let source = Some(DiskSource::new(DiskKind::Mount { root: None }));
        resource = resource.with_disk(Some(Disk { source, ..Disk::default() }));
    }
    resource.with_shared(what.contains('&'))
}

/// Time for so many agents or filters.
fn pieces_of_work(mut left: usize) -> impl FnMut() -> bool {
    move || {
        left -= 1;
        left > 0
    }
}

/// An allocator and the grants it made, by number.
pub(crate) struct Script {
    pub(crate) allocator: Allocator,
    now: Mono,
    grants: Vec<Grant>,
    said: String,
}

fn check(script: &str, expected: Expect) {
    check_with(Options::default(), script, expected);
}

fn check_with(options: Options, script: &str, expected: Expect) {
    let mut state = Script::new(options);
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        state.line(line);
        state.allocator.audit().unwrap_or_else(|wrong| panic!("after '{line}': {wrong}"));
    }
    expected.assert_eq(&state.said);
}

fn agent(name: &str) -> AgentId {
    AgentId::new(name)
}

fn framework(name: &str) -> FrameworkId {
    FrameworkId::new(name)
}

fn roles(text: &str) -> Vec<Role> {
    text.split(',').filter(|role| !role.is_empty()).map(Role::from).collect()
}

impl Script {
    pub(crate) fn new(options: Options) -> Self {
        Self { allocator: Allocator::new(options), now: Mono(0), grants: Vec::new(), said: String::new() }
    }

    pub(crate) fn line(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let names = || roles(words.get(2).copied().unwrap_or(""));
        match words[0] {
            "agent" => {
                let (spec, used) = agent_spec(&words[2..]);
                self.allocator.add_agent(agent(words[1]), spec, used);
            }
            "update" => {
                self.allocator.update_agent(&agent(words[1]), agent_spec(&words[2..]).0);
            }
            "framework" => self.allocator.add_framework(framework_spec(words[1], &words[2..])),
            "change" => self.allocator.update_framework(framework_spec(words[1], &words[2..])),
            "remove" => {
                self.allocator.remove_agent(&agent(words[1]));
                self.allocator.remove_framework(&framework(words[1]));
            }
            "activate" => {
                self.allocator.activate_agent(&agent(words[1]));
                self.allocator.activate_framework(&framework(words[1]));
            }
            "deactivate" => {
                self.allocator.deactivate_agent(&agent(words[1]));
                self.allocator.deactivate_framework(&framework(words[1]));
            }
            "suppress" => self.allocator.suppress(&framework(words[1]), &names()),
            "revive" => self.allocator.revive(&framework(words[1]), &names()),
            "weight" => {
                let weight = (Role::from(words[1]), words[2].parse().unwrap());
                self.allocator.set_weights(&BTreeMap::from([weight]));
            }
            "quota" => self.allocator.set_quota(&words[1].into(), quota(&words[2..])),
            "recover" => self.allocator.recover(self.now, words[1].parse().unwrap()),
            "unavailable" => self.allocator.set_unavailable(&agent(words[1]), true),
            "available" => self.allocator.set_unavailable(&agent(words[1]), false),
            "stay" => {
                let until =
                    self.allocator.refusal(self.now, words.get(3).map(|seconds| seconds.parse().unwrap()));
                self.allocator.inverse_answered(&agent(words[2]), &framework(words[1]), until);
            }
            "at" => match words.get(2) {
                Some(pieces) => {
                    self.run(words[1].parse().unwrap(), &mut pieces_of_work(pieces.parse().unwrap()))
                }
                None => self.run(words[1].parse().unwrap(), &mut unlimited),
            },
            "deadline" => {
                let at = self.allocator.deadline().map(|at| at.0 as f64 / 1e9);
                self.said += &format!("deadline {at:?}\n");
            }
            "free" => {
                self.said +=
                    &format!("{} free: {}\n", words[1], self.allocator.free(&agent(words[1])).unwrap());
            }
            "slack" => self.slack(words[1]),
            move_of_grant => self.move_grant(move_of_grant, &words),
        }
    }

    /// `A slack: idle amount, lent amount`, and the amount to reclaim.
    fn slack(&mut self, name: &str) {
        let slack = self.allocator.slack(&agent(name)).unwrap();
        let lent = (&slack.offered + &slack.used).unallocate();
        let amounts = [slack.total.allocation_slack(None), slack.idle.allocation_slack(None), lent];
        let [total, idle, lent] = amounts.map(|one| match one.is_empty() {
            true => String::from("nothing"),
            false => one.quantities().to_string(),
        });
        self.said += &format!("{name} slack: {idle} of {total} is idle, {lent} is lent");
        let over = self.allocator.over_lent(&agent(name)).quantities();
        if !over.is_empty() {
            self.said += &format!(", {over} too much");
        }
        self.said.push('\n');
    }

    fn run(&mut self, seconds: f64, budget: &mut Budget<'_>) {
        self.now = Mono((seconds * 1e9) as u64);
        let mut decided = self.allocator.allocate(self.now, budget);
        decided
            .grants
            .sort_by(|a, b| (&a.agent, &a.framework, &a.role).cmp(&(&b.agent, &b.framework, &b.role)));
        for grant in decided.grants {
            self.grants.push(grant.clone());
            let Grant { framework, role, agent, resources } = grant;
            let shown = resources.unallocate().to_string();
            self.said += &format!("#{} {agent} -> {framework}/{role} {shown}\n", self.grants.len());
        }
        for inverse in decided.inverse {
            self.said += &format!("inverse {} -> {}\n", inverse.agent, inverse.framework);
        }
    }

    /// `decline #1`, `return #1`, `launch #1 cpus:1`, `reserve #1 cpus:1`, `release #1 cpus:1`.
    fn move_grant(&mut self, what: &str, words: &[&str]) {
        let number: usize = words[1].trim_start_matches('#').parse().unwrap();
        let Grant { framework, role, agent, resources: granted } = self.grants[number - 1].clone();
        let some = resources(&words[2..].join(" ")).allocate(&role);
        let allocator = &mut self.allocator;
        match what {
            "decline" => {
                let until = allocator.refusal(self.now, None);
                allocator.decline(&agent, &framework, &granted, until);
            }
            "return" => allocator.decline(&agent, &framework, &granted, None),
            "launch" => {
                allocator.launch(&agent, &framework, &some);
                let rest = &granted - &some.non_shared();
                let until = allocator.refusal(self.now, None);
                allocator.decline(&agent, &framework, &rest, until);
            }
            "unreserve" => {
                let plain = some.clone().pop_reservation();
                assert!(allocator.convert(&agent, Holder::Offered(&framework), &some, &plain));
                self.grants[number - 1].resources = &(&granted - &some) + &plain;
            }
            "create" => {
                let disk = some.clone().map(|disk| disk.with_disk(Some(Disk::persistent("v", "data"))));
                assert!(allocator.convert(&agent, Holder::Offered(&framework), &some, &disk));
                self.grants[number - 1].resources = &(&granted - &some) + &disk;
            }
            "release" => allocator.release(&agent, &framework, &some),
            "reserve" => {
                let reserved = some.clone().push_reservation(&Reservation::dynamic(role));
                assert!(allocator.convert(&agent, Holder::Offered(&framework), &some, &reserved));
                self.grants[number - 1].resources = &(&granted - &some) + &reserved;
            }
            other => panic!("no such line: {other}"),
        }
    }
}

/// `cpus:4 … [rack=a] [domain=region/zone] [plain] [used=F/role/cpus:1+mem:2]`, with `.` for `/` in the role.
fn agent_spec(words: &[&str]) -> (AgentSpec, Vec<(FrameworkId, Resources)>) {
    let mut spec =
        AgentSpec { hostname: "host".into(), capabilities: AgentCapabilities::ALL, ..Default::default() };
    let mut used = Vec::new();
    let mut total = Vec::new();
    for word in words {
        match word.split_once('=') {
            Some(("domain", place)) => {
                let (region, zone) = place.split_once('/').unwrap();
                spec.domain = Some(Domain { region: region.into(), zone: zone.into() });
            }
            Some(("used", what)) => {
                let [holder, role, what] = what.splitn(3, '/').collect::<Vec<_>>().try_into().unwrap();
                let held =
                    resources(&what.replace('+', " ")).allocate(&role.replace('.', "/").as_str().into());
                used.push((framework(holder), held));
            }
            Some((name, value)) => {
                let number = value.parse::<f64>().is_ok();
                let value = if number { AttributeValue::NotText } else { AttributeValue::Text(value.into()) };
                spec.attributes.push(Attribute { name: name.into(), value });
            }
            None if *word == "plain" => spec.capabilities = AgentCapabilities::default(),
            None => total.push(resource(word)),
        }
    }
    spec.total = total.into_iter().collect();
    (spec, used)
}

/// `[least=cpus:1+mem:64] [most=cpus:2]`.
fn quota(words: &[&str]) -> Quota {
    let amounts = |text: &str| resources(&text.replace('+', " ")).quantities();
    let mut quota = Quota::default();
    for word in words {
        match word.split_once('=').unwrap() {
            ("least", amount) => quota.guarantees = amounts(amount),
            ("most", "nothing") => quota.limits.set(&"cpus".into(), Scalar::ZERO),
            ("most", amount) => {
                quota.limits = amounts(amount).iter().map(|(name, amount)| (name.clone(), amount)).collect();
            }
            other => panic!("no such word: {other:?}"),
        }
    }
    quota
}

/// `role=a,b [suppressed=b] [min=cpus:1] [cannot=gpu,revocable,…] [inactive] [where=rack:a]`.
fn framework_spec(name: &str, words: &[&str]) -> FrameworkSpec {
    let mut spec = FrameworkSpec::new(framework(name), "*".into());
    for word in words {
        match word.split_once('=') {
            Some(("role", list)) => spec.roles = roles(list).into_iter().collect(),
            Some(("suppressed", list)) => spec.suppressed = roles(list).into_iter().collect(),
            Some(("min", least)) => {
                let least = MinAllocatable::parse(least).unwrap();
                spec.min_allocatable = spec.roles.iter().map(|role| (role.clone(), least.clone())).collect();
            }
            Some(("cannot", list)) => list.split(',').for_each(|word| cannot(&mut spec.capabilities, word)),
            Some(("where", groups)) => {
                let groups: Vec<_> =
                    groups.split('|').map(|group| group.split('&').map(constraint).collect()).collect();
                let all = spec.roles.iter().map(|role| (role.clone(), groups.clone()));
                spec.constraints = OfferConstraints { roles: all.collect() };
            }
            Some(other) => panic!("no such word: {other:?}"),
            None => spec.active = *word != "inactive",
        }
    }
    spec
}

fn cannot(capabilities: &mut FrameworkCapabilities, word: &str) {
    *match word {
        "gpu" => &mut capabilities.gpu_resources,
        "revocable" => &mut capabilities.revocable_resources,
        "shared" => &mut capabilities.shared_resources,
        "refinement" => &mut capabilities.reservation_refinement,
        "multi_role" => &mut capabilities.multi_role,
        "region" => &mut capabilities.region_aware,
        other => panic!("no such capability: {other}"),
    } = false;
}

/// `rack` exists, `!rack` does not, `rack:a` equals, `rack!:a` does not, `rack~a.*` matches, `rack!~a.*` does not.
fn constraint(text: &str) -> AttributeConstraint {
    let at = text.find([':', '~']).unwrap_or(text.len());
    let (name, rest) = text.split_at(at);
    let negated = name.ends_with('!') || name.starts_with('!');
    let value: Arc<str> = rest.trim_start_matches([':', '~']).into();
    let predicate = match (rest.chars().next(), negated) {
        (None, false) => Predicate::Exists,
        (None, true) => Predicate::NotExists,
        (Some(':'), false) => Predicate::TextEquals(value),
        (Some(':'), true) => Predicate::TextNotEquals(value),
        (_, false) => Predicate::TextMatches(Pattern::new(&value).unwrap()),
        (_, true) => Predicate::TextNotMatches(Pattern::new(&value).unwrap()),
    };
    let selector = match name.trim_matches('!') {
        "HOSTNAME" => Selector::Hostname,
        "REGION" => Selector::Region,
        "ZONE" => Selector::Zone,
        name => Selector::Attribute(name.into()),
    };
    AttributeConstraint { selector, predicate }
}
