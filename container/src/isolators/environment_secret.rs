//! environment_secret: variables that are secrets. Those given by value are in the environment already; there is nobody
//! to ask for one that is given by reference.

use tepui_proto::mesos::v1::environment::variable::Type;

use super::plan::Plan;
use super::site::Site;

pub(super) fn plan(site: &Site, _: &mut Plan) -> Result<(), String> {
    let variables = &site.spec.command.environment.variables;
    let unresolved =
        variables.iter().find(|one| one.r#type == Some(Type::SECRET) && !one.secret.value.is_set());
    match unresolved {
        Some(variable) => Err(format!(
            "the environment variable '{}' is a secret given by reference, and there is no secret resolver",
            variable.name
        )),
        None => Ok(()),
    }
}
