//! The plans of isolators as text.

use std::path::Path;

use expect_test::{Expect, expect};
use tepui_proto::mesos::v1::{self as pb, capability_info::Capability, linux_info::IpcMode};
use tepui_types::{ContainerId, LaunchSpec, Volume};

use super::*;
use crate::host::process::Process;
use crate::host::user::Identity;
use crate::isolation::{BUILT, FILESYSTEM_LINUX, IsolationFault, NEED_MOUNTS};
use crate::runtime_dir::Mounted;

/// A launch to plan for.
struct Case {
    isolation: String,
    spec: LaunchSpec,
    options: IsolatorOptions,
    rootfs: Option<&'static str>,
}

fn case(isolation: &str, id: ContainerId, container: pb::ContainerInfo) -> Case {
    let spec = LaunchSpec {
        id,
        command: pb::CommandInfo::default(),
        environment: Default::default(),
        secrets: Default::default(),
        sandbox: String::from("/agent/box"),
        latest_link: None,
        user: None,
        no_root: false,
        container: Some(container),
        resources: Vec::new(),
        limits: Default::default(),
        volumes: Vec::new(),
        of_task: true,
        holds_tasks: true,
        task: None,
        is_session: false,
    };
    Case { isolation: isolation.to_owned(), spec, options: IsolatorOptions::default(), rootfs: None }
}

fn root() -> ContainerId {
    ContainerId::root("a")
}

fn child() -> ContainerId {
    root().child("b")
}

fn linux(info: pb::LinuxInfo) -> pb::ContainerInfo {
    pb::ContainerInfo { linux_info: info.into(), ..Default::default() }
}

impl Case {
    fn show(&self) -> String {
        let isolation = Isolation::parse(self.isolation.split(',')).expect("known isolators");
        let volume = Mounted { source: "/vol/1".into(), target: "shared".into(), read_only: false };
        let parent = Parent {
            process: Some(Process { pid: 77, start_ticks: 1 }),
            directory: "/agent/parent".into(),
            sandbox: "/agent/parent".into(),
            root: None,
            volumes: vec![volume],
        };
        let identity = Identity { uid: 7, gid: 8, groups: Vec::new() };
        let site = Site {
            spec: &self.spec,
            isolation: &isolation,
            options: &self.options,
            work_dir: Path::new("/agent"),
            identity: Some(&identity),
            rootfs: self.rootfs.map(Path::new),
            ready: &[(0, "/ready".into())].into(),
            parent: self.spec.id.parent().map(|_| &parent),
        };
        plan(&site).map_or_else(|why| format!("error: {why}\n"), |plan| plan.to_string())
    }

    fn check(&self, expected: Expect) {
        expected.assert_eq(&self.show());
    }
}

#[test]
fn absent_isolators_add_no_steps() {
    let asks = pb::ContainerInfo {
        rlimit_info: limits(&[(RlimitType::RLMT_CORE, Some(1), Some(1))]),
        ..linux(pb::LinuxInfo { share_pid_namespace: Some(true), ..Default::default() })
    };
    case("posix/cpu", root(), asks).check(expect![""]);
}

/// Contributions of each isolator to the plan of a launch that uses it, by name. None is left out: those without
/// lines work before a plan is made, while the container runs, or by its cgroups.
#[test]
fn every_isolator_adds_its_steps_to_the_plan() {
    let volume = |source: &str| format!("'volumes':[{{'mode':'RW','container_path':'v',{source}}}]");
    let secret = "'source':{'type':'SECRET','secret':{'type':'VALUE','value':{'data':'aGk='}}}";
    let docker = "'source':{'type':'DOCKER_VOLUME','docker_volume':{'driver':'d','name':'v'}}";
    let asks = |name: &str| match name {
        "filesystem/linux" => String::from("'hostname':'box'"),
        "namespaces/ipc" => String::from("'linux_info':{'ipc_mode':'PRIVATE','shm_size':3}"),
        "posix/rlimits" => String::from("'rlimit_info':{'rlimits':[{'type':'RLMT_CORE'}]}"),
        "linux/capabilities" => {
            String::from("'linux_info':{'effective_capabilities':{'capabilities':['KILL']}}")
        }
        "volume/host_path" => volume("'host_path':'/etc'"),
        "volume/sandbox_path" => volume("'host_path':'own'").replace("'v'", "'/tmp'"),
        "volume/secret" => volume(secret),
        "volume/image" => volume("'image':{'type':'DOCKER','docker':{'name':'i'}}"),
        "docker/volume" => volume(docker),
        _ => String::from("'hostname':'box'"),
    };
    let all: Vec<String> = BUILT.iter().map(|(name, _)| added_by(name, &asks(name))).collect();
    expect![[r#"
        posix/cpu
        posix/mem
        filesystem/posix
        filesystem/linux
            own mount uts
            hostname box
        namespaces/pid
            own mount pid uts
            proc on /proc
        namespaces/ipc
            own ipc
        posix/rlimits
            rlimit RLMT_CORE infinity infinity
        linux/capabilities
            capabilities effective 0x20 bounding 0x20
        linux/devices
            node rootfs:/dev/zero c 1:5 444
        linux/nnp
            no new privileges
        linux/seccomp
            seccomp 7 instructions
        volume/host_path
            own mount
            bind /etc on sandbox:/v (make a directory)
        volume/sandbox_path
            make /agent//box/own
            own mount
            bind /agent//box/own on /tmp
        volume/secret
            own mount
            secret of 2 bytes on sandbox:/v (make a file) 600
        volume/image
            own mount
            bind /ready on sandbox:/v (make a directory)
        docker/runtime
        docker/volume
            own mount
            bind /ready on sandbox:/v (make a directory)
        environment_secret
        disk/du
        network/ports
        cgroups/cpu
        cgroups/mem
        cgroups/cpuset
        cgroups/pids
        cgroups/devices
        cgroups/blkio
        cgroups/all
    "#]]
    .assert_eq(&all.concat());
}

/// The lines that only a plan with the isolator has. Those that cannot be had without `filesystem/linux` bring it along.
fn added_by(name: &str, ask: &str) -> String {
    let profiles = tempfile::tempdir().expect("a directory");
    std::fs::write(profiles.path().join("p"), r#"{"defaultAction":"SCMP_ACT_ALLOW"}"#).expect("written");
    let asks = format!("{{'type':'MESOS',{ask}}}").replace('\'', "\"");
    let show = |isolation: &str| {
        let asks = tepui_proto::json::from_slice(asks.as_bytes()).expect("valid");
        let mut case = case(isolation, root(), asks);
        let devices = r#"{"allowed_devices":[{"device":{"path":"/dev/zero"},"access":{"read":true}}]}"#;
        case.options.allowed_devices = parse_devices(devices).expect("it is there");
        case.options.seccomp_config_dir = Some(profiles.path().to_owned());
        case.options.seccomp_profile_name = Some("p".into());
        case.rootfs = (name == "linux/devices").then_some("/images/1");
        case.show()
    };
    const OTHER: &str = "disk/du,network/ports";
    let base = OTHER.split(',').find(|other| *other != name).unwrap_or_default();
    let (without, with) = match name {
        FILESYSTEM_LINUX => (base.to_owned(), format!("{base},{name}")),
        name if name.starts_with("volume/") => (base.to_owned(), format!("{base},{FILESYSTEM_LINUX},{name}")),
        name if NEED_MOUNTS.contains(&name) => {
            (format!("{base},{FILESYSTEM_LINUX}"), format!("{base},{FILESYSTEM_LINUX},{name}"))
        }
        name => (base.to_owned(), format!("{base},{name}")),
    };
    let (without, with) = (show(&without), show(&with));
    let added = with.lines().filter(|line| !without.lines().any(|one| one == *line));
    std::iter::once(format!("{name}\n")).chain(added.map(|line| format!("    {line}\n"))).collect()
}

#[test]
fn persistent_volumes_are_bind_mounted_in_a_mount_namespace() {
    let mut case = case("filesystem/linux", root(), Default::default());
    let volume = |name: &str, read_only| Volume {
        source: format!("/vol/{name}"),
        target: name.into(),
        read_only,
        shared: false,
    };
    case.spec.volumes = vec![volume("data", false), volume("etc/conf", true)];
    case.check(expect![[r#"
        own mount
        bind /vol/data on sandbox:/data (make a directory)
        bind /vol/etc/conf on sandbox:/etc/conf (make a directory) ro
    "#]]);
}

#[test]
fn hostname_requires_its_own_uts_namespace() {
    let named = |name: &str| pb::ContainerInfo { hostname: Some(name.into()), ..Default::default() };
    case("filesystem/linux", root(), named("box")).check(expect![[r#"
        own mount uts
        hostname box
    "#]]);
    case("filesystem/linux", child(), Default::default()).check(expect![[r#"
        join uts of 77
        own mount
    "#]]);
    case("filesystem/linux", child(), named("inner")).check(expect![[r#"
        own mount uts
        hostname inner
    "#]]);
    let long = "x".repeat(65);
    for bad in ["", &long] {
        case("filesystem/linux", root(), named(bad))
            .check(expect![["error: container.hostname must have 1 to 64 bytes\n"]]);
    }
}

#[test]
fn allowed_devices_are_created_in_the_root_filesystem() {
    let text = r#"{"allowed_devices":[{"device":{"path":"/dev/zero"},"access":{"read":true,"mknod":true}}]}"#;
    let mut with = case("filesystem/linux,linux/devices", root(), Default::default());
    with.options.allowed_devices = parse_devices(text).expect("it is there");
    with.check(expect![["own mount\n"]]);
    with.rootfs = Some("/images/1");
    let nodes = |case: &Case| case.show().lines().filter(|line| line.contains("/dev/zero")).count();
    assert!(with.show().contains("node rootfs:/dev/zero c 1:5 444\n"), "{}", with.show());
    assert_eq!(nodes(&with), 2);
    with.isolation = "filesystem/linux".into();
    assert_eq!(nodes(&with), 1);
}

#[test]
fn root_filesystem_gets_masked_proc_and_devices() {
    let mut case = case("filesystem/linux,namespaces/pid,namespaces/ipc", root(), Default::default());
    case.rootfs = Some("/images/1");
    case.check(expect![[r#"
        own mount pid ipc
        proc on rootfs:/proc (make a directory)
        read-only rootfs:/proc/bus (if there)
        read-only rootfs:/proc/fs (if there)
        read-only rootfs:/proc/irq (if there)
        read-only rootfs:/proc/sys (if there)
        read-only rootfs:/proc/sysrq-trigger (if there)
        sysfs on rootfs:/sys (make a directory)
        tmpfs on rootfs:/sys/fs/cgroup (if there) 755
        tmpfs on rootfs:/dev (make a directory) 755
        node rootfs:/dev/full c 1:7 666
        node rootfs:/dev/null c 1:3 666
        node rootfs:/dev/random c 1:8 666
        node rootfs:/dev/tty c 5:0 666
        node rootfs:/dev/urandom c 1:9 666
        node rootfs:/dev/zero c 1:5 666
        devpts on rootfs:/dev/pts (make a directory)
        link rootfs:/dev/fd to /proc/self/fd
        link rootfs:/dev/stdin to /proc/self/fd/0
        link rootfs:/dev/stdout to /proc/self/fd/1
        link rootfs:/dev/stderr to /proc/self/fd/2
        link rootfs:/dev/ptmx to pts/ptmx
        sandbox on rootfs:/mnt/mesos/sandbox (make a directory)
        tmpfs on rootfs:/dev/shm (make a directory) 1777
        mask rootfs:/proc/acpi (if there)
        mask rootfs:/proc/asound (if there)
        mask rootfs:/proc/kcore (if there)
        mask rootfs:/proc/keys (if there)
        mask rootfs:/proc/key-users (if there)
        mask rootfs:/proc/latency_stats (if there)
        mask rootfs:/proc/sched_debug (if there)
        mask rootfs:/proc/scsi (if there)
        mask rootfs:/proc/timer_list (if there)
        mask rootfs:/proc/timer_stats (if there)
        mask rootfs:/sys/firmware (if there)
        pivot /images/1
        cd /mnt/mesos/sandbox
    "#]]);
}

#[test]
fn pid_namespace_is_private_joined_or_shared() {
    let share = |id| {
        let info = pb::LinuxInfo { share_pid_namespace: Some(true), ..Default::default() };
        case("filesystem/linux,namespaces/pid", id, linux(info))
    };
    let own = |id| case("filesystem/linux,namespaces/pid", id, Default::default());
    own(root()).check(expect![[r#"
        own mount pid
        proc on /proc
    "#]]);
    own(child()).check(expect![[r#"
        join pid uts of 77
        own mount pid
        proc on /proc
    "#]]);
    share(root()).check(expect![[r#"
        own mount
    "#]]);
    share(child()).check(expect![[r#"
        join pid uts of 77
        own mount
        proc on /proc
    "#]]);
    let mut refused = share(root());
    refused.options.disallow_sharing_agent_pid_namespace = true;
    refused.check(expect![[r#"
        error: Sharing agent pid namespace is not allowed
    "#]]);
}

#[test]
fn ipc_mode_selects_the_ipc_namespace() {
    let ipc = |id, mode: Option<IpcMode>, shm_size| {
        let info = pb::LinuxInfo { ipc_mode: mode, shm_size, ..Default::default() };
        case("filesystem/linux,namespaces/ipc", id, linux(info))
    };
    let mut text = String::new();
    for (id, mode, size) in [
        (root(), None, None),
        (child(), None, None),
        (root(), Some(IpcMode::PRIVATE), Some(3)),
        (child(), Some(IpcMode::PRIVATE), None),
        (root(), Some(IpcMode::SHARE_PARENT), None),
        (child(), Some(IpcMode::SHARE_PARENT), None),
        (child(), Some(IpcMode::SHARE_PARENT), Some(3)),
        (child(), None, Some(3)),
    ] {
        let shown = ipc(id.clone(), mode, size).show();
        text += &format!("{id} {mode:?} {size:?}\n{shown}");
    }
    let mut refused = ipc(root(), Some(IpcMode::SHARE_PARENT), None);
    refused.options.disallow_sharing_agent_ipc_namespace = true;
    text += &refused.show();
    expect![[r#"
        a None None
        own mount ipc
        a.b None None
        join ipc uts of 77
        own mount
        bind /dev/shm of 77 on /dev/shm
        a Some(PRIVATE) Some(3)
        own mount ipc
        tmpfs on /dev/shm 1777 3145728 bytes
        a.b Some(PRIVATE) None
        join uts of 77
        own mount ipc
        tmpfs on /dev/shm 1777
        a Some(SHARE_PARENT) None
        own mount
        a.b Some(SHARE_PARENT) None
        join ipc uts of 77
        own mount
        bind /dev/shm of 77 on /dev/shm
        a.b Some(SHARE_PARENT) Some(3)
        error: Shared memory size cannot be set for a container that shares its parent's
        a.b None Some(3)
        error: Shared memory size can only be set together with the private IPC mode
        error: Sharing agent IPC namespace is not allowed
    "#]]
    .assert_eq(&text);
}

#[test]
fn session_joins_the_namespaces_of_its_parent() {
    let mut case =
        case("filesystem/linux,namespaces/pid,namespaces/ipc,linux/nnp", child(), Default::default());
    case.spec.is_session = true;
    case.check(expect![[r#"
        join mount pid ipc uts of 77
        cd /agent/parent
        no new privileges
    "#]]);
}

use pb::r_limit_info::r_limit::Type as RlimitType;

type Limits = tepui_proto::MessageField<pb::RLimitInfo>;

fn limits(all: &[(RlimitType, Option<u64>, Option<u64>)]) -> Limits {
    let limit = |(kind, soft, hard): &(RlimitType, Option<u64>, Option<u64>)| pb::r_limit_info::RLimit {
        r#type: Some(*kind),
        soft: *soft,
        hard: *hard,
        ..Default::default()
    };
    pb::RLimitInfo { rlimits: all.iter().map(limit).collect(), ..Default::default() }.into()
}

#[test]
fn rlimits_are_set_or_rejected() {
    let show = |all: &[_]| {
        let asks = pb::ContainerInfo { rlimit_info: limits(all), ..Default::default() };
        case("posix/rlimits", root(), asks).show()
    };
    let (files, core) = (RlimitType::RLMT_NOFILE, RlimitType::RLMT_CORE);
    let all = [
        show(&[(files, Some(10), Some(20)), (core, None, None)]),
        show(&[(files, Some(21), Some(20))]),
        show(&[(files, Some(21), None)]),
        show(&[(files, None, None), (files, None, None)]),
        show(&[(RlimitType::UNKNOWN, None, None)]),
    ];
    expect![[r#"
        rlimit RLMT_NOFILE 10 20
        rlimit RLMT_CORE infinity infinity
        error: rlimit_info: the soft limit 21 of RLMT_NOFILE is above its hard limit 20
        error: rlimit_info: RLMT_NOFILE must have both a soft and a hard limit, or neither
        error: rlimit_info: RLMT_NOFILE is listed twice
        error: rlimit_info: a limit has an unknown type
    "#]]
    .assert_eq(&all.concat());
}

#[test]
fn capabilities_are_bounded_by_request_and_flags() {
    use Capability::{CHOWN, KILL, NET_RAW};
    let set = |all: &[Capability]| pb::CapabilityInfo { capabilities: all.to_vec(), ..Default::default() };
    let show = |asked: Option<&[Capability]>, bound: Option<&[Capability]>, flags: [Option<u64>; 2]| {
        let info = pb::LinuxInfo {
            effective_capabilities: asked.map(set).into(),
            bounding_capabilities: bound.map(set).into(),
            ..Default::default()
        };
        let mut case = case("linux/capabilities", root(), linux(info));
        [case.options.effective_capabilities, case.options.bounding_capabilities] = flags;
        case.show()
    };
    let all = [
        show(None, None, [None, None]),
        show(Some(&[CHOWN, NET_RAW]), None, [None, None]),
        show(None, None, [Some(1), Some(3)]),
        show(None, None, [None, Some(3)]),
        show(Some(&[]), None, [Some(1), None]),
        show(Some(&[KILL]), None, [None, Some(1)]),
        show(None, Some(&[KILL]), [None, Some(1)]),
        show(Some(&[KILL]), Some(&[CHOWN]), [None, None]),
        show(Some(&[Capability::UNKNOWN]), None, [None, None]),
    ];
    expect![[r#"
        capabilities effective 0x2001 bounding 0x2001
        capabilities effective 0x1 bounding 0x3
        capabilities bounding 0x3
        capabilities effective 0x0 bounding 0x0
        error: Requested capabilities '{ KILL }', but only '{ CHOWN }' are allowed
        error: Requested capabilities '{ KILL }', but only '{ CHOWN }' are allowed
        error: Requested capabilities '{ KILL }', but only '{ CHOWN }' are allowed
        error: linux_info.effective_capabilities: a capability is unknown
    "#]]
    .assert_eq(&all.concat());
}

fn volumes(isolation: &str, id: ContainerId, all: &[&str]) -> Case {
    let volume = |text: &&str| {
        let text = text.replace('\'', "\"");
        tepui_proto::json::from_slice(text.as_bytes()).expect("a volume")
    };
    let asks = pb::ContainerInfo { volumes: all.iter().map(volume).collect(), ..Default::default() };
    case(isolation, id, asks)
}

const OF_PARENT: &str = "{'mode':'RW','container_path':'in','source':{'type':'SANDBOX_PATH','sandbox_path':{'type':'PARENT','path':'@'}}}";

#[test]
fn host_and_sandbox_volumes_are_bind_mounted() {
    let all = [
        "{'mode':'RO','container_path':'etc','host_path':'/etc'}",
        "{'mode':'RW','container_path':'/tmp','source':{'type':'HOST_PATH','host_path':{'path':'/usr'}}}",
        "{'mode':'RW','container_path':'/etc','host_path':'/etc'}",
        "{'mode':'RW','container_path':'passwd','host_path':'/etc/passwd'}",
        "{'mode':'RW','container_path':'/tmp','host_path':'cache'}",
    ];
    volumes("filesystem/linux", root(), &all).check(expect![[r#"
        make /agent//box/cache
        own mount
        bind /etc on sandbox:/etc (make a directory) ro
        bind /usr on /tmp
        bind /etc/passwd on sandbox:/passwd (make a file)
        bind /agent//box/cache on /tmp
    "#]]);
    let mut inside = volumes("filesystem/linux", root(), &all[..3]);
    inside.rootfs = Some("/images/1");
    let text = inside.show();
    let binds: Vec<&str> =
        text.lines().filter(|line| line.starts_with("bind") || line.starts_with("sandbox")).collect();
    expect![[r#"
        sandbox on rootfs:/mnt/mesos/sandbox (make a directory)
        bind /etc on rootfs:/mnt/mesos/sandbox/etc (make a directory) ro
        bind /usr on rootfs:/tmp (make a directory)
        bind /etc on rootfs:/etc (make a directory)"#]]
    .assert_eq(&binds.join("\n"));
    let of_parent = |path: &str| OF_PARENT.replace('@', path);
    volumes(
        "filesystem/linux",
        child(),
        &[&of_parent("own/dir"), &of_parent("shared"), &of_parent("shared/sub")],
    )
    .check(expect![[r#"
        make /agent//parent/own/dir
        make /vol/1//sub
        join uts of 77
        own mount
        bind /agent//parent/own/dir on sandbox:/in (make a directory)
        bind /vol/1 on sandbox:/in (make a directory)
        bind /vol/1//sub on sandbox:/in (make a directory)
    "#]]);
}

#[test]
fn invalid_volumes_are_rejected_with_a_reason() {
    let mut text = String::new();
    for (id, volume) in [
        (root(), "{'mode':'RW','container_path':'a'}"),
        (root(), "{'mode':'RW','container_path':'a','host_path':'/no/such/path'}"),
        (root(), "{'mode':'RW','container_path':'a','host_path':'own'}"),
        (root(), "{'mode':'RW','container_path':'/no/such/path','host_path':'/etc'}"),
        (root(), "{'mode':'RW','container_path':'../a','host_path':'/etc'}"),
        (root(), "{'mode':'RW','container_path':'/tmp','host_path':'../own'}"),
        (root(), &OF_PARENT.replace('@', "x")),
        (child(), &OF_PARENT.replace('@', "../x")),
        (child(), &OF_PARENT.replace('@', "shared/../../x")),
        (
            root(),
            "{'mode':'RW','container_path':'a','source':{'type':'HOST_PATH','host_path':{'path':'etc'}}}",
        ),
        (
            root(),
            "{'mode':'RW','container_path':'a','source':{'type':'DOCKER_VOLUME','docker_volume':{'name':'v'}}}",
        ),
        (
            root(),
            "{'mode':'RW','container_path':'a','source':{'type':'SECRET','secret':{'type':'VALUE','value':{'data':'aGk='}}}}",
        ),
    ] {
        text += &volumes("filesystem/linux", id, &[volume]).show();
    }
    expect![[r#"
        error: volumes[0] 'a': exactly one of host_path, image and source must be set
        error: volumes[0] 'a': the host path '/no/such/path' does not exist
        error: volumes[0] 'a': a path of the own sandbox needs an absolute container_path
        error: volumes[0] '/no/such/path': container_path does not exist on the host
        error: volumes[0] '../a': container_path must not be empty and must not contain '..'
        error: volumes[0] '/tmp': the sandbox path '../own' must be relative and stay inside the sandbox
        error: volumes[0] 'in': only a nested container has a parent
        error: volumes[0] 'in': the sandbox path '../x' must be relative and stay inside the sandbox
        error: volumes[0] 'in': the sandbox path 'shared/../../x' must stay inside the sandbox
        error: volumes[0] 'a': the host path 'etc' must be absolute
        error: volumes[0] 'a': it needs the isolator 'docker/volume'
        error: volumes[0] 'a': it needs the isolator 'volume/secret'
    "#]]
    .assert_eq(&text);
}

#[test]
fn missing_host_path_below_a_force_creation_directory_is_created() {
    let volume = "{'mode':'RW','container_path':'a','host_path':'/data/made/x'}";
    let mut case = volumes("filesystem/linux", root(), &[volume]);
    case.options.host_path_volume_force_creation = vec!["/other".into(), "/data/made".into()];
    case.check(expect![[r#"
        make /data/made//x
        own mount
        bind /data/made//x on sandbox:/a (make a directory)
    "#]]);
}

#[test]
fn secret_values_are_mounted() {
    let volume = |secret: &str| {
        format!("{{'mode':'RW','container_path':'keys/k','source':{{'type':'SECRET','secret':{secret}}}}}")
    };
    let by_value = volume("{'type':'VALUE','value':{'data':'aGk='}}");
    volumes("filesystem/linux,volume/secret", root(), &[&by_value]).check(expect![[r#"
        own mount
        secret of 2 bytes on sandbox:/keys/k (make a file) 600
    "#]]);
}

#[test]
fn isolator_names_and_aliases_are_validated() {
    let names = |given: &str| Isolation::parse(given.split(',')).map(|it| it.names().collect::<Vec<_>>());
    assert_eq!(names("process").as_deref(), Ok(&["posix/cpu", "posix/mem"][..]));
    assert_eq!(
        names("cgroups,cgroups/pids").as_deref(),
        Ok(&["cgroups/cpu", "cgroups/mem", "cgroups/pids"][..])
    );
    for (given, error) in [
        ("posix/cpu,process", IsolationFault::Twice("posix/cpu".into())),
        ("network/cni", IsolationFault::NotBuilt("network/cni".into())),
        ("cgroups/memory", IsolationFault::Unknown("cgroups/memory".into())),
    ] {
        assert_eq!(names(given), Err(error), "{given}");
    }
}
