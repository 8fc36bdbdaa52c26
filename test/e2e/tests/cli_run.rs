//! `tepui run` during crashes and restarts of masters and agents.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use tepui_e2e::{Cluster, Gate, binary, patience, wait_for};

/// A running `tepui run`.
struct Run {
    child: Child,
    stdout: ChildStdout,
    /// The lines of standard error.
    lines: Receiver<String>,
}

impl Run {
    fn start(cluster: &Cluster, arguments: &[&str]) -> Self {
        let mut child = Command::new(binary())
            .arg("run")
            .args(arguments)
            .env("TEPUI_MASTER", &cluster.master.address)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let stderr = BufReader::new(child.stderr.take().expect("a pipe"));
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            stderr.lines().map_while(Result::ok).take_while(|line| sender.send(line.clone()).is_ok()).count()
        });
        let stdout = child.stdout.take().expect("a pipe");
        Self { child, stdout, lines }
    }

    /// Waits for a line on standard error that contains this.
    fn expect_line(&self, text: &str) {
        let mut before = Vec::new();
        loop {
            match self.lines.recv_timeout(patience()) {
                Ok(line) if line.contains(text) => return,
                Ok(line) => before.push(line),
                Err(_) => panic!("it did not say {text:?} but {before:#?}"),
            }
        }
    }

    /// Waits for it to write this much more.
    fn writes(&mut self, expected: &str) {
        let mut written = vec![0; expected.len()];
        self.stdout.read_exact(&mut written).expect("it writes");
        assert_eq!(String::from_utf8_lossy(&written), expected);
    }

    /// Waits for its exit; the exit code.
    fn ends(&mut self) -> Option<i32> {
        wait_for("the run to end", || self.child.try_wait().expect("it can be waited for")).code()
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn signals_are_shell_exit_codes() {
    let cluster = Cluster::start();
    let mut run = Run::start(&cluster, &["--", "kill -KILL $$"]);
    run.expect_line("Command terminated with signal Killed");
    assert_eq!(run.ends(), Some(128 + 9));
}

#[test]
fn run_survives_master_and_agent_restart() {
    let mut cluster = Cluster::start();
    let (mut first, mut second) =
        (Gate::new(cluster.folder(), "first"), Gate::new(cluster.folder(), "second"));
    let script = format!("echo one; {}; echo two; {}; echo three; exit 3", first.pass(), second.pass());
    let mut run = Run::start(&cluster, &["--", &script]);
    run.writes("one\n");

    cluster.master.kill();
    run.expect_line("connection to the master lost");
    cluster.master.restart();
    cluster.wait_for_agents(1);
    first.open();
    run.writes("two\n");

    cluster.agents[0].kill();
    run.expect_line("cannot read the task's output, trying again");
    second.open();
    cluster.agents[0].restart();
    run.writes("three\n");
    run.expect_line("Command exited with status 3");
    assert_eq!(run.ends(), Some(3));
}

#[test]
fn unreachable_master_times_out() {
    let mut cluster = Cluster::start();
    let mut run = Run::start(&cluster, &["--reconnect_timeout=1secs", "--", "echo runs; sleep 1000"]);
    run.writes("runs\n");
    cluster.master.kill();
    run.expect_line("connection to the master lost");
    run.expect_line(&format!(
        "no master at {} for 1secs; increase --reconnect_timeout",
        cluster.master.address
    ));
    run.expect_line("cannot kill 1 task");
    assert_eq!(run.ends(), Some(1));
}
