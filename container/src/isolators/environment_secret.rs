//! environment_secret: variables that are secrets. Those given by value are in the environment already; references
//! are unsupported, because there is no secret resolver.

use tepui_proto::mesos::v1::environment::variable::Type;

use super::fault::PlanFault;
use super::site::Site;
use crate::plan::Plan;

pub(super) fn plan(site: &Site, _: &mut Plan) -> Result<(), PlanFault> {
    let variables = &site.spec.command.environment.variables;
    let unresolved =
        variables.iter().find(|one| one.r#type == Some(Type::SECRET) && !one.secret.value.is_set());
    match unresolved {
        Some(variable) => Err(PlanFault::SecretByReference(variable.name.clone())),
        None => Ok(()),
    }
}
