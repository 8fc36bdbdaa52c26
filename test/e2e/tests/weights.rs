//! Weights are durable when acknowledged, and changes are atomic, during crashes of the master, full disks, loss of etcd and
//! failover.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use tepui_e2e::{Cluster, Disk, Etcd, Http, Masters, wait_for};
use tepui_facilities::{Facility, available};

/// Roles that always get the same weight in one request: a mix of two requests would show.
const FEW: usize = 3;
/// More than one transaction of etcd takes.
const MANY: usize = 250;

fn put(http: &Http, roles: usize, weight: u64) -> u16 {
    let list: Vec<Value> = (0..roles).map(|at| json!({"role": format!("r{at}"), "weight": weight})).collect();
    put_list(http, list)
}

fn put_list(http: &Http, list: Vec<Value>) -> u16 {
    http.send("PUT", "/weights", &[], Value::from(list).to_string().as_bytes()).status
}

/// The one weight that all roles have; none if none has any.
fn weight(http: &Http, roles: usize) -> Option<u64> {
    let answer = http.get("/weights").json().expect("weights are JSON");
    let weights: Vec<f64> =
        answer.as_array().into_iter().flatten().filter_map(|entry| entry["weight"].as_f64()).collect();
    let first = *weights.first()?;
    assert_eq!(weights.len(), roles, "{answer}");
    assert!(weights.iter().all(|weight| *weight == first), "a mix: {answer}");
    Some(first as u64)
}

/// A client that increments the weight until an answer is not 200.
struct Writer {
    acknowledged: Arc<AtomicU64>,
    /// The last attempted weight and its status.
    thread: JoinHandle<(u64, u16)>,
}

impl Writer {
    /// Starts after `tried` and stops at `last`.
    fn start(http: Http, roles: usize, mut tried: u64, last: u64) -> Self {
        let acknowledged = Arc::new(AtomicU64::new(0));
        let acknowledged_by = Arc::clone(&acknowledged);
        let thread = std::thread::spawn(move || {
            let mut status = 200;
            while tried < last && status == 200 {
                tried += 1;
                status = put(&http, roles, tried);
                if status == 200 {
                    acknowledged_by.store(tried, Ordering::SeqCst);
                }
            }
            (tried, status)
        });
        Self { acknowledged, thread }
    }

    fn wait_for(&self, acknowledged: u64) {
        wait_for("some updates", || {
            let enough = self.acknowledged.load(Ordering::SeqCst) >= acknowledged;
            (enough || self.thread.is_finished()).then_some(())
        });
    }

    /// The last acknowledged weight, the last attempted one, and its status.
    fn join(self) -> (u64, u64, u16) {
        let (tried, status) = self.thread.join().expect("the writer ends");
        (self.acknowledged.load(Ordering::SeqCst), tried, status)
    }
}

/// How many updates are tried, and at how many moments in between the master dies.
const UPDATES: u64 = 1_000;
const DEATHS: u64 = 20;

#[test]
fn acknowledged_weights_survive_a_crash_and_changes_are_atomic() {
    let mut cluster = Cluster::without_agents(&[]);
    let (mut tried, mut promised) = (1, 0);
    for death in 1..=DEATHS {
        let writer = Writer::start(cluster.http(), FEW, tried, UPDATES + 1);
        // At a random moment of an update.
        let more = RandomState::new().build_hasher().finish() % (UPDATES / DEATHS);
        writer.wait_for(match death {
            DEATHS => UPDATES,
            _ => tried + more,
        });
        cluster.master.kill();
        let (acknowledged, last, _) = writer.join();
        (tried, promised) = (last, promised.max(acknowledged));
        cluster.master.restart();
        let kept = weight(&cluster.http(), FEW).expect("some are acknowledged");
        assert!(promised <= kept && kept <= tried, "{promised} was acknowledged, {kept} is there");
    }
    assert!(tried > UPDATES, "only {tried} updates were tried");
}

/// Each list has new roles, so that the registry grows.
fn put_growing(http: &Http, number: usize) -> u16 {
    let role = |at: usize| format!("list-{number}-{}-{at}", "x".repeat(60));
    put_list(http, (0..GROWING_ROLES).map(|at| json!({"role": role(at), "weight": 2})).collect())
}

const GROWING_ROLES: usize = 500;

/// The stored lists; each must be complete.
fn growing_lists(http: &Http) -> Vec<usize> {
    let answer = http.get("/weights").json().expect("weights are JSON");
    let mut counts = std::collections::BTreeMap::<usize, usize>::new();
    for entry in answer.as_array().expect("a list") {
        let number = entry["role"].as_str().and_then(|role| role.split('-').nth(1)).expect("one of ours");
        *counts.entry(number.parse().expect("a number")).or_default() += 1;
    }
    assert!(counts.values().all(|count| *count == GROWING_ROLES), "a mix: {counts:?}");
    counts.into_keys().collect()
}

#[test]
fn full_disk_during_a_change_is_an_error_and_the_change_atomic() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let Some(disk) = Disk::mount(folder.path(), 16) else { return };
    // Without a reserve changes fail in the middle.
    let flags = ["--disk_reserve=0B", "--disk_pressure_available=0B"];
    let mut cluster = Cluster::with_master_at(disk.path(), &flags);
    let mut next = 0;
    for dies in [false, true] {
        let filler = disk.fill();
        // Whatever room the registry has left in its file is soon used up.
        let refused = wait_for("the disk to be full", || {
            let (status, number) = (put_growing(&cluster.http(), next), next);
            next += 1;
            assert!([200, 503].contains(&status), "{status}");
            (status == 503).then_some(number)
        });
        let acknowledged: Vec<usize> = growing_lists(&cluster.http());
        assert!(!acknowledged.contains(&refused), "what is not durable is not shown");
        assert_eq!(cluster.http().get("/health").status, 200);
        let never = next;
        next += 1;
        assert_eq!(put_growing(&cluster.http(), never), 503);
        if dies {
            cluster.master.kill();
        }
        std::fs::remove_file(&filler).expect("the file can be removed");
        if dies {
            cluster.master.restart();
        }
        wait_for("room", || (put_growing(&cluster.http(), next) == 200).then_some(()));
        let kept = growing_lists(&cluster.http());
        assert!(acknowledged.iter().all(|number| kept.contains(number)), "{acknowledged:?} {kept:?}");
        assert!(kept.contains(&next) && !kept.contains(&never), "{kept:?}");
        next += 1;
    }
}

#[test]
fn etcd_loss_during_a_change_is_an_error_and_the_change_atomic() {
    if !available(&[Facility::Program("etcd")]) {
        return;
    }
    let mut masters = Masters::start(2, 3);
    let mut tried = 1;
    for _ in 0..2 {
        let leader = masters.leader();
        let writer = Writer::start(masters.http(leader), FEW, tried, u64::MAX);
        writer.wait_for(tried + 20);
        masters.etcd.kill_member(0);
        masters.etcd.kill_member(1);
        let (acknowledged, last, status) = writer.join();
        assert_eq!(status, 503);
        let shown = weight(&masters.http(leader), FEW).expect("what was seen last is still shown");
        assert!(acknowledged <= shown && shown <= last, "{acknowledged} {shown} {last}");
        masters.etcd.start_member(0);
        masters.etcd.start_member(1);
        masters.etcd.wait_until_healthy();
        let kept = wait_for("weights again", || weight(&masters.http(masters.leader()), FEW));
        assert!(acknowledged <= kept && kept <= last, "{acknowledged} {kept} {last}");
        tried = last;
    }
}

#[test]
fn changes_larger_than_one_etcd_transaction_are_atomic() {
    if !available(&[Facility::Program("etcd")]) {
        return;
    }
    let mut masters = Masters::start(2, 1);
    let mut tried = 1;
    for _ in 0..4 {
        let leader = masters.leader();
        let writer = Writer::start(masters.http(leader), MANY, tried, u64::MAX);
        writer.wait_for(tried + 5);
        masters.masters[leader].kill();
        let (acknowledged, last, _) = writer.join();
        let next = masters.leader_after(leader);
        let kept = weight(&masters.http(next), MANY).expect("some are acknowledged");
        assert!(acknowledged <= kept && kept <= last, "{acknowledged} {kept} {last}");
        tried = last;
        masters.masters[leader].restart();
    }
}

/// A journal with deletions, as left by a leader that crashed during a large change.
#[test]
fn next_leader_completes_prepared_changes_and_discards_partial_ones() {
    if !available(&[Facility::Program("etcd")]) {
        return;
    }
    for (is_complete, expected) in [(false, Some(2)), (true, None)] {
        let mut masters = Masters::start(1, 1);
        assert_eq!(put(&masters.http(0), 1, 2), 200);
        masters.masters[0].kill();
        let registry = json!({"key": Etcd::key("registry/"), "range_end": Etcd::key("registry0")});
        let found = masters.etcd.request("kv/range", &registry);
        let mut names = found["kvs"].as_array().expect("records").iter().map(|record| {
            let key = BASE64_STANDARD.decode(record["key"].as_str().expect("a key")).expect("a key");
            String::from_utf8(key).expect("a key is text")
        });
        let name = names.rfind(|key| key.contains("weight")).expect("a weight is a record");
        let key = name.split_once("registry/").expect("it is below").1;
        let part = [&(key.len() as u32).to_be_bytes()[..], key.as_bytes(), &[0]].concat();
        let put = |name: &str, value: &[u8]| {
            let value = BASE64_STANDARD.encode(value);
            masters.etcd.request("kv/put", &json!({"key": Etcd::key(name), "value": value}));
        };
        put("journal/part/00000000", &part);
        if is_complete {
            put("journal/complete", b"1");
        }
        masters.masters[0].restart();
        wait_for("it to lead again", || (masters.http(0).get("/weights").status == 200).then_some(()));
        assert_eq!(weight(&masters.http(0), 1), expected);
        let journal = json!({"key": Etcd::key("journal/"), "range_end": Etcd::key("journal0")});
        assert_eq!(masters.etcd.request("kv/range", &journal)["kvs"], Value::Null);
    }
}

#[test]
fn weights_flag_applies_at_the_first_start_only() {
    let mut cluster = Cluster::without_agents(&["--weights=r0=2"]);
    assert!(!cluster.master.log().contains("--weights applies to the first start only"));
    assert_eq!(weight(&cluster.http(), 1), Some(2));
    assert_eq!(put(&cluster.http(), 1, 3), 200);
    cluster.master.kill();
    cluster.master.remove_flag("--weights=r0=2");
    cluster.master.add_flag("--weights=r0=4");
    cluster.master.restart();
    assert_eq!(weight(&cluster.http(), 1), Some(3));
    let warning = wait_for("the warning", || {
        let log = cluster.master.log();
        log.lines().find(|line| line.contains("--weights applies to the first start only")).map(str::to_owned)
    });
    assert!(warning.contains("r0=4 (it is 3)"), "{warning}");
    cluster.master.kill();
    cluster.master.remove_flag("--weights=r0=4");
    let log_length = cluster.master.log().len();
    cluster.master.restart();
    assert!(!cluster.master.log()[log_length..].contains("--weights"), "nothing to warn of");
}
