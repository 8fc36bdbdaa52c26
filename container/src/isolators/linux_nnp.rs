//! linux/nnp: no command gains rights by executing a file that has them.

use super::plan::Plan;
use super::site::Site;

pub(super) fn plan(_: &Site, plan: &mut Plan) -> Result<(), String> {
    plan.no_new_privs = true;
    Ok(())
}
