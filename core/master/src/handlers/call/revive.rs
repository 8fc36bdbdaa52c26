//! REVIVE: removes the framework's filters and suppressions.

use tepui_proto::mesos::v1::scheduler::call::Revive;
use tepui_types::FrameworkId;

use super::suppress::own_roles;
use crate::master::Master;

pub(super) fn revive(master: &mut Master, from: &FrameworkId, call: &Revive) {
    let Some(roles) = own_roles(master, from, &call.roles) else { return };
    master.allocator.revive(from, &roles);
    if let Some(framework) = master.framework_mut(from) {
        for role in &roles {
            framework.suppressed_roles.remove_mut(role.as_str());
        }
    }
}
