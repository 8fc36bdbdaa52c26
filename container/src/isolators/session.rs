//! Sessions: a debug container has the view of its parent, and no isolation of its own.

use super::site::Site;
use crate::plan::{Join, Namespace, Plan};

/// What a session has from the container it looks into.
pub(super) const IS_JOINED: [&str; 3] = ["filesystem/linux", "namespaces/ipc", "namespaces/pid"];

pub(super) fn plan(site: &Site, plan: &mut Plan) {
    let Some(parent) = site.parent else { return };
    if let Some(process) = parent.process {
        let namespaces = [Namespace::Mount, Namespace::Pid, Namespace::Ipc, Namespace::Uts].into();
        plan.join = Some(Join { process, namespaces });
        plan.chroot = parent.root.clone();
        // In another mount namespace the current directory is lost.
        plan.working_directory = Some(parent.directory.clone());
    }
}
