//! Real cgroups: what the kernel's files say of a container, who ends with it, and what is left of it. Of both versions:
//! on whichever the host has its controllers (`test/v2/run` is a machine with v2).

use std::collections::BTreeMap;
use std::path::Path;

use crate::common::{Host, exited, kernel, lives, until};
use tepui_facilities::{Facility, available};
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::task_status::Reason;
use tepui_types::{ContainerEvent, ContainerId, ContainerOp, LaunchSpec};

const WAIT: &str = "echo ready; exec sleep 1000";
const MB: u64 = 1024 * 1024;

fn id(value: &str) -> ContainerId {
    ContainerId::root(value)
}

fn scalar(name: &str, value: f64) -> pb::Resource {
    pb::Resource {
        name: name.to_owned(),
        r#type: pb::value::Type::SCALAR,
        scalar: pb::value::Scalar { value, ..Default::default() }.into(),
        ..Default::default()
    }
}

fn limits(all: &[(&str, f64)]) -> BTreeMap<String, f64> {
    all.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
}

fn own_cgroups() -> pb::ContainerInfo {
    pb::ContainerInfo {
        r#type: pb::container_info::Type::MESOS,
        linux_info: pb::LinuxInfo { share_cgroups: Some(false), ..Default::default() }.into(),
        ..Default::default()
    }
}

/// A host on which the controllers are all on one version.
fn host(isolation: &str) -> Option<Host> {
    host_with(isolation, |_| ())
}

fn host_with(isolation: &str, change: impl FnOnce(&mut tepui_container::Options)) -> Option<Host> {
    if !available(&[Facility::Cgroups]) {
        return None;
    }
    Host::linux_with(isolation, change)
}

fn is_v2() -> bool {
    kernel::v2_mount().is_some()
}

const MEMORY_SOFT: (&str, &str) = ("memory.soft_limit_in_bytes", "memory.low");
const MEMORY_LIMIT: (&str, &str) = ("memory.limit_in_bytes", "memory.max");
const MEMORY_USED: (&str, &str) = ("memory.usage_in_bytes", "memory.current");

fn sized(
    host: &Host,
    id: &ContainerId,
    script: &str,
    (cpus, mem): (f64, f64),
    all: &[(&str, f64)],
) -> LaunchSpec {
    LaunchSpec {
        resources: vec![scalar("cpus", cpus), scalar("mem", mem)],
        limits: limits(all),
        ..host.spec(id, script)
    }
}

/// shares, quota, soft limit and limit in megabytes (-1: endless). A weight of 100 on v2 is what 1024 shares are on v1.
fn values(root: &Path, id: &ContainerId) -> (i64, i64, i64, i64) {
    let number = |file| kernel::read(root, "cpu", id, file).parse::<i64>().unwrap();
    let (shares, quota) = match is_v2() {
        true => {
            let max = kernel::read(root, "cpu", id, "cpu.max");
            let quota = max.strip_suffix(" 100000").unwrap().replace("max", "-1");
            (number("cpu.weight") * 1024 / 100, quota.parse().unwrap())
        }
        false => (number("cpu.shares"), number("cpu.cfs_quota_us")),
    };
    let mb = |bytes: i64| if !(0..i64::MAX / 2).contains(&bytes) { -1 } else { bytes / MB as i64 };
    let memory = |file| mb(kernel::memory(root, id, file));
    (shares, quota, memory(MEMORY_SOFT), memory(MEMORY_LIMIT))
}

#[tokio::test]
async fn cgroups_are_set_up_and_removed_on_destroy() {
    let Some(mut host) = host("cgroups/all") else { return };
    let (a, root) = (id("a"), host.options.cgroups.root.clone());
    let spec = sized(&host, &a, WAIT, (0.5, 64.0), &[("cpus", 1.5), ("mem", 128.0)]);
    host.launch(spec).await;
    host.line(&a, "stdout").await;
    assert_eq!(values(&root, &a), (512, 150_000, 64, 128));
    for controller in ["cpu", "cpuacct", "cpuset", "memory", "pids", "devices", "blkio", "freezer"] {
        let inside = kernel::processes(&root, controller, &a);
        assert_eq!(inside.len(), 1, "{controller}: only the command is inside");
    }
    assert_eq!(kernel::read(&root, "pids", &a, "pids.max"), "16384");
    if !is_v2() {
        assert!(kernel::read(&root, "devices", &a, "devices.list").contains("c 1:3 rwm"));
    }
    assert_eq!(host.destroy(&a).await.status, Some(libc::SIGKILL));
    assert_eq!(kernel::left_of(&root), <[std::path::PathBuf; 0]>::default());
}

#[tokio::test]
async fn only_allowed_devices_can_be_opened() {
    let allowed = r#"{"allowed_devices":[{"device":{"path":"/dev/kmsg"},"access":{"read":true}}]}"#;
    let script =
        "for one in zero kmsg; do (: < /dev/$one) 2>/dev/null && echo $one; done; (: > /dev/kmsg) || echo ro";
    for (extra, seen) in [("", "zero\nro\n"), (allowed, "zero\nkmsg\nro\n")] {
        let choose = |options: &mut tepui_container::Options| {
            if !extra.is_empty() {
                options.isolators.allowed_devices = tepui_container::parse_devices(extra).unwrap();
            }
        };
        let Some(mut host) = Host::linux_with("cgroups/devices", choose) else { return };
        let a = id("a");
        assert_eq!(host.run(host.spec(&a, script)).await, exited(0));
        assert_eq!(host.read(&a, "stdout"), seen);
    }
}

/// Every cell of the two tables of the design that leads to a container, as the agent asks for it, with and without
/// `--cgroups_enable_cfs`: requests and limits become what the files say, the same on both versions of cgroups.
#[tokio::test]
async fn requests_and_limits_are_mapped_to_cgroup_files_as_specified() {
    const INF: f64 = f64::INFINITY;
    for cfs in [false, true] {
        let choose = |options: &mut tepui_container::Options| options.cgroups.enable_cfs = cfs;
        let Some(mut host) = host_with("cgroups/cpu,cgroups/mem", choose) else { return };
        let root = host.options.cgroups.root.clone();
        let request = |quota: i64| if cfs { quota } else { -1 };
        // A task outside of groups is in the cgroups of its executor, as is a task that shares these: with 0.1 cpus and
        // 32 megabytes more than it asked for.
        for (name, asked, all, expected) in [
            ("plain", (0.2, 64.0), &[][..], (0.2, request(20_000), 64, 64)),
            ("both", (0.3, 96.0), &[("cpus", 0.6), ("mem", 160.0)], (0.3, 60_000, 96, 160)),
            ("endless", (0.2, 64.0), &[("cpus", INF), ("mem", INF)], (0.2, -1, 64, -1)),
            ("cpus", (0.2, 64.0), &[("cpus", 0.6)], (0.2, 60_000, 64, 64)),
            ("mem", (1.1, 1056.0), &[("mem", 2080.0)], (1.1, request(110_000), 1056, 2080)),
            ("least", (0.001, 1.0), &[], (0.001, request(1000), 32, 32)),
        ] {
            host.launch(sized(&host, &id(name), WAIT, asked, all)).await;
            let (cpus, quota, soft, hard) = expected;
            assert_eq!(values(&root, &id(name)), (shares(cpus), quota, soft, hard), "{name}, cfs {cfs}");
            host.destroy(&id(name)).await;
        }
        // A task with cgroups of its own, in those of an executor that are sums.
        for (name, around, all, expected) in [
            ("own-plain", &[][..], &[][..], (request(10_000), 32)),
            ("own-both", &[("cpus", 0.6), ("mem", 96.0)], &[("cpus", 0.5), ("mem", 64.0)], (50_000, 64)),
            ("own-endless", &[("cpus", INF), ("mem", INF)], &[("cpus", INF), ("mem", INF)], (-1, -1)),
            ("own-beside", &[("cpus", 0.7), ("mem", 128.0)], &[], (request(10_000), 32)),
        ] {
            let (executor, own) = (id(name), id(name).child("own"));
            host.launch(sized(&host, &executor, WAIT, (0.3, 96.0), around)).await;
            let spec = sized(&host, &own, WAIT, (0.1, 32.0), all);
            host.launch(LaunchSpec { container: Some(own_cgroups()), ..spec }).await;
            let (quota, hard) = expected;
            assert_eq!(values(&root, &own), (shares(0.1), quota, 32, hard), "{name}, cfs {cfs}");
            host.destroy(&own).await;
            host.destroy(&executor).await;
        }
    }
}

/// What `values` shows of a weight.
fn shares(cpus: f64) -> i64 {
    match is_v2() {
        true => ((cpus * 100.0) as i64).max(1) * 1024 / 100,
        false => ((cpus * 1024.0) as i64).max(2),
    }
}

#[tokio::test]
async fn updates_raise_lower_and_lift_limits() {
    let Some(mut host) = host("cgroups/cpu,cgroups/mem") else { return };
    let (a, root) = (id("a"), host.options.cgroups.root.clone());
    host.launch(sized(&host, &a, WAIT, (0.1, 32.0), &[])).await;
    host.line(&a, "stdout").await;
    assert_eq!(values(&root, &a), (102, -1, 32, 32));
    for (request, all, expected) in [
        ((1.0, 64.0), &[("mem", 128.0)][..], (1024, -1, 64, 128)),
        ((1.0, 64.0), &[("cpus", 2.0), ("mem", f64::INFINITY)], (1024, 200_000, 64, -1)),
        ((0.1, 40.0), &[("cpus", f64::INFINITY)], (102, -1, 40, 40)),
        ((0.2, 48.0), &[], (204, -1, 48, 48)),
    ] {
        host.submit(ContainerOp::Update {
            id: a.clone(),
            resources: vec![scalar("cpus", request.0), scalar("mem", request.1)],
            limits: limits(all),
            volumes: Vec::new(),
        });
        until(|| (values(&root, &a) == expected).then_some(())).await;
    }
    host.destroy(&a).await;
}

#[tokio::test]
async fn nested_containers_share_or_own_cgroups() {
    let Some(mut host) = host("cgroups/cpu,cgroups/mem") else { return };
    let (a, root) = (id("a"), host.options.cgroups.root.clone());
    host.launch(sized(&host, &a, WAIT, (1.0, 128.0), &[])).await;
    let (shares, own) = (a.child("shares"), a.child("own"));
    host.launch(host.spec(&shares, WAIT)).await;
    let spec = sized(&host, &own, WAIT, (0.1, 32.0), &[("cpus", 0.5), ("mem", 64.0)]);
    host.launch(LaunchSpec { container: Some(own_cgroups()), ..spec }).await;
    for id in [&a, &shares, &own] {
        host.line(id, "stdout").await;
    }
    assert_eq!(values(&root, &own), (102, 50_000, 32, 64));
    if is_v2() {
        assert_eq!(kernel::memory(&root, &shares, MEMORY_LIMIT), -1, "it has no limit of its own");
    } else {
        assert!(!kernel::cgroup(&root, "memory", &shares).exists());
        assert_eq!(kernel::processes(&root, "memory", &a).len(), 2);
    }
    assert_eq!(kernel::processes(&root, "freezer", &shares).len(), 1);
    let (_, why) = {
        let spec = host.spec(&a.child("says-nothing"), WAIT);
        host.fail_to_launch(LaunchSpec { container: Some(own_cgroups()), ..spec }).await
    };
    assert_eq!(why, "a container with cgroups of its own needs 'cpus'");
    host.destroy(&shares).await;
    host.destroy(&own).await;
    host.destroy(&a).await;
    assert_eq!(kernel::left_of(&root), <[std::path::PathBuf; 0]>::default());
}

#[tokio::test]
async fn only_burstable_tasks_have_a_raised_oom_score() {
    let Some(mut host) = host("cgroups/mem") else { return };
    let score = "cat /proc/self/oom_score_adj";
    let usual = std::fs::read_to_string("/proc/self/oom_score_adj").unwrap();
    let machine = rustix::system::sysinfo();
    let capacity = machine.totalram as f64 * f64::from(machine.mem_unit) / MB as f64;
    let endless = &[("mem", f64::INFINITY)][..];
    // The part of the machine's memory that it asks for, in thousandths.
    for (name, holds_tasks, part, all, expected) in [
        ("plain", true, 100.0, &[][..], None),
        ("executor", false, 100.0, endless, None),
        ("bursts", true, 100.5, &[("mem", capacity)], Some(900)),
        ("endless", true, 400.5, endless, Some(600)),
        ("whole", true, 1000.0, endless, Some(3)),
    ] {
        let request = (1.0, capacity * part / 1000.0);
        let spec = LaunchSpec { holds_tasks, ..sized(&host, &id(name), score, request, all) };
        host.run(spec).await;
        let expected = expected.map_or(usual.clone(), |score| format!("{score}\n"));
        assert_eq!(host.read(&id(name), "stdout"), expected, "{name}");
    }
}

/// An executor gets a task that may use more than it asked for, and loses it again: all its processes follow.
#[tokio::test]
async fn oom_score_follows_an_updated_memory_limit() {
    let Some(mut host) = host("cgroups/mem") else { return };
    let (a, root) = (id("a"), host.options.cgroups.root.clone());
    let usual: i32 = std::fs::read_to_string("/proc/self/oom_score_adj").unwrap().trim().parse().unwrap();
    host.launch(sized(&host, &a, "sleep 1000 & echo ready; wait", (1.0, 64.0), &[])).await;
    host.line(&a, "stdout").await;
    let scores = || -> Vec<i32> {
        let score = |pid: u32| {
            std::fs::read_to_string(format!("/proc/{pid}/oom_score_adj")).ok()?.trim().parse().ok()
        };
        kernel::processes(&root, "memory", &id("a")).into_iter().filter_map(score).collect()
    };
    assert_eq!(scores(), [usual, usual]);
    let update = |mem: f64, all: &[(&str, f64)]| ContainerOp::Update {
        id: id("a"),
        resources: vec![scalar("cpus", 1.0), scalar("mem", mem)],
        limits: limits(all),
        volumes: Vec::new(),
    };
    host.submit(update(96.0, &[("mem", 256.0)]));
    until(|| scores().iter().all(|score| (900..1000).contains(score)).then_some(())).await;
    let mut host = host.restart();
    host.recover(&[&a]).await;
    host.submit(update(64.0, &[]));
    until(|| scores().iter().all(|score| *score == usual).then_some(())).await;
    host.destroy(&a).await;
}

/// Above its request a task is the very first to go, below it is not; also after a restart of the agent.
#[tokio::test]
async fn oom_score_follows_memory_usage() {
    let Some(mut host) = host("cgroups/mem") else { return };
    let (a, root) = (id("a"), host.options.cgroups.root.clone());
    let wait_for = |file: &str| format!("while ! [ -e {file} ]; do sleep 0.05; done");
    let holds = |until: &str| format!("dd if=/dev/zero bs=100M count=1 2>/dev/null | ({})", wait_for(until));
    let script = format!("{}; {}; {}; sleep 1000", wait_for("one"), holds("two"), wait_for("three"));
    host.launch(sized(&host, &a, &script, (1.0, 64.0), &[("mem", 512.0)])).await;
    let scores = |root: &Path| {
        let score = |pid: u32| {
            std::fs::read_to_string(format!("/proc/{pid}/oom_score_adj")).ok()?.trim().parse().ok()
        };
        kernel::processes(root, "memory", &id("a")).into_iter().filter_map(score).collect::<Vec<i32>>()
    };
    let all = |wanted: fn(i32) -> bool| scores(&root).iter().all(|score| wanted(*score)).then_some(());
    until(|| all(|score| (900..1000).contains(&score))).await;
    std::fs::write(host.sandbox(&a).join("one"), "").unwrap();
    until(|| all(|score| score == 1000)).await;
    let mut host = host.restart();
    host.recover(&[&a]).await;
    std::fs::write(host.sandbox(&a).join("two"), "").unwrap();
    until(|| all(|score| (900..1000).contains(&score))).await;
    host.destroy(&a).await;
}

/// Takes memory until it is stopped, in a process that the shell waits for.
const HOG: &str = "dd if=/dev/zero of=/dev/null bs=300M count=1 2> /dev/null; exit $?";

#[tokio::test]
async fn oom_kill_reports_memory_limit_reason() {
    for limit_swap in [false, true] {
        let change = |options: &mut tepui_container::Options| options.cgroups.limit_swap = limit_swap;
        let Some(mut host) = host_with("cgroups/mem", change) else { return };
        let a = id("a");
        host.launch(sized(&host, &a, HOG, (1.0, 32.0), &[("mem", 64.0)])).await;
        let end = host.exit_of(&a).await;
        assert_eq!(end.reason, Some(Reason::REASON_CONTAINER_LIMITATION_MEMORY), "{end:?}");
        assert_eq!(end.state, Some(pb::TaskState::TASK_FAILED));
        let message = end.message.unwrap();
        assert!(
            message.starts_with("Memory limit exceeded: Requested: 32MB Limit: 64MB Maximum Used: 6"),
            "{message}"
        );
        assert_eq!(end.limited[0].name, "mem");
    }
}

/// Holds so many megabytes until the file `go` is there.
fn holds(megabytes: u32) -> String {
    format!(
        "dd if=/dev/zero bs={megabytes}M count=1 2>/dev/null | (while ! [ -e go ]; do sleep 0.05; done; cat >/dev/null)"
    )
}

/// The cgroup of all containers is limited from outside: to them it is the machine. The command survives its child.
#[tokio::test]
async fn host_oom_kills_the_container_above_its_request() {
    let Some(mut host) = host("cgroups/mem") else { return };
    let root = host.options.cgroups.root.clone();
    let limit = if is_v2() { MEMORY_LIMIT.1 } else { MEMORY_LIMIT.0 };
    let machine = kernel::mount("memory").join(&root).join(limit);
    std::fs::write(machine, (160 * MB).to_string()).unwrap();
    let (modest, hog) = (id("modest"), id("hog"));
    host.launch(sized(&host, &modest, &holds(60), (0.1, 96.0), &[("mem", 128.0)])).await;
    let usage = |id: &ContainerId| kernel::memory(&root, id, MEMORY_USED);
    until(|| (usage(&modest) > 60 * MB as i64).then_some(())).await;
    host.launch(sized(&host, &hog, SURVIVOR, (0.1, 32.0), &[("mem", f64::INFINITY)])).await;
    let end = host.exit_of(&hog).await;
    assert_eq!(end.reason, Some(Reason::REASON_MEMORY_REQUEST_EXCEEDED), "{end:?}");
    assert_eq!(end.state, Some(pb::TaskState::TASK_FAILED));
    let message = end.message.unwrap();
    let said = "Memory request exceeded while the machine ran out of memory: Requested: 32MB Limit: Infinity Maximum Used: ";
    assert!(message.starts_with(said), "{message}");
    std::fs::write(host.sandbox(&modest).join("go"), "").unwrap();
    assert_eq!(host.exit_of(&modest).await.status, Some(0));
}

/// What counts as bursting follows the request.
#[tokio::test]
async fn oom_score_follows_an_updated_memory_request() {
    let Some(mut host) = host("cgroups/mem") else { return };
    let (a, root) = (id("a"), host.options.cgroups.root.clone());
    host.launch(sized(&host, &a, &holds(100), (1.0, 64.0), &[("mem", 512.0)])).await;
    let is_first = |first: bool| {
        let score = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/oom_score_adj")).ok();
        let scores: Vec<String> =
            kernel::processes(&root, "memory", &id("a")).into_iter().filter_map(score).collect();
        let all_so = scores.iter().all(|score| (score.trim() == "1000") == first);
        (all_so && !scores.is_empty()).then_some(())
    };
    until(|| is_first(true)).await;
    let update = |mem: f64| ContainerOp::Update {
        id: id("a"),
        resources: vec![scalar("cpus", 1.0), scalar("mem", mem)],
        limits: limits(&[("mem", 512.0)]),
        volumes: Vec::new(),
    };
    host.submit(update(256.0));
    until(|| is_first(false)).await;
    host.submit(update(64.0));
    until(|| is_first(true)).await;
    host.destroy(&a).await;
}

/// Takes memory in a child until it is killed, and goes on.
const SURVIVOR: &str =
    "dd if=/dev/zero of=/dev/null bs=300M count=1 2> /dev/null; touch survived; sleep 1000";
const AT_LIMIT: Option<Reason> = Some(Reason::REASON_CONTAINER_LIMITATION_MEMORY);

/// The kernel kills a child only (v1) or all of the container (v2): it ends in both cases, without being asked to.
#[tokio::test]
async fn oom_kill_of_a_child_destroys_the_container() {
    let Some(mut host) = host("cgroups/mem") else { return };
    let a = id("a");
    host.launch(sized(&host, &a, SURVIVOR, (1.0, 32.0), &[("mem", 64.0)])).await;
    let end = host.exit_of(&a).await;
    assert_eq!((end.reason, end.state), (AT_LIMIT, Some(pb::TaskState::TASK_FAILED)), "{end:?}");
    let message = end.message.unwrap();
    assert!(
        message.starts_with("Memory limit exceeded: Requested: 32MB Limit: 64MB Maximum Used: 6"),
        "{message}"
    );
    assert_eq!(end.limited[0].name, "mem");
    assert_eq!(kernel::left_of(&host.options.cgroups.root), <[std::path::PathBuf; 0]>::default());
}

/// The command survives the kill of its child and succeeds before anybody can stop it.
#[tokio::test]
async fn oom_kill_is_reported_also_if_the_command_succeeds_at_once() {
    let Some(mut host) = host("cgroups/mem") else { return };
    let a = id("a");
    let script = "dd if=/dev/zero of=/dev/null bs=300M count=1 2> /dev/null; exit 0";
    host.launch(sized(&host, &a, script, (1.0, 32.0), &[])).await;
    let end = host.exit_of(&a).await;
    assert_eq!((end.reason, end.state), (AT_LIMIT, Some(pb::TaskState::TASK_FAILED)), "{end:?}");
}

/// Its own limit ends a nested container, and neither the one beside it nor the one around it.
#[tokio::test]
async fn oom_kill_at_the_limit_of_a_nested_container_destroys_that_one() {
    let Some(mut host) = host("cgroups/mem") else { return };
    let a = id("a");
    host.launch(sized(&host, &a, WAIT, (1.0, 256.0), &[])).await;
    let (good, hog) = (a.child("good"), a.child("hog"));
    let nested = |spec: LaunchSpec| LaunchSpec { container: Some(own_cgroups()), ..spec };
    host.launch(nested(sized(
        &host,
        &good,
        "while ! [ -e go ]; do sleep 0.05; done; exit 4",
        (0.1, 32.0),
        &[],
    )))
    .await;
    host.launch(nested(sized(&host, &hog, SURVIVOR, (0.1, 32.0), &[("mem", 64.0)]))).await;
    let end = host.exit_of(&hog).await;
    assert_eq!(end.reason, AT_LIMIT, "{end:?}");
    assert!(end.message.unwrap().contains("Requested: 32MB Limit: 64MB"));
    std::fs::write(host.sandbox(&good).join("go"), "").unwrap();
    let end = host.exit_of(&good).await;
    assert_eq!((end.status, end.reason), (exited(4), None));
    host.destroy(&a).await;
}

/// The limit of a container ends it with all that is nested in it: those that share its cgroup, and those that have one of
/// their own.
#[tokio::test]
async fn oom_kill_at_the_limit_of_a_container_destroys_it_with_all_nested_ones() {
    let Some(mut host) = host("cgroups/mem") else { return };
    for own in [false, true] {
        let a = id(if own { "own" } else { "shared" });
        host.launch(sized(&host, &a, WAIT, (1.0, 64.0), &[])).await;
        let (good, hog) = (a.child("good"), a.child("hog"));
        let nested = |id: &ContainerId, script: &str| match own {
            false => host.spec(id, script),
            true => LaunchSpec {
                container: Some(own_cgroups()),
                ..sized(&host, id, script, (0.1, 32.0), &[("mem", f64::INFINITY)])
            },
        };
        let (of_good, of_hog) = (nested(&good, "sleep 1000"), nested(&hog, SURVIVOR));
        host.launch(of_good).await;
        host.launch(of_hog).await;
        for _ in [&hog, &good, &a] {
            let ContainerEvent::Exited { id, termination: end } = host.event().await else { panic!("{a}") };
            assert_eq!((end.reason, end.state), (AT_LIMIT, Some(pb::TaskState::TASK_FAILED)), "{id} {end:?}");
            let message = end.message.unwrap();
            assert!(message.contains("Requested: 64MB Limit: 64MB"), "{id} {message}");
        }
    }
}

/// A nested container that ends by itself is not blamed for a kill that comes later.
#[tokio::test]
async fn oom_kill_is_not_attributed_to_an_exited_container() {
    let Some(mut host) = host("cgroups/mem") else { return };
    let a = id("a");
    host.launch(sized(&host, &a, WAIT, (1.0, 64.0), &[])).await;
    let (failed, hog) = (a.child("failed"), a.child("hog"));
    host.launch_script(&failed, "exit 4").await;
    let end = host.exit_of(&failed).await;
    assert_eq!((end.status, end.reason), (exited(4), None));
    host.launch_script(&hog, SURVIVOR).await;
    assert_eq!(host.exit_of(&hog).await.reason, AT_LIMIT);
    assert_eq!(host.exit_of(&a).await.reason, AT_LIMIT);
}

/// The child is killed while no agent is there; the next one finds that out.
#[tokio::test]
async fn oom_kill_during_a_restart_destroys_the_container() {
    let Some(mut host) = host("cgroups/mem") else { return };
    let a = id("a");
    // v2 kills all of it.
    let script = format!("while ! [ -e go ]; do sleep 0.05; done; {SURVIVOR}");
    host.launch(sized(&host, &a, &script, (1.0, 32.0), &[])).await;
    let (root, sandbox) = (host.options.cgroups.root.clone(), host.sandbox(&a));
    let mut host = host.restart();
    std::fs::write(sandbox.join("go"), "").unwrap();
    until(|| {
        (sandbox.join("survived").exists() || kernel::processes(&root, "memory", &a).is_empty()).then_some(())
    })
    .await;
    host.recover(&[&a]).await;
    assert_eq!(host.exit_of(&a).await.reason, AT_LIMIT);
}

#[tokio::test]
async fn destroy_kills_a_fork_bomb() {
    let Some(mut host) = host("cgroups/pids,cgroups/mem,cgroups/cpu") else { return };
    let (a, root) = (id("a"), host.options.cgroups.root.clone());
    let bomb = "b() { setsid sh -c 'sleep 1000' & sleep 0.01; b | b & }; ulimit -u 300 2>/dev/null; b; echo ready; sleep 1000";
    host.launch(sized(&host, &a, bomb, (0.5, 64.0), &[("cpus", 0.5)])).await;
    host.line(&a, "stdout").await;
    until(|| (kernel::read(&root, "pids", &a, "pids.current").parse::<u32>().unwrap() > 20).then_some(()))
        .await;
    host.destroy(&a).await;
    assert_eq!(kernel::left_of(&root), <[std::path::PathBuf; 0]>::default());
}

/// Time, throttling, memory with request and limit, input and output, of a container and of one nested in it.
#[tokio::test]
async fn usage_statistics_of_nested_containers_are_read() {
    let Some(mut host) = host("cgroups/all") else { return };
    let (a, nested) = (id("a"), id("a").child("own"));
    // Started before it takes all the time there is.
    let burn = "until [ -e go ]; do sleep 0.05; done; while :; do :; done";
    host.launch(sized(&host, &a, burn, (0.05, 64.0), &[("cpus", 0.05), ("mem", 128.0)])).await;
    let spec = sized(&host, &nested, WAIT, (0.01, 32.0), &[("mem", f64::INFINITY)]);
    host.launch(LaunchSpec { container: Some(own_cgroups()), ..spec }).await;
    host.line(&nested, "stdout").await;
    std::fs::write(host.sandbox(&a).join("go"), "").unwrap();
    let meter = tepui_container::Meter::open(&host.dir.path().join("run")).unwrap();
    let read = |id: &ContainerId| meter.read().unwrap().remove(id);
    // The kernel counts time in ticks: who is throttled may not have used one yet.
    let has_burnt = |one: &tepui_container::Usage| {
        one.throttled.is_some_and(|cpu| cpu.throttled > 0) && !one.cpus_user_time.is_zero()
    };
    let outer = until(|| read(&a).filter(has_burnt)).await;
    assert!(outer.throttled.unwrap().periods > 0, "{outer:?}");
    assert!(outer.processes >= 2 && outer.threads >= 2 && outer.blkio.is_some(), "{outer:?}");
    let memory = |one: &tepui_container::Usage| one.memory.unwrap();
    assert_eq!(memory(&outer).request_bytes, Some(64 * MB));
    assert_eq!(memory(&outer).limit_bytes, Some(128 * MB));
    let inner = read(&nested).unwrap();
    assert_eq!((memory(&inner).request_bytes, memory(&inner).limit_bytes), (Some(32 * MB), None));
    assert!(memory(&inner).total_bytes > 0 && memory(&outer).total_bytes >= memory(&inner).anon_bytes);
    host.destroy(&nested).await;
    host.destroy(&a).await;
}

/// What its cgroups do not count is counted by its processes.
#[tokio::test]
async fn usage_is_complete_with_one_isolator_alone() {
    for (isolation, counts_memory) in [("cgroups/mem", true), ("cgroups/cpu", false)] {
        let Some(mut host) = host(isolation) else { return };
        let a = id("a");
        let burn = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; exec sleep 1000";
        host.launch(sized(&host, &a, burn, (0.5, 64.0), &[])).await;
        let meter = tepui_container::Meter::open(&host.dir.path().join("run")).unwrap();
        // The kernel may count time and memory a moment later.
        let is_counted =
            |one: &tepui_container::Usage| !one.cpus_user_time.is_zero() && one.mem_rss_bytes > 0;
        let usage = until(|| meter.read().unwrap().remove(&a).filter(is_counted)).await;
        assert!(usage.processes >= 1 && usage.threads >= 1, "{usage:?}");
        assert_eq!(usage.throttled.is_some(), !counts_memory, "{usage:?}");
        assert_eq!(usage.memory.and_then(|memory| memory.limit_bytes), counts_memory.then_some(64 * MB));
        host.destroy(&a).await;
    }
}

/// The kernel counts how often memory was short, whether or not an agent runs. There are no such events on v2.
#[tokio::test]
async fn memory_pressure_events_are_counted() {
    let Some(mut host) = host("cgroups/all") else { return };
    let (a, b) = (id("a"), id("b"));
    // What is read of a file has to go again, because there is room for a part of it only.
    let reads = "dd of=file bs=1M seek=512 count=0; cat file > /dev/null; echo ready; exec sleep 1000";
    for (id, script) in [(&a, if is_v2() { WAIT } else { reads }), (&b, WAIT)] {
        host.launch(sized(&host, id, script, (0.5, 32.0), &[])).await;
        host.line(id, "stdout").await;
    }
    let meter = |host: &Host| tepui_container::Meter::open(&host.dir.path().join("run")).unwrap();
    let of = |host: &Host, id: &ContainerId| meter(host).read().unwrap().remove(id).unwrap().shortages;
    if is_v2() {
        return assert_eq!((of(&host, &a), of(&host, &b)), (None, None));
    }
    let found = of(&host, &a).unwrap();
    assert!(found.low > 0 && found.low >= found.medium && found.medium >= found.critical, "{found:?}");
    assert_eq!(of(&host, &b), Some(Default::default()));
    let host = host.restart();
    assert!(of(&host, &a).unwrap().low >= found.low, "counts outlive the agent");
}

/// Takes a container's processes out of its cgroups and removes these, as a careless administrator would.
fn remove_under(root: &Path, id: &ContainerId) {
    for controller in ["cpu", "cpuacct", "memory", "pids", "freezer"] {
        let cgroup = kernel::cgroup(root, controller, id);
        for pid in kernel::processes(root, controller, id) {
            std::fs::write(kernel::mount(controller).join("cgroup.procs"), pid.to_string()).unwrap();
        }
        std::fs::remove_dir(cgroup.join("leaf")).ok();
        std::fs::remove_dir(&cgroup).ok();
        assert!(!cgroup.exists(), "{controller}");
    }
}

#[tokio::test]
async fn externally_removed_cgroups_affect_only_their_container() {
    let Some(mut host) = host("cgroups/cpu,cgroups/mem,cgroups/pids") else { return };
    let (a, b, root) = (id("a"), id("b"), host.options.cgroups.root.clone());
    let mut pids = Vec::new();
    for id in [&a, &b] {
        host.launch(sized(&host, id, WAIT, (0.1, 32.0), &[("mem", 64.0)])).await;
        host.line(id, "stdout").await;
        pids.extend(kernel::processes(&root, "memory", id));
        remove_under(&root, id);
    }
    host.submit(ContainerOp::Update {
        id: a.clone(),
        resources: vec![scalar("cpus", 0.2), scalar("mem", 64.0)],
        limits: BTreeMap::new(),
        volumes: Vec::new(),
    });
    match host.event().await {
        ContainerEvent::UpdateFailed { id, message } => {
            assert!(id == a && message.contains("No such file"), "{message}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(host.destroy(&a).await.status, Some(libc::SIGKILL));
    // Found again by a new agent, it still ends as a whole.
    let mut host = host.restart();
    assert!(host.recover(&[&b]).await[0].pid.is_some());
    assert_eq!(host.destroy(&b).await.status, Some(libc::SIGKILL));
    assert!(pids.len() == 2 && pids.iter().all(|pid| !lives(*pid)));
    // No cgroup is left, not even the one around all: it is made again.
    kernel::remove_root(&root);
    let c = id("c");
    assert_eq!(host.run(sized(&host, &c, "true", (0.1, 32.0), &[])).await, exited(0));
    assert_eq!(kernel::left_of(&root), <[std::path::PathBuf; 0]>::default());
}

#[tokio::test]
async fn containers_are_recovered_and_orphans_destroyed() {
    let Some(mut host) = host("cgroups/mem") else { return };
    let (kept, orphan, root) = (id("kept"), id("orphan"), host.options.cgroups.root.clone());
    for id in [&kept, &orphan] {
        host.launch(sized(&host, id, WAIT, (0.1, 32.0), &[])).await;
        host.line(id, "stdout").await;
    }
    let pid = kernel::processes(&root, "freezer", &orphan)[0];
    let mut host = host.restart();
    assert!(host.recover(&[&kept]).await[0].pid.is_some());
    until(|| (!lives(pid) && !kernel::cgroup(&root, "memory", &orphan).exists()).then_some(())).await;
    assert_eq!(values_of_memory(&root, &kept), 32 * MB);
    host.submit(ContainerOp::Update {
        id: kept.clone(),
        resources: vec![scalar("cpus", 0.1), scalar("mem", 64.0)],
        limits: BTreeMap::new(),
        volumes: Vec::new(),
    });
    until(|| (values_of_memory(&root, &kept) == 64 * MB).then_some(())).await;
    host.destroy(&kept).await;
    assert_eq!(kernel::left_of(&root), <[std::path::PathBuf; 0]>::default());
}

fn values_of_memory(root: &Path, id: &ContainerId) -> u64 {
    kernel::memory(root, id, MEMORY_LIMIT).try_into().unwrap()
}

/// The supervisor and the agent are killed at once; what the command started is still in the cgroup.
#[tokio::test]
async fn cgroup_processes_die_with_a_killed_supervisor() {
    let Some(mut host) = host("posix/cpu") else { return };
    let (a, root) = (id("a"), host.options.cgroups.root.clone());
    let pid = host.launch_script(&a, "setsid sh -c 'cd /; exec sleep 1000 >/dev/null 2>&1' & echo ready; cd /; exec sleep 1000 >/dev/null").await;
    host.line(&a, "stdout").await;
    let inside = until(|| {
        let pids = kernel::processes(&root, "freezer", &a);
        (pids.len() == 2).then_some(pids)
    })
    .await;
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid.cast_signed()), nix::sys::signal::SIGKILL).unwrap();
    assert_eq!(host.exit_of(&a).await.status, Some(libc::SIGKILL));
    assert!(inside.iter().all(|pid| !lives(*pid)));
    assert_eq!(kernel::left_of(&root), <[std::path::PathBuf; 0]>::default());
}

/// The kernel refuses a quota above that of the cgroup around it; that of v2 takes it, and it counts for nothing.
#[tokio::test]
async fn failed_cgroup_setup_fails_the_launch() {
    let Some(mut host) = host("cgroups/cpu,cgroups/mem") else { return };
    let (a, root) = (id("a"), host.options.cgroups.root.clone());
    host.launch(sized(&host, &a, WAIT, (0.5, 64.0), &[("cpus", 0.5)])).await;
    if is_v2() {
        host.destroy(&a).await;
        return;
    }
    let greedy = a.child("greedy");
    let spec = sized(&host, &greedy, "touch ran", (0.5, 32.0), &[("cpus", 1.0)]);
    let (_, why) = host.fail_to_launch(LaunchSpec { container: Some(own_cgroups()), ..spec }).await;
    assert!(why.starts_with("cannot write ") && why.ends_with("Invalid argument (os error 22)"), "{why}");
    assert!(!host.sandbox(&greedy).join("ran").exists());
    assert!(
        !kernel::cgroup(&root, "memory", &greedy).exists() && !kernel::cgroup(&root, "cpu", &greedy).exists()
    );
    host.destroy(&a).await;
    assert_eq!(kernel::left_of(&root), <[std::path::PathBuf; 0]>::default());
}

/// The kernel refuses less than those below have; who has more than is left keeps it until it ends.
#[tokio::test]
async fn lowered_limit_is_bounded_by_nested_limits() {
    let Some(mut host) = host("cgroups/cpu,cgroups/mem") else { return };
    let (a, root) = (id("a"), host.options.cgroups.root.clone());
    let update = |quota: f64| ContainerOp::Update {
        id: id("a"),
        resources: vec![scalar("cpus", 0.2), scalar("mem", 96.0)],
        limits: limits(&[("cpus", quota)]),
        volumes: Vec::new(),
    };
    host.launch(sized(&host, &a, WAIT, (0.2, 96.0), &[("cpus", 2.0)])).await;
    let nested = a.child("b");
    let spec = sized(&host, &nested, WAIT, (0.1, 32.0), &[("cpus", 1.0)]);
    host.launch(LaunchSpec { container: Some(own_cgroups()), ..spec }).await;
    host.submit(update(0.5));
    host.submit(update(1.5));
    until(|| (values(&root, &a).1 == 150_000).then_some(())).await;
    host.destroy(&nested).await;
    host.submit(update(0.5)); // At once: to the kernel what was removed is not gone yet.
    until(|| (values(&root, &a).1 == 50_000).then_some(())).await;
    assert_eq!(host.destroy(&a).await.status, Some(libc::SIGKILL));
}

/// Room for a nested container is made before it is launched, however fast that follows.
#[tokio::test]
async fn nested_launch_follows_the_pending_update() {
    let Some(mut host) = host("cgroups/cpu,cgroups/mem") else { return };
    let (a, root) = (id("a"), host.options.cgroups.root.clone());
    host.launch(sized(&host, &a, WAIT, (0.1, 32.0), &[("cpus", 0.1)])).await;
    host.submit(ContainerOp::Update {
        id: a.clone(),
        resources: vec![scalar("cpus", 1.1), scalar("mem", 96.0)],
        limits: limits(&[("cpus", 2.1)]),
        volumes: Vec::new(),
    });
    let nested = a.child("b");
    let spec = sized(&host, &nested, WAIT, (1.0, 64.0), &[("cpus", 2.0)]);
    host.launch(LaunchSpec { container: Some(own_cgroups()), ..spec }).await;
    assert_eq!(values(&root, &nested), (1024, 200_000, 64, 64));
    host.destroy(&nested).await;
    host.destroy(&a).await;
}
