//! Samples of the machine for the estimator, the quality-of-service controller and eviction, if one of them is
//! enabled.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tepui_container::{Containerizer, Meter, disk_used, pressure};
use tepui_core_agent::{
    Config, Estimator, Eviction, Input, Load, MachineMemory, MemoryUse, QosController, SandboxUse, State,
    Used,
};
use tepui_resources::parse;
use tepui_runtime::Handle;
use tepui_store::available_bytes;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

/// How often the machine is looked at, at most.
const LOOK_INTERVAL_MIN: Duration = Duration::from_secs(1);
/// How often containers are measured, at least.
const MEASURE_INTERVAL_MAX: Duration = Duration::from_secs(5);

/// How often it is looked how much memory is left: a task can take a lot within a second.
const MEMORY_LOOK_INTERVAL: Duration = Duration::from_millis(250);

/// An estimator that always finds these resources, written as in `--resources`.
pub fn fixed_estimator(resources: &str) -> Result<Estimator, String> {
    let resources = parse::resources(resources, "*").map_err(|err| err.to_string())?;
    Ok(Estimator::Fixed(resources.into_iter().collect()))
}

/// Whether what the configuration asks for can be measured here; the reason if it cannot.
pub(crate) fn check(config: &Config, containerizer: &Containerizer) -> Result<(), String> {
    match config.eviction.watches_memory() {
        true => {
            check_eviction(config.eviction, containerizer.counts_memory(), &machine_memory(containerizer))
        }
        false => Ok(()),
    }
}

fn check_eviction(eviction: Eviction, counts_memory: bool, machine: &MachineMemory) -> Result<(), String> {
    if !counts_memory {
        return Err(String::from(
            "--eviction_memory_available and --eviction_pressure evict containers by their memory cgroups; add \
             cgroups/mem to --isolation and mesos to --containerizers",
        ));
    }
    if eviction.available_bytes.is_some() && machine.available_bytes.is_none() {
        return Err(String::from(
            "--eviction_memory_available needs MemAvailable in /proc/meminfo, which this kernel does not have",
        ));
    }
    if eviction.pressure.is_some() && machine.pressure.is_none() {
        return Err(String::from(
            "--eviction_pressure needs /proc/pressure/memory, which this kernel does not have; boot it with psi=1, or \
             use --eviction_memory_available",
        ));
    }
    Ok(())
}

fn machine_memory(containerizer: &Containerizer) -> MachineMemory {
    let machine = containerizer.machine_memory();
    MachineMemory { available_bytes: machine.available_bytes, pressure: machine.pressure }
}

/// Starts what the configuration asks for. Each ends when the state machine has terminated.
pub(crate) fn start(
    config: &Config,
    meter: &Meter,
    containerizer: &Containerizer,
    states: &watch::Receiver<Arc<State>>,
    handle: &Handle<Input>,
) -> Vec<JoinHandle<()>> {
    let mut tasks = Vec::new();
    if matches!(config.estimator, Estimator::Usage { .. }) {
        let every = config.oversubscribed_resources_interval.min(MEASURE_INTERVAL_MAX);
        tasks.push(tokio::spawn(measure(meter.clone(), every, handle.clone())));
    }
    if config.qos_controller != QosController::Noop {
        tasks.push(tokio::spawn(sample_machine(config.qos_correction_interval_min, handle.clone())));
    }
    if config.eviction.watches_memory() {
        let watch = watch_memory(config.eviction, containerizer.clone(), meter.clone(), handle.clone());
        tasks.push(tokio::spawn(watch));
    }
    if let Some(least) = config.eviction.disk_available_bytes {
        let work_dir = PathBuf::from(&config.work_dir);
        tasks.push(tokio::spawn(watch_sandboxes(least, work_dir, states.clone(), handle.clone())));
    }
    tasks
}

fn ticks(every: Duration) -> tokio::time::Interval {
    let mut ticks = tokio::time::interval(every.max(LOOK_INTERVAL_MIN));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

async fn measure(meter: Meter, every: Duration, handle: Handle<Input>) {
    let mut ticks = ticks(every);
    loop {
        ticks.tick().await;
        let meter = meter.clone();
        let samples = match tokio::task::spawn_blocking(move || meter.read()).await {
            // Nested ones are counted with their executor's.
            Ok(Ok(usages)) => {
                usages.into_iter().filter(|(id, _)| id.parent().is_none()).map(|(id, usage)| Used {
                    id,
                    cpu_time: usage.cpus_user_time + usage.cpus_system_time,
                    mem_bytes: usage.mem_rss_bytes,
                })
            }
            Ok(Err(err)) => {
                tracing::warn!(%err, "cannot measure container usage");
                continue;
            }
            Err(err) if err.is_panic() => {
                tracing::error!(%err, "cannot measure container usage");
                continue;
            }
            Err(_) => return, // The runtime is shutting down.
        };
        if handle.send(Input::Used { samples: samples.collect() }).await.is_err() {
            return;
        }
    }
}

async fn watch_memory(eviction: Eviction, containerizer: Containerizer, meter: Meter, handle: Handle<Input>) {
    let mut ticks = tokio::time::interval(MEMORY_LOOK_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let (containerizer, meter) = (containerizer.clone(), meter.clone());
        let looking = tokio::task::spawn_blocking(move || memory(eviction, &containerizer, &meter));
        let input = match looking.await {
            Ok(Some(input)) => input,
            Ok(None) => continue,
            Err(err) if err.is_panic() => {
                tracing::error!(%err, "cannot measure memory");
                continue;
            }
            Err(_) => return, // The runtime is shutting down.
        };
        if handle.send(input).await.is_err() {
            return;
        }
    }
}

/// Nothing while there is enough: containers are looked at only if one of them may have to go.
fn memory(eviction: Eviction, containerizer: &Containerizer, meter: &Meter) -> Option<Input> {
    let machine = machine_memory(containerizer);
    if !eviction.is_short(&machine) {
        return None;
    }
    let usages = meter.read().inspect_err(|err| tracing::warn!(%err, "cannot measure containers")).ok()?;
    let of = |(id, usage): (_, tepui_container::Usage)| {
        let memory = usage.memory?;
        let (used_bytes, request_bytes) = (memory.needed_bytes(), memory.request_bytes?);
        Some(MemoryUse { id, used_bytes, request_bytes, limit_bytes: memory.limit_bytes })
    };
    Some(Input::Memory { machine, containers: usages.into_iter().filter_map(of).collect() })
}

/// Measures the disk, and sandboxes only while less than this is available: an eviction may be due.
async fn watch_sandboxes(
    least: u64,
    work_dir: PathBuf,
    states: watch::Receiver<Arc<State>>,
    handle: Handle<Input>,
) {
    let mut ticks = ticks(LOOK_INTERVAL_MIN);
    loop {
        ticks.tick().await;
        let available_bytes = match available_bytes(&work_dir) {
            Ok(available) if available < least => available,
            Ok(_) => continue,
            Err(err) => {
                tracing::warn!(%err, path = %work_dir.display(), "cannot read disk usage");
                continue;
            }
        };
        let state = states.borrow().clone();
        let measuring = tokio::task::spawn_blocking(move || sandboxes(&state));
        let sandboxes = match measuring.await {
            Ok(sandboxes) => sandboxes,
            Err(err) if err.is_panic() => {
                tracing::error!(%err, "cannot measure sandboxes");
                continue;
            }
            Err(_) => return, // The runtime is shutting down.
        };
        if handle.send(Input::Sandboxes { available_bytes, sandboxes }).await.is_err() {
            return;
        }
    }
}

/// What each outermost container holds in its sandbox, where those nested in it have theirs.
fn sandboxes(state: &State) -> Vec<SandboxUse> {
    let executors = state.frameworks.values().flat_map(|framework| framework.executors.values());
    let executors = executors.map(|executor| (&executor.container_id, &executor.sandbox));
    let alone = state.containers.values().filter(|container| container.id.parent().is_none());
    let all = executors.chain(alone.map(|container| (&container.id, &container.sandbox)));
    let measured =
        all.map(|(id, sandbox)| SandboxUse { id: id.clone(), used_bytes: disk_used(Path::new(&**sandbox)) });
    measured.collect()
}

async fn sample_machine(every: Duration, handle: Handle<Input>) {
    let mut ticks = ticks(every);
    loop {
        ticks.tick().await;
        // Files of the kernel: read without waiting.
        let read = |path: &str| std::fs::read_to_string(path).ok();
        let Some(load) = read("/proc/loadavg").as_deref().and_then(load_averages) else {
            tracing::warn!("cannot read the load averages");
            continue;
        };
        let load = Load {
            cpu_pressure: read("/proc/pressure/cpu").as_deref().and_then(|text| pressure(text, "avg60")),
            memory_pressure: read("/proc/pressure/memory")
                .as_deref()
                .and_then(|text| pressure(text, "avg10")),
            ..load
        };
        if handle.send(Input::Load(load)).await.is_err() {
            return;
        }
    }
}

/// `0.20 0.18 0.12 1/80 11206`: the averages of one, five and fifteen minutes first.
fn load_averages(text: &str) -> Option<Load> {
    let mut averages = text.split_whitespace().skip(1).map(|average| average.parse().ok());
    let (five_minutes, fifteen_minutes) = (averages.next()??, averages.next()??);
    Some(Load { five_minutes, fifteen_minutes, ..Default::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_averages_are_parsed() {
        let load = load_averages("0.20 1.18 0.12 1/80 11206\n").expect("averages");
        assert_eq!((load.five_minutes, load.fifteen_minutes), (1.18, 0.12));
        assert_eq!(load_averages("0.20"), None);
    }

    #[test]
    fn eviction_that_cannot_work_is_an_error() {
        let available = Eviction { available_bytes: Some(1), ..Default::default() };
        let pressure = Eviction { pressure: Some(1.0), ..Default::default() };
        let full = MachineMemory { available_bytes: Some(1), pressure: Some(0.0) };
        for (eviction, counts_memory, machine, why) in [
            (available, true, full, None),
            (pressure, true, full, None),
            (available, true, MachineMemory { pressure: None, ..full }, None),
            (available, false, full, Some("add cgroups/mem to --isolation")),
            (pressure, false, full, Some("add cgroups/mem to --isolation")),
            (available, true, MachineMemory { available_bytes: None, ..full }, Some("/proc/meminfo")),
            (pressure, true, MachineMemory { pressure: None, ..full }, Some("/proc/pressure/memory")),
        ] {
            let found = check_eviction(eviction, counts_memory, &machine).err();
            assert_eq!(found.is_some(), why.is_some(), "{found:?}");
            assert!(found.unwrap_or_default().contains(why.unwrap_or_default()));
        }
    }

    #[test]
    fn fixed_estimator_resources_are_validated() {
        assert!(fixed_estimator("cpus:2;mem:64").is_ok());
        assert!(fixed_estimator("cpus:x").is_err());
    }
}
