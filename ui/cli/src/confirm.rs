//! Confirmation before a destructive change, and its result.

use std::io::{BufRead, IsTerminal, Write};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::Value;

use crate::output;

#[derive(Args, Clone, Debug)]
pub struct Confirm {
    /// Do not ask for confirmation.
    #[arg(long, short)]
    pub yes: bool,
}

impl Confirm {
    /// Succeeds if the user confirms, or with `--yes`.
    pub fn require(&self, consequence: &str) -> Result<()> {
        if self.yes {
            return Ok(());
        }
        if !std::io::stdin().is_terminal() {
            bail!("{consequence}\nstandard input is not a terminal; confirm with --yes");
        }
        eprint!("{}\nContinue? [y/N] ", output::printable(consequence));
        std::io::stderr().flush().context("cannot write")?;
        let mut answer = String::new();
        std::io::stdin().lock().read_line(&mut answer).context("cannot read the answer")?;
        match answer.trim().to_lowercase().as_str() {
            "y" | "yes" => Ok(()),
            _ => bail!("nothing is changed"),
        }
    }
}

/// What was done: a sentence for people, or a document.
pub fn done(json: bool, document: &Value, sentence: &str) -> Result<()> {
    match json {
        true => output::json(document),
        false => {
            output::notice(sentence);
            Ok(())
        }
    }
}
