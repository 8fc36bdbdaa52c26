//! Commands: their environment and its secrets.

use alloc::format;
use alloc::string::String;

use tepui_proto::mesos::v1 as pb;

pub(super) fn command(command: &pb::CommandInfo) -> Result<(), String> {
    command.environment.variables.iter().try_for_each(variable)
}

fn variable(variable: &pb::environment::Variable) -> Result<(), String> {
    use pb::environment::variable::Type;
    let kind = variable.r#type.unwrap_or(Type::VALUE);
    let wrong = |what: &str| {
        let kind = match kind {
            Type::SECRET => "SECRET",
            Type::VALUE => "VALUE",
            Type::UNKNOWN => "UNKNOWN",
        };
        Err(format!("Environment variable '{}' of type '{kind}' {what}", variable.name))
    };
    match (kind, variable.value.is_some(), variable.secret.as_option()) {
        (Type::SECRET, _, None) => wrong("must have a secret set"),
        (Type::SECRET, true, Some(_)) => wrong("must not have a value set"),
        (Type::SECRET, false, Some(inner)) => match secret(inner) {
            Err(why) => wrong(&format!("specifies an invalid secret: {why}")),
            Ok(()) if inner.value.data.contains(&0) => wrong("specifies a secret containing null bytes"),
            Ok(()) => Ok(()),
        },
        (Type::VALUE, false, _) => wrong("must have a value set"),
        (Type::VALUE, true, Some(_)) => wrong("must not have a secret set"),
        (Type::VALUE, true, None) => Ok(()),
        (Type::UNKNOWN, _, _) => wrong("is not allowed"),
    }
}

pub(super) fn secret(secret: &pb::Secret) -> Result<(), String> {
    use pb::secret::Type;
    let has = (secret.reference.is_set(), secret.value.is_set());
    match (secret.r#type.unwrap_or(Type::UNKNOWN), has) {
        (Type::REFERENCE, (false, _)) => {
            Err("Secret of type REFERENCE must have the 'reference' field set".into())
        }
        (Type::REFERENCE, (true, true)) => {
            Err("Secret of type REFERENCE must not have the 'value' field set".into())
        }
        (Type::VALUE, (_, false)) => Err("Secret of type VALUE must have the 'value' field set".into()),
        (Type::VALUE, (true, true)) => {
            Err("Secret of type VALUE must not have the 'reference' field set".into())
        }
        (Type::REFERENCE, (true, false)) | (Type::VALUE, (false, true)) | (Type::UNKNOWN, _) => Ok(()),
    }
}
