//! Number of decline filters in each role, for metrics.
//!
//! Fed by `filters` with every added and removed filter; the allocator maps clients to roles.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use tepui_resources::Role;

use crate::slab::{ClientSlot, Slot};

#[derive(Clone, Debug, Default)]
pub(crate) struct FilterCounts {
    /// By client: its role, and how many filters it has. A client that is gone has none.
    clients: Vec<Option<(Role, u64)>>,
    /// Roles that have any.
    roles: BTreeMap<Role, u64>,
    /// Roles whose number changed since the last report.
    changed: BTreeSet<Role>,
}

impl FilterCounts {
    /// The client in this slot is in this role.
    pub(crate) fn name(&mut self, client: ClientSlot, role: &Role) {
        if client.index() >= self.clients.len() {
            self.clients.resize(client.index() + 1, None);
        }
        let entry = &mut self.clients[client.index()];
        if entry.as_ref().is_none_or(|(_, count)| *count == 0) {
            *entry = Some((role.clone(), 0));
        }
    }

    pub(crate) fn more(&mut self, client: ClientSlot) {
        let Some(Some((role, count))) = self.clients.get_mut(client.index()) else { return };
        *count += 1;
        *self.roles.entry(role.clone()).or_default() += 1;
        self.changed.insert(role.clone());
    }

    pub(crate) fn less(&mut self, client: ClientSlot) {
        let Some(Some((role, count))) = self.clients.get_mut(client.index()) else { return };
        *count -= 1;
        if let Some(count) = self.roles.get_mut(role) {
            *count -= 1;
            if *count == 0 {
                self.roles.remove(role);
            }
        }
        self.changed.insert(role.clone());
    }

    /// How many there are now in each role where that changed since the last time.
    pub(crate) fn take_changed(&mut self) -> Vec<(Role, u64)> {
        let changed = core::mem::take(&mut self.changed);
        let count = |role: &Role| self.roles.get(role).copied().unwrap_or(0);
        changed.into_iter().map(|role| (role.clone(), count(&role))).collect()
    }

    pub(crate) fn total(&self) -> u64 {
        self.roles.values().sum()
    }
}
