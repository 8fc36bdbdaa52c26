//! Counting: what crosses the border of the state machine (`border`), and what handlers decide.
//!
//! Counting never changes what the master does.

mod border;

use alloc::sync::Arc;

use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::offer::operation::Type as OperationType;
use tepui_types::{FrameworkId, TaskStateExt};

pub(crate) use border::Arrival;

use crate::master::Master;
use crate::values::counters::{Counter, FrameworkCounters, OfferFate};

impl Master {
    pub(crate) fn count(&mut self, counter: Counter) {
        self.state.counters.counts[counter as usize] += 1;
        self.counted = true;
    }

    /// Counts for one framework, if it is known.
    pub(crate) fn count_for(&mut self, id: &FrameworkId, count: impl FnOnce(&mut FrameworkCounters)) {
        let state = &self.state;
        if state.frameworks.contains_key(id) || state.completed_frameworks.contains(id) {
            if !self.state.framework_counters.contains_key(id) {
                self.state.framework_counters.insert_mut(id.clone(), Arc::default());
            }
            if let Some(counters) = self.state.framework_counters.get_mut(id) {
                count(Arc::make_mut(counters));
            }
            self.counted = true;
        }
    }

    /// Offers of one framework had this fate.
    pub(crate) fn count_offers(&mut self, id: &FrameworkId, fate: OfferFate, offers: usize) {
        if offers > 0 {
            self.count_for(id, |counters| counters.offers.add(fate, offers as u64));
        }
    }

    /// An operation of a framework is carried out; a launch with each of its tasks.
    pub(crate) fn count_operation(&mut self, id: &FrameworkId, kind: OperationType) {
        self.count_for(id, |counters| counters.operations.add(kind, 1));
    }

    /// An operation came to an end.
    pub(crate) fn count_operation_end(&mut self, kind: OperationType, state: pb::OperationState) {
        Arc::make_mut(&mut self.state.counters.operations).add((kind, state), 1);
        self.counted = true;
    }

    /// A task ended in this state, or was lost sight of. The status that came may be one from before its end.
    pub(crate) fn count_task_end(&mut self, id: &FrameworkId, state: pb::TaskState, status: &pb::TaskStatus) {
        if let (true, Some(source), Some(reason)) = (status.state == state, status.source, status.reason) {
            Arc::make_mut(&mut self.state.counters.reasons).add((state, source, reason), 1);
        }
        if state.is_terminal() {
            self.state.counters.tasks.add(state, 1);
            self.count_for(id, |counters| counters.tasks.add(state, 1));
        }
        self.counted = true;
    }
}
