//! SET_QUOTA, the old way: a guarantee that is a limit too, for a role that has none.

use alloc::format;

use tepui_proto::mesos::v1::master::call::SetQuota;
use tepui_types::{Rejection, Status};

use crate::entities::quota;
use crate::master::{Master, Out};
use crate::rules::role_config;

pub(super) fn set_quota(master: &mut Master, call: &SetQuota, out: &mut Out) -> Result<(), Rejection> {
    let failed = |why| Rejection::bad_request(format!("Failed to validate set quota request: {why}"));
    let config = quota::from_request(&call.quota_request).map_err(failed)?;
    quota::check(master, &config).map_err(failed)?;
    if master.state.quotas.contains_key(&config.role) {
        return Err(failed(format!("Cannot set quota for role '{}' which already has quota", config.role)));
    }
    if !call.quota_request.force.unwrap_or(false) {
        quota::check_capacity(master, [&config]).map_err(|why| {
            let what = "Quota guarantees overcommit the cluster (use 'force' to bypass this check)";
            Rejection::new(Status::Conflict, format!("{what}: {why}"))
        })?;
    }
    let configs = [(config.role.clone(), Some(config))].into();
    role_config::check_quotas(master, &configs)?;
    quota::set(master, configs, out);
    Ok(())
}
