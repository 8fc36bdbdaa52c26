//! linux/nnp: no command gains rights by executing a file that has them.

use super::fault::PlanFault;
use super::site::Site;
use crate::plan::Plan;

pub(super) fn plan(_: &Site, plan: &mut Plan) -> Result<(), PlanFault> {
    plan.no_new_privs = true;
    Ok(())
}
