//! REMOVE_QUOTA: a role has no quota any more.

use alloc::format;

use tepui_proto::mesos::v1::master::call::RemoveQuota;
use tepui_types::Rejection;

use crate::entities::quota;
use crate::master::{Master, Out};

pub(super) fn remove_quota(master: &mut Master, call: &RemoveQuota, out: &mut Out) -> Result<(), Rejection> {
    let role = &call.role;
    let failed = |why| Rejection::bad_request(format!("Failed to remove quota: {why}"));
    quota::check_role(master, role).map_err(failed)?;
    if !master.state.quotas.contains_key(role) {
        return Err(failed(format!("Role '{role}' has no quota set")));
    }
    quota::set(master, [(role.clone(), None)].into(), out);
    Ok(())
}
