//! Hostname of a container: the requested one, invisible outside, else that of the container around it.
//!
//! Belongs to filesystem/linux: v1 has no isolator of that name.

use super::fault::PlanFault;
use super::site::Site;
use crate::plan::{Join, Namespace, Plan};

/// The kernel's.
const HOSTNAME_BYTES_MAX: usize = 64;

pub(super) fn plan(site: &Site, plan: &mut Plan) -> Result<(), PlanFault> {
    match site.spec.container.as_ref().and_then(|info| info.hostname.as_deref()) {
        Some(name) if name.is_empty() || name.len() > HOSTNAME_BYTES_MAX || name.contains('\0') => {
            return Err(PlanFault::Hostname { bytes_max: HOSTNAME_BYTES_MAX });
        }
        Some(name) => {
            plan.namespaces.insert(Namespace::Uts);
            plan.hostname = Some(name.to_owned());
        }
        None => {
            if let Some(process) = site.parent.and_then(|parent| parent.process) {
                let join = plan.join.get_or_insert_with(|| Join { process, namespaces: Default::default() });
                join.namespaces.insert(Namespace::Uts);
            }
        }
    }
    Ok(())
}
