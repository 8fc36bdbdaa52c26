//! namespaces/pid: a container sees its own processes only, those nested in it included; it may ask to see all that its
//! parent sees.

use super::fault::PlanFault;
use super::site::Site;
use crate::plan::{Join, Make, Mount, Namespace, Plan, Root, Target};

pub(super) fn plan(site: &Site, plan: &mut Plan) -> Result<(), PlanFault> {
    let shares = site.linux_info().and_then(|info| info.share_pid_namespace).unwrap_or(false);
    if shares && !site.is_nested() && site.options.disallow_sharing_agent_pid_namespace {
        return Err(PlanFault::AgentNamespace("pid"));
    }
    if let Some(process) = site.parent.and_then(|parent| parent.process) {
        let join = plan.join.get_or_insert_with(|| Join { process, namespaces: Default::default() });
        join.namespaces.insert(Namespace::Pid);
    }
    if !shares {
        plan.namespaces.insert(Namespace::Pid);
    }
    // With a root file system /proc is mounted already. A container that joins sees the parent's processes, not the
    // host's.
    let differs = !shares || plan.join.is_some();
    if site.rootfs.is_none() && differs && plan.namespaces.contains(&Namespace::Mount) {
        plan.mounts.push(Mount::Proc { target: Target::new(Root::Host, "proc", Make::Nothing) });
    }
    Ok(())
}
