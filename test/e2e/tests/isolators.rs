//! The flags of isolators, from the command line to their effect on tasks. Needs root and cgroups.

use std::path::Path;

use serde_json::{Value, json};
use tepui_e2e::{Cluster, Scheduler, scalar, wait_for};
use tepui_facilities::{Facility, available};

const RESOURCES: &str = "--resources=cpus:8;mem:4096;disk:4096;ports:[31000-32000]";

/// `None`: recorded as skipped.
fn start(flags: &[&str]) -> Option<(Cluster, Scheduler)> {
    if !available(&[Facility::Cgroups, Facility::Mounts]) {
        return None;
    }
    let flags: Vec<&str> = std::iter::once(RESOURCES).chain(flags.iter().copied()).collect();
    let cluster = Cluster::with(&[], &flags);
    let scheduler = Scheduler::subscribe(&cluster.http(), Scheduler::info("dev"));
    Some((cluster, scheduler))
}

/// Runs a task until it terminates; its terminal status and its output.
fn run(cluster: &Cluster, scheduler: &mut Scheduler, id: &str, command: &str, end: &str) -> (Value, String) {
    let offer = scheduler.fresh_offer();
    let mut task = Scheduler::task(&offer, id, command);
    task["resources"] = json!([scalar("cpus", 0.1), scalar("mem", 32.0), scalar("disk", 2.0)]);
    let volume =
        json!({"mode": "RW", "container_path": "made", "host_path": cluster.folder().join("made/here")});
    task["container"] = json!({"type": "MESOS", "volumes": [volume], "linux_info": {"ipc_mode": "PRIVATE"}});
    assert_eq!(scheduler.launch(&offer, &[task]).status, 202);
    let status = scheduler.reach(id, end);
    (status, output_of(&cluster.agents[0].work_dir, id))
}

/// What the run of an executor wrote.
fn output_of(work_dir: &Path, executor: &str) -> String {
    let find = std::process::Command::new("find")
        .arg(work_dir)
        .args(["-path", &format!("*/{executor}/runs/*/stdout"), "-not", "-path", "*/latest/*"])
        .output()
        .expect("find runs");
    let path = String::from_utf8(find.stdout).expect("a path");
    std::fs::read_to_string(path.trim()).expect("one file")
}

/// The statistics of an executor, once its disk has been looked at and is found to hold a megabyte.
fn disk_of(cluster: &Cluster, executor: &str) -> Value {
    wait_for("the disk to be looked at", || {
        let all = cluster.agent_http().get("/monitor/statistics").json()?;
        let one = all.as_array()?.iter().find(|one| one["executor_id"] == executor)?["statistics"].clone();
        let disks = one["disk_statistics"].as_array()?;
        disks.iter().any(|disk| disk["used_bytes"].as_u64() >= Some(1 << 20)).then_some(one)
    })
}

/// The disk limit of a sandbox and its measured usage.
fn disk_is_counted(cluster: &Cluster, scheduler: &mut Scheduler) {
    let script = "dd if=/dev/zero of=some bs=1M count=1; exec sleep 1000";
    run(cluster, scheduler, "counted", script, "TASK_RUNNING");
    let used = disk_of(cluster, "counted");
    assert_eq!(used["disk_limit_bytes"], 2 << 20, "{used}");
    let same = json!([{"limit_bytes": 2 << 20, "used_bytes": used["disk_used_bytes"]}]);
    assert_eq!(used["disk_statistics"], same, "{used}");
}

/// A persistent volume is measured separately, by its name.
fn volumes_are_counted(cluster: &Cluster, scheduler: &mut Scheduler) {
    let offer = scheduler.fresh_offer();
    let (allocation, reserved) = (json!({"role": "dev"}), json!([{"type": "DYNAMIC", "role": "dev"}]));
    let mut disk = scalar("disk", 8.0);
    (disk["allocation_info"], disk["reservations"]) = (allocation, reserved);
    let mut volume = disk.clone();
    volume["disk"] =
        json!({"persistence": {"id": "kept"}, "volume": {"mode": "RW", "container_path": "data"}});
    let script = "dd if=/dev/zero of=data/some bs=1M count=1; exec sleep 1000";
    let mut task = Scheduler::task(&offer, "keeper", script);
    task["resources"] = json!([scalar("cpus", 0.1), scalar("mem", 32.0), scalar("disk", 2.0), volume]);
    scheduler.accept(
        &offer,
        json!([
            {"type": "RESERVE", "reserve": {"resources": [disk]}},
            {"type": "CREATE", "create": {"volumes": [volume]}},
            {"type": "LAUNCH", "launch": {"task_infos": [task]}}
        ]),
    );
    scheduler.reach("keeper", "TASK_RUNNING");
    let used = disk_of(cluster, "keeper");
    assert_eq!(used["disk_limit_bytes"], 2 << 20, "of the sandbox alone: {used}");
    let disks = used["disk_statistics"].as_array().expect("a list");
    let kept = disks.iter().find(|one| one["persistence"]["id"] == "kept").expect("the volume");
    assert_eq!(kept["limit_bytes"], 8 << 20, "{used}");
    assert!(kept["used_bytes"].as_u64() >= Some(1 << 20) && disks.len() == 2, "{used}");
}

#[test]
fn isolator_flags_apply_to_tasks() {
    if !available(&[Facility::Program("python3")]) {
        return;
    }
    let profiles = tempfile::tempdir().expect("a directory");
    let profile = r#"{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["mkdir","mkdirat"],"action":"SCMP_ACT_ERRNO","errnoRet":38}]}"#;
    std::fs::write(profiles.path().join("no-mkdir"), profile).expect("written");
    let Some((cluster, mut scheduler)) = start(&[
        "--isolation=filesystem/linux,namespaces/ipc,namespaces/pid,linux/capabilities,linux/nnp,\
         linux/seccomp,volume/host_path,disk/du,network/ports",
        r#"--effective_capabilities={"capabilities":["CHOWN"]}"#,
        r#"--bounding_capabilities={"capabilities":["CHOWN","KILL"]}"#,
        &format!("--seccomp_config_dir={}", profiles.path().display()),
        "--seccomp_profile_name=no-mkdir",
        // The cluster's own folder is below it.
        &format!("--host_path_volume_force_creation=/var/empty:{}", std::env::temp_dir().display()),
        "--default_container_shm_size=3MB",
        "--container_disk_watch_interval=100ms",
        "--enforce_container_disk_quota",
        "--container_ports_watch_interval=100ms",
        "--enforce_container_ports",
        "--check_agent_port_range_only",
    ]) else {
        return;
    };
    let script = "grep -E 'Cap(Eff|Bnd)' /proc/self/status | tr -d '\\t'; mkdir d || echo no; \
                  df -k --output=size /dev/shm | tail -1 | tr -d ' '; echo x > made/file";
    let (_, text) = run(&cluster, &mut scheduler, "rights", script, "TASK_FINISHED");
    for line in ["CapEff:0000000000000001", "CapBnd:0000000000000021", "no", "3072"] {
        assert!(text.lines().any(|one| one == line), "{line}: {text}");
    }
    assert!(cluster.folder().join("made/here/file").exists());

    let fill = "dd if=/dev/zero of=fill bs=1M count=5; exec sleep 1000";
    let (status, _) = run(&cluster, &mut scheduler, "filler", fill, "TASK_FAILED");
    assert_eq!(status["reason"], "REASON_CONTAINER_LIMITATION_DISK", "{status}");

    disk_is_counted(&cluster, &mut scheduler);
    volumes_are_counted(&cluster, &mut scheduler);

    // Port 0 is outside of the agent's range and allowed; a port of the range is not.
    let listen = |port: &str| {
        format!(
            "exec python3 -c 'import socket,time; s=socket.socket(); s.bind((\"127.0.0.1\",{port})); s.listen(); \
             time.sleep(1)'"
        )
    };
    run(&cluster, &mut scheduler, "polite", &listen("0"), "TASK_FINISHED");
    let any = "[p for p in range(31000,32000) if socket.socket().connect_ex((\"127.0.0.1\",p))][0]";
    let listen = listen(any).replace("sleep(1)", "sleep(1000)");
    let (status, _) = run(&cluster, &mut scheduler, "rude", &listen, "TASK_FAILED");
    assert_eq!(status["reason"], "REASON_CONTAINER_LIMITATION", "{status}");
}
