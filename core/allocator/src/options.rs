//! What an operator set. Names follow the flags.

use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use tepui_resources::{Name, Role};

use crate::MinAllocatable;

/// How competitors are put in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sorter {
    /// By weighted dominant shares.
    #[default]
    Drf,
    /// By weighted lot.
    Random,
}

#[derive(Clone, Debug)]
pub struct Options {
    /// How long returned resources may wait, so that one run serves many; also the shortest life of a filter.
    pub allocation_interval: Duration,
    pub min_allocatable: MinAllocatable,
    /// Offer agents with gpus only to frameworks with the GPU_RESOURCES capability.
    pub filter_gpu_resources: bool,
    pub role_sorter: Sorter,
    pub framework_sorter: Sorter,
    /// Left out of fair sharing.
    pub fair_sharing_excluded: Vec<Name>,
    /// The master's own region: agents elsewhere are for region aware frameworks only.
    pub region: Option<Arc<str>>,
    /// Lend what is reserved but idle to frameworks that take revocable resources.
    pub allocation_slack: bool,
    /// Reservations of these roles, and of those below them, are not lent.
    pub allocation_slack_opt_out: BTreeSet<Role>,
    /// With quota set, a recovering master offers nothing before this part of the known agents is back, or so much time
    /// has passed.
    pub agent_recovery_factor: f64,
    pub recovery_timeout: Duration,
    /// Seed of ties and of the order of agents.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            allocation_interval: Duration::from_secs(1),
            min_allocatable: MinAllocatable::usual(),
            filter_gpu_resources: true,
            role_sorter: Sorter::Drf,
            framework_sorter: Sorter::Drf,
            fair_sharing_excluded: Vec::new(),
            region: None,
            allocation_slack: false,
            allocation_slack_opt_out: BTreeSet::new(),
            agent_recovery_factor: 0.8,
            recovery_timeout: Duration::from_secs(600),
            seed: 0,
        }
    }
}

/// The sorter of roles and of frameworks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sorters {
    pub(crate) roles: Sorter,
    pub(crate) frameworks: Sorter,
}
