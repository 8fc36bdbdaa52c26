//! SUPPRESS: no more offers in some roles. Outstanding offers stay valid.

use alloc::string::String;
use alloc::vec::Vec;

use tepui_proto::mesos::v1::scheduler::call::Suppress;
use tepui_resources::Role;
use tepui_types::FrameworkId;

use crate::master::Master;

pub(super) fn suppress(master: &mut Master, from: &FrameworkId, call: &Suppress) {
    let Some(roles) = own_roles(master, from, &call.roles) else { return };
    master.allocator.suppress(from, &roles);
    if let Some(framework) = master.framework_mut(from) {
        for role in &roles {
            framework.suppressed_roles.insert_mut(String::from(role.as_str()));
        }
    }
}

/// The roles a call means: all of the framework's if it names none. One that is not its own voids the call.
pub(super) fn own_roles(master: &Master, from: &FrameworkId, named: &[String]) -> Option<Vec<Role>> {
    let own = master.framework(from)?.roles();
    let meant = if named.is_empty() { &own } else { named };
    meant
        .iter()
        .all(|role| own.contains(role))
        .then(|| meant.iter().map(|role| Role::from(role.as_str())).collect())
}
