//! From keys and values to records, of which only resources are interpreted yet; an unreadable one is an error or is left
//! out.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use tepui_proto::mesos::v1 as pb;
use tepui_proto::tepui::agent::v1 as stored;
use tepui_proto::{Wire, wire};
use tepui_resources::Resources;
use tepui_types::{ContainerId, ExecutorId, FrameworkId, TaskId};

use super::RecoverError;
use crate::state::key::Key;

/// Everything that was recorded; records of something with resources have them beside themselves.
#[derive(Debug, Default)]
pub(super) struct Loaded {
    pub(super) agent: Option<(stored::StoredAgent, Resources)>,
    pub(super) boot_id: Option<String>,
    pub(super) resources: Option<stored::StoredResources>,
    pub(super) drain: Option<stored::StoredDrain>,
    pub(super) frameworks: BTreeMap<FrameworkId, stored::StoredFramework>,
    pub(super) executors: BTreeMap<(FrameworkId, ExecutorId), (stored::StoredExecutor, Resources)>,
    pub(super) tasks: BTreeMap<(FrameworkId, ExecutorId, TaskId), (stored::StoredTask, Resources)>,
    pub(super) updates: BTreeMap<(FrameworkId, TaskId, u64), stored::StoredUpdate>,
    pub(super) operations: BTreeMap<[u8; 16], stored::StoredOperation>,
    pub(super) containers: BTreeMap<ContainerId, stored::StoredContainer>,
    pub(super) history: BTreeMap<u64, (stored::StoredHistory, Resources)>,
    pub(super) paths: BTreeMap<String, stored::StoredPath>,
    /// Keys of unreadable values.
    pub(super) unreadable: Vec<String>,
}

pub(super) fn load(
    entries: impl IntoIterator<Item = (String, Vec<u8>)>,
    strict: bool,
) -> Result<Loaded, RecoverError> {
    let mut loaded = Loaded::default();
    for (key, value) in entries {
        let taken = match Key::parse(&key) {
            Some(what) => ingest_record(&mut loaded, what, &value),
            None => Err("unknown record; it may be from a newer version".to_string()),
        };
        match taken {
            Ok(()) => (),
            Err(why) if strict => return Err(RecoverError::Unreadable { key, why }),
            Err(_) => loaded.unreadable.push(key),
        }
    }
    Ok(loaded)
}

fn ingest_record(loaded: &mut Loaded, key: Key, value: &[u8]) -> Result<(), String> {
    match key {
        Key::Agent => {
            let agent: stored::StoredAgent = decode(value)?;
            let resources = parse(&agent.info.resources)?;
            loaded.agent = Some((agent, resources));
        }
        Key::BootId => loaded.boot_id = Some(String::from_utf8_lossy(value).to_string()),
        Key::Resources => loaded.resources = Some(decode(value)?),
        Key::Drain => loaded.drain = Some(decode(value)?),
        Key::Framework(id) => {
            let framework: stored::StoredFramework = decode(value)?;
            same("framework", id.as_str(), &framework.info.id.value)?;
            loaded.frameworks.insert(id, framework);
        }
        Key::Executor(framework, id) => {
            let executor: stored::StoredExecutor = decode(value)?;
            same("framework", framework.as_str(), &executor.framework_id.value)?;
            same("executor", id.as_str(), &executor.info.executor_id.value)?;
            let resources = parse(&executor.info.resources)?;
            loaded.executors.insert((framework, id), (executor, resources));
        }
        Key::Task(framework, executor, id) => {
            let task: stored::StoredTask = decode(value)?;
            same("executor", executor.as_str(), &task.executor_id.value)?;
            same("task", id.as_str(), &task.info.task_id.value)?;
            let resources = parse(&task.info.resources)?;
            loaded.tasks.insert((framework, executor, id), (task, resources));
        }
        Key::Update(framework, task, seq) => {
            let update: stored::StoredUpdate = decode(value)?;
            same("task", task.as_str(), &update.status.task_id.value)?;
            loaded.updates.insert((framework, task, seq), update);
        }
        Key::Operation(uuid) => {
            loaded.operations.insert(uuid, decode(value)?);
        }
        Key::Container(id) => {
            let container: stored::StoredContainer = decode(value)?;
            let own = ContainerId::from(&*container.container_id);
            same("container", &id, &own.to_string())?;
            loaded.containers.insert(own, container);
        }
        Key::History(number) => {
            let entry: stored::StoredHistory = decode(value)?;
            let resources = match entry.task.as_option() {
                Some(task) => parse(&task.resources)?,
                None => parse(&entry.executor.info.resources)?,
            };
            loaded.history.insert(number, (entry, resources));
        }
        Key::Path(path) => {
            loaded.paths.insert(path, decode(value)?);
        }
    }
    Ok(())
}

fn decode<M: Wire>(value: &[u8]) -> Result<M, String> {
    wire::decode_record(value).map_err(|err| err.to_string())
}

fn parse(resources: &[pb::Resource]) -> Result<Resources, String> {
    Resources::from_proto(resources).map_err(|err| err.to_string())
}

fn same(what: &str, key: &str, value: &str) -> Result<(), String> {
    match key == value {
        true => Ok(()),
        false => Err(format!("it is about {what} '{value}'")),
    }
}
