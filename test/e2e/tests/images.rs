//! Tasks with images, through master and agent: their root filesystem and its cleanup. Needs root and a static busybox.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};
use tepui_e2e::{Cluster, Scheduler, TerminalSession, binary, save_image, scalar, wait_for};
use tepui_facilities::{Facility, available};

const ISOLATION: &str = "--isolation=filesystem/linux,namespaces/pid,docker/runtime";

/// A cluster whose agent takes images from a directory. `None`: recorded as skipped.
fn cluster() -> Option<Cluster> {
    cluster_with(&[])
}

fn cluster_with(more: &[&str]) -> Option<Cluster> {
    let program = Facility::Program("tar");
    if !available(&[Facility::Cgroups, Facility::Mounts, Facility::Busybox, program]) {
        return None;
    }
    let mut cluster = Cluster::without_agents(&[]);
    let images = cluster.folder().join("images");
    save_image(&images, "app", &image_config());
    let registry = format!("--docker_registry={}", images.display());
    let flags = ["--launcher=linux", ISOLATION, "--image_providers=docker", &registry];
    cluster.add_agent(&[&flags, more].concat());
    cluster.wait_for_agents(1);
    Some(cluster)
}

fn sh(dir: &Path, script: &str) -> String {
    let output = Command::new("sh").args(["-ec", script]).current_dir(dir).output().expect("a shell");
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text").trim().to_owned()
}

fn image_config() -> Value {
    json!({"Env": ["OF=image"], "Entrypoint": ["sh", "-c"], "Cmd": ["id -u; pwd; echo $OF"], "WorkingDir": "/etc", "User": "web"})
}

fn tepui(cluster: &Cluster, arguments: &[&str]) -> Output {
    Command::new(binary())
        .args(arguments)
        .env("TEPUI_MASTER", &cluster.master.address)
        .output()
        .expect("it runs")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What is left of root file systems on the agent.
fn provisioned(cluster: &Cluster) -> Vec<PathBuf> {
    let all = sh(cluster.folder(), "find . -path '*/provisioner/containers/*' -name rootfs -prune");
    all.lines().map(PathBuf::from).collect()
}

#[test]
fn commands_run_in_images() {
    let Some(cluster) = cluster() else { return };
    let own = tepui(&cluster, &["run", "--image", "app"]);
    assert_eq!((text(&own).as_str(), own.status.code()), ("4321\n/etc\nimage\n", Some(0)), "{own:?}");
    let given = tepui(&cluster, &["run", "--image", "app", "--user", "root", "--", "cat of; ls /; exit 3"]);
    let expected = "of the image\nbin\ndev\netc\nmnt\nproc\nsys\n";
    assert_eq!((text(&given).as_str(), given.status.code()), (expected, Some(3)), "{given:?}");
    let words = tepui(&cluster, &["run", "--image", "app", "--", "echo", "several", "words"]);
    assert_eq!(text(&words), "several words\n", "{words:?}");
    let missing = tepui(&cluster, &["run", "--image", "missing"]);
    let printed = String::from_utf8_lossy(&missing.stderr).into_owned();
    assert!(printed.contains("image 'missing:latest' not found"), "{printed}");
    wait_for("nothing to be left", || provisioned(&cluster).is_empty().then_some(()));
    // The present image and the missing one.
    assert_eq!(metric(&cluster, "containerizer/mesos/provisioner/docker_store/image_pull_ms/count"), 2.0);
    assert_eq!(metric(&cluster, "containerizer/mesos/filesystem/containers_new_rootfs"), 0.0);
}

fn metric(cluster: &Cluster, name: &str) -> f64 {
    let metrics = cluster.agent_http().get("/metrics/snapshot").json().expect("JSON");
    metrics[name].as_f64().unwrap_or_else(|| panic!("{name} is not in {metrics}"))
}

#[test]
fn task_without_a_container_gets_the_default_container() {
    let default = json!({"type": "MESOS", "mesos": {"image": {"type": "DOCKER", "docker": {"name": "app"}}}});
    let features = json!({"capabilities": [
        {"type": "MULTI_ROLE"}, {"type": "HIERARCHICAL_ROLE"}, {"type": "RESERVATION_REFINEMENT"},
        {"type": "RESOURCE_PROVIDER"}, {"type": "AGENT_OPERATION_FEEDBACK"}, {"type": "AGENT_DRAINING"},
        {"type": "TASK_RESOURCE_LIMITS"},
    ]});
    let flags = [format!("--default_container_info={default}"), format!("--agent_features={features}")];
    let Some(cluster) = cluster_with(&flags.each_ref().map(String::as_str)) else { return };
    let own = tepui(&cluster, &["run", "--user", "root", "--", "cat /etc/of"]);
    assert_eq!((text(&own).as_str(), own.status.code()), ("of the image\n", Some(0)), "{own:?}");
    let agents = cluster.http().get("/slaves").json().expect("JSON");
    assert_eq!(agents["slaves"][0]["capabilities"].as_array().expect("a list").len(), 7, "{agents}");
}

#[test]
fn tasks_with_images_survive_agent_restart() {
    let Some(mut cluster) = cluster() else { return };
    let mut scheduler = Scheduler::subscribe(&cluster.http(), Scheduler::info("dev"));
    let image = json!({"type": "MESOS", "mesos": {"image": {"type": "DOCKER", "docker": {"name": "app"}}}});
    let script = "cat /etc/of; until test -e $MESOS_SANDBOX/go; do sleep 0.02; done";
    let task = |offer: &Value, id: &str| {
        json!({"name": id, "task_id": {"value": id}, "agent_id": offer["agent_id"], "container": image,
            "command": {"value": script, "user": "root"},
            "resources": [scalar("cpus", 0.1), scalar("mem", 32.0)]})
    };
    let offer = scheduler.fresh_offer();
    let executor = json!({"type": "DEFAULT", "executor_id": {"value": "e"}, "framework_id": {"value": scheduler.framework_id},
        "resources": [scalar("cpus", 0.1), scalar("mem", 32.0), scalar("disk", 1.0)]});
    let group = json!({"executor": executor, "task_group": {"tasks": [task(&offer, "grouped")]}});
    let mut alone = task(&offer, "alone");
    let check = "test -e /etc/of && ! test -e /usr";
    alone["health_check"] = json!({"type": "COMMAND", "delay_seconds": 0.0, "interval_seconds": 0.1, "grace_period_seconds": 0.0,
        "command": {"value": check}});
    let operations = json!([
        {"type": "LAUNCH", "launch": {"task_infos": [alone]}},
        {"type": "LAUNCH_GROUP", "launch_group": group}
    ]);
    scheduler.accept(&offer, operations);
    for id in ["alone", "grouped"] {
        scheduler.reach(id, "TASK_RUNNING");
    }
    assert_eq!(metric(&cluster, "containerizer/mesos/filesystem/containers_new_rootfs"), 2.0);
    // Acknowledged while the agent is there: what is lost with it would be sent again, which the scheduler here skips.
    let healthy = scheduler.event("a passed check", |event| event["update"]["status"]["healthy"] == true);
    scheduler.acknowledge(&healthy.expect("the stream lives")["update"]["status"]);
    let sandboxes =
        || sh(cluster.folder(), "find . -name stdout -size +0 | xargs grep -l 'of the image' || true");
    let found =
        wait_for("both to see their image", || Some(sandboxes()).filter(|all| all.lines().count() == 2));
    assert_eq!(provisioned(&cluster).len(), 2);
    let seen = tepui(&cluster, &["exec", "alone", "cat", "/etc/of"]);
    assert_eq!(text(&seen), "of the image\n", "{seen:?}");
    let folder = cluster.folder().to_owned();
    cluster.agents[0].kill();
    cluster.agents[0].restart();
    for stdout in found.lines() {
        std::fs::write(folder.join(stdout).with_file_name("go"), "").expect("written");
    }
    for id in ["alone", "grouped"] {
        scheduler.reach(id, "TASK_FINISHED");
    }
    wait_for("nothing to be left", || provisioned(&cluster).is_empty().then_some(()));
}

/// How many layers the agent's store has.
fn layers(cluster: &Cluster) -> usize {
    std::fs::read_dir(cluster.agents[0].work_dir.join("store/docker/layers")).map_or(0, Iterator::count)
}

fn agent_id(cluster: &Cluster) -> String {
    let agents = cluster.http().get("/slaves").json().expect("JSON");
    agents["slaves"][0]["id"].as_str().expect("an id").to_owned()
}

fn prune(cluster: &Cluster, excluded: Value) -> tepui_e2e::Response {
    let call = json!({"type": "PRUNE_IMAGES", "prune_images": {"excluded_images": excluded}});
    cluster.agent_http().post("/api/v1", &call)
}

#[test]
fn operators_prune_unused_images() {
    let Some(cluster) = cluster() else { return };
    let app = json!([{"type": "DOCKER", "docker": {"name": "app"}}]);
    assert_eq!(prune(&cluster, json!([])).status, 200, "there is nothing yet");
    let plain = cluster.agent_http().post("/api/v1", &json!({"type": "PRUNE_IMAGES"}));
    assert_eq!(plain.status, 200, "which images stay is optional: {}", plain.text());
    let ran = tepui(&cluster, &["run", "--image", "app"]);
    assert_eq!((ran.status.code(), layers(&cluster)), (Some(0), 1), "{ran:?}");
    assert_eq!((prune(&cluster, app).status, layers(&cluster)), (200, 1));
    let kept = tepui(&cluster, &["prune-images", "--keep", "app", &agent_id(&cluster)]);
    assert_eq!((kept.status.code(), layers(&cluster)), (Some(0), 1), "{kept:?}");
    let pruned = tepui(&cluster, &["prune-images", &agent_id(&cluster)]);
    assert_eq!(text(&pruned), format!("pruned images of agent {}\n", agent_id(&cluster)), "{pruned:?}");
    assert_eq!(layers(&cluster), 0);
    let again = tepui(&cluster, &["run", "--image", "app"]);
    assert_eq!((again.status.code(), layers(&cluster)), (Some(0), 1), "{again:?}");
    let refused = prune(&cluster, json!([{"type": "DOCKER", "docker": {"name": "/etc"}}]));
    assert_eq!(refused.status, 500);
    assert!(refused.text().contains("'/etc' is not the name of an image"), "{}", refused.text());
    assert_eq!(layers(&cluster), 1);
}

#[test]
fn images_are_pruned_under_disk_pressure_and_by_authorized_principals() {
    let often = r#"{"image_disk_headroom":1.0,"image_disk_watch_interval":{"nanoseconds":20000000}}"#;
    let acls =
        r#"{"permissive":true,"prune_images":[{"principals":{"type":"NONE"},"images":{"type":"ANY"}}]}"#;
    let (gc, acls) = (format!("--image_gc_config={often}"), format!("--acls={acls}"));
    let Some(cluster) = cluster_with(&[&gc, &acls]) else { return };
    let mut scheduler = Scheduler::subscribe(&cluster.http(), Scheduler::info("dev"));
    let offer = scheduler.fresh_offer();
    let mut task =
        Scheduler::task(&offer, "a", "until test -e $MESOS_SANDBOX/go; do sleep 0.02; done; cat /etc/of");
    task["command"]["user"] = json!("root");
    task["container"] =
        json!({"type": "MESOS", "mesos": {"image": {"type": "DOCKER", "docker": {"name": "app"}}}});
    assert_eq!(scheduler.launch(&offer, &[task]).status, 202);
    scheduler.reach("a", "TASK_RUNNING");
    // The disk is looked at again and again while the task runs.
    let times = || cluster.agents[0].log().matches("images were pruned").count();
    let before = times();
    wait_for("the disk to be looked at", || (times() > before + 2).then_some(()));
    assert_eq!(layers(&cluster), 1, "a task uses it");
    assert_eq!(prune(&cluster, json!([])).status, 403);
    let stdout = sh(
        cluster.folder(),
        "find . -path '*executors/a/runs/latest' -prune -o -path '*executors/a/runs/*/stdout' -print",
    );
    std::fs::write(cluster.folder().join(&stdout).with_file_name("go"), "").expect("written");
    scheduler.reach("a", "TASK_FINISHED");
    assert_eq!(std::fs::read_to_string(cluster.folder().join(stdout)).expect("there"), "of the image\n");
    wait_for("the image to go", || (layers(&cluster) == 0).then_some(()));
}

/// Whenever the agent is killed, the next one uses complete images only.
#[test]
fn agent_crash_during_prune_and_launch_leaves_no_partial_image() {
    let often = r#"{"image_disk_headroom":1.0,"image_disk_watch_interval":{"nanoseconds":1000000}}"#;
    let Some(mut cluster) = cluster_with(&[&format!("--image_gc_config={often}")]) else { return };
    for round in 0..6 {
        let mut runs: Vec<_> = (0..3)
            .map(|_| {
                Command::new(binary())
                    .args(["run", "--image", "app", "--user", "root", "--", "cat /etc/of; ls /bin/sh"])
                    .env("TEPUI_MASTER", &cluster.master.address)
                    .stdout(std::process::Stdio::null())
                    .stderr(std::process::Stdio::null())
                    .spawn()
                    .expect("it starts")
            })
            .collect();
        // At another moment of the launch each time.
        let started = || cluster.agents[0].log().matches("container launched").count() > round;
        wait_for("something to happen", || (layers(&cluster) > 0 || started()).then_some(()));
        cluster.agents[0].kill();
        for run in &mut runs {
            run.kill().expect("ours");
            run.wait().expect("ours");
        }
        cluster.agents[0].restart();
        cluster.wait_for_agents(1);
        let seen =
            tepui(&cluster, &["run", "--image", "app", "--user", "root", "--", "cat /etc/of; ls /bin/sh"]);
        assert_eq!(
            (text(&seen).as_str(), seen.status.code()),
            ("of the image\n/bin/sh\n", Some(0)),
            "{seen:?}"
        );
    }
    wait_for("nothing to be left", || {
        (provisioned(&cluster).is_empty() && layers(&cluster) == 0).then_some(())
    });
}

/// The terminal is the task's, which is inside of its image, and not its executor's, which is not.
#[test]
fn a_task_with_an_image_and_a_terminal_gets_keys_and_signals() {
    let Some(cluster) = cluster() else { return };
    let mut scheduler = Scheduler::subscribe(&cluster.http(), Scheduler::info("dev"));
    let offer = scheduler.fresh_offer();
    let script = "trap 'echo interrupted' INT; stty size; cat /etc/of; read line; echo \"heard $line\"; read line; \
        echo yes > /dev/tty; exit 6";
    let mut task = Scheduler::task(&offer, "a", script);
    let image = json!({"image": {"type": "DOCKER", "docker": {"name": "app"}}});
    task["container"] =
        json!({"type": "MESOS", "mesos": image, "tty_info": {"window_size": {"rows": 11, "columns": 33}}});
    assert_eq!(scheduler.launch(&offer, &[task]).status, 202);
    scheduler.reach("a", "TASK_RUNNING");
    // Attaching changes the size of the terminal.
    wait_for("the first size", || {
        text(&tepui(&cluster, &["logs", "a"])).contains("of the image").then_some(())
    });
    let mut session =
        TerminalSession::start((24, 80), &["attach", "a"], &[("TEPUI_MASTER", &cluster.master.address)]);
    session.send_keys("one\r");
    session.expect_text("heard one");
    session.send_keys("\x03");
    session.expect_text("interrupted");
    session.send_keys("two\r");
    session.expect_text("yes");
    assert_eq!(session.wait().code(), Some(6));
    let status = scheduler.reach("a", "TASK_FAILED");
    assert_eq!(status["message"], "Command exited with status 6");
    let printed = tepui(&cluster, &["logs", "a"]);
    assert!(text(&printed).starts_with("11 33\r\nof the image\r\n"), "{printed:?}");
}
