//! TEARDOWN: the framework is over; its tasks are killed.

use tepui_fsm::Now;
use tepui_types::FrameworkId;

use crate::entities::framework;
use crate::master::{Master, Out};
use crate::state::transition::FrameworkRemoval;

pub(super) fn teardown(master: &mut Master, now: Now, from: &FrameworkId, out: &mut Out) {
    framework::remove(master, now, from, FrameworkRemoval::Teardown, out);
}
