//! The estimator: how much may be offered again, and telling the master when that changes.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;

use tepui_fsm::{Mono, Now};
use tepui_resources::{Name, Resource, Resources, Revocable, Scalar};
use tepui_types::ContainerId;

use crate::agent::{Agent, Out};
use crate::entities::operations;
use crate::state::Executor;
use crate::state::bookkeeping::Timer;
use crate::state::bookkeeping::{Estimator, Used, Watched};

/// Half-life of a peak above the average.
const PEAK_HALF_LIFE: Duration = Duration::from_secs(300);
/// Estimates are cut to whole steps, so that not every breath of a task makes a new one.
const STEP_THOUSANDTHS: i64 = 100;
const STEP_MEGABYTES: i64 = 32;

const MEGABYTE: f64 = 1024.0 * 1024.0;

impl Watched {
    fn new(now: Mono, used: &Used) -> Self {
        let megabytes = used.mem_bytes as f64 / MEGABYTE;
        Self { since: now, at: now, cpu_time: used.cpu_time, cpus: 0.0, megabytes }
    }

    fn take(&mut self, now: Mono, used: &Used) {
        let passed = now.since(self.at);
        if passed.is_zero() {
            return;
        }
        let cpus = used.cpu_time.saturating_sub(self.cpu_time).as_secs_f64() / passed.as_secs_f64();
        self.cpus = mark(self.cpus, cpus, passed);
        self.megabytes = mark(self.megabytes, used.mem_bytes as f64 / MEGABYTE, passed);
        (self.at, self.cpu_time) = (now, used.cpu_time);
    }
}

/// A peak counts at once and decays slowly.
fn mark(mark: f64, value: f64, passed: Duration) -> f64 {
    let (passed, half) = (passed.as_secs_f64(), PEAK_HALF_LIFE.as_secs_f64());
    if value >= mark { value } else { mark - (mark - value) * passed / (passed + half) }
}

/// Samples came in.
pub(crate) fn used(agent: &mut Agent, now: Now, samples: &[Used]) {
    let mut watched = BTreeMap::new();
    for sample in samples {
        let entry = match agent.oversubscription.watched.remove(&sample.id) {
            Some(mut known) => {
                known.take(now.mono, sample);
                known
            }
            None => Watched::new(now.mono, sample),
        };
        watched.insert(sample.id.clone(), entry);
    }
    // Containers without a measurement have terminated.
    agent.oversubscription.watched = watched;
}

/// Time for a new estimate; one that differs is sent to the master.
pub(crate) fn due(agent: &mut Agent, now: Now, out: &mut Out) {
    let target = match &agent.config.estimator {
        Estimator::Noop => return,
        Estimator::Fixed(resources) => resources.clone().flatten(Revocable::UsageSlack),
        Estimator::Usage { compressible_only, watch } => unused(agent, now.mono, *compressible_only, *watch),
    };
    agent.timers.set(Timer::Estimate, now.mono + agent.config.oversubscribed_resources_interval);
    // What was given out stays until its holders end, or are made to.
    let held: Resources = executors(agent).map(revocable).sum();
    let estimate = target - &held + &held;
    if agent.state.oversubscribed != estimate {
        agent.state.oversubscribed = estimate;
        agent.state.touch();
        operations::send_total(agent, out);
    }
}

fn executors(agent: &Agent) -> impl Iterator<Item = &Executor> {
    let all = agent.state.frameworks.values().flat_map(|framework| framework.executors.values());
    all.map(|executor| &**executor).filter(|executor| !executor.is_terminated())
}

fn revocable(executor: &Executor) -> Resources {
    executor.resources().unallocate().filter(|resource| match resource.revocable() {
        Revocable::UsageSlack | Revocable::Plain => true,
        Revocable::AllocationSlack | Revocable::No => false,
    })
}

/// What executors have beyond the most they used lately.
fn unused(agent: &Agent, now: Mono, compressible_only: bool, watch: Duration) -> Resources {
    let (mut cpus, mut megabytes) = (0, 0);
    for executor in executors(agent) {
        let Some(watched) = watched(agent, &executor.container_id, now, watch) else { continue };
        let firm = executor.allocated().non_revocable();
        cpus += idle(firm.cpus(), watched.cpus);
        megabytes += idle(firm.mem(), watched.megabytes);
    }
    let mut all = Vec::from([(Name::Cpus, cpus - cpus % STEP_THOUSANDTHS)]);
    if !compressible_only {
        all.push((Name::Mem, megabytes - megabytes % (STEP_MEGABYTES * 1000)));
    }
    let scalar = |(name, amount)| Resource::scalar(name, Scalar::from_thousandths(amount));
    let all: Resources = all.into_iter().map(scalar).filter(|one| !one.is_empty()).collect();
    all.flatten(Revocable::UsageSlack)
}

/// A container that was watched for less than `least` is taken to need all it has.
fn watched<'a>(agent: &'a Agent, id: &ContainerId, now: Mono, least: Duration) -> Option<&'a Watched> {
    let watched = agent.oversubscription.watched.get(id)?;
    (now.since(watched.since) >= least).then_some(watched)
}

/// In thousandths.
fn idle(allocated: Scalar, used: f64) -> i64 {
    let used = Scalar::from_f64(used).map_or(i64::MAX, Scalar::thousandths);
    allocated.thousandths().saturating_sub(used).max(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_peaks_apply_immediately_and_decay_slowly() {
        let minute = Duration::from_secs(60);
        assert_eq!(mark(1.0, 2.0, minute), 2.0);
        let mut peak = 2.0;
        for _ in 0..5 {
            peak = mark(peak, 0.0, minute);
        }
        assert!((0.6..1.1).contains(&peak), "{peak}");
        for _ in 0..100 {
            peak = mark(peak, 0.5, minute);
        }
        assert!((0.5..0.51).contains(&peak), "{peak}");
    }
}
