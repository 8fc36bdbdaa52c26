//! A real `tepui service run`, its API, and a volume driver whose faults a test chooses.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use serde_json::{Value, json};

use crate::{Http, Response, binary, wait_for};

/// The scheduler of a service. Dropping it kills the scheduler; its tasks are the cluster's.
pub struct Service {
    child: Option<Child>,
    master: String,
    flags: Vec<String>,
    environment: Vec<(String, String)>,
    /// Spec, records and logs.
    folder: PathBuf,
    /// `127.0.0.1:port`; another after each start.
    pub address: String,
}

/// A task of a pod, as the API describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskInstance {
    pub id: String,
    pub state: String,
    pub agent: String,
    pub info: Value,
}

impl Service {
    /// Starts the scheduler of a spec on a cluster; its files are in `folder`.
    pub fn start(master: &str, folder: &Path, spec: &str) -> Self {
        Self::start_with(master, folder, spec, &[], &[])
    }

    pub fn start_with(
        master: &str,
        folder: &Path,
        spec: &str,
        environment: &[(&str, &str)],
        flags: &[&str],
    ) -> Self {
        let mut service = Self::prepare(master, folder, spec, environment, flags);
        service.restart();
        service
    }

    /// Starts the scheduler without waiting for its API: it may end before.
    pub fn begin(master: &str, folder: &Path, spec: &str) -> Self {
        let mut service = Self::prepare(master, folder, spec, &[], &[]);
        service.child = Some(service.spawn());
        service
    }

    fn prepare(
        master: &str,
        folder: &Path,
        spec: &str,
        environment: &[(&str, &str)],
        flags: &[&str],
    ) -> Self {
        std::fs::create_dir_all(folder).expect("a folder");
        let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let service = Self {
            child: None,
            master: master.to_owned(),
            flags: flags.iter().map(|flag| (*flag).to_owned()).collect(),
            environment: environment.iter().map(pair).collect(),
            folder: folder.to_owned(),
            address: String::new(),
        };
        service.write(spec);
        service
    }

    /// Writes the spec; `update` or the next start reads it.
    pub fn write(&self, spec: &str) {
        std::fs::write(self.folder.join("svc.yml"), spec).expect("the spec is written");
    }

    /// Starts the scheduler after `kill`, and waits until its API listens.
    pub fn restart(&mut self) {
        let mut child = self.spawn();
        let out = self.folder.join("out");
        let address = wait_for("the API of the service", || {
            assert!(matches!(child.try_wait(), Ok(None)), "the scheduler ended:\n{}", self.log());
            let text = std::fs::read_to_string(&out).unwrap_or_default();
            let line = text.lines().find(|line| line.contains("listening on"))?;
            line.rsplit_once("://").map(|(_, address)| address.to_owned())
        });
        self.address = address;
        self.child = Some(child);
    }

    /// Starts the scheduler though it cannot run: its status and what it wrote.
    pub fn restart_in_vain(&mut self) -> (ExitStatus, String) {
        let mut child = self.spawn();
        let status = wait_for("the scheduler to end", || child.try_wait().expect("a child"));
        (status, self.log())
    }

    fn spawn(&self) -> Child {
        assert!(self.child.is_none(), "it still runs");
        let open = |name: &str, append: bool| {
            let mut options = File::options();
            options.create(true).write(true).append(append).truncate(!append);
            options.open(self.folder.join(name)).expect("a log")
        };
        Command::new(binary())
            .args(["service", "run"])
            .arg(self.folder.join("svc.yml"))
            .arg(&self.master)
            .args(self.default_store())
            .args(&self.flags)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(open("out", false))
            .stderr(open("log", true))
            .spawn()
            .expect("the binary starts; build it first: cargo build -p tepui")
    }

    fn default_store(&self) -> Option<String> {
        let is_set = self.flags.iter().any(|flag| flag.starts_with("--store"));
        (!is_set).then(|| format!("--work_dir={}", self.folder.join("work").display()))
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("the child can be killed");
            child.wait().expect("the child can be waited for");
        }
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.as_mut().is_none_or(|child| child.try_wait().expect("a child").is_some())
    }

    /// Waits for it to end by itself.
    pub fn wait(&mut self) -> ExitStatus {
        let child = self.child.as_mut().expect("it runs");
        let status = wait_for("the scheduler to end", || child.try_wait().expect("a child"));
        self.child = None;
        status
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    pub fn output(&self) -> String {
        std::fs::read_to_string(self.folder.join("out")).unwrap_or_default()
    }

    pub fn http(&self) -> Http {
        Http::new(&self.address)
    }

    pub fn get(&self, path: &str) -> Value {
        self.http().get(path).json().unwrap_or_default()
    }

    pub fn post(&self, path: &str) -> Response {
        self.http().post(path, &json!({}))
    }

    pub fn plan(&self, name: &str) -> Value {
        self.get(&format!("/v1/plans/{name}"))
    }

    /// Waits until a plan is complete.
    pub fn complete(&self, plan: &str) {
        wait_for(&format!("plan {plan} to complete"), || {
            (self.plan(plan)["status"] == "COMPLETE").then_some(())
        });
    }

    /// Waits until a step of a plan has a status; its message.
    pub fn step(&self, plan: &str, step: &str, status: &str) -> String {
        wait_for(&format!("step {step} to be {status}"), || {
            let plan = self.plan(plan);
            let phases = plan["phases"].as_array()?.iter();
            let mut steps = phases.flat_map(|phase| phase["steps"].as_array().into_iter().flatten());
            let step = steps.find(|one| one["name"] == step && one["status"] == status)?;
            step["message"].as_str().map(str::to_owned)
        })
    }

    /// The task of a pod by its full name, as the API describes it now.
    pub fn try_task(&self, pod: &str, task: &str) -> Option<TaskInstance> {
        let tasks = self.get(&format!("/v1/pod/{pod}/info"));
        let found = tasks.as_array()?.iter().find(|one| one["info"]["name"] == task)?;
        Some(TaskInstance {
            id: found["info"]["task_id"]["value"].as_str()?.to_owned(),
            state: found["status"]["state"].as_str().unwrap_or_default().to_owned(),
            agent: found["info"]["agent_id"]["value"].as_str()?.to_owned(),
            info: found["info"].clone(),
        })
    }

    /// Waits until a task runs.
    pub fn running(&self, pod: &str, task: &str) -> TaskInstance {
        wait_for(&format!("{task} to run"), || {
            self.try_task(pod, task).filter(|task| task.state == "TASK_RUNNING")
        })
    }

    /// Waits until a task runs that is another than this one.
    pub fn running_after(&self, pod: &str, task: &str, old: &TaskInstance) -> TaskInstance {
        wait_for(&format!("{task} to run again"), || {
            self.try_task(pod, task).filter(|task| task.state == "TASK_RUNNING" && task.id != old.id)
        })
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let (log, out) = (self.log(), self.output());
            let tail = |text: &str| {
                text.lines()
                    .rev()
                    .take(60)
                    .collect::<Vec<_>>()
                    .into_iter()
                    .rev()
                    .collect::<Vec<_>>()
                    .join("\n")
            };
            eprintln!("--- {}\n{}\n--- output\n{}", self.folder.display(), tail(&log), tail(&out));
        }
        self.kill();
    }
}
