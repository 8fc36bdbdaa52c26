//! Real masters and agents, started from the built binary and killed by their process id.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use tepui_facilities::Port;

use crate::{Http, cgroup_mounts, wait_for};

/// A cluster in a temporary directory. Dropping it kills every process and removes every file.
pub struct Cluster {
    master_flags: Vec<String>,
    pub master: Program,
    pub agents: Vec<Program>,
    /// The last field: programs that exit in a failing test still have their logs.
    folder: tempfile::TempDir,
}

/// One started program of ours.
pub struct Program {
    child: Option<Child>,
    /// The program that starts it, with its arguments; empty if it is started as it is.
    starter: Vec<String>,
    arguments: Vec<String>,
    log: PathBuf,
    port: Port,
    /// "127.0.0.1:port"; kept over a restart.
    pub address: String,
    pub work_dir: PathBuf,
}

impl Cluster {
    /// A master and one agent with `cpus:8;mem:4096;disk:4096;ports:[31000-32000]`.
    pub fn start() -> Self {
        Self::with(&[], &["--resources=cpus:8;mem:4096;disk:4096;ports:[31000-32000]"])
    }

    /// A master with these flags and one agent with those.
    pub fn with(master_flags: &[&str], agent_flags: &[&str]) -> Self {
        let mut cluster = Self::without_agents(master_flags);
        cluster.add_agent(agent_flags);
        cluster
    }

    pub fn without_agents(master_flags: &[&str]) -> Self {
        let folder = tempfile::Builder::new().prefix("tepui-e2e-").tempdir().expect("a temporary directory");
        let master_flags: Vec<String> = master_flags.iter().map(|flag| flag.to_string()).collect();
        let work_dir = folder.path().join("master");
        let master = Program::start("master", &work_dir, &master_flags, Vec::new());
        Self { folder, master_flags, master, agents: Vec::new() }
    }

    /// A master with these flags whose records are in a directory of the test's choice.
    pub fn with_master_at(work_dir: &Path, flags: &[&str]) -> Self {
        let folder = tempfile::Builder::new().prefix("tepui-e2e-").tempdir().expect("a temporary directory");
        let master_flags: Vec<String> = flags.iter().map(|flag| flag.to_string()).collect();
        let master = Program::start("master", work_dir, &master_flags, Vec::new());
        Self { folder, master_flags, master, agents: Vec::new() }
    }

    /// Starts one more agent and waits for its registration.
    pub fn add_agent(&mut self, flags: &[&str]) {
        let work_dir = self.folder.path().join(format!("agent-{}", self.agents.len()));
        self.add_agent_at(&work_dir, flags);
    }

    /// The same in a directory of the test's choice.
    pub fn add_agent_at(&mut self, work_dir: &Path, flags: &[&str]) {
        let master = self.master.address.clone();
        self.add_agent_of(&master, work_dir, flags);
        self.wait_for_agents(self.agents.len());
    }

    /// Starts one more agent through another program, whose arguments are followed by the agent's command line.
    pub fn add_agent_by(&mut self, starter: Vec<String>, flags: &[&str]) {
        let work_dir = self.folder.path().join(format!("agent-{}", self.agents.len()));
        let arguments = self.agent_arguments(&self.master.address, flags);
        self.agents.push(Program::start("agent", &work_dir, &arguments, starter));
        self.wait_for_agents(self.agents.len());
    }

    /// Starts an agent of whatever listens at this address.
    pub fn add_agent_of(&mut self, master: &str, work_dir: &Path, flags: &[&str]) {
        let arguments = self.agent_arguments(master, flags);
        self.agents.push(Program::start("agent", work_dir, &arguments, Vec::new()));
    }

    fn agent_arguments(&self, master: &str, flags: &[&str]) -> Vec<String> {
        let runtime_dir = self.folder.path().join("run").join(self.agents.len().to_string());
        let mut arguments =
            vec![format!("--master={master}"), format!("--runtime_dir={}", runtime_dir.display())];
        if !flags.iter().any(|flag| flag.starts_with("--cgroups_root=")) {
            arguments.push(format!("--cgroups_root={}", self.cgroups_root(self.agents.len()).display()));
        }
        arguments.extend(flags.iter().map(|flag| flag.to_string()));
        arguments
    }

    /// Where an agent's cgroups are, below each mount; no other test uses it.
    pub fn cgroups_root(&self, agent: usize) -> PathBuf {
        Path::new(self.folder.path().file_name().expect("it has a name")).join(agent.to_string())
    }

    /// Waits until so many agents are registered and active.
    pub fn wait_for_agents(&self, count: usize) {
        wait_for("agents to register", || {
            let state = self.http().get("/slaves").json()?;
            let agents = state["slaves"].as_array()?;
            (agents.iter().filter(|agent| agent["active"] == true).count() == count).then_some(())
        });
    }

    pub fn http(&self) -> Http {
        Http::new(&self.master.address)
    }

    pub fn agent_http(&self) -> Http {
        Http::new(&self.agents[0].address)
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn master_flags(&self) -> &[String] {
        &self.master_flags
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.agents.clear();
        if let Some(root) = self.folder.path().file_name() {
            cgroup_mounts().iter().for_each(|mount| end_cgroup(&mount.join(root)));
        }
    }
}

/// Kills the processes of a cgroup and removes it with all below.
fn end_cgroup(cgroup: &Path) {
    // Whom an agent stopped before it was killed cannot die.
    for (file, thaw) in [("freezer.state", "THAWED"), ("cgroup.freeze", "0")] {
        if cgroup.join(file).exists() {
            std::fs::write(cgroup.join(file), thaw).ok();
        }
    }
    for child in std::fs::read_dir(cgroup).into_iter().flatten().flatten() {
        if child.file_type().is_ok_and(|kind| kind.is_dir()) {
            end_cgroup(&child.path());
        }
    }
    const ATTEMPTS_MAX: usize = 100;
    for _ in 0..ATTEMPTS_MAX {
        let processes = std::fs::read_to_string(cgroup.join("cgroup.procs")).unwrap_or_default();
        for pid in processes.lines() {
            let _ = Command::new("kill").args(["-KILL", pid]).stderr(Stdio::null()).status();
        }
        if std::fs::remove_dir(cgroup).is_ok() || !cgroup.exists() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

impl Program {
    /// Starts a `master` or an `agent` on loopback and waits until it listens.
    pub fn start(kind: &str, work_dir: &Path, flags: &[String], starter: Vec<String>) -> Self {
        let mut arguments = vec![kind.to_string(), format!("--work_dir={}", work_dir.display())];
        arguments.push("--ip=127.0.0.1".to_string());
        arguments.extend(flags.iter().cloned());
        let log = work_dir.with_extension("log");
        let port = Port::take();
        let mut program = Self {
            child: None,
            starter,
            arguments,
            log,
            address: port.address(),
            port,
            work_dir: work_dir.to_path_buf(),
        };
        program.restart();
        program
    }

    /// Starts it again after `kill`, on the address it had.
    pub fn restart(&mut self) {
        let mut child = self.spawn();
        self.address = self.listening(&mut child);
        self.child = Some(child);
    }

    /// Restarts it, expecting a failure; returns its exit status and its log of this start.
    pub fn restart_in_vain(&mut self) -> (ExitStatus, String) {
        let said_before = self.log().len();
        self.child = Some(self.spawn());
        let status = self.wait();
        (status, self.log().split_off(said_before))
    }

    fn spawn(&self) -> Child {
        assert!(self.child.is_none(), "it still runs");
        let log = File::options().create(true).append(true).open(&self.log).expect("the log can be opened");
        let mut command = match self.starter.split_first() {
            None => Command::new(binary()),
            Some((starter, arguments)) => {
                let mut command = Command::new(starter);
                command.args(arguments).arg(binary());
                command
            }
        };
        command
            .args(&self.arguments)
            .arg(format!("--port={}", self.port.number()))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .expect("the binary starts; build it first: cargo build -p tepui")
    }

    /// The address in the first line of standard output.
    fn listening(&self, child: &mut Child) -> String {
        let stdout = child.stdout.take().expect("stdout is piped");
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).expect("stdout can be read");
        match line.trim().rsplit_once("://") {
            Some((_, address)) => address.to_string(),
            None => panic!("it did not start; it wrote:\n{line}{}", self.log()),
        }
    }

    /// SIGKILL: a crash without a clean shutdown.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("the child can be killed");
            child.wait().expect("the child can be waited for");
        }
    }

    /// Waits for it to exit.
    pub fn wait(&mut self) -> ExitStatus {
        let child = self.child.as_mut().expect("it runs");
        let status =
            wait_for("the program to end", || child.try_wait().expect("the child can be waited for"));
        self.child = None;
        status
    }

    /// Sends a signal by its short name.
    pub fn signal(&self, name: &str) {
        crate::signal(self.id(), name);
    }

    pub fn is_running(&mut self) -> bool {
        self.child.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }

    /// Whether it was started and not killed.
    pub fn has_child(&self) -> bool {
        self.child.is_some()
    }

    pub fn id(&self) -> u32 {
        self.child.as_ref().expect("it runs").id()
    }

    /// The memory it uses now.
    pub fn resident_mib(&self) -> usize {
        let pages = std::fs::read_to_string(format!("/proc/{}/statm", self.id())).expect("it runs");
        let pages: usize = pages.split(' ').nth(1).and_then(|pages| pages.parse().ok()).expect("a number");
        pages * 4096 / (1024 * 1024)
    }

    /// Adds a flag for the next start.
    pub fn add_flag(&mut self, flag: &str) {
        self.arguments.push(flag.to_string());
    }

    /// Takes a flag away for the next start.
    pub fn remove_flag(&mut self, flag: &str) {
        self.arguments.retain(|argument| argument != flag);
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- {}\n{}", self.log.display(), tail(&self.log(), 60));
        }
        self.kill();
        // Containers survive their agent by design; those of this test are killed.
        end_supervisors(&self.work_dir);
    }
}

/// Ends every process whose command line or working directory names this work directory.
fn end_supervisors(work_dir: &Path) {
    let Some(folder) = work_dir.to_str() else { return };
    let Ok(processes) = std::fs::read_dir("/proc") else { return };
    for process in processes.flatten() {
        let Some(pid) = process.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let command = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        let inside =
            std::fs::read_link(process.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(work_dir));
        let named = String::from_utf8_lossy(&command).contains(folder);
        if (inside || named) && pid != std::process::id() {
            let _ = Command::new("kill").args(["-KILL", &pid.to_string()]).stderr(Stdio::null()).status();
        }
    }
}

fn tail(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

/// The binary under test: `TEPUI_BIN`, or the one beside the running test.
pub fn binary() -> PathBuf {
    if let Some(path) = std::env::var_os("TEPUI_BIN") {
        return path.into();
    }
    let test = std::env::current_exe().expect("a running test has a path");
    let profile = test.ancestors().nth(2).expect("target/<profile>/deps/<test>");
    profile.join("tepui")
}
