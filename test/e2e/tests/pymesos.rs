//! A third party's client, unmodified: pymesos as scheduler and as executor.

use std::path::PathBuf;
use std::process::Command;

use tepui_e2e::{Cluster, wait_for};
use tepui_facilities::{Facility, available};

/// Every step of `pymesos/framework.py`, in order.
const STEPS: &[&str] = &[
    "subscribe",
    "command task finished",
    "command task failed with its status",
    "custom executor runs a task",
    "framework messages both ways",
    "reconcile",
    "kill",
    "failover keeps the id",
    "runs tasks after failover",
    "teardown",
];

#[test]
fn pymesos_works_unmodified() {
    if !available(&[Facility::Pymesos]) {
        return;
    }
    let cluster = Cluster::start();
    let scripts = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("pymesos");
    let output = Command::new(tepui_facilities::pymesos())
        .arg(scripts.join("framework.py"))
        .arg(&cluster.master.address)
        .arg(scripts.join("executor.py"))
        .output()
        .expect("python starts; `test/setup` installs it");
    let printed = String::from_utf8_lossy(&output.stdout);
    let steps: Vec<&str> = printed.lines().filter_map(|line| line.strip_prefix("ok ")).collect();
    assert_eq!(steps, STEPS, "{printed}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{printed}");
    // The driver stops without waiting for the answer to TEARDOWN.
    wait_for("the teardown", || {
        let frameworks = cluster.http().get("/frameworks").json()?;
        frameworks["frameworks"].as_array()?.is_empty().then_some(())
    });
}
