//! Processes from a `CommandInfo`: shell and argv form, environment, session.
//!
//! A task gets its own session from posix_spawn(3). A task with a terminal, and one that cannot be started like that,
//! gets it through a second start of this program, which creates the session and then executes the task: no code runs
//! between fork and exec.

use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, OsString};
use std::io::IsTerminal;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};

use nix::fcntl::OFlag;
use nix::spawn::{PosixSpawnAttr, PosixSpawnFileActions, PosixSpawnFlags, posix_spawn};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::stat::Mode;
use nix::unistd::{AccessFlags, Pid, access};
use rustix::process::{WaitOptions, waitpid};
use tepui_client::v1::{CommandInfo, TaskInfo, environment};
use tepui_proto::json;
use tokio::signal::unix::{Signal as Signals, SignalKind};

/// Set for the second start only: the command to become, as JSON.
const BECOME: &str = "TEPUI_BECOME_TASK";
/// The executor's authentication token; removed from the environment of tasks.
const TOKEN: &str = "MESOS_EXECUTOR_AUTHENTICATION_TOKEN";
/// Set if the task has its own root filesystem: the arguments, one per line, of the launcher that enters it.
const LAUNCHER: &str = "TEPUI_TASK_LAUNCHER";
/// The role whose share a task uses.
const ALLOCATION_ROLE: &str = "MESOS_ALLOCATION_ROLE";
/// The flag of posix_spawn(3) for a new session, as glibc and musl define it; nix has no name for it.
const POSIX_SPAWN_SETSID: i32 = 0x80;
/// What a shell answers for a command that it cannot find.
const EXIT_NOT_FOUND: u8 = 127;

/// The process for a command: `sh -c value`, or `value` with exactly the given arguments (the first is its own name).
///
/// It inherits the environment of this process without the executor's token, overridden by the command's.
pub fn command(info: &CommandInfo) -> Command {
    let (program, arguments) = words(info);
    let mut command = Command::new(program);
    if let Some((name, rest)) = arguments.split_first() {
        command.arg0(name).args(rest);
    }
    command.env_remove(TOKEN).envs(variables(info));
    command.stdin(Stdio::null());
    command
}

/// The program of a command and its arguments, of which the first is its own name.
fn words(info: &CommandInfo) -> (&str, Vec<&str>) {
    let value = info.value.as_deref().unwrap_or_default();
    match info.shell.unwrap_or(true) {
        true => ("sh", vec!["sh", "-c", value]),
        false if info.arguments.is_empty() => (value, vec![value]),
        false => (value, info.arguments.iter().map(String::as_str).collect()),
    }
}

/// The environment of a command without its secrets, which were resolved by the parent of this process. Of several with the
/// same name the last one wins.
fn variables(info: &CommandInfo) -> BTreeMap<&str, &str> {
    let mut all = BTreeMap::new();
    for variable in &info.environment.variables {
        match variable.r#type {
            Some(environment::variable::Type::SECRET) => all.remove(variable.name.as_str()),
            Some(environment::variable::Type::VALUE | environment::variable::Type::UNKNOWN) | None => {
                all.insert(variable.name.as_str(), variable.value.as_deref().unwrap_or_default())
            }
        };
    }
    all
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

/// Starts the process of a task in `sandbox` and returns its pid. `own_args` as of [`session_leader`].
///
/// `sandbox` becomes the working directory of this process as well: nix has no
/// posix_spawn_file_actions_addchdir_np(3), and an executor that starts its task itself has no other.
pub fn spawn(task: &TaskInfo, own_args: &[String], sandbox: &Path) -> std::io::Result<i32> {
    let (info, role) = (&*task.command, allocation_role(task));
    if info.value.is_some()
        && launcher().is_none()
        && !has_terminal()
        && let Some(pid) = spawn_session(info, role, sandbox)
    {
        return Ok(pid);
    }
    let mut command = session_leader(info, own_args)?;
    command.envs(role.map(|role| (ALLOCATION_ROLE, role))).current_dir(sandbox);
    Ok(command.spawn()?.id().cast_signed())
}

/// As [`spawn`], without a second start of this program. `None` if that fails: a second start reports the reason.
fn spawn_session(info: &CommandInfo, role: Option<&str>, sandbox: &Path) -> Option<i32> {
    let (program, arguments) = words(info);
    let arguments: Vec<CString> = arguments.into_iter().map(CString::new).collect::<Result<_, _>>().ok()?;
    let mut environment: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
    environment.remove(OsStr::new(TOKEN));
    let added = role.map(|role| (ALLOCATION_ROLE, role)).into_iter().chain(variables(info));
    environment.extend(added.map(|(name, value)| (name.into(), value.into())));
    std::env::set_current_dir(sandbox).ok()?;
    let program = find(program, environment.get(OsStr::new("PATH")))?;
    let environment: Vec<CString> = environment
        .into_iter()
        .map(|(name, value)| CString::new([name.as_bytes(), b"=", value.as_bytes()].concat()))
        .collect::<Result<_, _>>()
        .ok()?;

    let mut files = PosixSpawnFileActions::init().ok()?;
    files.add_open(0, "/dev/null", OFlag::O_RDONLY, Mode::empty()).ok()?;
    let mut attributes = PosixSpawnAttr::init().ok()?;
    let session = PosixSpawnFlags::from_bits_retain(POSIX_SPAWN_SETSID);
    let signals = PosixSpawnFlags::POSIX_SPAWN_SETSIGDEF | PosixSpawnFlags::POSIX_SPAWN_SETSIGMASK;
    attributes.set_flags(session | signals).ok()?;
    // Ignored in this process, as in every Rust program.
    attributes.set_sigdefault(&SigSet::from_iter([Signal::SIGPIPE])).ok()?;
    attributes.set_sigmask(&SigSet::empty()).ok()?;
    posix_spawn(&program, &files, &attributes, &arguments, &environment).ok().map(Pid::as_raw)
}

/// The file that a program's name stands for, as execvp(3) finds it.
fn find(program: &str, path: Option<&OsString>) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(PathBuf::from(program));
    }
    let candidates = std::env::split_paths(path?).map(|directory| directory.join(program));
    candidates.into_iter().find(|candidate| access(candidate, AccessFlags::X_OK).is_ok())
}

/// The exits of child processes, from now on.
pub fn exits() -> std::io::Result<Signals> {
    tokio::signal::unix::signal(SignalKind::child())
}

/// Waits for the exit of a child process; `exits` began before the child.
pub async fn wait(child: i32, mut exits: Signals) -> std::io::Result<ExitStatus> {
    let child = rustix::process::Pid::from_raw(child);
    loop {
        if let Some((_, status)) = waitpid(child, WaitOptions::NOHANG)? {
            return Ok(ExitStatus::from_raw(status.as_raw()));
        }
        exits.recv().await.ok_or_else(|| std::io::Error::other("signals are not received"))?;
    }
}

/// The process for a task: as [`command`], in its own session unless it shares a terminal. A task with its own root
/// filesystem is started by the launcher, which adds the image's defaults to the command.
///
/// `own_args` are those arguments of this process that make it call [`become_task`] first.
fn session_leader(info: &CommandInfo, own_args: &[String]) -> std::io::Result<Command> {
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
        let secret = Some(variable::Type::SECRET);
        let variables = vec![
            variable("A_VALUE", "0", secret),
            variable("A_VALUE", "1", None),
            variable("A_SECRET", "2", None),
            variable("A_SECRET", "3", secret),
        ];
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

    /// Runs the calling test again in a process with a token, whose working directory it can change; true in there.
    fn with_token(test: &str) -> bool {
        if std::env::var_os(TOKEN).is_some() {
            return true;
        }
        let mut again = Command::new(std::env::current_exe().expect("a test has a file"));
        again.args(["--exact", test, "--nocapture"]).env(TOKEN, "secret");
        assert!(again.status().expect("it starts").success());
        false
    }

    #[tokio::test]
    async fn a_task_gets_its_own_session_without_a_second_start() {
        if !with_token("process::tests::a_task_gets_its_own_session_without_a_second_start") {
            return;
        }
        let folder = tempfile::tempdir().expect("a directory");
        let (tools, sandbox) = (folder.path().join("tools"), folder.path().join("sandbox"));
        for path in [&tools, &sandbox] {
            std::fs::create_dir(path).expect("a directory");
        }
        // A file written here would be busy while the process that another test forks has it open.
        std::os::unix::fs::symlink("/bin/sh", tools.join("tool-of-the-task")).expect("a link");
        let script = r#"read -r input; echo "input '$input', role $MESOS_ALLOCATION_ROLE, token '$MESOS_EXECUTOR_AUTHENTICATION_TOKEN'"
            read -r _ _ _ _ _ session _ < /proc/$$/stat; test $session = $$ && echo own session
            while read -r name mask; do
                case $name in SigBlk:) echo blocked $mask;; SigIgn:) echo ignored $mask;; esac
            done < /proc/$$/status
            exit $1"#;
        let script = format!("exec > seen; {script}");
        let path = format!("/no/such:{}:/usr/bin:/bin", tools.display());
        let path = Variable { name: "PATH".into(), value: Some(path), ..Default::default() };
        let info = |value: &str| CommandInfo {
            shell: Some(false),
            value: Some(value.into()),
            arguments: ["sh", "-c", &script, "own-name", "7"].map(String::from).to_vec(),
            environment: Environment { variables: vec![path.clone()], ..Default::default() }.into(),
            ..Default::default()
        };
        let exits = exits().expect("signals are received");
        SigSet::from_iter([Signal::SIGUSR1]).thread_block().expect("blocked");
        let pid = spawn_session(&info("tool-of-the-task"), Some("lab"), &sandbox).expect("it starts");
        assert_eq!(wait(pid, exits).await.expect("it is a child").code(), Some(7));
        let seen = std::fs::read_to_string(sandbox.join("seen")).expect("it began in its sandbox");
        let (seen, ignored) = seen.split_once("ignored ").expect("the last line");
        let ignored = u64::from_str_radix(ignored.trim(), 16).expect("a mask");
        assert_eq!(ignored & 1 << (Signal::SIGPIPE as i32 - 1), 0, "Rust ignores it in this process");
        assert_eq!(seen, "input '', role lab, token ''\nown session\nblocked 0000000000000000\n");
        assert_eq!(spawn_session(&info("no-such-tool"), None, &sandbox), None);
        assert_eq!(spawn_session(&info("/no/such/tool"), None, &sandbox), None);
    }

    #[test]
    fn a_command_without_a_value_is_none() {
        let why = session_leader(&CommandInfo::default(), &[]).expect_err("there is nothing to run");
        assert_eq!(why.to_string(), "the command has no 'value'");
        assert!(session_leader(&shell(""), &[]).is_ok(), "an empty script does nothing, and can be run");
    }
}
