//! Every file of `examples/` is run; stores keep their data through failover and replacement, on a real volume driver where the
//! machine has one.

use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tepui_e2e::{Buttervolume, Cluster, Disk, Service, VolumeDriver, save_image, scalar, wait_for};
use tepui_facilities::{Facility, Port, available};

/// Ports of each agent.
const PORTS: usize = 10;
const ISOLATION: &str = "--isolation=filesystem/linux,docker/volume";

/// Ports for the servers of an agent's tasks, which really listen on them.
fn take_ports() -> Vec<Port> {
    (0..PORTS).map(|_| Port::take()).collect()
}

fn resources(ports: &[Port]) -> String {
    let ports: Vec<String> = ports.iter().map(|port| format!("{0}-{0}", port.number())).collect();
    format!("--resources=cpus:8;mem:4096;disk:16384;ports:[{}]", ports.join(","))
}

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// Runs a spec of the examples with its files beside it.
fn run(cluster: &Cluster, example: &str, environment: &[(&str, &str)], flags: &[&str]) -> Service {
    let file = examples().join(example);
    let name = example.replace(['/', '.'], "-");
    let folder = cluster.folder().join(&name);
    std::fs::create_dir_all(&folder).expect("a folder");
    for entry in std::fs::read_dir(file.parent().expect("a folder")).expect("examples").flatten() {
        std::fs::copy(entry.path(), folder.join(entry.file_name())).expect("copied");
    }
    let spec = std::fs::read_to_string(&file).expect("an example");
    Service::start_with(&cluster.master.address, &folder, &spec, environment, flags)
}

/// Files of hello-world that need isolators, images, a disk or resources of a role; the others run on every agent.
const SPECIAL: [&str; 10] = [
    "host-volumes.yml",
    "image.yml",
    "limits.yml",
    "mount-volumes.yml",
    "pid-namespace.yml",
    "pre-reserved.yml",
    "rlimits.yml",
    "secrets.yml",
    "seccomp.yml",
    "shared-memory.yml",
];

/// A file that needs a volume driver.
const SHARED_VOLUMES: &str = "shared-volumes.yml";

#[test]
fn hello_world_files_are_deployed() {
    let mut cluster = Cluster::without_agents(&[]);
    let ports: [Vec<Port>; 2] = std::array::from_fn(|_| take_ports());
    for (index, ports) in ports.iter().enumerate() {
        cluster.add_agent(&[&resources(ports), &format!("--hostname=agent-{index}")]);
    }
    let files = std::fs::read_dir(examples().join("hello-world")).expect("examples").flatten();
    let mut names: Vec<String> = files.map(|file| file.file_name().to_string_lossy().into_owned()).collect();
    names.retain(|name| name.ends_with(".yml") && name != SHARED_VOLUMES);
    names.retain(|name| !SPECIAL.contains(&name.as_str()));
    names.sort();
    assert!(names.len() >= 10, "{names:?}");
    for name in names {
        let service = run(&cluster, &format!("hello-world/{name}"), &[], &[]);
        match name.as_str() {
            "canary.yml" => {
                for _ in 0..2 {
                    wait_for("the canary to be released", || {
                        (service.post("/v1/plans/deploy/continue?phase=hello").status == 200).then_some(())
                    });
                }
            }
            "decommission.yml" => {
                service.complete("deploy");
                let spec =
                    std::fs::read_to_string(examples().join("hello-world").join(&name)).expect("it is read");
                service.write(&spec.replace("count: 2", "count: 1"));
                assert_eq!(service.post("/v1/update").status, 200);
                service.complete("decommission");
                assert_eq!(service.get("/v1/pod"), json!(["hello-0"]));
            }
            "discovery.yml" => {
                let info = service.running("hello-1", "hello-1-server").info;
                assert_eq!(
                    info["discovery"],
                    json!({"visibility": "EXTERNAL", "name": "web-1", "ports": {}})
                );
                let labels = info["labels"]["labels"].to_string();
                assert!(labels.contains(r#"{"key":"tier","value":"front"}"#), "{labels}");
            }
            "plan.yml" => {
                service.complete("deploy");
                let body = json!({"TARGET": "/tmp/backup"});
                assert_eq!(service.http().post("/v1/plans/backup/start", &body).status, 200);
                service.complete("backup");
            }
            _ => (),
        }
        service.complete("deploy");
    }
}

#[test]
fn hello_world_files_for_special_agents_are_deployed() {
    if !available(&[Facility::Cgroups, Facility::Mounts, Facility::Busybox, Facility::Program("tar")]) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let Some(disk) = Disk::mount(folder.path(), 64) else { return };
    let images = folder.path().join("images");
    save_image(&images, "busybox", &json!({}));
    // A profile that a task without it does not have.
    let profile = r#"{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["mkdir"], "action": "SCMP_ACT_ERRNO"}]}"#;
    std::fs::write(folder.path().join("profile"), profile).expect("written");
    let secrets = folder.path().join("secrets");
    let secret = secrets.join("hello-secrets-principal/db/password");
    let mut directories = std::fs::DirBuilder::new();
    directories.recursive(true).mode(0o700).create(secret.parent().expect("a parent")).expect("made");
    std::fs::write(&secret, "not told").expect("written");
    std::fs::set_permissions(&secret, PermissionsExt::from_mode(0o600)).expect("ours");
    let mut all: Vec<Value> =
        [("cpus", 8.0), ("mem", 4096.0), ("disk", 8192.0)].map(|(name, value)| scalar(name, value)).into();
    for (name, value) in [("cpus", 1.0), ("mem", 256.0), ("disk", 1024.0)] {
        let mut reserved = scalar(name, value);
        reserved["role"] = json!("web");
        all.push(reserved);
    }
    let mut mount = scalar("disk", 64.0);
    mount["disk"] = json!({"source": {"type": "MOUNT", "mount": {"root": disk.path()}}});
    all.push(mount);
    let mut cluster = Cluster::without_agents(&[]);
    cluster.add_agent(&[
        &format!("--resources={}", json!(all)),
        "--launcher=linux",
        "--isolation=cgroups/cpu,cgroups/mem,filesystem/linux,namespaces/pid,namespaces/ipc,linux/seccomp,posix/rlimits,volume/host_path,volume/secret,docker/runtime",
        &format!("--secret_dir={}", secrets.display()),
        "--image_providers=docker",
        &format!("--docker_registry={}", images.display()),
        &format!("--seccomp_config_dir={}", folder.path().display()),
        "--seccomp_profile_name=profile",
    ]);
    for name in SPECIAL {
        run(&cluster, &format!("hello-world/{name}"), &[], &[]).complete("deploy");
    }
    // The disk is unmounted after the agent that uses it.
    drop(cluster);
}

/// A volume driver of the machine, or the one of the tests.
enum Storage {
    Real(Buttervolume),
    /// Ends with the test.
    Test,
}

/// Three agents with a volume driver; the storage goes after the cluster.
struct Bench {
    cluster: Cluster,
    driver: &'static str,
    storage: Storage,
    _ports: [Vec<Port>; 3],
    folder: tempfile::TempDir,
}

impl Bench {
    /// On a real driver if the machine has it, else recorded as skipped and run on the one of the tests.
    fn start() -> Option<Self> {
        if !available(&[Facility::Root, Facility::Mounts]) {
            return None;
        }
        let folder = tempfile::Builder::new().prefix("tepui-storage-").tempdir().expect("a folder");
        let mut cluster = Cluster::without_agents(&[]);
        let plugins = folder.path().join("plugins");
        let (driver, storage) = match available(&[Facility::Buttervolume]) {
            true => (Buttervolume::DRIVER, Storage::Real(Buttervolume::start(folder.path(), &plugins))),
            false => {
                let directory = VolumeDriver::new(folder.path()).listen("all", "shelf");
                std::fs::create_dir_all(plugins.parent().expect("a folder")).expect("a folder");
                std::os::unix::fs::symlink(directory, folder.path().join("link")).expect("a link");
                ("shelf", Storage::Test)
            }
        };
        let plugins = if driver == Buttervolume::DRIVER { plugins } else { folder.path().join("link") };
        let plugins = format!("--docker_volume_plugin_dirs={}", plugins.display());
        let ports: [Vec<Port>; 3] = std::array::from_fn(|_| take_ports());
        for (index, ports) in ports.iter().enumerate() {
            let resources = resources(ports);
            cluster.add_agent(&[&resources, ISOLATION, &plugins, &format!("--hostname=agent-{index}")]);
        }
        Some(Self { cluster, driver, storage, _ports: ports, folder })
    }

    /// Where the content of a volume is.
    fn volume(&self, name: &str) -> PathBuf {
        match &self.storage {
            Storage::Real(driver) => driver.volume(name),
            Storage::Test => self.folder.path().join("volumes").join(name),
        }
    }

    fn run(&self, example: &str) -> Service {
        run(&self.cluster, example, &[("VOLUME_DRIVER", self.driver)], &[])
    }
}

/// The port of a pod's task, from the environment that it was launched with.
fn port(service: &Service, pod: &str, task: &str, variable: &str) -> Option<String> {
    let info = service.try_task(pod, task)?.info;
    let variables = info["command"]["environment"]["variables"].as_array()?.clone();
    variables.iter().find(|one| one["name"] == variable)?["value"].as_str().map(str::to_owned)
}

fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).stderr(Stdio::null()).output();
    output.map(|output| String::from_utf8_lossy(&output.stdout).trim().replace('\r', "")).unwrap_or_default()
}

#[test]
fn options_put_hello_world_on_external_volumes_that_follow_their_pods() {
    let Some(bench) = Bench::start() else { return };
    let options = format!("--options={}", examples().join("hello-world/options.json").display());
    let environment = [("VOLUME_DRIVER", bench.driver)];
    let service = run(&bench.cluster, "hello-world/external-volumes.yml", &environment, &[&options]);
    service.complete("deploy");
    let starts =
        || std::fs::read_to_string(bench.volume("hello_0").join("log")).unwrap_or_default().lines().count();
    wait_for("the first start", || (starts() == 1).then_some(()));
    let mut task = service.running("hello-0", "hello-0-server");
    for (verb, expected) in [("restart", 2), ("replace", 3)] {
        assert_eq!(service.post(&format!("/v1/pod/hello-0/{verb}")).status, 200);
        task = service.running_after("hello-0", "hello-0-server", &task);
        wait_for("one more start in the same volume", || (starts() == expected).then_some(()));
    }
}

#[test]
fn one_volume_is_written_by_a_pod_and_read_by_pods_of_other_agents() {
    let Some(bench) = Bench::start() else { return };
    let service = bench.run(&format!("hello-world/{SHARED_VOLUMES}"));
    service.complete("deploy");
    let readers = ["reader-0", "reader-1"].map(|pod| service.running(pod, &format!("{pod}-server")).agent);
    assert_ne!(readers[0], readers[1]);
    let volume = bench.volume("hello-shared");
    assert_eq!(std::fs::read_to_string(volume.join("greeting")).expect("written"), "hello\n");
    assert!(!volume.join("file").exists());
}

#[test]
fn redis_fails_over_and_its_data_survives_replacement() {
    if !available(&[
        Facility::Program("redis-server"),
        Facility::Program("redis-cli"),
        Facility::Program("curl"),
    ]) {
        return;
    }
    let Some(bench) = Bench::start() else { return };
    let service = bench.run("redis/svc.yml");
    service.complete("deploy");
    let ask = |pod: usize, words: &[&str]| -> String {
        let (pod, task) = (format!("redis-{pod}"), format!("redis-{pod}-server"));
        let Some(port) = port(&service, &pod, &task, "PORT_REDIS") else { return String::new() };
        let words: Vec<&str> = ["-p", &port].into_iter().chain(words.iter().copied()).collect();
        output("redis-cli", &words)
    };
    let primary = || (0..3).find(|pod| ask(*pod, &["role"]).starts_with("master"));
    assert_eq!(ask(0, &["set", "city", "Canaima"]), "OK");
    wait_for("the replicas", || (1..3).all(|pod| ask(pod, &["get", "city"]) == "Canaima").then_some(()));
    wait_for("sentinels that know the replicas", || {
        let sentinel = port(&service, "redis-1", "redis-1-sentinel", "PORT_SENTINEL")?;
        let info = output("redis-cli", &["-p", &sentinel, "sentinel", "masters"]);
        let value = |name: &str| {
            let mut lines = info.lines();
            lines.find(|line| *line == name)?;
            lines.next()?.parse::<u32>().ok()
        };
        (value("num-slaves") == Some(2) && value("num-other-sentinels") == Some(2)).then_some(())
    });

    // The primary stands still: a replica becomes the primary.
    let first = service.running("redis-0", "redis-0-server");
    assert_eq!(service.http().post("/v1/pod/redis-0/pause", &json!(["server"])).status, 200);
    let next = wait_for("another primary", || primary().filter(|pod| *pod != 0));
    assert_eq!(ask(next, &["set", "mountain", "Roraima"]), "OK");
    assert_eq!(service.http().post("/v1/pod/redis-0/resume", &json!(["server"])).status, 200);
    service.running_after("redis-0", "redis-0-server", &first);
    wait_for("the old primary to follow", || (ask(0, &["get", "mountain"]) == "Roraima").then_some(()));

    // A replaced pod has its data from before: there is no other server that it could have it from.
    for pod in ["redis-1", "redis-2"] {
        let task = format!("{pod}-server");
        let old = service.running(pod, &task);
        assert_eq!(service.http().post(&format!("/v1/pod/{pod}/pause"), &json!(["server"])).status, 200);
        service.running_after(pod, &task, &old);
    }
    let old = service.running("redis-0", "redis-0-server");
    assert_eq!(service.post("/v1/pod/redis-0/replace").status, 200);
    service.running_after("redis-0", "redis-0-server", &old);
    wait_for("both values", || {
        let values = [ask(0, &["get", "city"]), ask(0, &["get", "mountain"])];
        (values == ["Canaima", "Roraima"]).then_some(())
    });
}

#[test]
fn postgresql_has_a_standby_and_its_data_survives_replacement() {
    if !available(&[Facility::Postgresql, Facility::Program("curl"), Facility::Program("setpriv")]) {
        return;
    }
    let Some(bench) = Bench::start() else { return };
    let service = bench.run("postgresql/svc.yml");
    service.complete("deploy");
    let query = |pod: usize, text: &str| -> String {
        let (pod, task) = (format!("postgres-{pod}"), format!("postgres-{pod}-server"));
        let Some(port) = port(&service, &pod, &task, "PORT_POSTGRESQL") else { return String::new() };
        output("psql", &["-h", "127.0.0.1", "-p", &port, "-U", "postgres", "-Atc", text, "postgres"])
    };
    query(0, "create table peaks (name text)");
    assert_eq!(
        query(0, "insert into peaks values ('Auyantepui') returning name").lines().next(),
        Some("Auyantepui")
    );
    assert_eq!(query(1, "select pg_is_in_recovery()"), "t");
    wait_for("the row on the standby", || (query(1, "select name from peaks") == "Auyantepui").then_some(()));

    let old = service.running("postgres-0", "postgres-0-server");
    assert_eq!(service.post("/v1/pod/postgres-0/replace").status, 200);
    service.running_after("postgres-0", "postgres-0-server", &old);
    wait_for("the row after the replacement", || {
        (query(0, "select name from peaks") == "Auyantepui").then_some(())
    });
}
