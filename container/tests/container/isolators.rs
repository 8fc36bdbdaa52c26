//! Isolators on a real kernel: what the command sees and may do, and that the host sees nothing of it.

use crate::common::{Host, exited, kernel, until};
use tepui_facilities::{Facility, available};
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::linux_info::IpcMode;
use tepui_types::{ContainerId, ContainerOp, KnownContainer, LaunchSpec, Volume};

const ALL: &str = "filesystem/linux,namespaces/pid,namespaces/ipc";

fn id(name: &str) -> ContainerId {
    ContainerId::root(name)
}

fn linux(info: pb::LinuxInfo) -> Option<pb::ContainerInfo> {
    Some(pb::ContainerInfo {
        r#type: pb::container_info::Type::MESOS,
        linux_info: info.into(),
        ..Default::default()
    })
}

fn volume(text: &str) -> pb::Volume {
    tepui_proto::json::from_slice(text.replace('\'', "\"").as_bytes()).unwrap()
}

fn with_volumes(volumes: Vec<pb::Volume>) -> Option<pb::ContainerInfo> {
    Some(pb::ContainerInfo { r#type: pb::container_info::Type::MESOS, volumes, ..Default::default() })
}

/// Runs a script to its end and returns what it printed.
async fn output(host: &mut Host, spec: LaunchSpec) -> String {
    let id = spec.id.clone();
    host.launch(spec).await;
    let termination = host.exit_of(&id).await;
    let (out, err) = (host.read(&id, "stdout"), host.read(&id, "stderr"));
    assert_eq!(termination.status, exited(0), "{out}{err}");
    out
}

#[tokio::test]
async fn container_has_its_own_pid_namespace() {
    let Some(mut host) = Host::linux(ALL) else { return };
    let spec = host.spec(&id("a"), "echo $$; ls -d /proc/[0-9]* | wc -l; cat /proc/1/comm");
    let out = output(&mut host, spec).await;
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines[0], "2", "the command comes after the init: {out}");
    assert!(lines[1].parse::<u32>().unwrap() <= 4, "{out}");
}

#[tokio::test]
async fn init_forwards_signals_and_exit_status() {
    let Some(mut host) = Host::linux(ALL) else { return };
    for (name, script, status) in
        [("a", "exit 7", 7 << 8), ("b", "kill -9 $$", 9), ("c", "kill -TERM $$", 15)]
    {
        let spec = host.spec(&id(name), script);
        assert_eq!(host.run(spec).await, Some(status), "{script}");
    }
    let spec = host.spec(&id("d"), "trap 'exit 3' USR1; echo ready; while :; do sleep 0.01; done");
    host.launch(spec).await;
    host.line(&id("d"), "stdout").await;
    host.submit(ContainerOp::Signal { id: id("d"), signal: libc::SIGUSR1 });
    assert_eq!(host.exit_of(&id("d")).await.status, exited(3));
}

#[tokio::test]
async fn nested_containers_own_or_share_the_pid_namespace() {
    let Some(mut host) = Host::linux(ALL) else { return };
    host.launch_script(&id("a"), "exec sleep 1000").await;
    let count = "echo $(ls -d /proc/[0-9]* | wc -l) $(grep -l sleep /proc/[0-9]*/comm 2>/dev/null | wc -l)";
    let own = output_of_nested(&mut host, "own", count, None).await;
    assert!(own.ends_with(" 0\n"), "its own processes only: {own}");
    let shares = linux(pb::LinuxInfo { share_pid_namespace: Some(true), ..Default::default() });
    let shared = output_of_nested(&mut host, "shared", count, shares).await;
    assert!(shared.ends_with(" 1\n"), "its parent's too: {shared}");
    host.destroy(&id("a")).await;
}

async fn output_of_nested(
    host: &mut Host,
    name: &str,
    script: &str,
    container: Option<pb::ContainerInfo>,
) -> String {
    let spec = host.spec(&id("a").child(name), script);
    output(host, LaunchSpec { container, ..spec }).await
}

#[tokio::test]
async fn volumes_are_mounted_and_read_only_ones_cannot_be_written() {
    let Some(mut host) = Host::linux(ALL) else { return };
    let before = kernel::mounts(host.dir.path());
    let volume = |name: &str, read_only| {
        let source = host.dir.path().join(name);
        std::fs::create_dir(&source).unwrap();
        std::fs::write(source.join("file"), name).unwrap();
        Volume {
            source: source.display().to_string(),
            target: format!("in/{name}"),
            read_only,
            shared: false,
        }
    };
    let volumes = vec![volume("rw", false), volume("ro", true)];
    let script = "cat in/rw/file in/ro/file && echo x > in/rw/new && ! echo x > in/ro/new && echo ok";
    let spec = LaunchSpec { volumes, ..host.spec(&id("a"), script) };
    assert_eq!(output(&mut host, spec).await, "rwrook\n");
    assert!(host.dir.path().join("rw/new").is_file() && !host.dir.path().join("ro/new").exists());
    assert_eq!(kernel::mounts(host.dir.path()), before, "nothing of it is on the host");
}

#[tokio::test]
async fn missing_volume_fails_the_launch_and_is_named() {
    let Some(mut host) = Host::linux(ALL) else { return };
    let source = host.dir.path().join("missing").display().to_string();
    let volume = Volume { source, target: String::from("v"), read_only: false, shared: false };
    let spec = LaunchSpec { volumes: vec![volume], ..host.spec(&id("a"), "true") };
    let (_, why) = host.fail_to_launch(spec).await;
    assert!(why.contains("missing") && why.contains("No such file"), "{why}");
}

#[tokio::test]
async fn shared_memory_is_private_or_shared_with_the_parent() {
    let Some(mut host) = Host::linux(ALL) else { return };
    let mode = |ipc_mode, shm_size| {
        linux(pb::LinuxInfo { ipc_mode: Some(ipc_mode), shm_size, ..Default::default() })
    };
    let (private, share) = (IpcMode::PRIVATE, IpcMode::SHARE_PARENT);
    let script = "touch /dev/shm/of-a && readlink /proc/self/ns/ipc && exec sleep 1000";
    let spec = LaunchSpec { container: mode(private, Some(7)), ..host.spec(&id("a"), script) };
    host.launch(spec).await;
    let parents = host.line(&id("a"), "stdout").await;
    let look = "df -k /dev/shm | tail -1 | awk '{print $2}'; ls /dev/shm; readlink /proc/self/ns/ipc";
    let shared = output_of_nested(&mut host, "shares", look, mode(share, None)).await;
    assert_eq!(shared, format!("7168\nof-a\n{parents}\n"));
    let unsaid = output_of_nested(&mut host, "unsaid", look, None).await;
    assert_eq!(unsaid, shared);
    let own = output_of_nested(&mut host, "own", look, mode(private, Some(3))).await;
    assert!(own.starts_with("3072\n") && !own.contains("of-a") && !own.contains(&parents), "{own}");
    assert!(!std::path::Path::new("/dev/shm/of-a").exists());
    host.destroy(&id("a")).await;
    let spec = LaunchSpec { container: mode(share, Some(1)), ..host.spec(&id("b"), "true") };
    assert!(host.fail_to_launch(spec).await.1.contains("Shared memory size"));
}

#[tokio::test]
async fn session_shares_namespaces_volumes_and_environment() {
    let Some(mut host) = Host::linux(ALL) else { return };
    let source = host.dir.path().join("data").display().to_string();
    std::fs::create_dir(&source).unwrap();
    std::fs::write(format!("{source}/file"), "seen\n").unwrap();
    let volumes = vec![Volume { source, target: String::from("v"), read_only: false, shared: false }];
    let script = "readlink /proc/self/ns/pid; exec sleep 1000";
    let environment = [(String::from("OF"), String::from("parent"))].into();
    let spec = LaunchSpec { volumes, environment, ..host.spec(&id("a"), script) };
    host.launch(spec).await;
    let pids = host.line(&id("a"), "stdout").await;
    let script = "readlink /proc/self/ns/pid; cat v/file; echo $OF; cat /proc/[0-9]*/comm | grep -c sleep";
    let spec = host.spec(&id("a").child("s"), script);
    let seen = output(&mut host, LaunchSpec { is_session: true, ..spec }).await;
    assert_eq!(seen, format!("{pids}\nseen\nparent\n1\n"));
    host.destroy(&id("a")).await;
}

#[tokio::test]
async fn host_sandbox_and_parent_volumes_are_mounted() {
    let Some(mut host) = Host::linux(ALL) else { return };
    let before = kernel::mounts(host.dir.path());
    let dir = host.dir.path().join("host");
    std::fs::create_dir(&dir).unwrap();
    std::fs::write(dir.join("file"), "of the host\n").unwrap();
    let path = dir.display();
    let volumes = vec![
        volume(&format!("{{'mode':'RO','container_path':'dir','host_path':'{path}'}}")),
        volume(&format!("{{'mode':'RO','container_path':'one','host_path':'{path}/file'}}")),
        volume("{'mode':'RW','container_path':'/mnt','host_path':'own'}"),
    ];
    let script = "cat dir/file one; ! touch dir/new; echo x > /mnt/y; cat own/y; exec sleep 1000";
    let kept = host.dir.path().join("kept").display().to_string();
    std::fs::create_dir(&kept).unwrap();
    let persistent =
        vec![Volume { source: kept.clone(), target: "kept".into(), read_only: false, shared: false }];
    let spec =
        LaunchSpec { container: with_volumes(volumes), volumes: persistent, ..host.spec(&id("a"), script) };
    host.launch(spec).await;
    let text = until(|| Some(host.read(&id("a"), "stdout")).filter(|text| text.ends_with("x\n"))).await;
    assert_eq!(text, "of the host\nof the host\nx\n");
    let of_parent = |name: &str, mode: &str| {
        volume(&format!(
            "{{'mode':'{mode}','container_path':'in/{name}','source':{{'type':'SANDBOX_PATH','sandbox_path':\
             {{'type':'PARENT','path':'{name}'}}}}}}"
        ))
    };
    let container =
        with_volumes(vec![of_parent("own", "RO"), of_parent("kept", "RW"), of_parent("new", "RW")]);
    let script = "cat in/own/y; ! touch in/own/z; echo 1 > in/kept/k; echo 2 > in/new/n";
    let spec = LaunchSpec { container, ..host.spec(&id("a").child("b"), script) };
    assert_eq!(output(&mut host, spec).await, "x\n");
    assert_eq!(std::fs::read_to_string(format!("{kept}/k")).unwrap(), "1\n");
    assert_eq!(host.read(&id("a"), "new/n"), "2\n");
    host.destroy(&id("a")).await;
    assert_eq!(kernel::mounts(host.dir.path()), before, "nothing of it is on the host");
}

#[tokio::test]
async fn container_has_its_own_hostname() {
    let Some(mut host) = Host::linux("filesystem/linux") else { return };
    let ours = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let show = "cat /proc/sys/kernel/hostname";
    let named = pb::ContainerInfo {
        r#type: pb::container_info::Type::MESOS,
        hostname: Some(String::from("box")),
        ..Default::default()
    };
    let spec = host.spec(&id("a"), &format!("{show}; exec sleep 1000"));
    host.launch(LaunchSpec { container: Some(named), ..spec }).await;
    assert_eq!(host.line(&id("a"), "stdout").await, "box");
    let (nested, other) = (host.spec(&id("a").child("b"), show), host.spec(&id("c"), show));
    assert_eq!(output(&mut host, nested).await, "box\n");
    assert_eq!(output(&mut host, other).await, ours);
    assert_eq!(std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap(), ours);
    host.destroy(&id("a")).await;
}

#[tokio::test]
async fn symlink_in_a_parent_sandbox_volume_is_rejected() {
    let Some(mut host) = Host::linux(ALL) else { return };
    host.launch_script(&id("a"), "ln -s /etc out; echo; exec sleep 1000").await;
    host.line(&id("a"), "stdout").await;
    let source = "{'type':'SANDBOX_PATH','sandbox_path':{'type':'PARENT','path':'out'}}";
    let container =
        with_volumes(vec![volume(&format!("{{'mode':'RW','container_path':'in','source':{source}}}"))]);
    let spec = LaunchSpec { container, ..host.spec(&id("a").child("b"), "true") };
    let (_, why) = host.fail_to_launch(spec).await;
    assert!(why.contains("symbolic links"), "{why}");
    host.destroy(&id("a")).await;
}

#[tokio::test]
async fn secret_is_a_private_file_in_memory() {
    let Some(mut host) = Host::linux(&format!("{ALL},volume/secret")) else { return };
    let secret = "{'type':'SECRET','secret':{'type':'VALUE','value':{'data':'aHVzaA=='}}}";
    let container =
        with_volumes(vec![volume(&format!("{{'mode':'RW','container_path':'k/key','source':{secret}}}"))]);
    let script = "cat k/key; echo; stat -c '%a %U' k/key; ls -A | sort | tr '\\n' ' '; awk '$5~/key$/' /proc/self/mountinfo | grep -c ramfs";
    let user = Some(String::from("nobody"));
    let spec = LaunchSpec { container, user, ..host.spec(&id("a"), script) };
    assert_eq!(output(&mut host, spec).await, "hush\n600 nobody\nk stderr stdout 1\n");
    assert_eq!(host.read(&id("a"), "k/key"), "", "the host sees the place, not the secret");
}

#[tokio::test]
async fn rlimits_and_capabilities_apply_to_the_command() {
    let Some(mut host) = Host::linux("posix/rlimits,linux/capabilities,linux/nnp") else { return };
    let container = pb::ContainerInfo {
        r#type: pb::container_info::Type::MESOS,
        rlimit_info: tepui_proto::json::from_slice::<pb::RLimitInfo>(
            br#"{"rlimits":[{"type":"RLMT_NOFILE","soft":100,"hard":200},{"type":"RLMT_CORE","soft":0,"hard":0}]}"#,
        )
        .unwrap()
        .into(),
        linux_info: tepui_proto::json::from_slice::<pb::LinuxInfo>(
            br#"{"effective_capabilities":{"capabilities":["NET_BIND_SERVICE"]},
                "bounding_capabilities":{"capabilities":["NET_BIND_SERVICE","KILL"]}}"#,
        )
        .unwrap()
        .into(),
        ..Default::default()
    };
    let script = "ulimit -n; ulimit -Hn; ulimit -c; grep -E 'Cap(Inh|Prm|Eff|Bnd|Amb)|NoNew' /proc/self/status | tr -d '\\t'";
    for (name, user) in [("a", "nobody"), ("b", "root")] {
        let user = Some(user.to_owned());
        let spec = LaunchSpec { container: Some(container.clone()), user, ..host.spec(&id(name), script) };
        let one = format!("{:0>16}", "400");
        let expected = format!(
            "100\n200\n0\nCapInh:{one}\nCapPrm:{one}\nCapEff:{one}\nCapBnd:{:0>16}\nCapAmb:{one}\nNoNewPrivs:1\n",
            "420"
        );
        assert_eq!(output(&mut host, spec).await, expected, "{name}");
    }
}

#[tokio::test]
async fn volumes_of_a_running_container_are_updated() {
    let Some(mut host) = Host::linux(ALL) else { return };
    let before = kernel::mounts(host.dir.path());
    let volume = |name: &str, read_only| {
        let source = host.dir.path().join(name);
        std::fs::create_dir_all(&source).unwrap();
        std::fs::write(source.join("file"), format!("{name}\n")).unwrap();
        Volume { source: source.display().to_string(), target: name.to_owned(), read_only, shared: false }
    };
    let (one, two) = (volume("one", false), volume("two", true));
    let script = "cat one/file; until [ -e two/file ]; do sleep 0.01; done; cat two/file; ! touch two/x && echo ro; \
                  while [ -e one/file ]; do sleep 0.01; done; echo gone";
    host.launch(LaunchSpec { volumes: vec![one.clone()], ..host.spec(&id("a"), script) }).await;
    host.line(&id("a"), "stdout").await;
    let update = |volumes| ContainerOp::Update {
        id: id("a"),
        resources: Vec::new(),
        limits: Default::default(),
        volumes,
    };
    host.submit(update(vec![one, two.clone()]));
    until(|| host.read(&id("a"), "stdout").contains("ro").then_some(())).await;
    let mut host = host.restart();
    host.recover(&[&id("a")]).await;
    host.submit(update(vec![two]));
    assert_eq!(host.exit_of(&id("a")).await.status, exited(0));
    assert_eq!(host.read(&id("a"), "stdout"), "one\ntwo\nro\ngone\n");
    assert_eq!(kernel::mounts(host.dir.path()), before, "nothing of it is on the host");
}

fn scalar(name: &str, value: f64) -> pb::Resource {
    pb::Resource {
        name: name.to_owned(),
        scalar: pb::value::Scalar { value, ..Default::default() }.into(),
        ..Default::default()
    }
}

#[tokio::test]
async fn container_above_its_disk_quota_is_killed() {
    let enforce = |options: &mut tepui_container::Options| {
        options.isolators.container_disk_watch_interval = std::time::Duration::from_millis(20);
        options.isolators.enforce_container_disk_quota = true;
    };
    let Some(mut host) = Host::linux_with("disk/du", enforce) else { return };
    let fill = "dd if=/dev/zero of=fill bs=1M count=5 2>/dev/null; exec sleep 1000";
    let spec = LaunchSpec { resources: vec![scalar("disk", 2.0)], ..host.spec(&id("a"), fill) };
    host.launch(spec).await;
    let end = host.exit_of(&id("a")).await;
    assert_eq!(end.reason, Some(pb::task_status::Reason::REASON_CONTAINER_LIMITATION_DISK));
    let message = end.message.unwrap();
    assert!(message.starts_with("Disk usage (") && message.ends_with("exceeds quota (2MB)"), "{message}");
    assert_eq!((end.state, end.limited.len()), (Some(pb::TaskState::TASK_FAILED), 1));
    // Found again by the next agent, which never launched it.
    let wait = "touch ready; until [ -e go ]; do sleep 0.01; done; ";
    let spec =
        LaunchSpec { resources: vec![scalar("disk", 2.0)], ..host.spec(&id("b"), &format!("{wait}{fill}")) };
    host.launch(spec).await;
    let mut host = host.restart();
    host.recover(&[&id("b")]).await;
    std::fs::write(host.sandbox(&id("b")).join("go"), "").unwrap();
    assert!(host.exit_of(&id("b")).await.message.unwrap().contains("exceeds quota"));
}

#[tokio::test]
async fn disk_usage_is_reported() {
    let often = |options: &mut tepui_container::Options| {
        options.isolators.container_disk_watch_interval = std::time::Duration::from_millis(20);
    };
    let Some(mut host) = Host::linux_with("disk/du", often) else { return };
    let script = "dd if=/dev/zero of=fill bs=1M count=5 2>/dev/null; exec sleep 1000";
    let spec = LaunchSpec { resources: vec![scalar("disk", 2.0)], ..host.spec(&id("a"), script) };
    host.launch(spec).await;
    let meter = tepui_container::Meter::open(&host.dir.path().join("run")).unwrap();
    let found = until(|| {
        let found = meter.read().unwrap().remove(&id("a"))?.disk.pop()?;
        (found.used_bytes >= 5 << 20).then_some(found)
    });
    let found = found.await;
    assert_eq!((found.path, found.limit_bytes), (host.sandbox(&id("a")), 2 << 20));
    host.destroy(&id("a")).await;
}

/// `/run` is cleaned up while no agent runs; the next one restores the resources.
#[tokio::test]
async fn isolation_is_recovered_without_the_runtime_directory() {
    let enforce = |options: &mut tepui_container::Options| {
        options.isolators.container_disk_watch_interval = std::time::Duration::from_millis(20);
        options.isolators.enforce_container_disk_quota = true;
    };
    let Some(mut host) = Host::linux_with("disk/du,filesystem/linux", enforce) else { return };
    let kept = host.dir.path().join("kept");
    std::fs::create_dir(&kept).unwrap();
    std::fs::write(kept.join("file"), "").unwrap();
    let source = kept.display().to_string();
    let volumes = vec![Volume { source, target: "kept".into(), read_only: false, shared: false }];
    let waits = "touch ready; while [ -e kept/file ]; do sleep 0.01; done; exit 3";
    let fills =
        "touch ready; until [ -e go ]; do sleep 0.01; done; dd if=/dev/zero of=f bs=1M count=5; sleep 1000";
    let (a, b, resources) = (id("a"), id("b"), vec![scalar("disk", 2.0)]);
    host.launch(LaunchSpec { volumes: volumes.clone(), ..host.spec(&a, waits) }).await;
    host.launch(LaunchSpec { resources: resources.clone(), ..host.spec(&b, fills) }).await;
    for id in [&a, &b] {
        let ready = host.sandbox(id).join("ready");
        until(|| ready.exists().then_some(())).await;
    }
    std::fs::remove_dir_all(host.dir.path().join("run/containers")).unwrap();
    let mut host = host.restart();
    let known = |id: &ContainerId, resources: &[pb::Resource], volumes: &[Volume]| KnownContainer {
        id: id.clone(),
        sandbox: host.sandbox(id).display().to_string(),
        resources: resources.to_vec(),
        volumes: volumes.to_vec(),
    };
    let known = vec![known(&a, &[], &volumes), known(&b, &resources, &[])];
    host.recover_known(known).await;
    std::fs::write(host.sandbox(&b).join("go"), "").unwrap();
    assert!(host.exit_of(&b).await.message.unwrap().contains("exceeds quota"));
    // A volume that goes is one that was there.
    let (resources, limits, volumes) = (Vec::new(), Default::default(), Vec::new());
    host.submit(ContainerOp::Update { id: a.clone(), resources, limits, volumes });
    assert_eq!(host.exit_of(&a).await.status, exited(3));
}

#[tokio::test]
async fn container_listening_on_an_unallocated_port_is_killed() {
    if !available(&[Facility::Program("python3")]) {
        return;
    }
    let enforce = |options: &mut tepui_container::Options| {
        options.isolators.container_ports_watch_interval = std::time::Duration::from_millis(20);
        options.isolators.enforce_container_ports = true;
    };
    let Some(mut host) = Host::linux_with("network/ports", enforce) else { return };
    let listen = "exec python3 -c 'import socket,time; s=socket.socket(); s.bind((\"127.0.0.1\",0)); s.listen(); \
                  print(s.getsockname()[1], flush=True); time.sleep(1000)'";
    host.launch_script(&id("a"), listen).await;
    let port = host.line(&id("a"), "stdout").await;
    let end = host.exit_of(&id("a")).await;
    assert_eq!(end.reason, Some(pb::task_status::Reason::REASON_CONTAINER_LIMITATION));
    let message = format!("Container 'a' is listening on unallocated port(s): [{port}-{port}]");
    assert_eq!(end.message.as_deref(), Some(message.as_str()));
    let all = br#"{"name":"ports","type":"RANGES","ranges":{"range":[{"begin":1,"end":65535}]}}"#;
    let resources = vec![tepui_proto::json::from_slice(all).unwrap()];
    let listen = listen.replace("1000", "0.3");
    let spec = LaunchSpec { resources, ..host.spec(&id("b"), &listen) };
    assert_eq!(host.run(spec).await, exited(0));
}

#[tokio::test]
async fn system_calls_are_filtered_by_profiles() {
    let dir = tempfile::tempdir().unwrap();
    let profile = |action: &str, names: &str, errno: u16| {
        format!(
            r#"{{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{{"names":[{names}],"action":"{action}","errnoRet":{errno}}}]}}"#
        )
    };
    std::fs::write(dir.path().join("usual"), profile("SCMP_ACT_ERRNO", r#""mkdir","mkdirat""#, 38)).unwrap();
    std::fs::write(dir.path().join("hard"), profile("SCMP_ACT_KILL_PROCESS", r#""mkdir","mkdirat""#, 0))
        .unwrap();
    std::fs::write(dir.path().join("broken"), "{").unwrap();
    let choose = |options: &mut tepui_container::Options| {
        options.isolators.seccomp_config_dir = Some(dir.path().to_owned());
        options.isolators.seccomp_profile_name = Some(String::from("usual"));
    };
    for isolation in ["linux/seccomp", "linux/seccomp,linux/nnp"] {
        let Some(mut host) = Host::linux_with(isolation, choose) else { return };
        let seccomp =
            |info: pb::SeccompInfo| linux(pb::LinuxInfo { seccomp: info.into(), ..Default::default() });
        let named = |name: &str| {
            seccomp(pb::SeccompInfo { profile_name: Some(name.to_owned()), ..Default::default() })
        };
        let script = "mkdir d";
        let spec = host.spec(&id("a"), script);
        assert_eq!(host.run(LaunchSpec { user: Some(String::from("nobody")), ..spec }).await, exited(1));
        assert!(host.read(&id("a"), "stderr").contains("not implemented"));
        let spec = LaunchSpec { container: named("hard"), ..host.spec(&id("b"), "exec mkdir d") };
        assert_eq!(host.run(spec).await.map(|status| status & 0x7f), Some(libc::SIGSYS));
        let none = seccomp(pb::SeccompInfo { unconfined: Some(true), ..Default::default() });
        let spec = LaunchSpec { container: none, ..host.spec(&id("c"), script) };
        assert_eq!(host.run(spec).await, exited(0));
        for (name, why) in
            [("broken", "invalid profile"), ("missing", "cannot read"), ("../x", "must be the name")]
        {
            let spec = LaunchSpec { container: named(name), ..host.spec(&id("d"), script) };
            let (_, message) = host.fail_to_launch(spec).await;
            assert!(message.contains(why) && message.contains(name), "{message}");
        }
    }
}
