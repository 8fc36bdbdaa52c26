//! Looks at the machine for the estimator and the quality-of-service controller, and only if one of them wants it.

use std::time::Duration;

use tepui_container::Meter;
use tepui_core_agent::{Config, Estimator, Input, Load, QosController, Used};
use tepui_resources::parse;
use tepui_runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

/// How often the machine is looked at, at most.
const LOOK_INTERVAL_MIN: Duration = Duration::from_secs(1);
/// How often containers are measured, at least.
const MEASURE_INTERVAL_MAX: Duration = Duration::from_secs(5);

/// An estimator that always finds these resources, written as in `--resources`.
pub fn fixed_estimator(resources: &str) -> Result<Estimator, String> {
    let resources = parse::resources(resources, "*").map_err(|err| err.to_string())?;
    Ok(Estimator::Fixed(resources.into_iter().collect()))
}

/// Starts what the configuration asks for. Each ends when the machine has ended.
pub(crate) fn start(config: &Config, meter: &Meter, handle: &Handle<Input>) -> Vec<JoinHandle<()>> {
    let mut tasks = Vec::new();
    if matches!(config.estimator, Estimator::Usage { .. }) {
        let every = config.oversubscribed_resources_interval.min(MEASURE_INTERVAL_MAX);
        tasks.push(tokio::spawn(measure(meter.clone(), every, handle.clone())));
    }
    if config.qos_controller != QosController::Noop {
        tasks.push(tokio::spawn(look(config.qos_correction_interval_min, handle.clone())));
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
                tracing::warn!(%err, "cannot measure what containers use");
                continue;
            }
            Err(_) => return, // The runtime is shutting down.
        };
        if handle.send(Input::Used { samples: samples.collect() }).await.is_err() {
            return;
        }
    }
}

async fn look(every: Duration, handle: Handle<Input>) {
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

/// `some avg10=0.00 avg60=1.25 avg300=0.00 total=17`: one of the averages of the time in which some waited.
fn pressure(text: &str, average: &str) -> Option<f64> {
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let value = some.split_whitespace().find_map(|field| field.strip_prefix(average)?.strip_prefix('='))?;
    value.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_words() {
        let load = load_averages("0.20 1.18 0.12 1/80 11206\n").expect("averages");
        assert_eq!((load.five_minutes, load.fifteen_minutes), (1.18, 0.12));
        assert_eq!(load_averages("0.20"), None);
        let text = "some avg10=0.50 avg60=1.25 avg300=0.00 total=17\nfull avg10=9.00 avg60=9.00 avg300=9.00 total=9\n";
        assert_eq!((pressure(text, "avg10"), pressure(text, "avg60")), (Some(0.5), Some(1.25)));
        assert_eq!(pressure("full avg10=9.00", "avg10"), None);
        assert_eq!(pressure("", "avg10"), None);
    }

    #[test]
    fn fixed_resources_are_checked() {
        assert!(fixed_estimator("cpus:2;mem:64").is_ok());
        assert!(fixed_estimator("cpus:x").is_err());
    }
}
