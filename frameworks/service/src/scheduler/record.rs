//! What survives the scheduler: one key per entity.
//!
//! Plans are not recorded: they follow from the target, the tasks and their states; only what operators did to them is.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tepui_fsm::{Durable, Write};

use crate::plan::{PlanState, PodInstance};
use crate::spec::ServiceSpec;

const SERVICE_KEY: &str = "service";
const FRAMEWORK_KEY: &str = "framework";
const TARGET_KEY: &str = "target";
const CONFIGURATION_PREFIX: &str = "configuration/";
const POD_PREFIX: &str = "pod/";
const TASK_PREFIX: &str = "task/";
const STATUS_PREFIX: &str = "status/";
const OVERRIDE_PREFIX: &str = "override/";
const GARBAGE_PREFIX: &str = "garbage/";
const STRAY_PREFIX: &str = "stray/";
const PLAN_PREFIX: &str = "plan/";
const PROPERTY_PREFIX: &str = "property/";
const UNINSTALLED_KEY: &str = "uninstalled";

/// Id of a configuration: a UUID.
pub type ConfigurationId = String;

#[derive(Clone, Debug)]
pub enum Record {
    /// Name of the service that the records belong to.
    Service(String),
    Framework(String),
    Target(ConfigurationId),
    Configuration(ConfigurationId, Arc<ServiceSpec>),
    ConfigurationForgotten(ConfigurationId),
    Pod(Arc<Pod>),
    PodForgotten(PodInstance),
    Launch(Arc<Launch>),
    Status(Arc<Status>),
    /// All of a task: its launch, its status and its override.
    TaskForgotten(TaskKey),
    Override(TaskKey, Option<Override>),
    Stray(Arc<Stray>),
    StrayForgotten(String),
    Garbage(Arc<Garbage>),
    GarbageForgotten(String),
    Property(String, Option<Arc<[u8]>>),
    /// What operators did to a plan of a configuration.
    Plan(String, Option<Arc<(ConfigurationId, PlanState)>>),
    /// Id of the framework that was uninstalled last, instead of the framework and the target. None: the service is
    /// installed again.
    Uninstalled(Option<String>),
    /// Made durable together.
    Batch(Vec<Record>),
}

/// A task instance, launched or not.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TaskKey {
    pub pod: PodInstance,
    /// As in the spec.
    pub task: String,
}

impl TaskKey {
    pub fn new(pod: &PodInstance, task: &str) -> TaskKey {
        TaskKey { pod: pod.clone(), task: task.to_owned() }
    }

    /// `<pod>-<index>-<task>`.
    pub fn name(&self) -> String {
        self.pod.task_name(&self.task)
    }
}

/// A pod instance that holds reservations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pod {
    pub instance: PodInstance,
    pub agent: String,
    pub hostname: String,
    pub region: Option<String>,
    pub zone: Option<String>,
    pub attributes: Vec<(String, String)>,
    pub reservations: Vec<Reservation>,
    /// Ports by resource set and name of the port.
    pub ports: BTreeMap<String, u64>,
    /// The executor of the last launch.
    pub executor_id: String,
    /// Its reservations are released as soon as its tasks have terminated, and it is placed anew.
    pub is_replaced: bool,
    /// Ids of tasks that an operator restarts: they are killed until they are terminal.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restarting: Vec<String>,
    /// Nanoseconds since 1970 since which the pod has failed without reaching its goal; for automatic replacement.
    pub failing_since_ns: Option<u64>,
    /// Since when all its tasks are ready.
    pub ready_since_ns: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reservation {
    /// Label `resource_id`.
    pub id: String,
    pub owner: Owner,
    /// `cpus`, `mem`, `disk`, `gpus`, `ports`.
    pub resource: String,
    /// Thousandths of a scalar.
    pub amount: i64,
    /// Name of a port of the spec, and its number.
    pub port: Option<(String, u64)>,
    pub volume: Option<ReservedVolume>,
    /// The RESERVE operation, until the agent confirmed it.
    pub operation: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Owner {
    Executor,
    /// Id of a resource set.
    Set(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReservedVolume {
    pub persistence_id: String,
    pub path: String,
    pub is_mount: bool,
}

/// The last launch of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Launch {
    pub key: TaskKey,
    pub task_id: String,
    pub configuration: ConfigurationId,
    pub agent: String,
    pub hostname: String,
    pub executor_id: String,
    /// TaskInfo in its binary form, with the executor.
    #[serde(skip)]
    pub info: Arc<[u8]>,
}

/// The last state of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    pub key: TaskKey,
    pub task_id: String,
    /// As in v1: `TASK_RUNNING`.
    pub state: String,
    /// Whether the readiness check passed, or there is none.
    pub is_ready: bool,
    pub healthy: Option<bool>,
    pub reason: Option<String>,
    pub message: String,
    pub addresses: Vec<String>,
    /// Nanoseconds since 1970.
    pub at_ns: u64,
    /// Length of the last delay and its end in nanoseconds since 1970.
    pub delay: Option<(u64, u64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Override {
    pub target: OverrideTarget,
    pub progress: OverrideProgress,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OverrideTarget {
    /// Being resumed.
    None,
    Paused,
    Decommissioned,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OverrideProgress {
    Pending,
    InProgress,
    Complete,
}

/// A reservation that no pod owns any more: it is destroyed and unreserved as soon as it is offered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Garbage {
    /// Label `resource_id`.
    pub id: String,
    pub agent: String,
    pub hostname: String,
    /// The pod instance that had it.
    pub pod: Option<PodInstance>,
    /// The RESERVE operation, until the agent confirmed it: if it fails, there is nothing to release.
    pub reserving: Option<String>,
    /// Operation that releases it, if one is under way.
    pub operation: Option<String>,
}

/// A task that no launch names any more and that may run: it was replaced while its agent was out of contact, or is of an
/// earlier life of the service. It is killed as soon as it is back, and its instance is not launched before it is down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stray {
    pub task_id: String,
    pub agent: Option<String>,
    /// The master has told that it runs.
    pub is_back: bool,
}

/// A record that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecoverError {
    pub key: String,
    pub error: String,
}

impl fmt::Display for RecoverError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "cannot read the record {:?}: {}", self.key, self.error)
    }
}

impl std::error::Error for RecoverError {}

fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("records are plain data")
}

impl Durable for Record {
    fn writes(&self, into: &mut Vec<Write>) {
        let write = match self {
            Record::Service(name) => Write::put(SERVICE_KEY, name.as_bytes()),
            Record::Framework(id) => Write::put(FRAMEWORK_KEY, id.as_bytes()),
            Record::Target(id) => Write::put(TARGET_KEY, id.as_bytes()),
            Record::Configuration(id, spec) => {
                Write::put(format!("{CONFIGURATION_PREFIX}{id}"), json(&**spec))
            }
            Record::ConfigurationForgotten(id) => Write::delete(format!("{CONFIGURATION_PREFIX}{id}")),
            Record::Pod(pod) => Write::put(format!("{POD_PREFIX}{}", pod.instance.name()), json(&**pod)),
            Record::PodForgotten(pod) => Write::delete(format!("{POD_PREFIX}{}", pod.name())),
            Record::Launch(launch) => {
                // JSON has no line feed: the binary form follows the first one.
                let mut value = json(&**launch);
                value.push(b'\n');
                value.extend_from_slice(&launch.info);
                Write::put(format!("{TASK_PREFIX}{}", launch.key.name()), value)
            }
            Record::Status(status) => {
                Write::put(format!("{STATUS_PREFIX}{}", status.key.name()), json(&**status))
            }
            Record::TaskForgotten(key) => {
                let name = key.name();
                into.push(Write::delete(format!("{STATUS_PREFIX}{name}")));
                into.push(Write::delete(format!("{OVERRIDE_PREFIX}{name}")));
                Write::delete(format!("{TASK_PREFIX}{name}"))
            }
            Record::Override(key, None) => Write::delete(format!("{OVERRIDE_PREFIX}{}", key.name())),
            Record::Override(key, Some(own)) => {
                Write::put(format!("{OVERRIDE_PREFIX}{}", key.name()), json(&(key, own)))
            }
            Record::Stray(stray) => Write::put(format!("{STRAY_PREFIX}{}", stray.task_id), json(&**stray)),
            Record::StrayForgotten(id) => Write::delete(format!("{STRAY_PREFIX}{id}")),
            Record::Garbage(garbage) => {
                Write::put(format!("{GARBAGE_PREFIX}{}", garbage.id), json(&**garbage))
            }
            Record::GarbageForgotten(id) => Write::delete(format!("{GARBAGE_PREFIX}{id}")),
            Record::Property(key, None) => Write::delete(format!("{PROPERTY_PREFIX}{key}")),
            Record::Property(key, Some(value)) => {
                Write::put(format!("{PROPERTY_PREFIX}{key}"), value.to_vec())
            }
            Record::Plan(name, None) => Write::delete(format!("{PLAN_PREFIX}{name}")),
            Record::Plan(name, Some(own)) => Write::put(format!("{PLAN_PREFIX}{name}"), json(&**own)),
            Record::Uninstalled(None) => Write::delete(UNINSTALLED_KEY),
            Record::Uninstalled(Some(id)) => {
                into.push(Write::delete(FRAMEWORK_KEY));
                into.push(Write::delete(TARGET_KEY));
                Write::put(UNINSTALLED_KEY, id.as_bytes())
            }
            Record::Batch(records) => {
                records.iter().for_each(|record| record.writes(into));
                return;
            }
        };
        into.push(write);
    }
}

/// A record from its key and value.
pub(super) fn read(key: &str, value: &[u8]) -> Result<Record, RecoverError> {
    let fault = |error: String| RecoverError { key: key.to_owned(), error };
    let text = || std::str::from_utf8(value).map(str::to_owned).map_err(|error| fault(error.to_string()));
    let bad = |error: serde_json::Error| fault(error.to_string());
    Ok(match key.split_once('/') {
        None if key == SERVICE_KEY => Record::Service(text()?),
        None if key == FRAMEWORK_KEY => Record::Framework(text()?),
        None if key == TARGET_KEY => Record::Target(text()?),
        None if key == UNINSTALLED_KEY => Record::Uninstalled(Some(text()?)),
        Some(("configuration", id)) => {
            Record::Configuration(id.to_owned(), Arc::new(serde_json::from_slice(value).map_err(bad)?))
        }
        Some(("pod", _)) => Record::Pod(Arc::new(serde_json::from_slice(value).map_err(bad)?)),
        Some(("task", _)) => {
            let end = value.iter().position(|byte| *byte == b'\n');
            let end = end.ok_or_else(|| fault("the task description is missing".to_owned()))?;
            let mut launch: Launch = serde_json::from_slice(&value[..end]).map_err(bad)?;
            launch.info = value[end + 1..].into();
            Record::Launch(Arc::new(launch))
        }
        Some(("status", _)) => Record::Status(Arc::new(serde_json::from_slice(value).map_err(bad)?)),
        Some(("override", _)) => {
            let (task, own) = serde_json::from_slice(value).map_err(bad)?;
            Record::Override(task, Some(own))
        }
        Some(("stray", _)) => Record::Stray(Arc::new(serde_json::from_slice(value).map_err(bad)?)),
        Some(("garbage", _)) => Record::Garbage(Arc::new(serde_json::from_slice(value).map_err(bad)?)),
        Some(("plan", name)) => {
            let own = serde_json::from_slice(value).map_err(bad)?;
            Record::Plan(name.to_owned(), Some(Arc::new(own)))
        }
        Some(("property", name)) => Record::Property(name.to_owned(), Some(value.into())),
        None | Some(_) => return Err(fault("the key is unknown".to_owned())),
    })
}
