//! `tepui completions`: what a shell needs to complete our commands and flags.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use clap_complete::{Shell, generate};

use crate::output;

/// Print the completions of a shell, as in: tepui completions bash > /etc/bash_completion.d/tepui
#[derive(Args)]
pub struct Completions {
    shell: Shell,
}

impl Completions {
    pub fn run(self, mut commands: clap::Command) -> Result<ExitCode> {
        let mut text = Vec::new();
        generate(self.shell, &mut commands, "tepui", &mut text);
        output::bytes(&text)?;
        Ok(ExitCode::SUCCESS)
    }
}
