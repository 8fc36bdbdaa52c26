//! TEARDOWN: an operator ends a framework.

use tepui_fsm::Now;
use tepui_proto::mesos::v1::master::call::Teardown;
use tepui_types::{FrameworkId, Rejection};

use crate::entities::framework;
use crate::master::{Master, Out};
use crate::state::transition::FrameworkRemoval;

pub(super) fn teardown(
    master: &mut Master,
    now: Now,
    call: &Teardown,
    out: &mut Out,
) -> Result<(), Rejection> {
    let id = FrameworkId::from(&*call.framework_id);
    if master.framework(&id).is_none() {
        return Err(Rejection::bad_request("No framework found with specified ID"));
    }
    framework::remove(master, now, &id, FrameworkRemoval::TeardownByOperator, out);
    Ok(())
}
