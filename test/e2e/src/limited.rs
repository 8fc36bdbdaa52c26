//! A cluster with cgroup isolators: launches, and the values of cgroup files.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::{Cluster, Scheduler, by_version, cgroup_mount, scalar};
use tepui_facilities::{Facility, available};

const RESOURCES: &str = "--resources=cpus:8;mem:4096;disk:4096;ports:[31000-32000]";
const ISOLATION: &str = "--isolation=cgroups/cpu,cgroups/mem";

/// The cluster, and a scheduler. Needs root and cgroups of either version.
pub struct Limited {
    pub cluster: Cluster,
    pub scheduler: Scheduler,
}

impl Limited {
    /// `None`: recorded as skipped.
    pub fn start(flags: &[&str]) -> Option<Self> {
        Self::with(&[], flags)
    }

    /// With flags for the master, too.
    pub fn with(master_flags: &[&str], flags: &[&str]) -> Option<Self> {
        if !available(&[Facility::Cgroups]) {
            return None;
        }
        let is_isolated = flags.iter().any(|flag| flag.starts_with("--isolation="));
        let usual = [RESOURCES].into_iter().chain((!is_isolated).then_some(ISOLATION));
        let flags: Vec<&str> = usual.chain(flags.iter().copied()).collect();
        // Completed tasks would show executors that have terminated.
        let master_flags: Vec<&str> = ["--max_completed_tasks_per_framework=0"]
            .into_iter()
            .chain(master_flags.iter().copied())
            .collect();
        let cluster = Cluster::with(&master_flags, &flags);
        let scheduler = Scheduler::subscribe(&cluster.http(), Scheduler::info("dev"));
        Some(Self { cluster, scheduler })
    }

    /// An offer that is large enough for everything here.
    pub fn offer(&mut self) -> Value {
        let amount = |offer: &Value, name: &str| -> f64 {
            let all = offer["resources"].as_array().into_iter().flatten();
            all.filter(|one| one["name"] == name).filter_map(|one| one["scalar"]["value"].as_f64()).sum()
        };
        let mut offer = self.scheduler.fresh_offer();
        // Not a small offer of recently released resources.
        while amount(&offer, "disk") < 100.0 || amount(&offer, "cpus") < 2.0 {
            offer = self.scheduler.offer();
        }
        offer
    }

    pub fn launch(&mut self, id: &str, command: &str, sizes: Sizes, change: impl FnOnce(&mut Value)) {
        let offer = self.offer();
        let mut task = sizes.task(&offer, id, command);
        change(&mut task);
        assert_eq!(self.scheduler.launch(&offer, &[task]).status, 202);
    }

    pub fn launch_group(&mut self, executor: &str, share: Option<bool>, tasks: &[(&str, &str, Sizes)]) {
        self.launch_group_with(executor, share, tasks, |_| ());
    }

    /// The same with a change of the executor.
    pub fn launch_group_with(
        &mut self,
        executor: &str,
        share: Option<bool>,
        tasks: &[(&str, &str, Sizes)],
        change: impl FnOnce(&mut Value),
    ) {
        let offer = self.offer();
        let task = |(id, command, sizes): &(&str, &str, Sizes)| {
            let mut task = sizes.task(&offer, id, command);
            if let Some(share) = share {
                task["container"] = json!({"type": "MESOS", "linux_info": {"share_cgroups": share}});
            }
            task
        };
        let mut executor = json!({
            "type": "DEFAULT", "executor_id": {"value": executor},
            "framework_id": {"value": self.scheduler.framework_id},
            "resources": [scalar("cpus", 0.1), scalar("mem", 32.0), scalar("disk", 1.0)]
        });
        change(&mut executor);
        let tasks: Vec<Value> = tasks.iter().map(task).collect();
        let group = json!({"executor": executor, "task_group": {"tasks": tasks}});
        self.scheduler.accept(&offer, json!([{"type": "LAUNCH_GROUP", "launch_group": group}]));
    }

    /// The container of a task that has started.
    pub fn container(&mut self, task: &str) -> Value {
        let status = self.scheduler.reach(task, "TASK_RUNNING");
        status["container_status"]["container_id"].clone()
    }

    pub fn kill(&mut self, task: &str) {
        self.ask_to_kill(task);
        self.scheduler.reach(task, "TASK_KILLED");
    }

    pub fn ask_to_kill(&self, task: &str) {
        let kill = json!({"task_id": {"value": task}, "kill_policy": {"grace_period": {"nanoseconds": 0}}});
        self.scheduler.call(json!({"type": "KILL", "kill": kill}));
    }

    pub fn cgroup(&self, controller: &str, id: &Value) -> PathBuf {
        cgroup_mount(controller).join(self.cluster.cgroups_root(0)).join(below(id))
    }

    /// The cgroup around all containers of the agent.
    pub fn root(&self, controller: &str) -> PathBuf {
        cgroup_mount(controller).join(self.cluster.cgroups_root(0))
    }

    /// Process ids in the container's own cgroup, without nested ones.
    pub fn processes(&self, controller: &str, id: &Value) -> Vec<String> {
        let procs = self.cgroup(controller, id).join(by_version("cgroup.procs", "leaf/cgroup.procs"));
        std::fs::read_to_string(procs).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// Whether a container has its own memory limit.
    pub fn has_own_limits(&self, id: &Value) -> bool {
        is_limited(&self.cgroup("memory", id))
    }

    /// Stops every process of a container. Returns its cgroup.
    pub fn freeze(&self, id: &Value) -> PathBuf {
        let cgroup = self.cgroup("freezer", id);
        let (file, text) = by_version(("freezer.state", "FROZEN"), ("cgroup.freeze", "1"));
        std::fs::write(cgroup.join(file), text).expect("a cgroup of the agent");
        cgroup
    }

    /// Gives the parent cgroup of all containers the largest cpu share, so that they reach their quotas on a busy machine.
    pub fn comes_first(&self) {
        let (file, max) = by_version(("cpu.shares", "262144"), ("cpu.weight", "10000"));
        let mount = cgroup_mount("cpu");
        for cgroup in self.root("cpu").ancestors().take_while(|cgroup| *cgroup != mount) {
            std::fs::write(cgroup.join(file), max).expect("it can be written");
        }
    }

    /// shares, quota, soft limit and limit in megabytes (-1: endless).
    pub fn values(&self, id: &Value) -> (i64, i64, i64, i64) {
        limits_in(&self.cluster.cgroups_root(0).join(below(id)))
    }
}

/// Shares, quota, soft limit and limit in megabytes (-1: none) of a cgroup, a path below each mount. A weight of 100 on v2
/// equals 1024 shares on v1.
pub fn limits_in(cgroup: &Path) -> (i64, i64, i64, i64) {
    let text = |controller: &str, file: &str| {
        let path = cgroup_mount(controller).join(cgroup).join(file);
        std::fs::read_to_string(&path).unwrap_or_else(|err| panic!("{}: {err}", path.display()))
    };
    let number = |text: &str| text.trim().replace("max", "-1").parse::<i64>().expect("a number");
    let (shares, quota) = by_version(("cpu.shares", "cpu.cfs_quota_us"), ("cpu.weight", "cpu.max"));
    let shares = number(&text("cpu", shares));
    let shares = by_version(shares, shares * 1024 / 100);
    let quota = number(text("cpu", quota).split(' ').next().unwrap_or_default());
    let mb = |bytes: i64| if !(0..i64::MAX / 2).contains(&bytes) { -1 } else { bytes / (1024 * 1024) };
    let memory = |file| mb(number(&text("memory", file)));
    let soft = memory(by_version("memory.soft_limit_in_bytes", "memory.low"));
    (shares, quota, soft, memory(by_version("memory.limit_in_bytes", "memory.max")))
}

/// Whether a memory cgroup exists and has a limit. On v2 a container that shares cgroups has one without limits.
pub fn is_limited(cgroup: &Path) -> bool {
    let limit = std::fs::read_to_string(cgroup.join(by_version("memory.limit_in_bytes", "memory.max")));
    limit.is_ok_and(|limit| limit.trim() != "max")
}

/// The number of times a memory cgroup reached its limit.
pub fn limit_hits(cgroup: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(cgroup.join(by_version("memory.failcnt", "memory.events"))).ok()?;
    let count = text.lines().find_map(|line| line.strip_prefix("max ")).unwrap_or(&text);
    count.trim().parse().ok()
}

/// Requests and limits of a task.
#[derive(Clone, Copy)]
pub struct Sizes {
    request: (f64, f64),
    cpus: Option<f64>,
    mem: Option<f64>,
}

impl Sizes {
    pub const fn of(request: (f64, f64), cpus: Option<f64>, mem: Option<f64>) -> Self {
        Self { request, cpus, mem }
    }

    pub fn task(&self, offer: &Value, id: &str, command: &str) -> Value {
        let mut task = Scheduler::task(offer, id, command);
        let requested = [("cpus", self.request.0), ("mem", self.request.1)]
            .into_iter()
            .filter(|(_, amount)| *amount > 0.0);
        task["resources"] = requested.map(|(name, amount)| scalar(name, amount)).collect();
        let limit = |value: f64| {
            if value.is_finite() { json!({"value": value}) } else { json!({"value": "Infinity"}) }
        };
        for (name, value) in [("cpus", self.cpus), ("mem", self.mem)] {
            if let Some(value) = value {
                task["limits"][name] = limit(value);
            }
        }
        task
    }
}

/// Where the cgroup of a container is, below that of its agent.
fn below(id: &Value) -> PathBuf {
    let value = id["value"].as_str().expect("an id");
    match id["parent"]["value"].is_string() {
        true => below(&id["parent"]).join("mesos").join(value),
        false => PathBuf::from(value),
    }
}
