//! Allocation end to end: shares by weight, and slack that is lent, counted and recovered after a crash.

use std::process::Command;

use serde_json::{Value, json};
use tepui_e2e::{Cluster, Framework, Scheduler, binary, scalar, wait_for};

const FAST: &str = "--allocation_interval=50ms";

#[test]
fn two_frameworks_with_weights_1_and_3_converge_to_shares_1_to_3() {
    let cluster = Cluster::with(&[FAST, "--weights=heavy=3"], &["--resources=cpus:8;mem:4096;disk:4096"]);
    let mut light = Framework::subscribe(&cluster.http(), Scheduler::info("light"));
    let mut heavy = Framework::subscribe(&cluster.http(), Scheduler::info("heavy"));
    let mut launched = 0;
    while launched < 8 {
        for framework in [&mut light, &mut heavy] {
            framework.take_in();
            if let Some(offer) = framework.try_offer() {
                let mut task = Scheduler::task(&offer, &format!("t{launched}"), "sleep 1000");
                task["resources"] = json!([scalar("cpus", 1.0), scalar("mem", 32.0)]);
                assert_eq!(framework.scheduler.launch(&offer, &[task]).status, 202);
                launched += 1;
            }
        }
    }
    for (role, cpus) in [("light", 2.0), ("heavy", 6.0)] {
        let roles = cluster.http().get("/roles").json().expect("roles");
        let role = roles["roles"].as_array().expect("a list").iter().find(|one| one["name"] == role).cloned();
        assert_eq!(role.expect("it is there")["allocated"]["cpus"], cpus, "{roles}");
    }
}

#[test]
fn slack_accounting_is_exact_after_a_master_crash() {
    let resources = "--resources=cpus:1;mem:256;cpus(web):4;mem(web):1024;disk:4096";
    let mut cluster = Cluster::with(&[FAST], &[resources]);
    let mut borrower = Framework::subscribe(&cluster.http(), borrowing("ads"));
    let offer = borrower.offer();
    assert_eq!((slack(&offer, "cpus"), slack(&offer, "mem")), (4.0, 1024.0), "{offer}");
    let mut task = Scheduler::task(&offer, "guest", "sleep 1000");
    task["resources"] = json!([lent("cpus", 2.5), lent("mem", 64.0)]);
    assert_eq!(borrower.scheduler.launch(&offer, &[task]).status, 202);
    borrower.until("the guest to run", |borrower| borrower.is("guest", "TASK_RUNNING"));
    let shown = cluster.http().get("/tasks").json().expect("tasks");
    assert_eq!(shown["tasks"][0]["resources"]["cpus_revocable"], 2.5, "{shown}");
    wait_for_slack(&cluster, 2.5);

    cluster.master.kill();
    cluster.master.restart();
    borrower.reconnect();
    wait_for_slack(&cluster, 2.5);
    let offer = borrower.offer();
    assert_eq!((slack(&offer, "cpus"), slack(&offer, "mem")), (1.5, 960.0), "{offer}");

    let id = &borrower.scheduler.framework_id;
    let explained = explain(&cluster, &[id]);
    assert!(explained.contains("role          ads") && explained.contains("1 agent:"), "{explained}");
    let explained = explain(&cluster, &["ads"]);
    assert!(explained.contains("1st of 1") && explained.contains(id.as_str()), "{explained}");
}

#[test]
fn only_whitelisted_agents_are_offered_and_the_file_is_reloaded() {
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("whitelist");
    std::fs::write(&file, "one\n").expect("it is written");
    let mut cluster = Cluster::without_agents(&[FAST, &format!("--whitelist={}", file.display())]);
    for host in ["one", "two"] {
        cluster.add_agent(&[&format!("--hostname={host}"), "--resources=cpus:1;mem:256;disk:64"]);
    }
    let mut framework = Framework::subscribe(&cluster.http(), Scheduler::info("web"));
    assert_eq!(framework.offer()["hostname"], "one");
    let explained = explain(&cluster, &[&framework.scheduler.framework_id]);
    assert!(explained.contains("1 agent: not on the whitelist"), "{explained}");

    std::fs::write(&file, "two\n").expect("it is written");
    assert_eq!(framework.offer()["hostname"], "two");

    std::fs::remove_file(&file).expect("it is there");
    cluster.master.kill();
    let (status, printed) = cluster.master.restart_in_vain();
    assert!(!status.success() && printed.contains("--whitelist: cannot read"), "{printed}");
}

/// Waits until four cpus can be lent and so many are: in all, of the one agent, by the owner's and the borrower's role.
fn wait_for_slack(cluster: &Cluster, allocated: f64) {
    wait_for("the books to be right", || {
        let metrics = cluster.http().get("/metrics/snapshot").json()?;
        let agents = cluster.http().get("/slaves").json()?;
        let agent = format!("agents/{}", agents["slaves"][0]["id"].as_str()?);
        let of = |prefix: &str, kind: &str| metrics[format!("allocator/slack/{prefix}cpus/{kind}")].as_f64();
        let whole =
            ["", &format!("{agent}/"), "roles/web/"].iter().all(|prefix| of(prefix, "total") == Some(4.0));
        let lent = ["", &format!("{agent}/"), "roles/ads/"];
        (whole && lent.iter().all(|prefix| of(prefix, "allocated") == Some(allocated))).then_some(())
    });
}

fn explain(cluster: &Cluster, arguments: &[&str]) -> String {
    let master = format!("--master={}", cluster.master.address);
    let printed =
        Command::new(binary()).arg("explain").arg(master).args(arguments).output().expect("it runs");
    assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
    String::from_utf8_lossy(&printed.stdout).into_owned()
}

/// A framework that takes revocable resources.
fn borrowing(role: &str) -> Value {
    let mut info = Scheduler::info(role);
    info["capabilities"].as_array_mut().expect("a list").push(json!({"type": "REVOCABLE_RESOURCES"}));
    info
}

/// How much slack of this name an offer holds.
fn slack(offer: &Value, name: &str) -> f64 {
    let resources = offer["resources"].as_array().into_iter().flatten();
    let lent = resources.filter(|one| one["name"] == name && one["revocable"]["type"] == "ALLOCATION_SLACK");
    lent.filter_map(|one| one["scalar"]["value"].as_f64()).sum()
}

fn lent(name: &str, amount: f64) -> Value {
    let mut resource = scalar(name, amount);
    resource["revocable"] = json!({"type": "ALLOCATION_SLACK"});
    resource
}
