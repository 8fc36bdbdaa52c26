//! Usage of executors: `/monitor/statistics`, `/containers`, and the statistics of GET_CONTAINERS.
//!
//! Measured on request: from cgroups, or by one pass over /proc for all containers without cgroups.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use http::StatusCode;
use tepui_container::{DiskUse, Memory, Meter, Usage};
use tepui_core_agent::{Container, ContainerStage, Executor, State, volume_path};
use tepui_http::{HttpError, Query, Request, Response, json};
use tepui_proto::json::JsonWriter;
use tepui_proto::mesos::v1 as pb;
use tepui_resources::Format;
use tepui_types::ContainerId;

use crate::detect;

const MEGABYTE: f64 = 1024.0 * 1024.0;

/// Which document is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    /// `/monitor/statistics`
    Statistics,
    /// `/containers`
    Containers,
}

/// What is needed to measure.
#[derive(Clone, Debug)]
pub(crate) struct Measuring<L = Meter> {
    pub meter: L,
    /// Where volumes are.
    pub work_dir: Arc<str>,
}

/// A measurement of a container costs some twenty files: only requested ones are measured.
trait Look {
    /// What is in these outermost containers, themselves included.
    fn measure(&self, wanted: &BTreeSet<&ContainerId>) -> io::Result<BTreeMap<ContainerId, Usage>>;
}

impl Look for Meter {
    fn measure(&self, wanted: &BTreeSet<&ContainerId>) -> io::Result<BTreeMap<ContainerId, Usage>> {
        self.read_in(|id| wanted.contains(id))
    }
}

/// What every container uses, by its id.
pub(crate) struct Statistics(BTreeMap<ContainerId, pb::ResourceStatistics>);

impl Statistics {
    /// Looks at the machine; takes its time.
    pub fn measure(measuring: &Measuring, state: &State) -> Self {
        Self::of(measuring, measuring.meter.read(), live(state))
    }

    /// The same, without measurements that are not requested.
    fn measure_those<L: Look>(measuring: &Measuring<L>, selected: &Selected<'_>) -> Self {
        let usages = measuring.meter.measure(&selected.outermost());
        Self::of(measuring, usages, selected.executors.iter().copied())
    }

    fn of<'a, L>(
        measuring: &Measuring<L>,
        usages: io::Result<BTreeMap<ContainerId, Usage>>,
        executors: impl Iterator<Item = &'a Arc<Executor>>,
    ) -> Self {
        let usages = usages.unwrap_or_else(|err| {
            tracing::warn!(%err, "cannot measure container usage");
            BTreeMap::new()
        });
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        let executors: BTreeMap<&ContainerId, &Arc<Executor>> =
            executors.map(|executor| (&executor.container_id, executor)).collect();
        let of = |(id, usage): (ContainerId, Usage)| {
            let statistics = match executors.get(&id) {
                Some(executor) => pb::ResourceStatistics {
                    disk_statistics: disks(executor, &usage, &measuring.work_dir),
                    ..statistics(executor, &usage, now)
                },
                None => measured(&usage, now),
            };
            (id, statistics)
        };
        Self(usages.into_iter().map(of).collect())
    }

    pub fn get(&self, id: &ContainerId) -> Option<&pb::ResourceStatistics> {
        self.0.get(id)
    }
}

/// Executors with live containers.
pub(crate) fn live(state: &State) -> impl Iterator<Item = &Arc<Executor>> {
    let executors = state.frameworks.values().flat_map(|framework| framework.executors.values());
    executors.filter(|executor| !executor.is_terminated())
}

/// Containers that calls launched and that have not ended: nested ones, those that stand alone. With their processes.
pub(crate) fn others(
    state: &State,
    nested: bool,
    alone: bool,
) -> impl Iterator<Item = (&Container, Option<u32>)> {
    let wanted = move |one: &&Arc<Container>| if one.id.parent().is_some() { nested } else { alone };
    state.containers.values().filter(wanted).filter_map(|one| match one.stage {
        ContainerStage::Launching => Some((&**one, None)),
        ContainerStage::Running { pid } => Some((&**one, pid)),
        ContainerStage::Ended(_) => None,
    })
}

pub(crate) async fn answer(
    view: View,
    measuring: Measuring,
    state: Arc<State>,
    request: &Request,
) -> Result<Response, HttpError> {
    let selection = match view {
        View::Statistics => Selection::default(),
        View::Containers => Selection::from_query(&request.query)?,
    };
    let measuring = tokio::task::spawn_blocking(move || document(view, &measuring, &selection.of(&state)));
    let document = measuring.await.map_err(|err| {
        tracing::error!(%err, ?view, "cannot measure containers");
        HttpError::plain(StatusCode::INTERNAL_SERVER_ERROR)
    })?;
    Ok(json(&request.query, document))
}

/// Measures what is selected and writes it. Takes its time.
fn document<L: Look>(view: View, measuring: &Measuring<L>, selected: &Selected<'_>) -> Vec<u8> {
    let statistics = Statistics::measure_those(measuring, selected);
    let mut w = JsonWriter::new();
    w.array(|w| {
        for executor in &selected.executors {
            match (view, statistics.get(&executor.container_id)) {
                (View::Statistics, Some(measured)) => monitored(w, executor, measured),
                // It could not be measured: it ends in this very moment, or has not begun.
                (View::Statistics, None) => (),
                (View::Containers, measured) => contained(w, executor, measured),
            }
        }
        for (container, pid) in &selected.others {
            launched_by_call(w, container, *pid, statistics.get(&container.id));
        }
    });
    w.into_vec()
}

/// Which containers are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Selection {
    container_id: Option<String>,
    framework_id: Option<String>,
    executor_id: Option<String>,
    /// Tepui's own: also what is nested in those, and what stands alone.
    nested: bool,
    alone: bool,
}

impl Selection {
    /// All, one container, those of a framework, or that of an executor of a framework.
    fn from_query(query: &Query) -> Result<Self, HttpError> {
        let text = |name| query.get(name).map(str::to_owned);
        let selection = Self {
            container_id: text("container_id"),
            framework_id: text("framework_id"),
            executor_id: text("executor_id"),
            nested: query.get("show_nested") == Some("true"),
            alone: query.get("show_standalone") == Some("true"),
        };
        let one = selection.container_id.is_some();
        let (framework, executor) = (selection.framework_id.is_some(), selection.executor_id.is_some());
        match (one && framework) || (executor && !framework) {
            true => Err(HttpError::bad_request(
                "Expecting 'container_id', or 'framework_id' alone or with 'executor_id', in query.\n",
            )),
            false => Ok(selection),
        }
    }

    fn of<'a>(&self, state: &'a State) -> Selected<'a> {
        Selected {
            executors: live(state).filter(|executor| self.includes(executor)).collect(),
            others: others(state, self.nested, self.alone)
                .filter(|(container, _)| self.includes_container(state, container))
                .collect(),
        }
    }

    fn includes(&self, executor: &Executor) -> bool {
        let is = |wanted: &Option<String>, own: &str| wanted.as_ref().is_none_or(|wanted| wanted == own);
        is(&self.container_id, executor.container_id.value())
            && is(&self.framework_id, executor.framework_id.as_str())
            && is(&self.executor_id, executor.id.as_str())
    }

    /// Whether one that a call launched is in a container that is wanted.
    fn includes_container(&self, state: &State, container: &Container) -> bool {
        let top = container.id.top();
        match live(state).find(|executor| executor.container_id == *top) {
            Some(executor) => self.includes(executor),
            None => {
                self.framework_id.is_none()
                    && self.container_id.as_ref().is_none_or(|wanted| wanted == top.value())
            }
        }
    }
}

/// What is wanted of a state: executors, and what calls launched with its process.
struct Selected<'a> {
    executors: Vec<&'a Arc<Executor>>,
    others: Vec<(&'a Container, Option<u32>)>,
}

impl Selected<'_> {
    /// The outermost containers that all of it is in.
    fn outermost(&self) -> BTreeSet<&ContainerId> {
        let executors = self.executors.iter().map(|executor| &executor.container_id);
        executors.chain(self.others.iter().map(|(container, _)| container.id.top())).collect()
    }
}

fn monitored(w: &mut JsonWriter, executor: &Executor, measured: &pb::ResourceStatistics) {
    w.object(|w| {
        w.field("executor_id", executor.id.as_str());
        w.field("executor_name", executor.info.name.as_deref().unwrap_or_default());
        w.field("framework_id", executor.framework_id.as_str());
        w.field("source", executor.info.source.as_deref().unwrap_or_default());
        w.field("statistics", measured);
    });
}

fn contained(w: &mut JsonWriter, executor: &Executor, measured: Option<&pb::ResourceStatistics>) {
    w.object(|w| {
        w.field("container_id", executor.container_id.value());
        w.field("executor_id", executor.id.as_str());
        w.field("executor_name", executor.info.name.as_deref().unwrap_or_default());
        w.field("framework_id", executor.framework_id.as_str());
        w.field("source", executor.info.source.as_deref().unwrap_or_default());
        w.optional_field("statistics", measured);
        w.field("status", &container_status(executor.container_id.to_proto(), executor.pid));
    });
}

fn launched_by_call(
    w: &mut JsonWriter,
    container: &Container,
    pid: Option<u32>,
    measured: Option<&pb::ResourceStatistics>,
) {
    w.object(|w| {
        w.field("container_id", container.id.value());
        w.optional_field("statistics", measured);
        w.field("status", &container_status(container.id.to_proto(), pid));
    });
}

/// Usage, requests and limits of an executor's container.
fn statistics(executor: &Executor, usage: &Usage, now: f64) -> pb::ResourceStatistics {
    let resources = executor.resources();
    let (cpus, mem) = (resources.cpus().to_f64(), resources.mem().to_f64());
    let some = |amount: f64| (amount > 0.0).then_some(amount);
    let limit = |name: &str, request: f64, machine: fn() -> f64| {
        let limit = executor.limits().get(name).copied().unwrap_or(request);
        some(if limit.is_finite() { limit } else { machine() })
    };
    let machine_mem = || detect::memory_bytes().unwrap_or(0) as f64 / MEGABYTE;
    let bytes = |megabytes: f64| (megabytes * MEGABYTE) as u64;
    let sandbox = usage.disk.iter().find(|one| one.path == Path::new(&*executor.sandbox));
    pb::ResourceStatistics {
        cpus_soft_limit: some(cpus),
        cpus_limit: limit("cpus", cpus, || detect::processors() as f64),
        mem_soft_limit_bytes: some(mem).map(bytes),
        mem_limit_bytes: limit("mem", mem, machine_mem).map(bytes),
        disk_limit_bytes: sandbox.map(|one| one.limit_bytes),
        disk_used_bytes: sandbox.map(|one| one.used_bytes),
        ..measured(usage, now)
    }
}

/// The sandbox and every persistent volume, with which volume it is.
fn disks(executor: &Executor, usage: &Usage, work_dir: &str) -> Vec<pb::DiskStatistics> {
    let resources = executor.resources();
    let volume = |path: &Path| {
        let found = resources
            .iter()
            .find(|one| volume_path(work_dir, one).is_some_and(|at| Path::new(&at) == path))?;
        found.to_proto(Format::Post).disk.into_option()
    };
    let one = |one: &DiskUse| {
        let disk = volume(&one.path).unwrap_or_default();
        pb::DiskStatistics {
            source: disk.source,
            persistence: disk.persistence,
            limit_bytes: Some(one.limit_bytes),
            used_bytes: Some(one.used_bytes),
            ..Default::default()
        }
    };
    usage.disk.iter().map(one).collect()
}

/// What was measured, with the limits that hold in the kernel.
fn measured(usage: &Usage, now: f64) -> pb::ResourceStatistics {
    let throttled = usage.throttled.as_ref();
    let (memory, shortages) = (usage.memory.as_ref(), usage.shortages.as_ref());
    let of = |part: fn(&Memory) -> u64| memory.map(part);
    pb::ResourceStatistics {
        timestamp: now,
        processes: u32::try_from(usage.processes).ok(),
        threads: u32::try_from(usage.threads).ok(),
        cpus_user_time_secs: Some(usage.cpus_user_time.as_secs_f64()),
        cpus_system_time_secs: Some(usage.cpus_system_time.as_secs_f64()),
        cpus_nr_periods: throttled.and_then(|it| u32::try_from(it.periods).ok()),
        cpus_nr_throttled: throttled.and_then(|it| u32::try_from(it.throttled).ok()),
        cpus_throttled_time_secs: throttled.map(|it| it.time.as_secs_f64()),
        mem_rss_bytes: Some(usage.mem_rss_bytes),
        mem_total_bytes: of(|it| it.total_bytes),
        mem_total_memsw_bytes: memory.and_then(|it| it.total_memsw_bytes),
        mem_kmem_usage_bytes: memory.and_then(|it| it.kmem_bytes),
        mem_kmem_tcp_usage_bytes: memory.and_then(|it| it.kmem_tcp_bytes),
        mem_file_bytes: of(|it| it.file_bytes),
        mem_cache_bytes: of(|it| it.file_bytes),
        mem_anon_bytes: of(|it| it.anon_bytes),
        mem_mapped_file_bytes: of(|it| it.mapped_file_bytes),
        mem_swap_bytes: of(|it| it.swap_bytes),
        mem_unevictable_bytes: of(|it| it.unevictable_bytes),
        mem_low_pressure_counter: shortages.map(|it| it.low),
        mem_medium_pressure_counter: shortages.map(|it| it.medium),
        mem_critical_pressure_counter: shortages.map(|it| it.critical),
        mem_soft_limit_bytes: memory.and_then(|it| it.request_bytes),
        mem_limit_bytes: memory.and_then(|it| it.limit_bytes.or_else(detect::memory_bytes)),
        blkio_statistics: usage.blkio.clone().into(),
        ..Default::default()
    }
}

pub(crate) fn container_status(
    container_id: pb::ContainerID,
    executor_pid: Option<u32>,
) -> pb::ContainerStatus {
    pb::ContainerStatus { container_id: container_id.into(), executor_pid, ..Default::default() }
}

#[cfg(test)]
mod tests;
