//! `/roles`: what each role has, and its quota.

use std::collections::BTreeMap;

use tepui_core_master::State;
use tepui_proto::json::JsonWriter;
use tepui_proto::mesos::v1::value::Scalar;
use tepui_resources::Quantities;

use super::Index;
use crate::roles::{RoleEntry, Roles};

pub(super) fn member(w: &mut JsonWriter, state: &State, index: &Index) {
    let roles = Roles::new(state, index);
    w.array_field("roles", |w| roles.by_name.iter().for_each(|(name, entry)| object(w, name, entry, state)));
}

fn object(w: &mut JsonWriter, name: &str, entry: &RoleEntry, state: &State) {
    let quota = state.quotas.get(name);
    let amounts = &entry.amounts;
    w.object(|w| {
        w.field("name", name);
        w.field("weight", &entry.weight);
        w.object_field("quota", |w| {
            w.field("role", name);
            scalars(w, "guarantee", quota.map(|config| &config.guarantees));
            scalars(w, "limit", quota.map(|config| &config.limits));
            quantities(w, "consumed", &amounts.consumed());
        });
        quantities(w, "resources", &amounts.allocated_and_offered());
        quantities(w, "allocated", &amounts.allocated);
        quantities(w, "offered", &amounts.offered);
        quantities(w, "reserved", &amounts.reserved);
        if !amounts.borrowed.is_empty() {
            quantities(w, "borrowed", &amounts.borrowed);
        }
        w.array_field("frameworks", |w| entry.frameworks.iter().for_each(|id| w.string(id.as_str())));
    });
}

fn scalars(w: &mut JsonWriter, name: &str, amounts: Option<&BTreeMap<String, Scalar>>) {
    w.object_field(name, |w| {
        amounts.into_iter().flatten().for_each(|(name, amount)| w.field(name, &amount.value));
    });
}

fn quantities(w: &mut JsonWriter, name: &str, amounts: &Quantities) {
    w.object_field(name, |w| {
        amounts.iter().for_each(|(name, amount)| w.field(name.as_str(), &amount.to_f64()));
    });
}
