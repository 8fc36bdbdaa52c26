//! Sessions: containers by which somebody looks into another one.
//!
//! They begin where the other one began, with its environment, which is never on a disk: it is read from the process.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use tepui_types::ContainerId;

use super::Context;
use crate::host::beneath;
use crate::host::process::{self, Process};
use crate::launcher::{InitSpec, tree};
use crate::runtime_dir::{Claim, RuntimeDir};

/// Lets a session begin as its parent did.
pub(super) async fn join(
    context: &Arc<Context>,
    id: &ContainerId,
    sandbox: Option<&Path>,
    init: &mut InitSpec,
) -> Result<(), String> {
    let parent = id.parent().cloned().ok_or("a session has no parent to look into")?;
    let sandbox = sandbox.ok_or("the sandbox of its parent is not known")?;
    let directory = beneath::relative(&context.options.work_dir, sandbox);
    init.directory =
        Some(directory.ok_or("the sandbox of its parent is not below the work directory")?.to_owned());
    let runtime = context.runtime.clone();
    let read = tokio::task::spawn_blocking(move || environment(&runtime, &parent)).await;
    // A parent that is just ending, or has taken other rights than we have, cannot be asked.
    let mut environment = read.ok().and_then(Result::ok).unwrap_or_default();
    environment.append(&mut init.environment);
    init.environment = environment;
    Ok(())
}

/// Kills everything below a supervisor, which then can say how it ended.
pub(super) async fn kill_below(supervisor: Process) {
    // What it does not reach is ended by what comes next.
    tokio::task::spawn_blocking(move || tree::kill_below(supervisor)).await.ok();
}

/// The environment that the command of a running container was started with.
fn environment(runtime: &RuntimeDir, id: &ContainerId) -> io::Result<BTreeMap<String, String>> {
    let dir = runtime.container(id);
    let Claim::Supervisor(supervisor) = dir.claimed()? else { return Ok(BTreeMap::new()) };
    let above = dir.init().map_or(supervisor, |init| init.process);
    let all = process::all()?;
    let command = all.iter().find(|stat| stat.parent == above.pid && !stat.ended);
    let Some(command) = command else { return Ok(BTreeMap::new()) };
    let text = std::fs::read(format!("/proc/{}/environ", command.process.pid))?;
    Ok(parse(&text))
}

fn parse(text: &[u8]) -> BTreeMap<String, String> {
    let variable = |line: &[u8]| {
        let line = std::str::from_utf8(line).ok()?;
        let (name, value) = line.split_once('=')?;
        (!name.is_empty()).then(|| (name.to_owned(), value.to_owned()))
    };
    text.split(|byte| *byte == 0).filter_map(variable).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_is_read() {
        let found = parse(b"A=1\0B=x=y\0C=\0nothing\0=hidden\0\xff=2\0");
        let expected = [("A", "1"), ("B", "x=y"), ("C", "")].map(|(name, value)| (name.into(), value.into()));
        assert_eq!(found, BTreeMap::from(expected));
    }
}
