//! What a command runs.

use tepui_proto::mesos::v1 as pb;

use super::fault::ContainerFault;

/// What a command runs, and what with: the first is its name for itself.
pub(super) fn command_line(command: &pb::CommandInfo) -> Result<(String, Vec<String>), ContainerFault> {
    let value = command.value.clone().unwrap_or_default();
    if value.is_empty() {
        return Err(ContainerFault::NoCommand);
    }
    Ok(match command.shell.unwrap_or(true) {
        true => (String::from("/bin/sh"), vec![String::from("sh"), String::from("-c"), value]),
        false => (value, command.arguments.clone()),
    })
}
