//! A cluster with Docker engines, a manager of `tepui swarm` in front of it, and the real docker CLI.
//!
//! Each engine has its own root, socket and host name (`node-0`, `node-1`, …) and an agent that names its socket. Engines
//! without a bridge are faster to start: containers use `--net host` or `--net none`, or what `none` gives.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use tepui_facilities::{Facility, Port, available};

use crate::dockerd::{Dockerd, IMAGE, Networks};
use crate::{Cluster, binary, patience, wait_for};

const RESOURCES: &str = "cpus:4;mem:1024;disk:4096;ports:[31000-32000]";

/// One engine with its agent.
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// `key=value`.
    pub labels: Vec<String>,
    /// Of the agent; none: four cpus and one GiB.
    pub resources: Option<String>,
    /// Further flags of the agent.
    pub agent_flags: Vec<String>,
    /// Further attributes of the agent, `name:value`.
    pub attributes: Vec<String>,
    /// Further arguments of the engine.
    pub engine_arguments: Vec<String>,
    /// Without the image that other engines have.
    pub is_empty: bool,
    /// With a bridge, in a network of its own.
    pub has_bridge: bool,
}

/// Dropping it ends every process and removes every file.
pub struct Swarm {
    pub manager: Manager,
    pub cluster: Cluster,
    /// After the cluster: it ends its tasks first.
    pub engines: Vec<Dockerd>,
}

/// A process of `tepui swarm manage`.
pub struct Manager {
    child: Option<Child>,
    arguments: Vec<String>,
    variables: Vec<(String, String)>,
    log: PathBuf,
    _port: Port,
    /// As `docker -H` takes it; kept over a restart.
    pub host: String,
    /// Further arguments of the docker CLI, to connect.
    pub cli: Vec<String>,
}

/// What a command wrote, and how it ended.
#[derive(Clone, Debug)]
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Swarm {
    /// A swarm of so many equal nodes. `None`: recorded as skipped.
    pub fn start(count: usize, manage: &[&str]) -> Option<Swarm> {
        Self::with(&vec![Node::default(); count], &[], manage)
    }

    pub fn with(nodes: &[Node], master_flags: &[&str], manage: &[&str]) -> Option<Swarm> {
        Self::with_cli(nodes, master_flags, manage, &[])
    }

    /// `cli`: arguments that the docker CLI needs to connect.
    pub fn with_cli(nodes: &[Node], master_flags: &[&str], manage: &[&str], cli: &[String]) -> Option<Swarm> {
        if !available(&[Facility::Docker, Facility::Program("docker")]) {
            return None;
        }
        let mut cluster = Cluster::without_agents(master_flags);
        let mut engines = Vec::new();
        for (index, node) in nodes.iter().enumerate() {
            let engine = start_engine(index, node);
            let flags = agent_flags(&engine, node);
            cluster.add_agent(&flags.iter().map(String::as_str).collect::<Vec<_>>());
            engines.push(engine);
        }
        let mut manager =
            Manager::start(&cluster.master.address, &cluster.folder().join("swarm"), manage, &[]);
        manager.cli = cli.to_vec();
        let swarm = Swarm { manager, cluster, engines };
        swarm.wait_for_offers(nodes.len());
        Some(swarm)
    }

    /// Waits until so many engines are connected and have offers.
    pub fn wait_for_offers(&self, count: usize) {
        wait_for("engines with offers", || {
            let info = self.docker(&["info"]);
            let ready = format!("Offers: {count}");
            let has_offers = info.stdout.lines().any(|line| line.trim() == ready);
            let healthy = info.stdout.lines().filter(|line| line.trim() == "└ Status: Healthy").count();
            (info.code == 0 && has_offers && healthy >= count).then_some(())
        });
    }

    /// Runs the docker CLI against the manager.
    pub fn docker(&self, arguments: &[&str]) -> Ran {
        self.manager.docker(arguments)
    }

    /// The same, with the arguments as one types them: separated by blanks, single quotes keep them together.
    pub fn sh(&self, line: &str) -> Ran {
        self.docker(&words(line).iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// The same, which must succeed; what it wrote, without white space at the ends.
    pub fn ok(&self, line: &str) -> String {
        self.done(&words(line).iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// The same, which must fail with a text that contains these.
    pub fn fails(&self, line: &str, texts: &[&str]) {
        let ran = self.sh(line);
        assert_ne!(ran.code, 0, "docker {line}: {}", ran.stdout);
        let all = format!("{}{}", ran.stdout, ran.stderr);
        texts.iter().for_each(|text| assert!(all.contains(text), "docker {line}: no {text:?} in {all}"));
    }

    /// The same in a terminal, without which the docker CLI rejects `-t`; what it showed.
    pub fn in_terminal(&self, line: &str) -> String {
        let line = format!("docker -H {} {line}", self.manager.host);
        let ran = Command::new("script").args(["-qec", &line, "/dev/null"]).stdin(Stdio::null()).output();
        String::from_utf8_lossy(&ran.expect("script of util-linux runs").stdout).into_owned()
    }

    /// Starts `docker events` with these arguments; returns when the manager sends it events.
    pub fn events(&self, arguments: &[&str]) -> Child {
        let readers = || {
            let log = self.manager.log();
            log.lines().filter(|line| line.contains("request answered") && line.contains("/events")).count()
        };
        let before = readers();
        let mut command = self.manager.command(&[&["events"], arguments].concat());
        let client = command.stdout(Stdio::piped()).spawn().expect("docker starts");
        wait_for("the reader of events", || (readers() > before).then_some(()));
        client
    }

    /// Plays cases one after the other on this swarm, removes what each left, and names all that failed.
    pub fn play(&self, cases: &[(&str, fn(&Swarm))]) {
        let mut failed = Vec::new();
        for (name, case) in cases {
            let began = std::time::Instant::now();
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| case(self)));
            println!("{name}: {} in {:?}", if outcome.is_ok() { "ok" } else { "FAILED" }, began.elapsed());
            failed.extend(outcome.err().map(|_| *name));
            self.clean();
        }
        assert!(failed.is_empty(), "failed cases: {}", failed.join(", "));
    }

    /// Removes all containers.
    pub fn clean(&self) {
        let all = self.docker(&["ps", "-aq", "--no-trunc"]).stdout;
        let ids: Vec<&str> = all.lines().collect();
        if !ids.is_empty() {
            self.docker(&[&["rm", "-f"], &ids[..]].concat());
        }
    }

    /// The same, which must succeed; what it wrote, without white space at the ends.
    pub fn done(&self, arguments: &[&str]) -> String {
        let ran = self.docker(arguments);
        assert_eq!(ran.code, 0, "docker {arguments:?}: {}{}", ran.stdout, ran.stderr);
        ran.stdout.trim().to_owned()
    }
}

fn words(line: &str) -> Vec<String> {
    let parts = line.split('\'').enumerate();
    let mut words: Vec<String> = Vec::new();
    for (at, part) in parts {
        match at % 2 {
            1 => words.push(part.to_owned()),
            _ => words.extend(part.split_whitespace().map(str::to_owned)),
        }
    }
    words
}

pub fn start_engine(index: usize, node: &Node) -> Dockerd {
    let labels = node.labels.iter().map(|label| format!("--label={label}"));
    let arguments: Vec<String> = labels.chain(node.engine_arguments.iter().cloned()).collect();
    let networks = if node.has_bridge { Networks::Own } else { Networks::Host };
    let engine = Dockerd::without_image(networks, Some(&format!("node-{index}")), &arguments);
    if !node.is_empty {
        engine.import(IMAGE);
    }
    engine
}

/// Flags of an agent beside the engine.
pub fn agent_flags(engine: &Dockerd, node: &Node) -> Vec<String> {
    let resources = node.resources.as_deref().unwrap_or(RESOURCES);
    let mut attributes = vec![format!("docker_socket:{}", engine.socket().display())];
    attributes.extend(node.attributes.iter().cloned());
    let mut flags =
        vec![format!("--resources={resources}"), format!("--attributes={}", attributes.join(";"))];
    flags.extend(node.agent_flags.iter().cloned());
    flags
}

impl Manager {
    /// Starts a manager and waits until it listens. `arguments` stand before the master.
    pub fn start(master: &str, state: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Manager {
        let mut all = vec!["swarm".to_owned(), "--log-level=debug".to_owned(), "manage".to_owned()];
        all.push(format!("--state-dir={}", state.display()));
        all.extend(arguments.iter().map(|argument| (*argument).to_owned()));
        all.push(master.to_owned());
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let port = Port::take();
        let mut manager = Manager {
            child: None,
            arguments: all,
            variables: variables.collect(),
            log: state.with_extension("log"),
            host: format!("tcp://{}", port.address()),
            _port: port,
            cli: Vec::new(),
        };
        manager.restart();
        manager
    }

    /// Starts it again after `kill`, where it listened before.
    pub fn restart(&mut self) {
        assert!(self.child.is_none(), "it still runs");
        let log = std::fs::File::options().create(true).append(true).open(&self.log).expect("a log");
        let mut command = Command::new(binary());
        command.args(&self.arguments[..3]);
        if !self.arguments.iter().any(|argument| argument.starts_with("--host")) {
            command.arg(format!("--host={}", self.host));
        }
        command.args(&self.arguments[3..]).envs(self.variables.iter().cloned());
        let spawned = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).spawn();
        let mut child = spawned.expect("the binary starts; build it first: cargo build -p tepui");
        let stdout = child.stdout.take().expect("stdout is piped");
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).expect("stdout can be read");
        self.child = Some(child);
        match line.trim().strip_prefix("swarm listening on ") {
            Some(host) => self.host = host.to_owned(),
            None => panic!("it did not start; it wrote:\n{line}{}", self.log()),
        }
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("the manager can be killed");
            child.wait().expect("the manager can be waited for");
        }
    }

    pub fn id(&self) -> u32 {
        self.child.as_ref().expect("it runs").id()
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// The docker CLI with these arguments, not started yet.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let cli = self.cli.iter().map(String::as_str);
        docker_command(&self.host, &cli.chain(arguments.iter().copied()).collect::<Vec<_>>())
    }

    /// A client that does not end by itself is killed, with the exit code 124.
    pub fn docker(&self, arguments: &[&str]) -> Ran {
        let command = self.command(arguments);
        let mut limited = Command::new("timeout");
        limited.arg(patience().as_secs().to_string()).arg(command.get_program()).args(command.get_args());
        Ran::of(
            limited
                .stdin(Stdio::null())
                .env_remove("DOCKER_HOST")
                .output()
                .expect("timeout of coreutils starts"),
        )
    }
}

/// The docker CLI against an engine or a manager.
pub fn docker_command(host: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new("docker");
    command.arg("-H").arg(host).args(arguments).stdin(Stdio::null()).env_remove("DOCKER_HOST");
    command
}

/// The exit code of a client whose stream ends by itself; `None` if a signal killed it.
pub fn exit_code(client: &mut Child) -> Option<i32> {
    wait_for("the end of the client", || client.try_wait().expect("it can be waited for")).code()
}

impl Ran {
    pub fn of(output: Output) -> Ran {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ran {
            code: output.status.code().unwrap_or(-1),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        }
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = self.log();
            let lines: Vec<&str> = log.lines().collect();
            let last = &lines[lines.len().saturating_sub(80)..];
            eprintln!("--- {}\n{}", self.log.display(), last.join("\n"));
        }
        self.kill();
    }
}
