//! Peers that stop reading, stop sending or send garbage; damaged disks. Other peers are not affected, and both programs
//! keep running or report the fault.

use std::io::{Read, Seek, SeekFrom, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tepui_e2e::{Cluster, Http, Scheduler, patience, still_works, wait_for};
use tepui_facilities::{Facility, available};

const RESOURCES: &str = "--resources=cpus:8;mem:4096;disk:4096;ports:[31000-32000]";

/// A framework that subscribes and then reads nothing.
struct Idler {
    http: Http,
    stream_id: String,
    framework_id: String,
    stream: tepui_e2e::Stream,
}

impl Idler {
    fn subscribe(http: &Http) -> Self {
        let subscribe = json!({"framework_info": Scheduler::info("idle"), "suppressed_roles": ["idle"]});
        let call = json!({"type": "SUBSCRIBE", "subscribe": subscribe});
        let mut stream = http.stream("/api/v1/scheduler", &[], &call);
        let subscribed = stream.next_event().expect("SUBSCRIBED");
        let framework_id =
            subscribed["subscribed"]["framework_id"]["value"].as_str().expect("an id").to_string();
        let stream_id = stream.header("mesos-stream-id").expect("a stream id").to_string();
        Self { http: http.clone(), stream_id, framework_id, stream }
    }

    /// Asks for one update about each of so many tasks; the status of the answer.
    fn reconcile(&self, tasks: usize) -> u16 {
        let task = |index: usize| json!({"task_id": {"value": format!("{index}-{}", "x".repeat(200))}});
        let tasks: Vec<Value> = (0..tasks).map(task).collect();
        let call = json!({
            "type": "RECONCILE", "framework_id": {"value": self.framework_id}, "reconcile": {"tasks": tasks}
        });
        let headers = [("Content-Type", "application/json"), ("Mesos-Stream-Id", self.stream_id.as_str())];
        self.http.send("POST", "/api/v1/scheduler", &headers, call.to_string().as_bytes()).status
    }
}

#[test]
fn slow_subscriber_is_disconnected() {
    let mut cluster = Cluster::with(&[], &[RESOURCES]);
    let idler = Idler::subscribe(&cluster.http());
    let before = cluster.master.resident_mib();
    // More than its queue (16 MiB) and the sockets hold; on a slow machine its ten seconds may be over before the last.
    assert_eq!(idler.reconcile(5000), 202);
    for _ in 1..20 {
        assert!([202, 403].contains(&idler.reconcile(5000)));
    }
    still_works(&mut cluster, "while-it-idles");
    wait_for("the idler to be cut off", || (idler.reconcile(1) == 403).then_some(()));
    let grown = cluster.master.resident_mib().saturating_sub(before);
    assert!(grown < 256, "the master grew by {grown} MiB");
    let mut stream = idler.stream;
    while stream.next_event().is_some() {}
    still_works(&mut cluster, "after-it-was-cut-off");
}

#[test]
fn half_open_connections_block_no_others() {
    let mut cluster = Cluster::with(&[], &[RESOURCES]);
    let beginnings: [&[u8]; 5] = [
        b"",
        b"POST /api/v1/sched",
        b"POST /api/v1/scheduler HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n",
        b"POST /api/v1/scheduler HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{",
        b"POST /api/v1/agent HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-protobuf\r\n\
          Transfer-Encoding: chunked\r\n\r\n2\r\n99\r\n",
    ];
    let mut held = Vec::new();
    for beginning in beginnings.iter().cycle().take(200) {
        held.push(cluster.http().raw(beginning).expect("a connection"));
        held.push(cluster.agent_http().raw(beginning).expect("a connection"));
    }
    still_works(&mut cluster, "between-them");
    drop(held);

    // Not HTTP at all is refused.
    for nonsense in ["\x16\x03\x01\x02\0\x01", "HELO\r\n\r\n", "GET / HTTP/9.9\r\n\r\n"] {
        for http in [cluster.http(), cluster.agent_http()] {
            read_to_end(http.raw(nonsense.as_bytes()).expect("a connection"));
        }
    }
    // TCP keepalive detects peers that vanished silently.
    let silent = cluster.http().raw(b"").expect("a connection");
    wait_for("questions to a silent peer", || has_keepalive_timer(&silent).then_some(()));
    // A disconnected subscriber is detected.
    let idler = Idler::subscribe(&cluster.http());
    drop(idler.stream);
    wait_for("the leaving to be noticed", || {
        let frameworks = cluster.http().get("/frameworks").json()?;
        let frameworks = frameworks["frameworks"].as_array()?;
        let idle = frameworks.iter().find(|framework| framework["id"] == idler.framework_id.as_str())?;
        (idle["connected"] == false).then_some(())
    });
    still_works(&mut cluster, "afterwards");
}

/// Whether the other end of a local connection has a keepalive timer.
fn has_keepalive_timer(ours: &TcpStream) -> bool {
    const KEEPALIVE: &str = "02";
    let port =
        |address: std::io::Result<std::net::SocketAddr>| format!(":{:04X}", address.expect("one").port());
    let (here, there) = (port(ours.local_addr()), port(ours.peer_addr()));
    let sockets = std::fs::read_to_string("/proc/net/tcp").expect("the sockets of this host");
    // Number, local address, remote address, state, queues, timer:when, …
    let fields = sockets.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let mut theirs = fields.filter(|fields| fields[1].ends_with(&there) && fields[2].ends_with(&here));
    theirs.any(|fields| fields[5].starts_with(KEEPALIVE))
}

fn read_to_end(mut stream: TcpStream) -> Vec<u8> {
    stream.shutdown(std::net::Shutdown::Write).ok();
    let mut answer = Vec::new();
    // A reset also closes the stream.
    stream.read_to_end(&mut answer).ok();
    answer
}

#[test]
fn oversized_bodies_are_rejected() {
    let mut cluster = Cluster::with(&[], &[RESOURCES]);
    let before = cluster.master.resident_mib();
    for http in [cluster.http(), cluster.agent_http()] {
        let announced = "POST /api/v1 HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n\
                         Content-Length: 99999999999\r\n\r\n{";
        let mut stream = http.raw(announced.as_bytes()).expect("a connection");
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).expect("an answer before the end of the body");
        assert_eq!(&answer, b"HTTP/1.1 413");
        assert_eq!(send_endless_chunks(&http), b"HTTP/1.1 413");
    }
    // Large, but not too large.
    let padding = format!("{{\"type\":\"GET_HEALTH\",\"padding\":\"{}\"}}", "x".repeat(10 << 20));
    let headers = [("Content-Type", "application/json")];
    assert_eq!(cluster.http().send("POST", "/api/v1", &headers, padding.as_bytes()).status, 200);
    let head = format!("GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n", "x".repeat(1 << 20));
    let answer = String::from_utf8_lossy(&send_all(&cluster.http(), head.as_bytes())).into_owned();
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
    let grown = cluster.master.resident_mib().saturating_sub(before);
    assert!(grown < 512, "the master grew by {grown} MiB");
    still_works(&mut cluster, "afterwards");
}

/// Sends chunks until the connection is closed; returns the start of the answer.
fn send_endless_chunks(http: &Http) -> Vec<u8> {
    let head = "POST /api/v1 HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
    let mut stream = http.raw(head.as_bytes()).expect("a connection");
    let mut reader = stream.try_clone().expect("a second handle");
    let answer = std::thread::spawn(move || {
        let mut answer = vec![0; 12];
        reader.read_exact(&mut answer).map(|()| answer)
    });
    let chunk = [b"100000\r\n".as_slice(), &vec![b' '; 1 << 20], b"\r\n"].concat();
    while !answer.is_finished() && stream.write_all(&chunk).is_ok() {}
    answer.join().expect("the reader ends").expect("an answer")
}

fn send_all(http: &Http, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(http.address()).expect("a connection");
    stream.set_read_timeout(Some(patience())).expect("a timeout can be set");
    // It may be refused before it is sent.
    stream.write_all(bytes).ok();
    read_to_end(stream)
}

/// RecordIO that is none, from an agent to the master and from a master to the agent.
#[test]
fn garbage_on_the_agent_link_closes_only_that_link() {
    let garbage: [&[u8]; 5] =
        [b"abc\n", b"99999999999999999999\n", b"999999999\nx", b"5\nhello", b"-1\n\xff\xff\xff"];
    let mut cluster = Cluster::with(&[], &[RESOURCES]);
    for bytes in garbage {
        let mut request = format!(
            "POST /api/v1/agent HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-protobuf\r\n\
             Transfer-Encoding: chunked\r\n\r\n{:x}\r\n",
            bytes.len()
        )
        .into_bytes();
        request.extend(bytes);
        request.extend(b"\r\n");
        let stream = cluster.http().raw(&request).expect("a connection");
        read_to_end(stream);
    }
    still_works(&mut cluster, "after-garbage-to-the-master");

    for (index, bytes) in garbage.into_iter().enumerate() {
        let impostor = Impostor::start(bytes);
        let work_dir = cluster.folder().join(format!("misled-{index}"));
        cluster.add_agent_of(&impostor.address, &work_dir, &["--registration_backoff_factor=10ms"]);
        wait_for("the agent to try again", || (impostor.visits.load(Ordering::Relaxed) >= 3).then_some(()));
        let mut agent = cluster.agents.pop().expect("the misled agent");
        assert!(agent.is_running());
        assert_eq!(Http::new(&agent.address).get("/health").status, 200);
    }
}

/// Answers every request with a stream of garbage.
struct Impostor {
    address: String,
    visits: Arc<AtomicUsize>,
}

impl Impostor {
    fn start(garbage: &'static [u8]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address").to_string();
        let visits = Arc::new(AtomicUsize::new(0));
        let counter = visits.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                counter.fetch_add(1, Ordering::Relaxed);
                let head = "HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nTransfer-Encoding: chunked\r\n\r\n";
                let mut answer = format!("{head}{:x}\r\n", garbage.len()).into_bytes();
                answer.extend(garbage);
                answer.extend(b"\r\n");
                let mut request = [0; 1024];
                if stream.read(&mut request).is_ok() {
                    stream.write_all(&answer).ok();
                }
            }
        });
        Self { address, visits }
    }
}

#[test]
fn damaged_checkpoints_are_named_and_can_be_skipped() {
    let mut cluster = Cluster::with(&[], &[RESOURCES]);
    let mut scheduler = Scheduler::subscribe(&cluster.http(), Scheduler::info("dev"));
    let offer = scheduler.fresh_offer();
    scheduler.launch(&offer, &[Scheduler::task(&offer, "t", "sleep 1000")]);
    scheduler.reach("t", "TASK_RUNNING");
    let records = cluster.agents[0].work_dir.join("meta/agent.redb");
    let registry = find(&cluster.master.work_dir, "redb");
    cluster.agents[0].kill();
    cluster.master.kill();

    let whole = std::fs::read(&records).expect("the agent's records");
    let registry_whole = std::fs::read(&registry).expect("the master's records");
    for damage in [truncate as fn(&Path), garble] {
        std::fs::write(&records, &whole).expect("the records can be written");
        std::fs::write(&registry, &registry_whole).expect("the records can be written");
        damage(&records);
        damage(&registry);
        for (program, file) in [(&mut cluster.agents[0], &records), (&mut cluster.master, &registry)] {
            let (status, printed) = program.restart_in_vain();
            assert!(!status.success());
            assert!(printed.contains(&file.display().to_string()), "{printed}");
            assert!(printed.contains("move it away"), "{printed}");
        }
    }
    std::fs::write(&registry, &registry_whole).expect("the records can be written");
    cluster.master.restart();
    cluster.agents[0].add_flag("--no-strict");
    cluster.agents[0].restart();
    cluster.wait_for_agents(1);
    assert!(find(&records.with_file_name(""), "damaged").exists(), "the damaged file is kept");
    still_works(&mut cluster, "anew");
}

/// The file in this directory, or below, whose name has this extension.
fn find(folder: &Path, extension: &str) -> PathBuf {
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("the directory can be read").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|found| found == extension) {
                return path;
            }
        }
    }
    panic!("no .{extension} below {}", folder.display());
}

fn truncate(path: &Path) {
    let file = std::fs::File::options().write(true).open(path).expect("the file can be opened");
    let size = file.metadata().expect("it has a size").len();
    file.set_len(size / 3).expect("the file can be cut");
}

fn garble(path: &Path) {
    let mut file = std::fs::File::options().write(true).open(path).expect("the file can be opened");
    let size = file.metadata().expect("it has a size").len();
    for at in (512..size).step_by(1024) {
        file.seek(SeekFrom::Start(at)).expect("the place exists");
        file.write_all(b"garbage").expect("the file can be written");
    }
}

#[test]
fn agent_raises_its_open_file_limit_but_not_that_of_containers() {
    let mut cluster = Cluster::without_agents(&[]);
    let starter = ["prlimit", "--nofile=300:4000"].map(str::to_string).to_vec();
    cluster.add_agent_by(starter, &[RESOURCES]);
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", cluster.agents[0].id())).expect("limits");
    let open_files = limits.lines().find(|line| line.starts_with("Max open files")).expect("a limit");
    assert_eq!(open_files.split_whitespace().nth(3), Some("4000"), "{open_files}");
    assert!(cluster.agents[0].log().contains("containers_max=1248"), "{}", cluster.agents[0].log());
    let mut scheduler = Scheduler::subscribe(&cluster.http(), Scheduler::info("dev"));
    let offer = scheduler.offer();
    let command = "test $(ulimit -Sn) = 300 && test $(ulimit -Hn) = 4000";
    scheduler.launch(&offer, &[Scheduler::task(&offer, "limited", command)]);
    scheduler.reach("limited", "TASK_FINISHED");
}

#[test]
fn agent_without_cgroups_runs_tasks() {
    let mut cluster = Cluster::with(&[], &[RESOURCES, "--launcher=posix", "--isolation=posix/cpu,posix/mem"]);
    still_works(&mut cluster, "on-this-host");
}

/// With v1 beside v2, as on hosts in the middle of a migration.
#[test]
fn agent_on_a_hybrid_cgroup_host_runs_tasks() {
    if !available(&[Facility::Mounts, Facility::CgroupsV2]) {
        return;
    }
    let hybrid = "set -e; mount -t tmpfs none /sys/fs/cgroup; cd /sys/fs/cgroup; mkdir unified named; \
                  mount -t cgroup2 none unified; mount -t cgroup -o none,name=tepui-e2e none named; \
                  exec \"$@\"";
    let starter = ["unshare", "--mount", "--propagation=private", "sh", "-c", hybrid, "sh"];
    let mut cluster = Cluster::without_agents(&[]);
    cluster.add_agent_by(starter.map(str::to_string).to_vec(), &[RESOURCES]);
    let mounts = std::fs::read_to_string(format!("/proc/{}/mounts", cluster.agents[0].id())).expect("mounts");
    let has = |kind: &str| mounts.lines().any(|line| line.split(' ').nth(2) == Some(kind));
    assert!(has("cgroup") && has("cgroup2"), "{mounts}");
    still_works(&mut cluster, "on-a-hybrid-host");
}
