//! Sessions: containers launched inside another one to inspect it.
//!
//! They start in the other one's directory and with its environment, which is never on a disk: it is read from the
//! process.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tepui_types::ContainerId;

use super::Context;
use super::fault::{ContainerFault, SessionFault};
use crate::host::background::{Interrupted, blocking};
use crate::host::beneath;
use crate::host::process::{self, Process};
use crate::launcher::{InitSpec, tree};
use crate::runtime_dir::{Claim, RuntimeDir};

/// Number and interval of checks on a process that is replacing its program.
const EXEC_LOOKS_MAX: u32 = 1000;
const EXEC_PAUSE: Duration = Duration::from_millis(1);

/// Lets a session begin as its parent did.
pub(super) async fn join(
    context: &Arc<Context>,
    id: &ContainerId,
    sandbox: Option<&Path>,
    init: &mut InitSpec,
) -> Result<(), ContainerFault> {
    let parent = id.parent().cloned().ok_or(SessionFault::NoParent)?;
    let sandbox = sandbox.ok_or(SessionFault::UnknownSandbox)?;
    let directory = beneath::relative(&context.options.work_dir, sandbox);
    init.directory = Some(directory.ok_or(SessionFault::SandboxOutside)?.to_owned());
    let runtime = context.runtime.clone();
    let read = blocking(move || environment(&runtime, &parent)).await?;
    // A parent that is terminating, or has other rights than ours, cannot be read.
    let mut environment = read.unwrap_or_default();
    environment.append(&mut init.environment);
    init.environment = environment;
    Ok(())
}

/// Kills all processes below a supervisor, which then reports the exit.
pub(super) async fn kill_below(supervisor: Process) {
    // The remaining processes are killed by the next step.
    if let Err(fault @ Interrupted::Panicked(_)) = blocking(move || tree::kill_below(supervisor)).await {
        tracing::error!(pid = supervisor.pid, %fault, "cannot kill below a supervisor");
    }
}

/// The environment that the command of a running container was started with.
fn environment(runtime: &RuntimeDir, id: &ContainerId) -> io::Result<BTreeMap<String, String>> {
    let dir = runtime.container(id);
    let Claim::Supervisor(supervisor) = dir.claimed()? else { return Ok(BTreeMap::new()) };
    let above = dir.init().map_or(supervisor, |init| init.process);
    let all = process::all()?;
    let command = all.iter().find(|stat| stat.parent == above.pid && !stat.ended);
    let Some(command) = command else { return Ok(BTreeMap::new()) };
    Ok(parse(&environ(command.process.pid)?))
}

/// The environment of a process as the kernel shows it. While the process replaces its program there is none, or only the
/// beginning of one: its end is at address 0 then, and at another address before and after.
fn environ(pid: i32) -> io::Result<Vec<u8>> {
    for _ in 0..EXEC_LOOKS_MAX {
        let before = environ_end(pid)?;
        let text = std::fs::read(format!("/proc/{pid}/environ"))?;
        if before != Some(0) && before == environ_end(pid)? {
            return Ok(text);
        }
        std::thread::sleep(EXEC_PAUSE);
    }
    Err(io::ErrorKind::TimedOut.into())
}

/// Where the environment of a process ends in its memory: field 51 of its stat line, of which the second may contain anything.
fn environ_end(pid: i32) -> io::Result<Option<u64>> {
    let line = std::fs::read(format!("/proc/{pid}/stat"))?;
    let line = String::from_utf8_lossy(&line);
    let end = line.rsplit_once(')').and_then(|(_, rest)| rest.split_ascii_whitespace().nth(48));
    Ok(end.and_then(|end| end.parse().ok()))
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
    fn environment_block_is_parsed() {
        let found = parse(b"A=1\0B=x=y\0C=\0nothing\0=hidden\0\xff=2\0");
        let expected = [("A", "1"), ("B", "x=y"), ("C", "")].map(|(name, value)| (name.into(), value.into()));
        assert_eq!(found, BTreeMap::from(expected));
    }

    /// A shell that replaces itself all the time.
    #[test]
    fn environment_of_a_process_in_exec_is_read() {
        let dir = tempfile::tempdir().expect("a directory");
        let script = dir.path().join("again");
        std::fs::write(&script, "exec sh \"$0\"\n").expect("it can be written");
        let mut shell =
            std::process::Command::new("sh").arg(&script).env("OF", "parent").spawn().expect("a shell");
        let pid = shell.id().cast_signed();
        let read = || environ(pid).map(|text| parse(&text).get("OF").cloned());
        let wrong =
            (0..3000).map(|_| read()).find(|found| !matches!(found, Ok(Some(value)) if value == "parent"));
        shell.kill().expect("it can be killed");
        shell.wait().expect("it ends");
        assert!(wrong.is_none(), "{wrong:?}");
    }

    #[test]
    fn empty_environment_is_read_without_waiting() {
        let mut sleep =
            std::process::Command::new("sleep").arg("1000").env_clear().spawn().expect("it starts");
        let pid = sleep.id().cast_signed();
        let found = (environ(pid).expect("it is read"), environ_end(pid).expect("it is read") > Some(0));
        sleep.kill().expect("it can be killed");
        sleep.wait().expect("it ends");
        assert_eq!(found, (Vec::new(), true));
    }
}
