//! `tepui completions`: the completion script of a shell.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Arg, Args, Command, ValueHint};
use clap_complete::{Shell, generate};

use crate::output;

/// Print shell completions, as in: tepui completions bash > /etc/bash_completion.d/tepui
#[derive(Args)]
pub struct Completions {
    shell: Shell,
}

impl Completions {
    pub fn run(self, commands: Command) -> Result<ExitCode> {
        let mut text = Vec::new();
        let mut commands = commands.mut_subcommands(|command| match LOCAL.contains(&command.get_name()) {
            true => command,
            false => without_files(command),
        });
        generate(self.shell, &mut commands, "tepui", &mut text);
        output::bytes(&text)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Commands that have to do with files of this machine.
const LOCAL: &[&str] = &["master", "agent", "dev", "run", "exec", "bench"];

/// Disables file completion for ids of the cluster.
fn without_files(command: Command) -> Command {
    command.mut_subcommands(without_files).mut_args(|argument| match is_remote(&argument) {
        true => argument.value_hint(ValueHint::Other),
        false => argument,
    })
}

/// Whether its value is no file here.
fn is_remote(argument: &Arg) -> bool {
    let names = argument.get_value_names().unwrap_or_default();
    let is_file = names.iter().any(|name| *name == "FILE" || *name == "DIR");
    argument.get_action().takes_values() && (argument.is_positional() || !is_file)
}
