//! `allocator/slack/…`: what is reserved and could be lent, what of it is offered and what is used by borrowers: in all,
//! by agent, and by role (the owner's for what there is, the borrower's for what is lent).

use std::collections::BTreeMap;

use tepui_core_master::State;
use tepui_http::{Group, Metrics};
use tepui_resources::{Quantities, Resources, Role};

use crate::index::Index;
use crate::slack::{lendable, lent};

#[derive(Default)]
struct Slack {
    total: Quantities,
    offered: Quantities,
    allocated: Quantities,
}

/// `used`: what is used in the whole cluster.
pub(super) fn add(metrics: &mut Metrics, state: &State, index: &Index<'_>, used: &Resources) {
    let is_any_lent =
        !lent(used).is_empty() || state.offers.values().any(|one| !lent(&one.resources).is_empty());
    let mut all = Slack::default();
    let mut by_role: BTreeMap<Role, Slack> = BTreeMap::new();
    for agent in state.agents.values() {
        let total = lendable(state, &agent.total);
        if total.is_empty() && !is_any_lent {
            continue;
        }
        let sums = index.agent(&agent.id);
        let (offered, used) = (lent(sums.offered), lent(sums.used));
        if total.is_empty() && offered.is_empty() && used.is_empty() {
            continue;
        }
        for (role, part) in total.by_reservation() {
            by_role.entry(role).or_default().total += &part.scalar_quantities();
        }
        for (role, part) in offered.by_allocation() {
            by_role.entry(role).or_default().offered += &part.scalar_quantities();
        }
        for (role, part) in used.by_allocation() {
            by_role.entry(role).or_default().allocated += &part.scalar_quantities();
        }
        let here = Slack {
            total: total.scalar_quantities(),
            offered: offered.scalar_quantities(),
            allocated: used.scalar_quantities(),
        };
        here.show(
            metrics,
            &Group {
                path: format!("allocator/slack/agents/{}/", agent.id),
                name: "allocator/slack/agent",
                labels: vec![("agent", agent.id.to_string())],
            },
        );
        all.add(&here);
    }
    all.show(
        metrics,
        &Group { path: String::from("allocator/slack/"), name: "allocator/slack", labels: Vec::new() },
    );
    for (role, slack) in by_role {
        slack.show(
            metrics,
            &Group {
                path: format!("allocator/slack/roles/{role}/"),
                name: "allocator/slack/role",
                labels: vec![("role", role.to_string())],
            },
        );
    }
}

impl Slack {
    fn add(&mut self, more: &Slack) {
        self.total += &more.total;
        self.offered += &more.offered;
        self.allocated += &more.allocated;
    }

    /// Of all clients in a group, by resource.
    fn show(&self, metrics: &mut Metrics, whose: &Group) {
        for (what, amounts) in
            [("total", &self.total), ("offered", &self.offered), ("allocated", &self.allocated)]
        {
            for (name, amount) in amounts.iter() {
                let label = ("resource", name.as_str().to_owned());
                let group = Group {
                    path: format!("{}{name}/", whose.path),
                    name: whose.name,
                    labels: whose.labels.iter().cloned().chain([label]).collect(),
                };
                metrics.within(group, |metrics| metrics.gauge(what, amount.to_f64()));
            }
        }
    }
}
