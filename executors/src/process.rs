//! Processes from a `CommandInfo`: shell and argv form, environment, session.
//!
//! A task gets its own session through a second start of this program, which creates the session and then executes the
//! task: no code runs between fork and exec.

use std::io::IsTerminal;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};

use nix::sys::signal::{SigSet, Signal};
use nix::unistd::Pid;
use tepui_client::v1::{CommandInfo, TaskInfo, environment};
use tepui_proto::json;

/// Set for the second start only: the command to become, as JSON.
const BECOME: &str = "TEPUI_BECOME_TASK";
/// The executor's authentication token; removed from the environment of tasks.
const TOKEN: &str = "MESOS_EXECUTOR_AUTHENTICATION_TOKEN";
/// Set if the task has its own root filesystem: the arguments, one per line, of the launcher that enters it.
const LAUNCHER: &str = "TEPUI_TASK_LAUNCHER";
/// What a shell answers for a command that it cannot find.
const EXIT_NOT_FOUND: u8 = 127;

/// The process for a command: `sh -c value`, or `value` with exactly the given arguments (the first is its own name).
///
/// It inherits the environment of this process without the executor's token, overridden by the command's.
pub fn command(info: &CommandInfo) -> Command {
    let value = info.value.as_deref().unwrap_or_default();
    let mut command = match info.shell.unwrap_or(true) {
        true => {
            let mut shell = Command::new("sh");
            shell.args(["-c", value]);
            shell
        }
        false => {
            let mut argv = Command::new(value);
            if let Some((name, rest)) = info.arguments.split_first() {
                argv.arg0(name).args(rest);
            }
            argv
        }
    };
    command.env_remove(TOKEN);
    for variable in &info.environment.variables {
        // Secrets were resolved by the parent of this process.
        if variable.r#type != Some(environment::variable::Type::SECRET) {
            command.env(&variable.name, variable.value.as_deref().unwrap_or_default());
        }
    }
    command.stdin(Stdio::null());
    command
}

/// Keeps the memory and the environment of this process, with the token in it, from other processes of its user. Those it
/// starts are not affected.
pub fn hide() {
    if let Err(error) = nix::sys::prctl::set_dumpable(false) {
        tracing::warn!(%error, "cannot hide the environment from processes of the same user");
    }
}

/// As [`command`], in the file system of the task if that has its own.
pub fn outside_task(info: &CommandInfo) -> Command {
    let command = command(info);
    let Some(mut inside) = launcher() else { return command };
    inside.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => inside.env(name, value),
            None => inside.env_remove(name),
        };
    }
    inside
}

fn launcher() -> Option<Command> {
    let words = std::env::var(LAUNCHER).ok()?;
    let mut words = words.lines();
    let mut command = Command::new(words.next()?);
    command.args(words).env_remove(TOKEN).stdin(Stdio::null());
    Some(command)
}

/// The process for a task: as [`command`], in its own session unless it shares a terminal. A task with its own root
/// filesystem is started by the launcher, which adds the image's defaults to the command.
///
/// `own_args` are those arguments of this process that make it call [`become_task`] first.
pub fn session_leader(info: &CommandInfo, own_args: &[String]) -> std::io::Result<Command> {
    if let Some(mut inside) = launcher() {
        if has_terminal() {
            inside.stdin(Stdio::inherit());
        }
        return Ok(inside);
    }
    if info.value.is_none() {
        return Err(std::io::Error::other("the command has no 'value'"));
    }
    let mut starter = Command::new(std::env::current_exe()?);
    starter.args(own_args);
    let text = String::from_utf8(json::to_vec(info)).map_err(std::io::Error::other)?;
    starter.env(BECOME, text).env_remove(TOKEN);
    if !has_terminal() {
        starter.stdin(Stdio::null());
    }
    Ok(starter)
}

/// On a second start, creates the session and executes the task; returns only on failure. `None` on a first start.
pub fn become_task() -> Option<ExitCode> {
    let text = std::env::var(BECOME).ok()?;
    let error = match json::from_slice::<CommandInfo>(text.as_bytes()) {
        Ok(info) => {
            let mut task = command(&info);
            if has_terminal() {
                task.stdin(Stdio::inherit());
                take_terminal();
            } else {
                // Fails only for the leader of a process group, which a fresh child never is.
                let _ = nix::unistd::setsid();
            }
            let error = task.env_remove(BECOME).exec();
            format!("cannot execute '{}': {error}", info.value.as_deref().unwrap_or_default())
        }
        Err(error) => format!("cannot read {BECOME}: {error}"),
    };
    eprintln!("{error}");
    Some(ExitCode::from(EXIT_NOT_FOUND))
}

/// Puts the task into its own foreground process group: terminal signals are for the task, not for its executor. The
/// session is unchanged because it owns the terminal.
fn take_terminal() {
    let own = Pid::from_raw(0);
    // A background process would be stopped for taking the terminal.
    let mut background = SigSet::empty();
    background.add(Signal::SIGTTOU);
    let taken = background
        .thread_block()
        .and_then(|()| nix::unistd::setpgid(own, own))
        .and_then(|()| nix::unistd::tcsetpgrp(std::io::stdin(), nix::unistd::getpgrp()))
        .and_then(|()| background.thread_unblock());
    if let Err(error) = taken {
        eprintln!("cannot take the terminal: {error}"); // It still reads and writes.
    }
}

/// Whether the agent gave us a terminal, which is the task's.
fn has_terminal() -> bool {
    std::io::stdin().is_terminal()
}

/// The arguments of this process before the trailing `args`: those that select the executor.
pub fn args_before(args: &[String]) -> Vec<String> {
    let all: Vec<String> = std::env::args().skip(1).collect();
    let before = all.len().saturating_sub(args.len());
    all.into_iter().take(before).collect()
}

/// The role whose share a task uses.
pub fn allocation_role(task: &TaskInfo) -> Option<&str> {
    task.resources.first()?.allocation_info.role.as_deref()
}

#[cfg(test)]
mod tests {
    use tepui_client::shorthand::shell;
    use tepui_client::v1::Environment;
    use tepui_client::v1::environment::{Variable, variable};

    use super::*;

    fn output(info: &CommandInfo) -> String {
        let output = command(info).output().expect("it starts");
        String::from_utf8(output.stdout).expect("text")
    }

    #[test]
    fn shell_and_argv_commands_get_their_environment() {
        let variable = |name: &str, value: &str, kind| Variable {
            name: name.into(),
            value: Some(value.into()),
            r#type: kind,
            ..Default::default()
        };
        let variables =
            vec![variable("A_VALUE", "1", None), variable("A_SECRET", "2", Some(variable::Type::SECRET))];
        let environment = Environment { variables, ..Default::default() };
        let info = CommandInfo {
            environment: environment.into(),
            arguments: vec!["ignored".into()],
            ..shell("echo $A_VALUE${A_SECRET-none}; test -n \"$PATH\" && echo path")
        };
        assert_eq!(output(&info), "1none\npath\n");

        let argv = CommandInfo {
            shell: Some(false),
            value: Some("sh".into()),
            arguments: ["my-name", "-c", "echo $0 $1", "zero", "one"].map(String::from).to_vec(),
            ..Default::default()
        };
        assert_eq!(output(&argv), "zero one\n");
    }

    #[test]
    fn a_command_without_a_value_is_none() {
        let why = session_leader(&CommandInfo::default(), &[]).expect_err("there is nothing to run");
        assert_eq!(why.to_string(), "the command has no 'value'");
        assert!(session_leader(&shell(""), &[]).is_ok(), "an empty script does nothing, and can be run");
    }
}
