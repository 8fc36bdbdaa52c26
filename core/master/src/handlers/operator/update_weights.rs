//! UPDATE_WEIGHTS: how much roles count beside their siblings. All of them change, or none.
//!
//! Offers that are out stay; the next ones follow the new weights.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;

use tepui_proto::mesos::v1::WeightInfo;
use tepui_proto::mesos::v1::master::call::UpdateWeights;
use tepui_registry::{Operation as Record, WEIGHT_DEFAULT};
use tepui_resources::Role;
use tepui_types::{Answer, Rejection};

use super::Done;
use crate::master::{Master, Out};
use crate::rules::role_config;
use crate::validate::weight;

pub(super) fn update_weights(master: &mut Master, call: &UpdateWeights, out: &mut Out) -> Done {
    let mut weights = BTreeMap::new();
    for info in &call.weight_infos {
        let (role, weight) = check(info)?;
        if weights.insert(role.clone(), weight).is_some() {
            let why = format!("Failed to validate update weights request JSON: role '{role}' is named twice");
            return Err(Rejection::bad_request(why));
        }
    }
    if weights.keys().any(|role| !master.state.allows_role(role)) {
        return Ok(Answer::NoContent);
    }
    role_config::check_weights(master, &weights)?;
    if !weights.is_empty() {
        set(master, weights, out);
    }
    Ok(Answer::Ok)
}

/// A role that can be one, and a weight that can be compared.
fn check(info: &WeightInfo) -> Result<(String, f64), Rejection> {
    let reject = |why: String| Rejection::bad_request(why);
    let role = info.role.as_deref().map(str::trim);
    let role = role
        .ok_or_else(|| reject("Failed to validate update weights request JSON: a role is missing".into()))?;
    weight::role(role)
        .map_err(|why| reject(format!("Failed to validate update weights request JSON: {why}")))?;
    weight::value(info.weight).map_err(|why| {
        reject(format!("Failed to validate update weights request JSON for role '{role}': {why}"))
    })?;
    Ok((role.into(), info.weight))
}

fn set(master: &mut Master, weights: BTreeMap<String, f64>, out: &mut Out) {
    for (role, weight) in &weights {
        match *weight == WEIGHT_DEFAULT {
            true => drop(master.state.weights.remove_mut(role)),
            false => master.state.weights.insert_mut(role.clone(), *weight),
        }
    }
    let by_role = weights.iter().map(|(role, weight)| (Role::from(role.as_str()), *weight)).collect();
    master.allocator.set_weights(&by_role);
    master.changed = true;
    master.record(Record::SetWeights(weights), out);
}
