//! A third party's client, unmodified: pymesos as scheduler and as executor.

use std::path::PathBuf;
use std::process::Command;

use tepui_e2e::Cluster;

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
    let cluster = Cluster::start();
    let scripts = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("pymesos");
    let output = Command::new(python())
        .arg(scripts.join("framework.py"))
        .arg(&cluster.master.address)
        .arg(scripts.join("executor.py"))
        .output()
        .expect("python starts; `test/setup` installs it");
    let said = String::from_utf8_lossy(&output.stdout);
    let steps: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix("ok ")).collect();
    assert_eq!(steps, STEPS, "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}");
    let frameworks = cluster.http().get("/frameworks").json().expect("JSON");
    assert_eq!(frameworks["frameworks"].as_array().map(Vec::len), Some(0), "teardown ended the framework");
}

/// The Python that `test/setup` made, in the target directory.
fn python() -> PathBuf {
    let binary = tepui_e2e::binary();
    let target = binary.ancestors().nth(2).expect("target/<profile>/tepui");
    target.join("pymesos/bin/python")
}
