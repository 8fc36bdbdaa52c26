//! What containers use: their processes, also those of containers nested in them, also those that ended.

use std::time::Duration;

use crate::common::{Host, exited, until};
use tepui_container::{Meter, Usage};
use tepui_types::ContainerId;

/// Spends some time computing.
const BURN: &str = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done";

#[tokio::test]
async fn usage_includes_all_processes_of_a_container() {
    let mut host = Host::new();
    let (outer, other) = (ContainerId::root("outer"), ContainerId::root("other"));
    let inner = outer.child("inner");
    host.launch_script(&outer, &format!("sh -c '{BURN}'; sleep 1000 & touch ready; sleep 1000")).await;
    host.launch_script(&inner, "sleep 1000").await;
    host.launch_script(&other, "sleep 1000").await;
    let ready = host.sandbox(&outer).join("ready");
    until(|| ready.exists().then_some(())).await;
    let meter = Meter::open(&host.dir.path().join("run")).unwrap();
    let read = |id: &ContainerId| meter.read().unwrap().get(id).cloned().unwrap_or_default();
    // Two sleeps, the shell and what is nested; a shell may be replaced by its last command.
    until(|| (3..=5).contains(&read(&outer).processes).then_some(())).await;
    let (outer_usage, other_usage) = (read(&outer), read(&other));
    assert!(outer_usage.mem_rss_bytes > 100_000, "{outer_usage:?}");
    assert!(outer_usage.threads >= outer_usage.processes);
    let total = |usage: &Usage| usage.cpus_user_time + usage.cpus_system_time;
    assert!(total(&outer_usage) >= Duration::from_millis(20), "an ended process counts: {outer_usage:?}");
    assert!(other_usage.processes >= 1 && other_usage.mem_rss_bytes < outer_usage.mem_rss_bytes);
    assert!(!meter.read().unwrap().contains_key(&inner), "it is a part of the outer one");
    let asked_for = meter.read_in(|id| *id == outer).unwrap();
    assert!(asked_for.keys().eq([&outer]), "nothing else is looked at: {asked_for:?}");
    for id in [inner, outer, other] {
        host.destroy(&id).await;
    }
}

#[tokio::test]
async fn fetches_are_counted() {
    let mut host = Host::new();
    let id = ContainerId::root("plain");
    let spec = host.spec(&id, "true");
    assert_eq!(host.run(spec).await, exited(0));
    let counts = host.containerizer.counts().fetcher;
    assert_eq!((counts.succeeded, counts.failed), (1, 0));
    assert_eq!((counts.cache_used_bytes, counts.cache_total_bytes), (0, 1000));
}
