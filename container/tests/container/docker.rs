//! Containers of type DOCKER on a real engine: their command, output, end, limits, and what is left of them.

#[path = "../../docker/tests/common/mod.rs"]
mod dockerd;

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::common::image::{self, Layer};
use crate::common::plugin::Plugin;
use crate::common::registry::{LOGIN, Registry, Wants};
use crate::common::{Host, exited, until};
use dockerd::{Dockerd, IMAGE, Networks, file_of};
use nix::sys::signal::Signal;
use tepui_container::{DockerOptions, Logins, Meter, Usage};
use tepui_facilities::{Facility, available};
use tepui_proto::mesos::v1 as pb;
use tepui_types::{ContainerEvent, ContainerId, ContainerOp, LaunchSpec, LaunchStage, Volume};

const MB: u64 = 1024 * 1024;
/// Containers launched until the agent wins the race for the counters of one.
const SHORT_LIVES_MAX: usize = 20;

/// An engine and an agent on it. `None`: recorded as skipped.
fn host() -> Option<(Dockerd, Host)> {
    if !available(&[Facility::Docker]) {
        return None;
    }
    let dockerd = Dockerd::start(Networks::Host);
    let host = host_of(&dockerd, Logins::default());
    Some((dockerd, host))
}

fn host_of(dockerd: &Dockerd, logins: Logins) -> Host {
    let (socket, remove_delay) = (dockerd.socket(), Duration::ZERO);
    let docker = DockerOptions { socket, remove_delay, logins, ..Default::default() };
    Host::with(|options| options.docker = Some(docker))
}

fn in_docker(mut spec: LaunchSpec) -> LaunchSpec {
    let docker = pb::container_info::DockerInfo { image: IMAGE.to_owned(), ..Default::default() };
    spec.container = Some(pb::ContainerInfo {
        r#type: pb::container_info::Type::DOCKER,
        docker: docker.into(),
        ..Default::default()
    });
    spec.resources = [("cpus", 0.5), ("mem", 64.0)].map(|(name, value)| scalar(name, value)).to_vec();
    spec.of_task = false;
    spec
}

fn scalar(name: &str, value: f64) -> pb::Resource {
    pb::Resource {
        name: name.to_owned(),
        r#type: pb::value::Type::SCALAR,
        scalar: pb::value::Scalar { value, ..Default::default() }.into(),
        ..Default::default()
    }
}

#[tokio::test]
async fn docker_container_has_its_image_and_sandbox() {
    let Some((dockerd, mut host)) = host() else { return };
    let id = ContainerId::root("one");
    let script = "echo $A $MESOS_CONTAINER_NAME; echo err >&2; cat given/file; touch given/x 2> /dev/null && echo writable; echo made > $MESOS_SANDBOX/made; ls /bin/busybox; exit 3";
    let mut spec = in_docker(host.spec(&id, script));
    spec.environment.insert("A".into(), "1".into());
    let volume = host.work_dir().join("volumes/v");
    std::fs::create_dir_all(&volume).unwrap();
    std::fs::write(volume.join("file"), "kept\n").unwrap();
    spec.command.value = Some(format!("cd /mnt/mesos/sandbox; echo shared > /vol/x; {script}"));
    add_volume(&mut spec);
    spec.volumes.push(Volume {
        source: volume.display().to_string(),
        target: "given".into(),
        read_only: true,
        shared: false,
    });
    assert_eq!(host.run(spec).await, exited(3));
    assert_eq!(host.read(&id, "stdout"), "1 mesos-one\nkept\n/bin/busybox\n");
    assert_eq!(host.read(&id, "stderr"), "err\n");
    assert_eq!(host.read(&id, "made"), "made\n");
    until(|| (dockerd.inspect("mesos-one").is_none()).then_some(())).await;
    let other = ContainerId::root("other");
    let mut spec = in_docker(host.spec(&other, "cat /vol/x"));
    add_volume(&mut spec);
    assert_eq!(host.run(spec).await, exited(0));
    assert_eq!(host.read(&other, "stdout"), "shared\n", "a volume of a driver stays");
}

/// One of a driver of the engine.
fn add_volume(spec: &mut LaunchSpec) {
    add_volume_of(spec, "local", pb::Parameters::default());
}

fn add_volume_of(spec: &mut LaunchSpec, driver: &str, driver_options: pb::Parameters) {
    use pb::volume::source::{DockerVolume, Type};
    let volume = DockerVolume {
        name: "vol".into(),
        driver: Some(driver.to_owned()),
        driver_options: driver_options.into(),
        ..Default::default()
    };
    let source = pb::volume::Source {
        r#type: Some(Type::DOCKER_VOLUME),
        docker_volume: volume.into(),
        ..Default::default()
    };
    spec.container.as_mut().unwrap().volumes.push(pb::Volume {
        mode: pb::volume::Mode::RW,
        container_path: "/vol".into(),
        source: source.into(),
        ..Default::default()
    });
}

#[tokio::test]
async fn docker_limits_are_updated_and_destroy_kills_the_container() {
    let Some((dockerd, mut host)) = host() else { return };
    let id = ContainerId::root("two");
    // Holds memory while `hold` is there.
    let script = "trap '' TERM; cd /mnt/mesos/sandbox; echo up; while :; do sleep 0.1; \
        if [ -e hold ]; then dd if=/dev/zero bs=110M count=1 | (while [ -e hold ]; do sleep 0.1; done; cat >/dev/null); fi; done";
    let mut spec = in_docker(host.spec(&id, script));
    spec.limits = [(String::from("cpus"), 1.5)].into();
    host.launch(spec).await;
    let stdout = host.sandbox(&id).join("stdout");
    until(|| std::fs::read_to_string(&stdout).unwrap().contains("up").then_some(())).await;
    let pid = dockerd.pid("mesos-two");
    let meter = Meter::open(&host.dir.path().join("run")).unwrap();
    let limit_of = |usage: &Usage| usage.memory.and_then(|memory| memory.limit_bytes);
    let usage = until(|| meter.read().unwrap().remove(&id).filter(|usage| limit_of(usage).is_some())).await;
    assert_eq!(limit_of(&usage), Some(64 * MB), "the container's, not that of the process beside it");
    assert!(usage.mem_rss_bytes > 0 && usage.processes >= 1, "{usage:?}");
    let is_v2 = crate::common::kernel::v2_mount().is_some();
    let files = |pid| match is_v2 {
        false => ["memory.limit_in_bytes", "memory.soft_limit_in_bytes", "cpu.shares", "cpu.cfs_quota_us"]
            .map(|file| file_of(pid, file.split('.').next().unwrap(), file)),
        true => ["memory.max", "memory.low", "cpu.weight", "cpu.max"].map(|file| file_of(pid, "", file)),
    };
    // The engine makes weights from shares in its own way.
    let written = |limit: u64, request: u64, (shares, weight): (&str, &str), quota: Option<&str>| {
        let (cpu, most) = match (is_v2, quota) {
            (false, quota) => (shares, quota.unwrap_or("-1").to_owned()),
            (true, quota) => (weight, format!("{} 100000", quota.unwrap_or("max"))),
        };
        [(limit * MB).to_string(), (request * MB).to_string(), cpu.to_owned(), most]
    };
    assert_eq!(files(pid), written(64, 64, ("512", "20"), Some("150000")));
    let update = |cpus: f64, mem: f64, limits: &[(&str, f64)]| ContainerOp::Update {
        id: id.clone(),
        resources: vec![scalar("cpus", cpus), scalar("mem", mem)],
        limits: limits.iter().map(|(name, limit)| ((*name).to_owned(), *limit)).collect(),
        volumes: Vec::new(),
    };
    host.submit(update(1.0, 96.0, &[("mem", 128.0)]));
    // The engine writes one file after the other.
    let raised = written(128, 96, ("1024", "39"), None);
    until(|| (files(pid) == raised).then_some(())).await;
    let score = || -> i32 {
        let text = std::fs::read_to_string(format!("/proc/{pid}/oom_score_adj")).unwrap();
        text.trim().parse().unwrap()
    };
    let is_bursting = || (3..1000).contains(&score()).then_some(());
    until(is_bursting).await;
    let hold = host.sandbox(&id).join("hold");
    std::fs::write(&hold, "").unwrap();
    until(|| (score() == 1000).then_some(())).await;
    // Memory that is in use cannot be taken away, but the promise can. The second update says that the first is done.
    host.submit(update(1.0, 64.0, &[]));
    host.submit(update(0.5, 64.0, &[]));
    let promised = written(128, 64, ("512", "20"), None);
    until(|| (files(pid) == promised).then_some(())).await;
    std::fs::remove_file(&hold).unwrap();
    host.submit(update(1.0, 96.0, &[("mem", 128.0)]));
    until(is_bursting).await;
    host.submit(update(1.0, 64.0, &[]));
    let lowered = written(64, 64, ("1024", "39"), None);
    until(|| (files(pid) == lowered).then_some(())).await;
    until(|| (score() == 0).then_some(())).await;
    host.submit(update(1.0, 64.0, &[("mem", f64::INFINITY)]));
    until(|| (files(pid)[0].parse::<u64>().unwrap_or(u64::MAX) > 1 << 60).then_some(())).await;

    assert_eq!(host.destroy(&id).await.status, Some(Signal::SIGKILL as i32));
    assert!(!Path::new(&format!("/proc/{pid}")).exists(), "it has ended before its end is told");
    until(|| (dockerd.inspect("mesos-two").is_none()).then_some(())).await;
}

#[tokio::test]
async fn failed_docker_launch_reports_the_reason() {
    let Some((dockerd, mut host)) = host() else { return };
    let id = |name: &str| ContainerId::root(name);
    let mut spec = in_docker(host.spec(&id("image"), "true"));
    spec.container.as_mut().unwrap().docker.get_or_insert_default().image = "127.0.0.1:1/no/image".into();
    let (stage, message) = host.fail_to_launch(spec).await;
    assert_eq!(stage, LaunchStage::Start);
    assert!(message.starts_with("cannot pull the image: "), "{message}");

    let mut spec = in_docker(host.spec(&id("parameter"), "true"));
    let parameter = pb::Parameter { key: "restart".into(), value: "always".into(), ..Default::default() };
    spec.container.as_mut().unwrap().docker.get_or_insert_default().parameters.push(parameter);
    let (_, message) = host.fail_to_launch(spec).await;
    assert_eq!(message, "docker.parameters[0] 'restart': this option of 'docker run' is not supported");

    // The engine finds out only when it starts: the process that stands for the container says so.
    let program = id("program");
    let mut spec = in_docker(host.spec(&program, "/no/such/program"));
    spec.command.shell = Some(false);
    assert_eq!(host.run(spec).await, exited(1));
    let stderr = host.read(&program, "stderr");
    assert!(
        stderr.contains("cannot start the container: ") && stderr.contains("/no/such/program"),
        "{stderr}"
    );
    assert!(dockerd.inspect("mesos-program").is_none());

    let around = id("around");
    host.launch(in_docker(host.spec(&around, "sleep 1000"))).await;
    let inner = host.spec(&around.child("inner"), "true");
    assert_eq!(host.fail_to_launch(inner).await.1, "a DOCKER container cannot have nested containers");
    host.destroy(&around).await;
}

#[tokio::test]
async fn restarted_agent_recovers_containers_and_removes_orphans() {
    let Some((dockerd, mut host)) = host() else { return };
    let [kept, ended, forgotten] = ["kept", "ended", "forgotten"].map(ContainerId::root);
    for id in [&kept, &forgotten] {
        host.launch(in_docker(host.spec(id, "trap 'exit 5' TERM; while :; do sleep 0.1; done"))).await;
        until(|| dockerd.is_running(&format!("mesos-{id}")).then_some(())).await;
    }
    host.launch(in_docker(
        host.spec(&ended, "while [ ! -e /mnt/mesos/sandbox/go ]; do sleep 0.1; done; exit 7"),
    ))
    .await;
    let mut host = host.restart();
    std::fs::write(host.sandbox(&ended).join("go"), "").unwrap();
    until(|| host.runtime(&ended).join("status").exists().then_some(())).await;
    // Containers of other agents and users are left running. One without a trace of its process, as a restart of the
    // machine leaves it, is removed even if it was created in the second of the recovery.
    let label = host.work_dir().display().to_string();
    for (name, label) in [("mesos-other", "/else"), ("others", &label), ("mesos-lost", &label)] {
        dockerd.create(name, label);
    }
    let found = host.recover(&[&kept, &ended]).await;
    assert!(found.iter().any(|one| one.id == kept && one.pid.is_some()), "{found:?}");
    assert_eq!(host.exit_of(&ended).await.status, exited(7));
    for gone in ["mesos-forgotten", "mesos-lost"] {
        until(|| (dockerd.inspect(gone).is_none()).then_some(())).await;
    }
    // What the process of one had asked for before it was killed may come only now.
    dockerd.create("mesos-forgotten", &label);
    until(|| (dockerd.inspect("mesos-forgotten").is_none()).then_some(())).await;
    assert!(dockerd.is_running("mesos-kept"));
    assert!(dockerd.inspect("mesos-other").is_some() && dockerd.inspect("others").is_some());
    host.submit(ContainerOp::Signal { id: kept.clone(), signal: Signal::SIGTERM as i32 });
    match host.event().await {
        ContainerEvent::Exited { id, termination } => assert_eq!((id, termination.status), (kept, exited(5))),
        other => panic!("{other:?}"),
    }
}

/// Of a standalone container the agent alone reports the reason; also if it terminated while no agent ran.
#[tokio::test]
async fn oom_kill_during_an_agent_restart_is_reported_for_docker() {
    let Some((dockerd, mut host)) = host() else { return };
    let id = ContainerId::root("hog");
    let mut spec = in_docker(
        host.spec(&id, "while [ ! -e /mnt/mesos/sandbox/go ]; do sleep 0.1; done; tail /dev/zero; exit 9"),
    );
    let parameter = pb::Parameter { key: "memory-swap".into(), value: "64m".into(), ..Default::default() };
    spec.container.as_mut().unwrap().docker.get_or_insert_default().parameters.push(parameter);
    host.launch(spec).await;
    if let Some(mount) = crate::common::kernel::v2_mount() {
        // What is counted there stays when the engine has removed the container's own cgroup.
        until(|| dockerd.is_running("mesos-hog").then_some(())).await;
        let around = host.options.cgroups.root.join("docker/mesos-hog");
        let parent = format!("\"CgroupParent\":\"/{}\"", around.display());
        assert!(dockerd.inspect("mesos-hog").unwrap().contains(&parent));
        assert!(mount.join(around).join("memory.events").exists());
    }
    let mut host = host.restart();
    std::fs::write(host.sandbox(&id).join("go"), "").unwrap();
    until(|| host.runtime(&id).join("status").exists().then_some(())).await;
    host.recover(&[&id]).await;
    let termination = host.exit_of(&id).await;
    // v2 kills all of the container, its first process too.
    let code = if crate::common::kernel::v2_mount().is_some() { 137 } else { 9 };
    assert_eq!(termination.status, exited(code));
    assert_eq!(
        termination.reason,
        Some(pb::task_status::Reason::REASON_CONTAINER_LIMITATION_MEMORY),
        "{termination:?}"
    );
    let why = "Memory limit exceeded: Requested: 64MB Limit: 64MB Maximum Used: 64MB";
    assert_eq!(termination.message.as_deref(), Some(why));
}

/// The command survives the kill of its child (v1), or is killed with it (v2): the container ends in both cases.
#[tokio::test]
async fn oom_kill_of_a_child_destroys_the_docker_container() {
    let Some((dockerd, mut host)) = host() else { return };
    let id = ContainerId::root("survivor");
    let mut spec = in_docker(host.spec(&id, "tail /dev/zero; sleep 1000"));
    let parameter = pb::Parameter { key: "memory-swap".into(), value: "64m".into(), ..Default::default() };
    spec.container.as_mut().unwrap().docker.get_or_insert_default().parameters.push(parameter);
    host.launch(spec).await;
    let termination = host.exit_of(&id).await;
    let reason = Some(pb::task_status::Reason::REASON_CONTAINER_LIMITATION_MEMORY);
    assert_eq!(termination.reason, reason, "{termination:?}");
    let why = "Memory limit exceeded: Requested: 64MB Limit: 64MB Maximum Used: ";
    assert!(termination.message.is_some_and(|message| message.starts_with(why)));
    assert_eq!(termination.limited[0].name, "mem");
    until(|| (dockerd.inspect("mesos-survivor").is_none()).then_some(())).await;
}

/// A container that lives only for a moment cannot be inspected; nothing is left of its cgroup.
#[tokio::test]
async fn oom_kill_of_a_short_lived_container_is_reported() {
    let Some((dockerd, mut host)) = host() else { return };
    let v2 = crate::common::kernel::v2_mount();
    // On v1 the engine may remove the cgroup before it is read, and may miss the kill itself.
    let lives_max = if v2.is_some() { 1 } else { SHORT_LIVES_MAX };
    let mut reported = None;
    for life in 0..lives_max {
        let id = ContainerId::root(format!("brief-{life}"));
        let mut spec = in_docker(host.spec(&id, ""));
        spec.command.shell = Some(false);
        (spec.command.value, spec.command.arguments) = (Some("/bin/tail".into()), vec!["/dev/zero".into()]);
        spec.resources = vec![scalar("cpus", 0.5), scalar("mem", 32.0)];
        let parameter =
            pb::Parameter { key: "memory-swap".into(), value: "32m".into(), ..Default::default() };
        spec.container.as_mut().unwrap().docker.get_or_insert_default().parameters.push(parameter);
        host.launch(spec).await;
        let termination = host.exit_of(&id).await;
        until(|| (dockerd.inspect(&format!("mesos-brief-{life}")).is_none()).then_some(())).await;
        if let Some(mount) = &v2 {
            let parent = mount.join(&host.options.cgroups.root).join(format!("docker/mesos-brief-{life}"));
            until(|| (!parent.exists()).then_some(())).await;
        }
        reported = Some(termination);
        if reported.as_ref().is_some_and(|it| it.reason.is_some()) {
            break;
        }
    }
    let termination = reported.expect("one life at least");
    let reason = Some(pb::task_status::Reason::REASON_CONTAINER_LIMITATION_MEMORY);
    assert_eq!(termination.reason, reason, "{termination:?}");
    let prefix = "Memory limit exceeded: Requested: 32MB Limit: 32MB Maximum Used: ";
    assert!(termination.message.is_some_and(|message| message.starts_with(prefix)));
}

#[tokio::test]
async fn registry_credentials_come_from_agent_or_fetched_config() {
    let Some((dockerd, mut nobody)) = host() else { return };
    let Some(base) = Layer::busybox() else { return };
    let layout = tempfile::tempdir().unwrap();
    image::oci_layout(layout.path(), &serde_json::json!({}), &[base.tar()]);
    let registry = Registry::start(layout.path(), Wants::Basic);
    let (address, secret) = (&registry.address, format!(r#"{{"auth":"{LOGIN}"}}"#));
    let logins = format!(r#"{{"auths":{{"{address}":{secret}}}}}"#);
    let spec = |host: &Host, name: &str, uris: &[&Path]| {
        let mut spec = in_docker(host.spec(&ContainerId::root(name), "cat /etc/passwd"));
        let docker = spec.container.as_mut().unwrap().docker.get_or_insert_default();
        (docker.image, docker.force_pull_image) = (format!("{address}/app"), Some(true));
        let uri =
            |path: &&Path| pb::command_info::URI { value: path.display().to_string(), ..Default::default() };
        spec.command.uris = uris.iter().map(uri).collect();
        spec
    };
    let (_, why) = nobody.fail_to_launch(spec(&nobody, "nobody", &[])).await;
    assert!(why.starts_with("cannot pull the image: "), "{why}");
    // As it was fetched, in the older form and in the newer.
    let files = tempfile::tempdir().unwrap();
    let (old, new) = (files.path().join(".dockercfg"), files.path().join("docker.tar.gz"));
    std::fs::write(&old, format!(r#"{{"{address}":{secret}}}"#)).unwrap();
    std::fs::create_dir(files.path().join(".docker")).unwrap();
    std::fs::write(files.path().join(".docker/config.json"), &logins).unwrap();
    let packed = std::process::Command::new("tar")
        .arg("-C")
        .arg(files.path())
        .arg("-czf")
        .arg(&new)
        .arg(".docker")
        .status();
    assert!(packed.unwrap().success());
    for (name, uri) in [("old", &old), ("new", &new)] {
        assert_eq!(nobody.run(spec(&nobody, name, &[uri])).await, exited(0));
        assert_eq!(nobody.read(&ContainerId::root(name), "stdout"), "root:x:0:0::/:/bin/sh\n");
    }
    let mut known = host_of(&dockerd, Logins::parse(logins.as_bytes()).unwrap());
    let asked = || registry.count("/manifests/");
    let before = asked();
    assert_eq!(known.run(spec(&known, "known", &[])).await, exited(0));
    let forced = asked();
    assert!(forced > before, "the newest was wanted");
    let mut there = spec(&known, "there", &[]);
    there.container.as_mut().unwrap().docker.get_or_insert_default().force_pull_image = None;
    assert_eq!(known.run(there).await, exited(0));
    assert_eq!(asked(), forced, "what is there will do");
}

/// A driver for an engine, which looks for them in a place of the machine.
struct Driver(PathBuf);

impl Driver {
    fn start(host: &Host) -> (Driver, Plugin) {
        let dir = Path::new("/run/docker/plugins");
        std::fs::create_dir_all(dir).unwrap();
        let name = format!("tepui-test-{}", std::process::id());
        let plugin = Plugin::start(&host.dir.path().join("plugins"), &name);
        let link = dir.join(format!("{name}.sock"));
        std::os::unix::fs::symlink(host.dir.path().join("plugins").join(format!("{name}.sock")), &link)
            .unwrap();
        (Driver(link), plugin)
    }

    fn name(&self) -> &str {
        self.0.file_stem().unwrap().to_str().unwrap()
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).ok(); // It may never have been made.
    }
}

#[tokio::test]
async fn volumes_of_other_drivers_are_mounted_with_their_options() {
    let Some((_dockerd, mut host)) = host() else { return };
    let (driver, plugin) = Driver::start(&host);
    let id = ContainerId::root("driven");
    let mut spec = in_docker(host.spec(&id, "echo kept > /vol/file; cat /vol/file"));
    let size = pb::Parameter { key: "size".into(), value: "7".into(), ..Default::default() };
    add_volume_of(&mut spec, driver.name(), pb::Parameters { parameter: vec![size], ..Default::default() });
    assert_eq!(host.run(spec).await, exited(0), "{}", host.read(&id, "stderr"));
    assert_eq!(host.read(&id, "stdout"), "kept\n");
    assert_eq!(std::fs::read_to_string(plugin.path("vol").join("file")).unwrap(), "kept\n");
    let mut calls = Vec::new();
    until(|| {
        calls.extend(plugin.calls());
        calls.contains(&String::from("Unmount vol")).then_some(())
    })
    .await;
    assert!(calls.contains(&String::from(r#"Create vol {"size":"7"}"#)), "{calls:?}");
    assert!(calls.contains(&String::from("Mount vol")), "{calls:?}");
    // The driver's message reaches the framework.
    let refused = ContainerId::root("refused");
    let mut spec = in_docker(host.spec(&refused, "true"));
    add_volume_of(&mut spec, driver.name(), pb::Parameters::default());
    let volumes = &mut spec.container.as_mut().unwrap().volumes;
    volumes[0].source.get_or_insert_default().docker_volume.get_or_insert_default().name = "refused-1".into();
    assert_eq!(host.run(spec).await, exited(1));
    let said = host.read(&refused, "stderr");
    assert!(said.contains("no room for another volume"), "{said}");
}
