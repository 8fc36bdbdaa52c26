//! Sandboxes that are no longer needed: kept for a while, shorter the fuller the disk is, then removed.
//!
//! Pending removals are recorded, so that a restart loses none.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use tepui_fsm::{Now, Wall};
use tepui_types::ContainerOp;

use crate::Record;
use crate::agent::{Agent, Out};
use crate::state::bookkeeping::Timer;
use crate::state::paths;

/// From now on this directory is no longer needed.
pub(crate) fn schedule(agent: &mut Agent, now: Now, path: String, out: &mut Out) {
    out.record(Record::PathUnused { path: path.clone(), since: now.wall });
    agent.gc.insert(path, now.wall);
    // Nothing here is younger: the time that is set already is the first, if one is.
    if agent.state.disk_pressure.is_some() || agent.timers.get(&Timer::Collect).is_none() {
        agent.timers.set(Timer::Collect, now.mono + kept(agent));
    }
}

/// The directory is needed again.
pub(crate) fn unschedule(agent: &mut Agent, path: &str, out: &mut Out) {
    if agent.gc.remove(path).is_some() {
        out.record(Record::PathForgotten { path: path.into() });
    }
}

/// Sets the time when the next directory has been kept long enough.
pub(crate) fn arm(agent: &mut Agent, now: Now) {
    let Some(oldest) = agent.gc.values().min() else { return };
    let wait = kept(agent).saturating_sub(age(now, *oldest));
    agent.timers.set(Timer::Collect, now.mono + wait);
}

/// Some directory has been kept long enough.
pub(crate) fn collect(agent: &mut Agent, now: Now, out: &mut Out) {
    let kept = kept(agent);
    remove_older(agent, now, kept, out);
}

/// Room is needed now.
pub(crate) fn remove_all(agent: &mut Agent, now: Now, out: &mut Out) {
    remove_older(agent, now, Duration::ZERO, out);
}

/// How long directories are kept, whatever room there is; not at all under disk pressure.
fn kept(agent: &Agent) -> Duration {
    if agent.state.disk_pressure.is_some() { Duration::ZERO } else { agent.config.gc_delay }
}

/// The fuller the disk, the younger the directories that go.
pub(crate) fn disk_used(agent: &mut Agent, now: Now, used: f64, out: &mut Out) {
    let free = (1.0 - agent.config.gc_disk_headroom - used).clamp(0.0, 1.0);
    let kept = agent.config.gc_delay.mul_f64(free);
    agent.state.executor_directory_max_allowed_age = kept;
    agent.state.touch();
    remove_older(agent, now, kept, out);
}

fn remove_older(agent: &mut Agent, now: Now, kept: Duration, out: &mut Out) {
    let old = agent.gc.iter().filter(|(_, since)| age(now, **since) >= kept);
    let paths: Vec<String> = old.map(|(path, _)| path.clone()).collect();
    let mut removed: Option<String> = None;
    for path in paths {
        agent.gc.remove(&path);
        match &removed {
            // It goes with the directory around it, which comes first in the order of names.
            Some(outer) if paths::is_below(&path, outer) => out.record(Record::PathForgotten { path }),
            Some(_) | None => {
                removed = Some(path.clone());
                agent.container(ContainerOp::RemovePath { path }, out);
            }
        }
    }
    arm(agent, now);
}

/// A removal came to its end. One that failed is counted and not tried again.
pub(crate) fn removed(agent: &mut Agent, now: Now, path: String, failed: bool, out: &mut Out) {
    match failed {
        true => agent.state.counters.path_removals_failed += 1,
        false => agent.state.counters.path_removals_succeeded += 1,
    }
    agent.state.touch();
    agent.releasing.removed(now.mono, &path);
    if !agent.gc.contains_key(&path) {
        out.record(Record::PathForgotten { path });
    }
}

fn age(now: Now, since: Wall) -> Duration {
    Duration::from_nanos(now.wall.0.saturating_sub(since.0))
}
