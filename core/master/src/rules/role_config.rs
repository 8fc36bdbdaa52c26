//! The room that weights and quotas of all roles take together: one call is small, many of them need not be.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use tepui_proto::mesos::v1::quota::QuotaConfig;
use tepui_proto::wire;
use tepui_registry::WEIGHT_DEFAULT;
use tepui_types::Rejection;

use crate::master::Master;

/// A weight beside the name of its role.
const WEIGHT_BYTES: usize = 16;

/// Whether there is room for these weights beside everything else. The default weight takes none.
pub(crate) fn check_weights(master: &Master, changes: &BTreeMap<String, f64>) -> Result<(), Rejection> {
    let others = master.state.weights.keys().filter(|role| !changes.contains_key(*role));
    let new = changes.iter().filter(|(_, weight)| **weight != WEIGHT_DEFAULT).map(|(role, _)| role);
    let new: Vec<&String> = new.collect();
    match new.is_empty() {
        true => Ok(()),
        false => check(
            master,
            others.chain(new).map(|role| weight_bytes(role)).sum::<usize>() + quotas_bytes(master),
        ),
    }
}

/// Whether there is room for the quota of a role, as part of `changes`.
pub(crate) fn check_quotas(
    master: &Master,
    changes: &BTreeMap<String, Option<QuotaConfig>>,
) -> Result<(), Rejection> {
    let others = master.state.quotas.iter().filter(|(role, _)| !changes.contains_key(*role));
    let others: usize = others.map(|(_, config)| quota_bytes(config)).sum();
    let new: Vec<&QuotaConfig> = changes.values().flatten().collect();
    match new.is_empty() {
        true => Ok(()),
        false => {
            let new: usize = new.into_iter().map(quota_bytes).sum();
            check(
                master,
                others + new + master.state.weights.keys().map(|role| weight_bytes(role)).sum::<usize>(),
            )
        }
    }
}

fn weight_bytes(role: &str) -> usize {
    role.len() + WEIGHT_BYTES
}

/// The role is kept beside its quota, too.
fn quota_bytes(config: &QuotaConfig) -> usize {
    config.role.len() + wire::size(config)
}

fn quotas_bytes(master: &Master) -> usize {
    master.state.quotas.values().map(|config| quota_bytes(config)).sum()
}

fn check(master: &Master, bytes: usize) -> Result<(), Rejection> {
    let most = master.config.limits.role_config;
    if bytes <= most {
        return Ok(());
    }
    Err(Rejection::bad_request(format!(
        "Weights and quotas of all roles would take {bytes} bytes, more than {most} (--max_role_config_size); \
         nothing was changed"
    )))
}
