//! The recorded battery: requests sent again, answers compared, differences collected into a table.

use std::collections::BTreeSet;

use serde_json::Value;
use tepui_e2e::recorded::{Recorded, differences_but, read};
use tepui_e2e::{Cluster, Http, Response};

use super::personal;

/// The work directories of the recorded agent and master.
const RECORDED_AGENT_DIR: &str = "/var/lib/mesos/agent";

/// Keys whose values differ from run to run; only their types are compared.
const VOLATILE: &[&str] = &[
    "port",
    "executor_pid",
    "uuid",
    "status_update_uuid",
    "pid",
    "leader",
    "build_date",
    "build_time",
    "build_user",
];

/// Prefixes of metrics whose values depend on the timing of a run.
const VOLATILE_METRICS: &[&str] = &[
    "allocator/",
    "registrar/",
    "system/",
    "gc/",
    "containerizer/",
    "master/event_queue_",
    "master/uptime_secs",
    "master/http_cache_hits",
    "slave/uptime_secs",
    "slave/recovery_time_secs",
    "slave/executor_directory_max_allowed_age_secs",
];

pub struct Battery {
    recorded: Vec<Recorded>,
    met: Vec<bool>,
    master: Http,
    agent: Http,
    listed: &'static [(&'static str, &'static [&'static str])],
    /// The listed differences that occurred.
    seen: BTreeSet<&'static str>,
    rows: Vec<Row>,
    /// What is named after one run: directories, and addresses in sentences.
    recorded_directories: Vec<(String, &'static str)>,
    directories: Vec<(String, &'static str)>,
    /// Recorded names in requests and their values in this run.
    ours: Vec<(String, String)>,
}

struct Row {
    answer: String,
    difference: String,
    /// Under which name it is listed.
    listed: Option<&'static str>,
}

impl Battery {
    pub fn new(
        recorded: &str,
        cluster: &Cluster,
        listed: &'static [(&'static str, &'static [&'static str])],
    ) -> Self {
        let recorded = read(recorded);
        let work_dir = cluster.agents[0].work_dir.canonicalize().expect("the agent has a work directory");
        Self {
            met: vec![false; recorded.len()],
            recorded,
            master: cluster.http(),
            agent: cluster.agent_http(),
            listed,
            seen: BTreeSet::new(),
            rows: Vec::new(),
            recorded_directories: vec![(RECORDED_AGENT_DIR.to_string(), "WORK_DIR")],
            directories: vec![(work_dir.display().to_string(), "WORK_DIR")],
            ours: Vec::new(),
        }
    }

    /// Recorded requests name the sandbox of this executor; ours is put in its place.
    pub fn know_sandbox(&mut self, executor: &str) {
        let part = format!("/executors/{executor}/");
        let debug = self.agent.get("/files/debug").json().expect("JSON");
        let ours = debug
            .as_object()
            .expect("an object")
            .values()
            .find_map(|path| path.as_str().filter(|path| path.contains(&part)).map(str::to_string));
        let browse =
            self.recorded.iter().find(|one| one.name == "agent files browse").expect("it is recorded");
        let path = browse.path.as_deref().expect("a path");
        let (_, recorded) = path.split_once("path=").expect("a query");
        let recorded = recorded.to_string();
        self.know(&recorded, &ours.expect("the executor has a sandbox"));
    }

    /// Recorded requests name this; ours is put in its place.
    pub fn know(&mut self, recorded: &str, ours: &str) {
        self.ours.push((recorded.to_string(), ours.to_string()));
    }

    /// Sentences name the agent's address.
    pub fn know_address(&mut self, recorded: &str, ours: &str) {
        self.recorded_directories.push((recorded.to_string(), "ADDRESS"));
        self.directories.push((ours.to_string(), "ADDRESS"));
    }

    /// All names, in their order.
    pub fn names(&self) -> Vec<String> {
        self.recorded.iter().map(|one| one.name.clone()).collect()
    }

    /// The names up to this one, in their order.
    pub fn names_until(&self, last: &str) -> Vec<String> {
        let end = self.recorded.iter().position(|one| one.name == last).expect("it is recorded");
        self.recorded[..=end].iter().map(|one| one.name.clone()).collect()
    }

    /// Sends a recorded request again and compares the answers.
    pub fn replay(&mut self, name: &str) {
        let recorded = self.take(name);
        let http = if name.starts_with("agent ") { &self.agent } else { &self.master };
        let method = recorded.method.as_deref().expect("a request has a method");
        let path = self.with_ours(recorded.path.as_deref().expect("a request has a path"));
        let body = self.with_ours(recorded.body.as_deref().unwrap_or_default());
        let mut headers: Vec<(&str, &str)> =
            recorded.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        if matches!(method, "POST" | "PUT") && !headers.iter().any(|(name, _)| *name == "Content-Type") {
            headers.push(("Content-Type", "application/json"));
        }
        let mut got = http.send(method, &path, &headers, body.as_bytes());
        if got.status == 307 {
            // The recorder followed redirects.
            let location = got.header("location").expect("a redirect says where to").to_string();
            let (host, rest) =
                location.trim_start_matches('/').split_once('/').unwrap_or((&location[2..], ""));
            got = Http::new(host).get(&format!("/{rest}"));
            got.body.clear();
        }
        self.compare_answers(&recorded, &got);
    }

    /// Compares an event of ours with the recorded one.
    pub fn meet(&mut self, name: &str, got: &Value) {
        let recorded = self.take(name);
        self.compare_documents(name, &recorded.response, got);
    }

    /// Prints the table; fails if something is different and not listed, or listed and not different.
    pub fn finish(self) {
        let mut problems: Vec<String> = Vec::new();
        println!("{} recorded answers, {} differences", self.recorded.len(), self.rows.len());
        for row in &self.rows {
            println!("{:<40} {:<60} {}", row.answer, row.difference, row.listed.unwrap_or("NOT LISTED"));
            if row.listed.is_none() {
                problems.push(format!("{}: {}", row.answer, row.difference));
            }
        }
        for (name, _) in self.listed.iter().filter(|(name, _)| !self.seen.contains(name)) {
            problems.push(format!("{name}: listed as different, and is not"));
        }
        let unmet = self.recorded.iter().zip(&self.met).filter(|(_, met)| !**met);
        problems.extend(unmet.map(|(recorded, _)| format!("{}: not asked", recorded.name)));
        assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
    }

    fn take(&mut self, name: &str) -> Recorded {
        let at = (0..self.recorded.len())
            .find(|at| self.recorded[*at].name == name && !self.met[*at])
            .unwrap_or_else(|| panic!("nothing is recorded as {name:?}"));
        self.met[at] = true;
        self.recorded[at].clone()
    }

    fn with_ours(&self, text: &str) -> String {
        self.ours.iter().fold(text.to_string(), |text, (recorded, ours)| text.replace(recorded, ours))
    }

    fn compare_answers(&mut self, recorded: &Recorded, got: &Response) {
        let name = &recorded.name;
        if got.status != recorded.status {
            self.add(name, format!("status: {} instead of {}", got.status, recorded.status));
        }
        for (header, value) in &recorded.response_headers {
            if got.header(header) != Some(value) {
                let ours = got.header(header).unwrap_or("nothing");
                self.add(name, format!("header {header}: {ours} instead of {value}"));
            }
        }
        // The recorder stored only the start of JSONP scripts; their content is the answer without JSONP.
        let response = match name.strip_suffix("?jsonp=cb") {
            Some(plain) => self.recorded_as(plain).response,
            None => recorded.response.clone(),
        };
        match (&response, got.json().or_else(|| script(&got.text()))) {
            (Value::String(expected), _) => self.compare_texts(name, expected, &got.text()),
            (expected, ours) => {
                let ours = ours.unwrap_or_else(|| Value::String(got.text()));
                self.compare_documents(name, &self.same_tasks(expected, &ours), &ours);
            }
        }
    }

    fn recorded_as(&self, name: &str) -> Recorded {
        self.recorded.iter().find(|one| one.name == name).expect("it is recorded").clone()
    }

    /// Which task is the newest depends on the run: a page of one task is held against the recorded task of that name.
    fn same_tasks(&self, expected: &Value, got: &Value) -> Value {
        match (expected["tasks"].as_array().map(Vec::as_slice), got["tasks"][0]["id"].as_str()) {
            (Some([_]), Some(id)) => {
                let all = self.recorded_as("master GET /tasks").response;
                let same = all["tasks"].as_array().into_iter().flatten().find(|task| task["id"] == id);
                serde_json::json!({"tasks": same.into_iter().collect::<Vec<_>>()})
            }
            _ => expected.clone(),
        }
    }

    fn compare_texts(&mut self, name: &str, expected: &str, got: &str) {
        let expected = personal::text(expected, &self.recorded_directories);
        let got = personal::text(got, &self.directories);
        if got != expected {
            self.add(name, format!("body: {got:?} instead of {expected:?}"));
        }
    }

    fn compare_documents(&mut self, name: &str, expected: &Value, got: &Value) {
        let expected = without_volatile_metrics(personal::document(expected, &self.recorded_directories));
        let got = without_volatile_metrics(personal::document(got, &self.directories));
        for difference in differences_but(VOLATILE, &expected, &got) {
            self.add(name, difference);
        }
    }

    fn add(&mut self, answer: &str, difference: String) {
        let place = format!("{answer}: {difference}");
        let listed = self.listed.iter().find(|(_, places)| places.iter().any(|one| matches(one, &place)));
        let listed = listed.map(|(name, _)| *name);
        self.seen.extend(listed);
        self.rows.push(Row { answer: answer.to_string(), difference, listed });
    }
}

/// What is inside `cb(…)`.
fn script(text: &str) -> Option<Value> {
    serde_json::from_str(text.strip_prefix("cb(")?.strip_suffix(')')?).ok()
}

/// Volatile metrics are reduced to their name and type.
fn without_volatile_metrics(document: Value) -> Value {
    let is_volatile = |name: &str| VOLATILE_METRICS.iter().any(|start| name.starts_with(start));
    match document {
        Value::Object(members) => members
            .into_iter()
            .map(|(name, value)| match (is_volatile(&name), &value) {
                (true, Value::Number(_)) => (name, 0.5.into()),
                _ => (name, without_volatile_metrics(value)),
            })
            .collect(),
        // GET_METRICS has a list of names and values.
        Value::Array(values)
            if values.first().is_some_and(|one| one["name"].is_string() && one["value"].is_number()) =>
        {
            let pairs = values
                .iter()
                .filter_map(|one| Some((one["name"].as_str()?.to_string(), one["value"].clone())));
            without_volatile_metrics(Value::Object(pairs.collect()))
        }
        Value::Array(values) => values.into_iter().map(without_volatile_metrics).collect(),
        other => other,
    }
}

/// Whether a text matches a pattern in which `*` stands for anything.
fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((start, rest)) => {
            let Some(text) = text.strip_prefix(start) else { return false };
            rest.is_empty()
                || (0..=text.len()).any(|at| text.is_char_boundary(at) && matches(rest, &text[at..]))
        }
    }
}
