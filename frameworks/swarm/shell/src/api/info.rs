//! `_ping`, `docker version` and `docker info`.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::{Method, Response, StatusCode};
use serde_json::{Value, json};
use tepui_swarm::{Container, Counts, Kind, View, status_rows};
use tepui_types::AgentId;

use super::Api;
use super::call::Call;
use super::error::ApiError;
use super::reply;
use crate::body::Body;
use crate::version::{API_VERSION, API_VERSION_MIN};

type ByAgent<'v> = BTreeMap<&'v str, Vec<&'v Arc<Container>>>;

const SERVER_VERSION: &str = concat!("swarm/", env!("CARGO_PKG_VERSION"));
const BYTES_PER_MEBIBYTE: i64 = 1 << 20;
/// What the CLI warns of if it is false.
const CAPABILITIES: [&str; 12] = [
    "MemoryLimit",
    "SwapLimit",
    "KernelMemory",
    "OomKillDisable",
    "CpuCfsPeriod",
    "CpuCfsQuota",
    "CPUShares",
    "CPUSet",
    "PidsLimit",
    "IPv4Forwarding",
    "BridgeNfIptables",
    "BridgeNfIp6tables",
];
/// One manager is always the primary.
const ROLE: &str = "primary";

pub fn ping(call: &Call) -> Response<Body> {
    reply::uncached(match call.method {
        Method::HEAD => reply::text(""),
        _ => reply::text("OK"),
    })
}

impl Api {
    pub fn version(&self) -> Response<Body> {
        reply::json(
            StatusCode::OK,
            &json!({
                "Platform": {"Name": "Tepui"},
                "Version": SERVER_VERSION,
                "ApiVersion": API_VERSION.text,
                "MinAPIVersion": API_VERSION_MIN.text,
                "Os": std::env::consts::OS,
                "Arch": architecture().1,
                "KernelVersion": kernel_version(),
                "GitCommit": "",
                "GoVersion": "",
                "BuildTime": "",
                "Experimental": false,
            }),
        )
    }

    pub async fn info(&self) -> Result<Response<Body>, ApiError> {
        self.settle().await;
        let view = self.handle().view();
        let by_agent = view.by_agent();
        let counts = self.counts(&view, &by_agent);
        let images: usize = view
            .agents
            .values()
            .filter_map(|agent| agent.engine())
            .map(|engine| engine.images.iter().filter(|image| !image.tags.is_empty()).count())
            .sum();
        let (cpus, memory) = offered(&view);
        let rows = status_rows(&view, &self.handle().manage().scheduler, ROLE, &by_agent, &counts);
        let sum = |of: fn(&Counts) -> usize| counts.values().map(of).sum::<usize>();
        let mut document = constant_info();
        let variable = json!({
            "ID": view.framework_id.clone().unwrap_or_default(),
            "Containers": sum(Counts::total),
            "ContainersRunning": sum(|it| it.running),
            "ContainersPaused": sum(|it| it.paused),
            "ContainersStopped": sum(|it| it.stopped),
            "Images": images,
            "SystemStatus": rows,
            "KernelVersion": kernel_version(),
            "NCPU": cpus,
            "MemTotal": memory,
            "Name": host_name(),
            "Warnings": warnings(&view),
        });
        if let (Value::Object(document), Value::Object(variable)) = (&mut document, variable) {
            document.extend(variable);
        }
        Ok(reply::json(StatusCode::OK, &document))
    }

    /// Of our containers on each agent, as far as its engine has listed them.
    fn counts<'v>(&self, view: &View, by_agent: &ByAgent<'v>) -> BTreeMap<&'v str, Counts> {
        let mut counts: BTreeMap<&str, Counts> = BTreeMap::new();
        for (id, containers) in by_agent {
            let agent = AgentId::new(*id);
            let list = view.agents.get(&agent).and_then(|it| self.rows_of(&agent, it));
            let own = counts.entry(id).or_default();
            for row in containers.iter().filter_map(|it| list.as_ref()?.rows.get(&it.occupant.id)) {
                own.add(&row.state);
            }
        }
        counts
    }
}

/// What clients expect of an engine and what is the same for every cluster.
fn constant_info() -> Value {
    let mut document = json!({
        "Driver": "", "DriverStatus": [], "Labels": [], "Debug": false, "NFd": 0, "NGoroutines": 0, "NEventsListener": 0,
        "Plugins": {"Volume": null, "Network": null, "Authorization": null, "Log": null},
        "OperatingSystem": std::env::consts::OS,
        "OSType": "linux",
        "Architecture": architecture().0,
        "IndexServerAddress": "https://index.docker.io/v1/",
        "RegistryConfig": null,
        "ExperimentalBuild": false,
        "LiveRestoreEnabled": false,
        "ServerVersion": SERVER_VERSION,
        "Swarm": {"NodeID": "", "NodeAddr": "", "LocalNodeState": "inactive", "ControlAvailable": false, "Error": ""},
    });
    for capability in CAPABILITIES {
        document[capability] = Value::from(true);
    }
    document
}

/// Whole cpus and bytes of memory in all offers held.
fn offered(view: &View) -> (i64, i64) {
    let (mut cpus, mut memory) = (0i64, 0i64);
    for agent in view.agents.values() {
        for kind in Kind::ALL {
            let (more_cpus, more_memory) = agent.offered(kind);
            cpus = cpus.saturating_add(more_cpus.thousandths());
            memory = memory.saturating_add(more_memory.thousandths());
        }
    }
    (cpus / 1000, (memory / 1000).saturating_mul(BYTES_PER_MEBIBYTE))
}

fn warnings(view: &View) -> Vec<String> {
    match view.connected {
        true => Vec::new(),
        false => vec!["WARNING: no connection to the master; new containers wait for it".to_owned()],
    }
}

/// As the kernel and as Go name it.
fn architecture() -> (&'static str, &'static str) {
    match std::env::consts::ARCH {
        "x86_64" => ("x86_64", "amd64"),
        "aarch64" => ("aarch64", "arm64"),
        other => (other, other),
    }
}

fn kernel_version() -> String {
    nix::sys::utsname::uname().map(|name| name.release().to_string_lossy().into_owned()).unwrap_or_default()
}

fn host_name() -> String {
    nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok()).unwrap_or_default()
}
