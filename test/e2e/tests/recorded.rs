//! Every recorded answer of a v1 master about the scheduler API and task validation, met by the running binaries.
//!
//! A difference that is not listed in `DIFFERENCES`, and named in docs/compat.md, fails.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};
use tepui_e2e::recorded::{Recorded, differences, read};
use tepui_e2e::{Cluster, Http, Response, Scheduler, scalar, wait_for};

/// Answers that differ only in their text. Each is explained in docs/compat.md under its name.
const DIFFERENCES: &[&str] = &[
    "update v-wrongrole TASK_ERROR REASON_TASK_INVALID",
    "update v-uri TASK_FAILED REASON_CONTAINER_LAUNCH_FAILED",
    "update v-limkey TASK_ERROR REASON_TASK_INVALID",
    "update v-limlow TASK_ERROR REASON_TASK_INVALID",
    "update v-limneg TASK_ERROR REASON_TASK_INVALID",
];

/// What our answers have besides; in docs/compat.md as *Statuses of group tasks*.
const ADDITIONS: &[(&str, &str)] = &[
    ("update g-ok TASK_STARTING", ".container_status.executor_pid: extra"),
    ("update g-ok TASK_FINISHED", ".container_status.executor_pid: extra"),
    ("update g-ok TASK_FINISHED", ".container_status.network_infos: extra"),
];

/// Updates that the recorded master sent as well, as its later documents show, and the recorder missed.
const UNRECORDED: &[&str] = &["update v-nocmd TASK_RUNNING"];

/// What the recorded master ran and this one refuses; in docs/compat.md under its name.
const REFUSED_HERE: &str = "update v-share-true";

const RECORDED: &str = include_str!("../recorded/scheduler.jsonl");

/// The recorded answers and the differences so far.
struct Battery {
    recorded: Vec<Recorded>,
    met: Vec<bool>,
    /// The entries of `DIFFERENCES` that occurred.
    excused: BTreeSet<String>,
    problems: Vec<String>,
}

impl Battery {
    fn new() -> Self {
        let mut recorded = read(RECORDED);
        recorded.retain(|one| !one.name.starts_with(REFUSED_HERE));
        Self { met: vec![false; recorded.len()], recorded, excused: BTreeSet::new(), problems: Vec::new() }
    }

    fn take(&mut self, name: &str) -> Recorded {
        let at = (0..self.recorded.len())
            .find(|at| self.recorded[*at].name == name && !self.met[*at])
            .unwrap_or_else(|| panic!("nothing is recorded as {name:?}"));
        self.met[at] = true;
        self.recorded[at].clone()
    }

    /// Compares an answer with the recorded one of this name.
    fn meet(&mut self, name: &str, got: &Value) {
        let recorded = self.take(name);
        for difference in differences(&without_ids(&recorded.response), &without_ids(got)) {
            let is_text = difference.starts_with(".message:");
            if !(ADDITIONS.contains(&(name, difference.as_str())) || is_text && self.excuse(name)) {
                self.problems.push(format!("{name}: {difference}"));
            }
        }
    }

    /// Replays a recorded request with ids of this run and compares status, headers and body.
    fn replay(&mut self, name: &str, http: &Http, scheduler: &Scheduler) {
        let recorded = self.take(name);
        let body = scheduler.with_own_ids(recorded.body.as_deref().unwrap_or_default());
        let mut headers: Vec<(String, String)> = Vec::new();
        if recorded.method.as_deref() == Some("POST")
            && !recorded.headers.iter().any(|(name, _)| name == "Content-Type")
        {
            headers.push(("Content-Type".to_string(), "application/json".to_string()));
        }
        for (name, value) in &recorded.headers {
            let value = if value.len() == 36 { scheduler.stream_id().to_string() } else { value.clone() };
            headers.push((name.clone(), value));
        }
        let headers: Vec<(&str, &str)> =
            headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let method = recorded.method.as_deref().expect("a request has a method");
        let path = recorded.path.as_deref().expect("a request has a path");
        let got = http.send(method, path, &headers, body.as_bytes());
        self.compare_answer(&recorded, &got);
    }

    fn compare_answer(&mut self, recorded: &Recorded, got: &Response) {
        let name = &recorded.name;
        if got.status != recorded.status {
            self.problems.push(format!(
                "{name}: status {} instead of {}: {}",
                got.status,
                recorded.status,
                got.text()
            ));
        }
        for (header, value) in &recorded.response_headers {
            if got.header(header) != Some(value) {
                self.problems.push(format!(
                    "{name}: header {header} is {:?} instead of {value:?}",
                    got.header(header)
                ));
            }
        }
        let expected = recorded.response.as_str().unwrap_or_default();
        if got.text() != expected && !self.excuse(name) {
            self.problems.push(format!("{name}: body {:?} instead of {expected:?}", got.text()));
        }
        assert!(got.status < 400 || !got.text().is_empty(), "{name}: a refusal says why");
    }

    /// Whether this answer may have another text.
    fn excuse(&mut self, name: &str) -> bool {
        let listed = DIFFERENCES.contains(&name);
        if listed {
            self.excused.insert(name.to_string());
        }
        listed
    }

    fn finish(self) {
        let unmet = (0..self.recorded.len())
            .filter(|at| !self.met[*at])
            .map(|at| format!("{}: not met", self.recorded[at].name));
        let stale = DIFFERENCES
            .iter()
            .filter(|name| !self.excused.contains(**name))
            .map(|name| format!("{name}: listed as different, and is not"));
        let problems: Vec<String> = self.problems.into_iter().chain(unmet).chain(stale).collect();
        assert!(problems.is_empty(), "{} differences:\n{}", problems.len(), problems.join("\n"));
    }
}

#[test]
fn answers_match_the_recorded_ones() {
    let cluster = Cluster::with(
        &["--hostname=localhost"],
        &["--resources=cpus:16;mem:8000;disk:1000;ports:[31000-32000]", "--hostname=localhost"],
    );
    let mut battery = Battery::new();
    let http = cluster.http();
    let mut scheduler = Scheduler::subscribe(&http, framework());
    let offer = scheduler.offer();
    battery.meet("event OFFERS", &offer);
    first_tasks(&mut battery, &mut scheduler, &offer);
    requests(&mut battery, &http, &mut scheduler);
    subscriptions(&mut battery, &http);
    validation(&mut battery, &mut scheduler);
    groups(&mut battery, &mut scheduler, cluster.folder());
    stale_offers(&mut battery, &mut scheduler);
    ending(&mut battery, &http, &mut scheduler);
    battery.finish();
}

#[test]
fn every_difference_is_explained() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/compat.md");
    let compat = std::fs::read_to_string(path).expect("docs/compat.md can be read");
    for name in DIFFERENCES {
        assert!(compat.contains(name), "docs/compat.md does not name {name:?}");
    }
}

fn framework() -> Value {
    let mut info = Scheduler::info("dev");
    info["name"] = json!("ref");
    info["user"] = json!("root");
    info["principal"] = json!("ref");
    info
}

/// One task that finishes, one that is killed by a signal, one long task with a health check, one that fails.
fn first_tasks(battery: &mut Battery, scheduler: &mut Scheduler, offer: &Value) {
    let mut staying = Scheduler::task(offer, "t-run", "sleep 1000");
    staying["health_check"] = json!({
        "type": "COMMAND", "command": {"value": "true"}, "delay_seconds": 0.0, "interval_seconds": 3600.0
    });
    let tasks = [
        Scheduler::task(offer, "t-fin", "true"),
        Scheduler::task(offer, "t-sig", "kill -KILL $$"),
        staying,
        Scheduler::task(offer, "t-fail", "exit 3"),
    ];
    assert_eq!(scheduler.launch(offer, &tasks).status, 202);
    for (task, states) in [
        ("t-fin", ["TASK_STARTING", "TASK_RUNNING", "TASK_FINISHED"]),
        ("t-sig", ["TASK_STARTING", "TASK_RUNNING", "TASK_FAILED"]),
        ("t-fail", ["TASK_STARTING", "TASK_RUNNING", "TASK_FAILED"]),
    ] {
        expect_updates(battery, scheduler, task, &states);
    }
    expect_updates(battery, scheduler, "t-run", &["TASK_STARTING", "TASK_RUNNING"]);
    let healthy = scheduler.update("t-run", "TASK_RUNNING");
    battery.meet("update t-run TASK_RUNNING REASON_TASK_HEALTH_CHECK_STATUS_UPDATED", &healthy);
}

fn expect_updates(battery: &mut Battery, scheduler: &mut Scheduler, task: &str, states: &[&str]) {
    for state in states {
        let status = scheduler.update(task, state);
        let name = match status["reason"].as_str() {
            Some(reason) => format!("update {task} {state} {reason}"),
            None => format!("update {task} {state}"),
        };
        if !UNRECORDED.contains(&name.as_str()) {
            battery.meet(&name, &status);
        }
    }
}

/// An answer whose message names no directory and no id of one run.
fn without_ids(answer: &Value) -> Value {
    let mut answer = answer.clone();
    if let Some(message) = answer.get_mut("message").filter(|message| message.is_string()) {
        let words = message.as_str().expect("a string").split_inclusive(['/', '\'', ' ']);
        let is_id = |word: &str| word.len() >= 36 && word[..36].matches('-').count() == 4;
        let words: String = words.map(|word| if is_id(word) { &word[36..] } else { word }).collect();
        *message = match (words.find("'/"), words.find("/slaves/")) {
            (Some(quote), Some(end)) => format!("{}{}", &words[..=quote], &words[end..]).into(),
            _ => words.into(),
        };
    }
    answer
}

fn requests(battery: &mut Battery, http: &Http, scheduler: &mut Scheduler) {
    for name in [
        "master scheduler body GET",
        "master scheduler body empty",
        "master scheduler body not json",
        "master scheduler body no type",
        "master scheduler body text/plain",
        "master scheduler body accept html",
        "master scheduler body subscribe no info",
        "master scheduler body subscribe stream id",
        "master scheduler body teardown without framework",
        "master scheduler body kill unknown framework",
        "master scheduler kill no task id",
        "master scheduler accept without body",
        "master scheduler decline unknown offer",
        "master scheduler suppress foreign role",
        "master scheduler revive foreign role",
        "master scheduler message no executor",
        "master scheduler update_framework user",
        "master scheduler request",
    ] {
        battery.replay(name, http, scheduler);
    }
    let agent = scheduler.agent_id.clone();
    let tasks = json!([{"task_id": {"value": "never"}, "agent_id": agent}, {"task_id": {"value": "never2"}}]);
    scheduler.call(json!({"type": "RECONCILE", "reconcile": {"tasks": tasks}}));
    expect_updates(battery, scheduler, "never", &["TASK_GONE"]);
    expect_updates(battery, scheduler, "never2", &["TASK_UNKNOWN"]);
}

fn subscriptions(battery: &mut Battery, http: &Http) {
    for name in ["subscribe bad role", "subscribe role and roles", "subscribe unknown id"] {
        let recorded =
            battery.recorded.iter().find(|recorded| recorded.name == name).expect("it is recorded");
        let body: Value = serde_json::from_str(recorded.body.as_deref().expect("a body")).expect("JSON");
        let mut stream = http.stream("/api/v1/scheduler", &[], &body);
        assert_eq!(stream.status, 200);
        let event = stream.next_event().expect("an event");
        battery.meet(name, &event);
        if event["type"] == "ERROR" {
            assert!(stream.next_event().is_none(), "the stream ends after an ERROR");
        }
    }
}

/// Tasks that a master rejects, and unusual ones that run.
fn validation(battery: &mut Battery, scheduler: &mut Scheduler) {
    let mem = |value: f64| json!({"value": value});
    let cases: &[(&str, &dyn Fn(&mut Value), &[&str])] = &[
        ("t-run", &|_| {}, &["TASK_ERROR"]),
        (
            "v-none",
            &|task| drop(task.as_object_mut().and_then(|task| task.remove("command"))),
            &["TASK_ERROR"],
        ),
        (
            "v-dupres",
            &|task| {
                task["resources"] = json!([scalar("cpus", 0.05), scalar("cpus", 0.05), scalar("mem", 32.0)])
            },
            RUNS,
        ),
        ("v-norole", &|_| {}, RUNS),
        (
            "v-wrongrole",
            &|task| task["resources"] = json!([in_role("cpus", 0.1), in_role("mem", 32.0)]),
            &["TASK_ERROR"],
        ),
        ("v-limkey", &|task| task["limits"] = json!({"disk": mem(10.0)}), &["TASK_ERROR"]),
        ("v-limlow", &|task| task["limits"] = json!({"mem": mem(1.0)}), &["TASK_ERROR"]),
        ("v-limneg", &|task| task["limits"] = json!({"cpus": mem(-1.0)}), &["TASK_ERROR"]),
        ("v-share-false", &|task| task["container"] = sharing(false), &["TASK_ERROR"]),
        ("v-hc", &|task| task["health_check"] = json!({"type": "HTTP"}), &["TASK_ERROR"]),
        ("v-hcneg", &|task| task["health_check"] = negative_interval(), &["TASK_ERROR"]),
        ("v-check", &|task| task["check"] = json!({"type": "TCP"}), &["TASK_ERROR"]),
        ("v-env", &|task| task["command"]["environment"] = secret_variable(), &["TASK_ERROR"]),
        ("v-docker", &|task| task["container"] = json!({"type": "DOCKER"}), &["TASK_ERROR"]),
        (
            "v-argv",
            &|task| task["command"] = json!({"shell": false, "value": "/bin/true", "arguments": ["true"]}),
            RUNS,
        ),
        ("v-uri", &|task| task["command"]["uris"] = json!([{"value": "/does/not/exist"}]), &["TASK_FAILED"]),
        (
            "v-user",
            &|task| task["command"] = json!({"value": "sleep 1000", "user": "nobody"}),
            &["TASK_STARTING", "TASK_RUNNING"],
        ),
        ("v-nouser", &|task| task["command"]["user"] = json!("no-such-user-x"), &["TASK_DROPPED"]),
        (
            "v-nocmd",
            &|task| task["command"] = json!({"value": "no-such-command-x"}),
            &["TASK_STARTING", "TASK_RUNNING", "TASK_FAILED"],
        ),
    ];
    for (name, change, states) in cases {
        let offer = scheduler.fresh_offer();
        let mut task = Scheduler::task(&offer, name, "true");
        change(&mut task);
        assert_eq!(scheduler.launch(&offer, &[task]).status, 202);
        expect_updates(battery, scheduler, name, states);
    }
}

const RUNS: &[&str] = &["TASK_STARTING", "TASK_RUNNING", "TASK_FINISHED"];

fn in_role(name: &str, value: f64) -> Value {
    let mut resource = scalar(name, value);
    resource["allocation_info"] = json!({"role": "other"});
    resource
}

fn sharing(share: bool) -> Value {
    json!({"type": "MESOS", "linux_info": {"share_cgroups": share}})
}

fn negative_interval() -> Value {
    json!({"type": "COMMAND", "command": {"value": "true"}, "interval_seconds": -1.0})
}

fn secret_variable() -> Value {
    json!({"variables": [{"name": "A", "type": "SECRET"}]})
}

/// Resources of a terminated container may be a separate offer that is too small.
fn offer_with_disk(scheduler: &mut Scheduler) -> Value {
    let has_disk = |offer: &Value| {
        offer["resources"].as_array().is_some_and(|all| all.iter().any(|one| one["name"] == "disk"))
    };
    let mut offer = scheduler.fresh_offer();
    while !has_disk(&offer) {
        offer = scheduler.offer();
    }
    offer
}

fn groups(battery: &mut Battery, scheduler: &mut Scheduler, folder: &Path) {
    let offer = offer_with_disk(scheduler);
    let executor = json!({
        "type": "DEFAULT", "executor_id": {"value": "ge-g-ok"}, "framework_id": {"value": scheduler.framework_id},
        "resources": [scalar("cpus", 0.1), scalar("mem", 32.0), scalar("disk", 1.0)]
    });
    // It exits on request: of a terminated container only its id is reported.
    let go = folder.join("go");
    let task = Scheduler::task(&offer, "g-ok", &format!("until [ -e {} ]; do sleep 0.1; done", go.display()));
    let group = json!({"executor": executor, "task_group": {"tasks": [task]}});
    scheduler.accept(&offer, json!([{"type": "LAUNCH_GROUP", "launch_group": group}]));
    expect_updates(battery, scheduler, "g-ok", &["TASK_STARTING", "TASK_RUNNING"]);
    std::fs::write(&go, "").expect("the file can be written");
    expect_updates(battery, scheduler, "g-ok", &["TASK_FINISHED"]);
    let failure = scheduler.event("FAILURE", |event| event["type"] == "FAILURE").expect("the stream lives");
    battery.meet("event FAILURE", &failure);
}

/// A used offer, and one that never existed.
fn stale_offers(battery: &mut Battery, scheduler: &mut Scheduler) {
    let offer = scheduler.fresh_offer();
    scheduler.launch(&offer, &[Scheduler::task(&offer, "o-stale", "true")]);
    expect_updates(battery, scheduler, "o-stale", RUNS);
    let unknown = json!({"id": {"value": "stale-offer"}, "agent_id": offer["agent_id"]});
    scheduler.launch(&unknown, &[Scheduler::task(&unknown, "o-unknown", "true")]);
    expect_updates(battery, scheduler, "o-unknown", &["TASK_DROPPED"]);
}

fn ending(battery: &mut Battery, http: &Http, scheduler: &mut Scheduler) {
    battery.replay("master scheduler kill t-run", http, scheduler);
    expect_updates(battery, scheduler, "t-run", &["TASK_KILLING", "TASK_KILLED"]);
    wait_for("t-run to be completed", || {
        let tasks = http.get("/frameworks").json()?;
        let completed = tasks["frameworks"][0]["completed_tasks"].as_array()?.clone();
        completed.iter().any(|task| task["id"] == "t-run").then_some(())
    });
    battery.replay("master scheduler kill gone task", http, scheduler);
    expect_updates(battery, scheduler, "t-run", &["TASK_UNKNOWN"]);
    battery.replay("master scheduler teardown", http, scheduler);
}
