//! Counters of the master: numbers that only grow, part of every snapshot. Gauges are derived by readers.
//!
//! `counting` increments them.

use alloc::sync::Arc;
use alloc::vec::Vec;

use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::offer::operation::Type as OperationType;
use tepui_proto::mesos::v1::scheduler::call::Type as CallType;
use tepui_proto::mesos::v1::scheduler::event::Type as EventType;
use tepui_proto::mesos::v1::task_status::{Reason, Source};

macro_rules! counters {
    ($($counter:ident $name:literal,)*) => {
        /// One number, named as v1 names it behind `master/`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Counter { $($counter,)* }

        impl Counter {
            pub const ALL: &[Counter] = &[$(Counter::$counter,)*];

            pub fn name(self) -> &'static str {
                match self { $(Counter::$counter => $name,)* }
            }
        }
    };
}

counters! {
    DroppedMessages "dropped_messages",
    MessagesRegisterFramework "messages_register_framework",
    MessagesReregisterFramework "messages_reregister_framework",
    MessagesUnregisterFramework "messages_unregister_framework",
    MessagesDeactivateFramework "messages_deactivate_framework",
    MessagesKillTask "messages_kill_task",
    MessagesStatusUpdateAcknowledgement "messages_status_update_acknowledgement",
    MessagesOperationStatusUpdateAcknowledgement "messages_operation_status_update_acknowledgement",
    MessagesResourceRequest "messages_resource_request",
    MessagesLaunchTasks "messages_launch_tasks",
    MessagesDeclineOffers "messages_decline_offers",
    MessagesReviveOffers "messages_revive_offers",
    MessagesSuppressOffers "messages_suppress_offers",
    MessagesReconcileOperations "messages_reconcile_operations",
    MessagesReconcileTasks "messages_reconcile_tasks",
    MessagesFrameworkToExecutor "messages_framework_to_executor",
    MessagesExecutorToFramework "messages_executor_to_framework",
    MessagesRegisterAgent "messages_register_slave",
    MessagesReregisterAgent "messages_reregister_slave",
    MessagesUnregisterAgent "messages_unregister_slave",
    MessagesStatusUpdate "messages_status_update",
    MessagesOperationStatusUpdate "messages_operation_status_update",
    MessagesExitedExecutor "messages_exited_executor",
    MessagesUpdateAgent "messages_update_slave",
    MessagesAuthenticate "messages_authenticate",
    ValidFrameworkToExecutorMessages "valid_framework_to_executor_messages",
    InvalidFrameworkToExecutorMessages "invalid_framework_to_executor_messages",
    ValidExecutorToFrameworkMessages "valid_executor_to_framework_messages",
    InvalidExecutorToFrameworkMessages "invalid_executor_to_framework_messages",
    ValidStatusUpdates "valid_status_updates",
    InvalidStatusUpdates "invalid_status_updates",
    ValidStatusUpdateAcknowledgements "valid_status_update_acknowledgements",
    InvalidStatusUpdateAcknowledgements "invalid_status_update_acknowledgements",
    ValidOperationStatusUpdates "valid_operation_status_updates",
    InvalidOperationStatusUpdates "invalid_operation_status_updates",
    ValidOperationStatusUpdateAcknowledgements "valid_operation_status_update_acknowledgements",
    InvalidOperationStatusUpdateAcknowledgements "invalid_operation_status_update_acknowledgements",
    RecoveryAgentRemovals "recovery_slave_removals",
    AgentRegistrations "slave_registrations",
    AgentReregistrations "slave_reregistrations",
    AgentRemovals "slave_removals",
    AgentRemovalsUnhealthy "slave_removals/reason_unhealthy",
    AgentRemovalsUnregistered "slave_removals/reason_unregistered",
    AgentRemovalsRegistered "slave_removals/reason_registered",
    AgentUnreachableScheduled "slave_unreachable_scheduled",
    AgentUnreachableCompleted "slave_unreachable_completed",
    AgentUnreachableCanceled "slave_unreachable_canceled",
    SlackEvictions "slack_evictions",
}

/// Terminations of tasks, by state, source and reason.
pub type TaskEnd = (pb::TaskState, Source, Reason);

/// Everything counted for the whole cluster.
#[derive(Clone, Debug)]
pub struct Counters {
    pub(crate) counts: [u64; Counter::ALL.len()],
    /// Tasks by the terminal state they reached.
    pub tasks: Tally<pb::TaskState>,
    /// Tasks that ended or got lost for a reason.
    pub reasons: Arc<Tally<TaskEnd>>,
    /// Operations by how they ended.
    pub operations: Arc<Tally<(OperationType, pb::OperationState)>>,
    /// Runs of the allocator.
    pub allocation_runs: u64,
}

/// Everything counted for one framework.
#[derive(Clone, Debug, Default)]
pub struct FrameworkCounters {
    pub calls: Tally<CallType>,
    pub events: Tally<EventType>,
    pub offers: Tally<OfferFate>,
    /// Launches count every task.
    pub operations: Tally<OperationType>,
    pub tasks: Tally<pb::TaskState>,
}

/// What became of an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfferFate {
    Sent,
    Accepted,
    Declined,
    Rescinded,
}

/// How often each of a few things happened.
#[derive(Clone, Debug)]
pub struct Tally<T> {
    counts: Vec<(T, u64)>,
}

impl<T> Default for Tally<T> {
    fn default() -> Self {
        Self { counts: Vec::new() }
    }
}

impl<T: Copy + PartialEq> Tally<T> {
    pub fn get(&self, what: T) -> u64 {
        self.counts.iter().find(|(own, _)| *own == what).map_or(0, |(_, count)| *count)
    }

    pub fn total(&self) -> u64 {
        self.counts.iter().map(|(_, count)| count).sum()
    }

    /// In the order in which they happened first.
    pub fn iter(&self) -> impl Iterator<Item = (T, u64)> + '_ {
        self.counts.iter().copied()
    }

    pub(crate) fn add(&mut self, what: T, times: u64) {
        match self.counts.iter_mut().find(|(own, _)| *own == what) {
            Some((_, count)) => *count += times,
            None => self.counts.push((what, times)),
        }
    }
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            counts: [0; Counter::ALL.len()],
            tasks: Tally::default(),
            reasons: Arc::default(),
            operations: Arc::default(),
            allocation_runs: 0,
        }
    }
}

impl Counters {
    pub fn get(&self, counter: Counter) -> u64 {
        self.counts[counter as usize]
    }
}
