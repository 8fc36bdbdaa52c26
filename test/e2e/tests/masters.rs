//! Several masters with one etcd: one leads, standbys redirect to it; it is killed, paused, or loses etcd, and no
//! acknowledged change is lost, nothing runs twice, and no other master writes.

use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use tepui_e2e::{Certificates, Etcd, Http, Masters, Program, Scheduler, binary, wait_for};
use tepui_facilities::{Facility, available};

fn mark_gone(http: &Http, agent: &str) -> u16 {
    let call = json!({"type": "MARK_AGENT_GONE", "mark_agent_gone": {"agent_id": {"value": agent}}});
    http.post("/api/v1", &call).status
}

fn agent_ids(http: &Http) -> Vec<String> {
    let agents = http.get("/slaves").json().expect("a leader shows its agents");
    let ids = agents["slaves"].as_array().expect("a list").iter();
    ids.map(|agent| agent["id"].as_str().expect("an id").to_string()).collect()
}

#[test]
fn standby_redirects_to_the_leader_and_takes_over() {
    if !available(&[Facility::Program("etcd")]) {
        return;
    }
    let mut masters = Masters::start(3, 1);
    let first = masters.leader();
    let standby = (first + 1) % 3;
    let port = masters.masters[first].address.rsplit(':').next().unwrap().to_string();

    // Answers of a standby, and redirects to the leader.
    let answer = masters.http(standby).get("/state?a=b");
    assert_eq!(
        (answer.status, answer.header("location").unwrap()),
        (307, &*format!("//localhost:{port}/master/state?a=b"))
    );
    for path in ["/api/v1", "/master/api/v1/scheduler"] {
        let answer = masters.http(standby).post(path, &json!({"type": "GET_HEALTH"}));
        assert_eq!(answer.status, 307, "{path}");
        assert!(answer.header("location").unwrap().contains(&port));
    }
    for path in ["/health", "/flags", "/version", "/metrics/snapshot", "/"] {
        assert_eq!(masters.http(standby).get(path).status, 200, "{path}");
    }
    assert_eq!(masters.http(standby).get("/metrics/snapshot").json().unwrap()["master/elected"], 0.0);

    // Tasks run on agents that find the leader in three ways.
    let _by_etcd = masters.agent("by-etcd", &masters.etcd.address());
    let _by_list = masters.agent("by-list", &masters.list());
    let _by_redirect = masters.agent("by-redirect", &masters.masters[standby].address);
    masters.wait_for_agents(first, 3);
    let before = agent_ids(&masters.http(first));
    let mut scheduler = Scheduler::subscribe(&masters.http(first), Scheduler::info("dev"));
    let started = masters.folder().join("started");
    let offer = scheduler.offer();
    let command = format!("echo once >> {}; sleep 1000", started.display());
    let tasks = ["a", "b"].map(|id| Scheduler::task(&offer, id, &command));
    assert_eq!(scheduler.launch(&offer, &tasks).status, 202);
    scheduler.reach("a", "TASK_RUNNING");
    scheduler.reach("b", "TASK_RUNNING");
    let starts = || std::fs::read_to_string(&started).unwrap_or_default().lines().count();
    wait_for("both commands", || (starts() == 2).then_some(()));

    // The lease determines the time without a leader.
    let leases = masters.etcd.request("lease/leases", &json!({}))["leases"].clone();
    for lease in leases.as_array().expect("leases of the masters") {
        let lease = masters.etcd.request("lease/timetolive", &json!({"ID": lease["ID"]}));
        assert_eq!(lease["grantedTTL"], "2", "{lease}");
    }
    masters.masters[first].kill();
    let second = masters.leader_after(first);
    let mut info = Scheduler::info("dev");
    info["id"] = json!({"value": scheduler.framework_id});
    let mut scheduler = Scheduler::subscribe(&masters.http(second), info);
    // The third agent has only one master in its list; it leads now, or redirects.
    masters.wait_for_agents(second, 3);
    let mut after = agent_ids(&masters.http(second));
    after.sort();
    assert_eq!(after, {
        let mut before = before;
        before.sort();
        before
    });
    assert_eq!(scheduler.call(json!({"type": "RECONCILE", "reconcile": {"tasks": []}})).status, 202);
    scheduler.reach("a", "TASK_RUNNING");
    scheduler.reach("b", "TASK_RUNNING");
    assert_eq!(starts(), 2, "nothing ran twice");
    scheduler.call(json!({"type": "KILL", "kill": {"task_id": {"value": "a"}}}));
    scheduler.reach("a", "TASK_KILLED");

    // The client library discovers the leader in etcd too.
    let flag = format!("--master={}", masters.etcd.address());
    let listed = Command::new(binary()).args(["agents", &flag]).output().expect("the binary starts");
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));

    // The old leader restarts as a standby.
    masters.masters[first].restart();
    wait_for("the old leader to follow", || (masters.http(first).get("/state").status == 307).then_some(()));
}

#[test]
fn paused_leader_cannot_write_and_becomes_standby() {
    if !available(&[Facility::Program("etcd")]) {
        return;
    }
    let masters = Masters::start(2, 1);
    let first = masters.leader();
    let second = 1 - first;
    let _agent = masters.agent("agent", &masters.etcd.address());
    masters.wait_for_agents(first, 1);
    let agent = agent_ids(&masters.http(first)).remove(0);

    masters.masters[first].signal("STOP");
    let to_old: Vec<_> = (0..4)
        .map(|_| {
            let (http, agent) = (masters.http(first), agent.clone());
            std::thread::spawn(move || mark_gone(&http, &agent))
        })
        .collect();
    assert_eq!(masters.leader_after(first), second);
    // The agent learns from etcd that its master is deposed, although the connection is open.
    masters.wait_for_agents(second, 1);
    assert_eq!(mark_gone(&masters.http(second), &agent), 200);
    masters.masters[first].signal("CONT");

    for answer in to_old {
        let status = answer.join().unwrap();
        assert!(matches!(status, 307 | 503), "the old leader answered {status}");
    }
    wait_for("the old leader to follow", || (masters.http(first).get("/state").status == 307).then_some(()));
    assert_eq!(masters.leader(), second);
    // Lines are written by a thread of their own.
    for (master, terms) in
        [(first, &["elected leader", "leadership lost"][..]), (second, &["elected leader"])]
    {
        let logged = || {
            let log = masters.masters[master].log();
            log.lines()
                .filter_map(|line| terms.iter().copied().find(|term| line.contains(term)))
                .collect::<Vec<_>>()
        };
        wait_for("the log of the terms", || (logged() == terms).then_some(()));
    }
    // Masters introduce themselves by hostname.
    let (_, port) = masters.masters[second].address.rsplit_once(':').expect("an address with a port");
    let new_leader = format!("leader=localhost:{port}");
    wait_for("the log of the new leader", || {
        let log = masters.masters[first].log();
        let (_, after_loss) = log.split_once("leadership lost")?;
        after_loss
            .lines()
            .any(|line| line.contains("leading master changed") && line.contains(&new_leader))
            .then_some(())
    });
}

#[test]
fn without_quorum_reads_work_and_writes_fail() {
    if !available(&[Facility::Program("etcd")]) {
        return;
    }
    let mut masters = Masters::start(2, 3);
    let first = masters.leader();
    let _agent = masters.agent("agent", &masters.list());
    masters.wait_for_agents(first, 1);
    let agent = agent_ids(&masters.http(first)).remove(0);

    masters.etcd.kill_member(0);
    masters.etcd.kill_member(1);
    assert_eq!(mark_gone(&masters.http(first), &agent), 503);
    wait_for("the leader to doubt", || (mark_gone(&masters.http(first), &agent) == 503).then_some(()));
    let state: Value = masters.http(first).get("/state").json().expect("what was seen last is still shown");
    assert_eq!(state["slaves"][0]["id"], json!(agent));
    assert_eq!(masters.http(first).get("/health").status, 200);

    masters.etcd.start_member(0);
    masters.etcd.start_member(1);
    masters.etcd.wait_until_healthy();
    // A rejected change may have been written; a retry succeeds in both cases.
    wait_for("a leader that can write", || {
        let leader = masters.leader();
        (mark_gone(&masters.http(leader), &agent) == 200).then_some(())
    });
}

fn disk_pressure(http: &Http) -> Option<f64> {
    http.get("/metrics/snapshot").json()?["registrar/disk_pressure"].as_f64()
}

fn put_weight(http: &Http, weight: u32) -> tepui_e2e::Response {
    let list = json!([{"role": "dev", "weight": weight}]).to_string();
    http.send("PUT", "/weights", &[], list.as_bytes())
}

#[test]
fn etcd_nospace_is_disk_pressure_until_disarmed() {
    if !available(&[Facility::Program("etcd")]) {
        return;
    }
    let mut masters = Masters::start_with_quota(2, 512 * 1024);
    let first = masters.leader();
    let _agent = masters.agent("agent", &masters.list());
    masters.wait_for_agents(first, 1);
    let mut scheduler = Scheduler::subscribe(&masters.http(first), Scheduler::info("dev"));
    let offer = scheduler.offer();
    scheduler.launch(&offer, &[Scheduler::task(&offer, "sleeper", "sleep 1000")]);
    scheduler.reach("sleeper", "TASK_RUNNING");
    assert_eq!(put_weight(&masters.http(first), 2).status, 200);
    assert_eq!(disk_pressure(&masters.http(first)), Some(0.0));

    masters.etcd.fill();
    let is_on = |expected: f64| disk_pressure(&masters.http(first)).filter(|is| *is == expected);
    wait_for("disk pressure", || is_on(1.0));
    let rejected = put_weight(&masters.http(first), 3);
    assert_eq!(rejected.status, 507, "{}", rejected.text());
    assert!(rejected.text().contains("disk pressure"), "{}", rejected.text());
    // Calls that need no record work, and the leader stays.
    scheduler.call(json!({"type": "KILL", "kill": {"task_id": {"value": "sleeper"}}}));
    scheduler.reach("sleeper", "TASK_KILLED");
    assert_eq!(masters.leader(), first);
    let joining = masters.agent("joining", &masters.list());

    masters.etcd.make_room();
    wait_for("room", || is_on(0.0));
    assert_eq!(put_weight(&masters.http(first), 3).status, 200);
    masters.wait_for_agents(first, 2);
    drop(joining);

    // Without room no leader can be elected; candidates retry.
    masters.etcd.fill();
    wait_for("disk pressure", || is_on(1.0));
    masters.masters[first].kill();
    let refused = || masters.masters[1 - first].log().contains("space exceeded").then_some(());
    wait_for("the standby to be refused", refused);
    masters.etcd.make_room();
    let second = masters.leader_after(first);
    assert_eq!(put_weight(&masters.http(second), 4).status, 200);
}

/// Only masters, agents and tools with a certificate and a password read or write, and the password is nowhere.
#[test]
fn etcd_access_requires_certificate_and_password() {
    if !available(&[Facility::Program("etcd"), Facility::Program("openssl"), Facility::Program("curl")]) {
        return;
    }
    let certificates = Certificates::make();
    let etcd = Etcd::start_closed(&certificates, "p@ss/word");
    let folder = tempfile::tempdir().expect("a temporary directory");
    let address = etcd.closed_address("tepui:p%40ss%2Fword");
    let file = |flag: &str, name: &str| format!("--{flag}={}", certificates.file(name).display());
    let tls = [file("etcd_ca", "ca.pem"), file("etcd_cert", "client.pem"), file("etcd_key", "client.key")];
    let start = |name: &str, address: &str, more: &[String]| {
        let flags =
            [&[format!("--registry={address}"), "--leader_lease=2secs".into()], &tls[..], more].concat();
        Program::start("master", &folder.path().join(name), &flags, Vec::new())
    };
    let leads = |master: &Program| (Http::new(&master.address).get("/weights").status == 200).then_some(());
    let mut first = start("first", &address, &[]);
    wait_for("it to lead", || leads(&first));
    let put = |master: &Program, weight: u32| {
        let body = format!(r#"[{{"role":"a","weight":{weight}}}]"#);
        Http::new(&master.address).send("PUT", "/weights", &[], body.as_bytes()).status
    };
    assert_eq!(put(&first, 2), 200);
    let flags = [
        &[format!("--master={address}"), format!("--runtime_dir={}", folder.path().join("run").display())],
        &tls[..],
    ];
    let agent = Program::start("agent", &folder.path().join("agent"), &flags.concat(), Vec::new());
    wait_for("the agent to find its master", || {
        let agents = Http::new(&first.address).get("/slaves").json()?;
        (agents["slaves"][0]["active"] == true).then_some(())
    });
    for (program, path, name) in
        [(&first, "/flags", "registry"), (&first, "/state", "registry"), (&agent, "/flags", "master")]
    {
        let shown = Http::new(&program.address).get(path).json().unwrap()["flags"][name].clone();
        assert!(
            shown.as_str().is_some_and(|shown| shown.starts_with("etcds://tepui:***@")),
            "{path}: {shown}"
        );
    }

    // With a wrong password there is no leader.
    let stranger = start("stranger", &etcd.closed_address("tepui:wrong"), &[]);
    wait_for("a refusal", || stranger.log().contains("invalid user ID or password").then_some(()));
    assert_eq!(Http::new(&stranger.address).get("/weights").status, 503);
    first.kill();
    // Tools find the next one, which speaks TLS, with the same certificates.
    let second = start("second", &address, &certificates.flags());
    let weights = |address: &str| {
        let mut command = Command::new(binary());
        command.args(["weights", &format!("--master={address}")]);
        for (variable, name) in
            [("TEPUI_TLS_CA", "ca.pem"), ("TEPUI_TLS_CERT", "client.pem"), ("TEPUI_TLS_KEY", "client.key")]
        {
            command.env(variable, certificates.file(name));
        }
        let output = command.output().expect("the binary starts");
        (
            output.status.success(),
            String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned(),
        )
    };
    let printed = wait_for("it to lead", || Some(weights(&address)).filter(|(done, _)| *done)).1;
    assert!(printed.lines().any(|line| line.starts_with('a') && line.contains('2')), "{printed}");
    let (done, printed) = weights(&etcd.closed_address("tepui:wrong"));
    assert!(!done && !printed.contains("wrong"), "{printed}");

    for program in [&first, &second, &agent, &stranger] {
        let log = program.log();
        assert!(!log.contains("p@ss") && !log.contains("p%40ss"), "{log}");
    }
}

#[test]
fn etcd_certificates_are_reloaded() {
    if !available(&[Facility::Program("etcd"), Facility::Program("openssl"), Facility::Program("curl")]) {
        return;
    }
    let (certificates, strangers) = (Certificates::make(), Certificates::make());
    let etcd = Etcd::start_closed(&certificates, "password");
    let folder = tempfile::tempdir().expect("a temporary directory");
    let file = |name: &str| folder.path().join(name);
    let take = |from: &Certificates| {
        for name in ["ca.pem", "client.pem", "client.key"] {
            std::fs::copy(from.file(name), file(name)).expect("a file");
        }
    };
    take(&strangers);
    let flag = |flag: &str, name: &str| format!("--{flag}={}", file(name).display());
    let flags = [
        format!("--registry={}", etcd.closed_address("tepui:password")),
        flag("etcd_ca", "ca.pem"),
        flag("etcd_cert", "client.pem"),
        flag("etcd_key", "client.key"),
    ];
    let master = Program::start("master", &file("master"), &flags, Vec::new());
    let status = || Http::new(&master.address).get("/weights").status;
    wait_for("a refusal", || master.log().contains("cannot determine the leader").then_some(()));
    assert_eq!(status(), 503);
    take(&certificates);
    wait_for("it to lead", || (status() == 200).then_some(()));
}

/// The answer of one of two masters to a change of a unique role.
struct Answer {
    role: String,
    status: u16,
    /// Whether the other master had accepted a change before this request.
    after_the_other: bool,
}

#[test]
fn partitioned_leader_cannot_write_and_writes_are_linearizable() {
    if !available(&[Facility::Program("etcd")]) {
        return;
    }
    let (masters, wires) = Masters::start_by_wire(2);
    let first = masters.leader();
    let second = 1 - first;
    let other_said_yes = AtomicBool::new(false);
    let is_done = AtomicBool::new(false);
    let answers = Mutex::new((Vec::new(), Vec::new()));
    let ask = |at: usize| {
        for number in 0.. {
            let role = format!("m{at}-{number}");
            let after_the_other = other_said_yes.load(Ordering::SeqCst);
            let body = json!([{"role": role, "weight": 2}]).to_string();
            let status = masters.http(at).send("PUT", "/weights", &[], body.as_bytes()).status;
            let mut answers = answers.lock().unwrap();
            if at == first {
                answers.0.push(Answer { role, status, after_the_other });
            } else {
                answers.1.push(Answer { role, status, after_the_other: false });
                other_said_yes.fetch_or(status == 200, Ordering::SeqCst);
            }
            if is_done.load(Ordering::SeqCst) {
                return;
            }
        }
    };
    let count = |of: &[Answer], is_it: fn(&Answer) -> bool| of.iter().filter(|answer| is_it(answer)).count();
    let is_yes = |answer: &Answer| answer.status == 200;
    std::thread::scope(|scope| {
        scope.spawn(|| ask(first));
        scope.spawn(|| ask(second));
        wait_for("the leader to write", || (count(&answers.lock().unwrap().0, is_yes) > 5).then_some(()));
        wires[first].cut();
        assert_eq!(masters.leader_after(first), second);
        wait_for("the new leader to write", || (count(&answers.lock().unwrap().1, is_yes) > 5).then_some(()));
        // The partitioned master still serves its last snapshot.
        assert_eq!(masters.http(first).get("/weights").status, 200);
        let is_late = |answer: &Answer| answer.after_the_other;
        wait_for("late questions", || (count(&answers.lock().unwrap().0, is_late) > 5).then_some(()));
        wires[first].mend();
        wait_for("the old leader to follow", || {
            (masters.http(first).get("/state").status == 307).then_some(())
        });
        is_done.store(true, Ordering::SeqCst);
    });
    let (by_first, by_second) = answers.into_inner().unwrap();
    for answer in &by_first {
        assert!([200, 307, 503].contains(&answer.status), "{}", answer.status);
        assert!(!(answer.after_the_other && answer.status == 200), "{} was answered twice", answer.role);
    }
    let kept = masters.http(second).get("/weights").json().expect("weights are JSON");
    let is_kept = |role: &str| kept.as_array().unwrap().iter().any(|entry| entry["role"] == role);
    for answer in by_first.iter().chain(&by_second).filter(|answer| answer.status == 200) {
        assert!(is_kept(&answer.role), "{} was promised", answer.role);
    }
}
