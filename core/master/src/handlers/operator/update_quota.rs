//! UPDATE_QUOTA: what roles must be able to get and must not pass. All of them change, or none.

use alloc::collections::BTreeMap;
use alloc::format;

use tepui_proto::mesos::v1::master::call::UpdateQuota;
use tepui_types::Rejection;

use crate::entities::quota;
use crate::master::{Master, Out};
use crate::rules::role_config;

pub(super) fn update_quota(master: &mut Master, call: &UpdateQuota, out: &mut Out) -> Result<(), Rejection> {
    let failed = |why| Rejection::bad_request(format!("Failed to validate UPDATE_QUOTA: {why}"));
    let mut configs = BTreeMap::new();
    for config in &call.quota_configs {
        quota::check(master, config).map_err(failed)?;
        let is_default = config.guarantees.is_empty() && config.limits.is_empty();
        if configs.insert(config.role.clone(), (!is_default).then(|| config.clone())).is_some() {
            return Err(failed(format!("role '{}' is named twice", config.role)));
        }
    }
    if !call.force.unwrap_or(false) {
        for config in configs.values().flatten() {
            quota::check_consumption(master, config).map_err(failed)?;
        }
        quota::check_capacity(master, &call.quota_configs).map_err(|why| {
            failed(format!(
                "Quota guarantees overcommit the cluster (use 'force' to bypass this check): {why}"
            ))
        })?;
    }
    role_config::check_quotas(master, &configs)?;
    if !configs.is_empty() {
        quota::set(master, configs, out);
    }
    Ok(())
}
