//! The agent is killed with SIGKILL at random while containers are launched and killed by calls. Afterwards there is no
//! orphan, and no launched container is lost. Needs root.
//!
//! `TEPUI_CRASH_SEED` and `TEPUI_CRASH_ROUNDS` choose another run.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tepui_e2e::{Cluster, Http, by_version, cgroup_mount, cgroup_mounts, patience, scalar, wait_for};
use tepui_facilities::{Facility, available};

const SEED: u64 = 20_250_614;
const ROUNDS: u64 = 6;
/// Concurrent clients of the container API.
const CALLERS: u64 = 3;
/// From a call that was answered to the kill, at most: a launch takes less.
const DELAY_MS_MAX: u64 = 250;

const AGENT: [&str; 4] = [
    "--resources=cpus:8;mem:4096;disk:4096",
    "--isolation=cgroups/all,filesystem/linux,namespaces/pid,namespaces/ipc",
    "--launcher=linux",
    "--registration_backoff_factor=10ms",
];

/// A random generator: xorshift.
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }
}

/// State shared by callers and the test.
#[derive(Default)]
struct Shared {
    /// Containers whose launch was acknowledged and whose kill was not requested.
    kept: Mutex<BTreeSet<Vec<String>>>,
    answers: AtomicU64,
    over: AtomicBool,
}

fn setting(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// `["a", "b"]` is `b` in `a`.
fn id(path: &[String]) -> Value {
    match path.split_last() {
        Some((own, [])) => json!({"value": own}),
        Some((own, above)) => json!({"value": own, "parent": id(above)}),
        None => Value::Null,
    }
}

fn launch(http: &Http, path: &[String]) -> bool {
    let container = match path.len() {
        1 => Value::Null,
        _ => json!({"type": "MESOS", "linux_info": {"share_cgroups": false}}),
    };
    let mut launch = json!({
        "container_id": id(path), "command": {"value": "sleep 100000"},
        "resources": [scalar("cpus", 0.01), scalar("mem", 32.0)]
    });
    if container != Value::Null {
        launch["container"] = container;
    }
    http.post("/api/v1", &json!({"type": "LAUNCH_CONTAINER", "launch_container": launch})).status == 200
}

/// Requests the kill of a container, which may complete after the agent is killed.
fn end(http: &Http, path: &[String]) -> u16 {
    let kill = json!({"type": "KILL_CONTAINER", "kill_container": {"container_id": id(path)}});
    http.post("/api/v1", &kill).status
}

/// Launches containers, some of them nested, and kills some of them.
fn act(http: &Http, number: u64, mut random: Random, shared: &Shared) {
    let mut made: Vec<Vec<String>> = Vec::new();
    for count in 0.. {
        if shared.over.load(Ordering::Relaxed) {
            return;
        }
        let roots: Vec<&Vec<String>> = made.iter().filter(|path| path.len() == 1).collect();
        let mut path = match roots.len() as u64 {
            many if many > 0 && random.below(2) == 0 => roots[random.below(many) as usize].clone(),
            _ => Vec::new(),
        };
        path.push(format!("c{number}-{count}"));
        if !launch(http, &path) {
            std::thread::yield_now(); // The agent is away, or not yet back.
            continue;
        }
        shared.kept.lock().expect("nobody panics").insert(path.clone());
        made.push(path);
        shared.answers.fetch_add(1, Ordering::Relaxed);
        if random.below(3) == 0 {
            let victim = made.swap_remove(random.below(made.len() as u64) as usize);
            // Before the call: it may be executed without an answer. Nested containers terminate with it.
            made.retain(|path| !path.starts_with(&victim));
            shared.kept.lock().expect("nobody panics").retain(|path| !path.starts_with(&victim));
            end(http, &victim);
        }
    }
}

/// The containers that run, as the agent shows them.
fn shown(http: &Http) -> Option<BTreeSet<Vec<String>>> {
    let get = json!({"show_nested": true, "show_standalone": true});
    // Containers are listed only after recovery.
    let registered = http.get("/metrics/snapshot").json().filter(|all| all["slave/registered"] == 1.0);
    registered?;
    let answer = http.post("/api/v1", &json!({"type": "GET_CONTAINERS", "get_containers": get})).json()?;
    let of = |one: &Value| {
        let mut path = Vec::new();
        let mut id = &one["container_status"]["container_id"];
        while let Some(value) = id["value"].as_str() {
            path.insert(0, value.to_string());
            id = &id["parent"];
        }
        path
    };
    let all = answer["get_containers"]["containers"].as_array();
    Some(all.into_iter().flatten().map(of).collect())
}

/// The cgroup of a container, below a mount.
fn cgroup(root: &Path, path: &[String]) -> PathBuf {
    let mut names = path.iter();
    let top = root.join(names.next().expect("it has a name"));
    names.fold(top, |above, name| above.join("mesos").join(name))
}

#[test]
fn crashes_lose_no_update_and_leave_no_orphan() {
    if !available(&[Facility::Cgroups]) {
        return;
    }
    let (seed, rounds) = (setting("TEPUI_CRASH_SEED", SEED), setting("TEPUI_CRASH_ROUNDS", ROUNDS));
    eprintln!("TEPUI_CRASH_SEED={seed} TEPUI_CRASH_ROUNDS={rounds}");
    let mut cluster = Cluster::with(&[], &AGENT);
    let (http, shared) = (cluster.agent_http(), Shared::default());
    std::thread::scope(|scope| {
        for number in 0..CALLERS {
            let (http, shared, random) = (&http, &shared, Random(seed + number + 1));
            scope.spawn(move || act(http, number, random, shared));
        }
        let mut random = Random(seed);
        for round in 0..rounds {
            // Sometimes also during recovery.
            if random.below(4) > 0 {
                let before = shared.answers.load(Ordering::Relaxed);
                wait_for("a launch", || (shared.answers.load(Ordering::Relaxed) > before).then_some(()));
            }
            std::thread::sleep(Duration::from_millis(random.below(DELAY_MS_MAX)));
            eprintln!("round {round}: {} launched", shared.answers.load(Ordering::Relaxed));
            cluster.agents[0].kill();
            cluster.agents[0].restart();
        }
        shared.over.store(true, Ordering::Relaxed);
    });
    let kept = shared.kept.into_inner().expect("nobody panics");
    assert!(!kept.is_empty(), "something was launched");
    let root = cgroup_mount("freezer").join(cluster.cgroups_root(0));
    let found = wait_for("the agent to come back", || shown(&http));
    let lost: Vec<_> = kept.difference(&found).collect();
    assert!(lost.is_empty(), "lost {lost:?} of {kept:?}; there are {found:?}");
    for path in &kept {
        let inside = std::fs::read_to_string(
            cgroup(&root, path).join(by_version("cgroup.procs", "leaf/cgroup.procs")),
        )
        .unwrap_or_default();
        assert!(!inside.is_empty(), "{path:?} is shown and does not run");
    }
    for path in found.iter().filter(|path| path.len() == 1) {
        assert!(matches!(end(&http, path), 200 | 404));
    }
    wait_for("all containers to end", || shown(&http).filter(BTreeSet::is_empty));
    assert_nothing_left(&cluster);
}

fn assert_nothing_left(cluster: &Cluster) {
    let folder = cluster.folder().display().to_string();
    let mounts = || -> Vec<String> {
        let all = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        all.lines().filter(|line| line.contains(&folder)).map(str::to_string).collect()
    };
    let cgroups = || -> Vec<PathBuf> {
        let roots = cgroup_mounts().into_iter().map(|mount| mount.join(cluster.cgroups_root(0)));
        let entries = roots.flat_map(|root| std::fs::read_dir(root).into_iter().flatten().flatten());
        entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
    };
    let own = [cluster.master.id(), cluster.agents[0].id(), std::process::id()];
    // Supervisors exit shortly after their container.
    let left = || (mounts(), cgroups(), processes_of(&folder, &own), orphaned_namespaces(&folder));
    let began = std::time::Instant::now();
    while left() != Default::default() && began.elapsed() < patience() {
        std::thread::yield_now();
    }
    assert_eq!(left(), Default::default(), "mounts, cgroups, processes, namespaces");
}

/// Processes that work for this cluster, but not its programs themselves.
fn processes_of(folder: &str, own: &[u32]) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        let link = |name: &str| std::fs::read_link(entry.path().join(name)).unwrap_or_default();
        let inside = link("cwd").starts_with(folder) || link("root").starts_with(folder);
        if (command.contains(folder) || inside) && !own.contains(&pid) {
            found.push(format!("{pid} {command}"));
        }
    }
    found
}

/// Namespaces held by a mount without any process.
fn orphaned_namespaces(folder: &str) -> Vec<String> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    mounts.lines().filter(|line| line.contains("nsfs") && line.contains(folder)).map(str::to_string).collect()
}
