//! `tepui help`: the commands in groups.
//!
//! The texts are clap's; only their order is ours. A command without a group fails a test.

use clap::Command;

/// Every visible command, by purpose.
const GROUPS: [(&str, &[&str]); 4] = [
    ("Programs", &["dev", "master", "agent"]),
    (
        "Inspect",
        &[
            "summary",
            "tasks",
            "agents",
            "frameworks",
            "roles",
            "offers",
            "executors",
            "task",
            "framework",
            "explain",
            "logs",
            "files",
            "events",
            "metrics",
        ],
    ),
    (
        "Manage",
        &[
            "run",
            "exec",
            "attach",
            "service",
            "swarm",
            "weights",
            "quota",
            "reserve",
            "unreserve",
            "volumes",
            "maintenance",
            "drain",
            "deactivate",
            "reactivate",
            "gone",
            "prune-images",
            "teardown",
        ],
    ),
    ("Other", &["bench", "completions", "version", "help"]),
];

const TEMPLATE: &str = "{about}\n\n{usage-heading} {usage}{after-help}\n\nOptions:\n{options}\n\n\
    `tepui help COMMAND` prints the options of a command. TEPUI_MASTER replaces --master.\n";

/// The tree with the grouped list as its help.
pub fn grouped(command: Command) -> Command {
    let list = list(&command);
    command.help_template(TEMPLATE).after_help(list)
}

fn list(command: &Command) -> String {
    let width = GROUPS.iter().flat_map(|(_, names)| *names).map(|name| name.len()).max().unwrap_or(0);
    let line = |name: &&str| {
        let about = command.find_subcommand(name).and_then(Command::get_about);
        let about = about.map_or_else(|| "Print help for a command".to_string(), ToString::to_string);
        format!("  {name:<width$}  {about}")
    };
    let group = |(title, names): &(&str, &[&str])| {
        format!("{title}:\n{}", names.iter().map(line).collect::<Vec<_>>().join("\n"))
    };
    GROUPS.iter().map(group).collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory;

    use super::*;

    #[test]
    fn every_command_is_in_one_group() {
        let mut command = crate::Tepui::command();
        command.build();
        let there: BTreeSet<&str> =
            command.get_subcommands().filter(|one| !one.is_hide_set()).map(Command::get_name).collect();
        let grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        assert_eq!(grouped.iter().copied().collect::<BTreeSet<_>>(), there);
        assert_eq!(grouped.len(), there.len(), "none twice");
    }
}
