//! The web pages in a real browser, for a cluster in which a task has run.

use std::process::Command;

use serde_json::{Value, json};
use tepui_e2e::{Browser, Cluster, Limited, Scheduler, Sizes, binary, scalar, wait_for};
use tepui_facilities::{Facility, available};

/// Opens a page of the master and waits until all parts are on it.
fn assert_shown(browser: &mut Browser, address: &str, page: &str, parts: &[&str]) -> String {
    browser.visit(&format!("http://{address}/{page}"), |shown| parts.iter().all(|part| shown.contains(part)))
}

/// The same for parts of its text.
fn assert_text(browser: &mut Browser, address: &str, page: &str, parts: &[&str]) {
    let url = format!("http://{address}/{page}");
    browser.visit(&url, |shown| parts.iter().all(|part| text(shown).contains(part)));
}

/// The text of a page: tags become spaces.
fn text(page: &str) -> String {
    let outside = page.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text));
    let words: Vec<&str> = outside.flat_map(str::split_whitespace).collect();
    words.join(" ")
}

#[test]
fn pages_show_a_task_and_its_log() {
    if !available(&[Facility::Program("chromium")]) {
        return;
    }
    let cluster = Cluster::start();
    let ran = Command::new(binary())
        .args(["run", "--name", "shown", "--", "echo 'a <b>line</b> of it'"])
        .env("TEPUI_MASTER", &cluster.master.address)
        .output()
        .expect("the binary starts");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    // In v1 the answer to TEARDOWN does not promise that the framework has been removed.
    let state = wait_for("a completed framework", || {
        let state = cluster.http().get("/state").json()?;
        state["completed_frameworks"][0].is_object().then_some(state)
    });
    let framework = &state["completed_frameworks"][0];
    let (framework_id, task) = (&framework["id"], &framework["completed_tasks"][0]["id"]);
    let task = task.as_str().expect("a task");
    let task_page = format!("#/task/{}/{task}", framework_id.as_str().expect("a framework"));
    let framework_page = format!("#/framework/{}", framework_id.as_str().expect("a framework"));
    let agent = state["slaves"][0]["id"].as_str().expect("an agent");
    let agent_page = format!("#/agent/{agent}");
    let mut browser = Browser::start(&cluster.folder().join("browser"), &[]);
    for (page, parts) in [
        ("", &[task, "TASK_FINISHED", "Newest tasks"][..]),
        ("#/tasks", &[task, "TASK_FINISHED"]),
        ("#/agents", &[agent]),
        (&agent_page, &[agent, task, "active"]),
        ("#/agent/none", &["No such agent"]),
        ("#/frameworks", &["tepui run shown"]),
        (&framework_page, &["tepui run shown", "completed", task]),
        ("#/framework/none", &["No such framework"]),
        ("#/roles", &["No framework, weight, quota or reservation names a role"]),
        ("#/role/none", &["No such role"]),
        ("#/none", &["No such page"]),
        (&task_page, &[task, "stdout", "a &lt;b&gt;line&lt;/b&gt; of it"]),
        ("#/task/none/none", &["No such task"]),
    ] {
        assert_shown(&mut browser, &cluster.master.address, page, parts);
    }
}

#[test]
fn page_explains_missing_offers_of_a_framework() {
    if !available(&[Facility::Program("chromium")]) {
        return;
    }
    let cluster = Cluster::start();
    let mut scheduler = Scheduler::subscribe(&cluster.http(), Scheduler::info("eng/<b>"));
    let offer = scheduler.offer();
    scheduler.call(json!({"type": "SUPPRESS"}));
    let decline = json!({"offer_ids": [offer["id"]], "filters": {"refuse_seconds": 0.0}});
    scheduler.call(json!({"type": "DECLINE", "decline": decline}));
    let mut browser = Browser::start(&cluster.folder().join("browser"), &[]);
    let id = &scheduler.framework_id;
    for (page, parts) in [
        (
            format!("#/framework/{id}"),
            &["eng/&lt;b&gt;", "1 agent: only suppressed: REVIVE requests offers again"][..],
        ),
        ("#/roles".to_owned(), &["eng/&lt;b&gt;"]),
        (
            "#/role/eng%2F%3Cb%3E".to_owned(),
            &["Role eng/&lt;b&gt;", id, "the framework requested no offers in this role"],
        ),
    ] {
        assert_shown(&mut browser, &cluster.master.address, &page, parts);
    }
}

/// Names are text on every page, whatever is in them.
#[test]
fn special_characters_in_names_are_text_on_the_pages() {
    if !available(&[Facility::Program("chromium")]) {
        return;
    }
    const WILD: &str = "</script><b onclick=\"x\">'`\u{1b}[31m\u{7}{{1+1}}";
    const SHOWN: &str = "&lt;/script&gt;&lt;b onclick=\"x\"&gt;'`\\u{1b}[31m\\u{7}{{1+1}}";
    let cluster = Cluster::start();
    let mut info = Scheduler::info("dev");
    info["name"] = json!(WILD);
    let mut scheduler = Scheduler::subscribe(&cluster.http(), info);
    let offer = scheduler.offer();
    let mut task = Scheduler::task(&offer, "plain", "sleep 1000");
    task["name"] = json!(WILD);
    scheduler.launch(&offer, &[task]);
    scheduler.reach("plain", "TASK_RUNNING");
    let mut browser = Browser::start(&cluster.folder().join("browser"), &[]);
    let id = &scheduler.framework_id;
    for page in ["#/frameworks".to_owned(), format!("#/framework/{id}"), format!("#/task/{id}/plain")] {
        let shown = assert_shown(&mut browser, &cluster.master.address, &page, &[SHOWN]);
        assert!(!shown.contains("<b onclick"), "it is more than text on the page {page:?}:\n{shown}");
    }
}

#[test]
fn requests_and_limits_are_on_the_pages() {
    if !available(&[Facility::Program("chromium")]) {
        return;
    }
    let Some(mut bench) = Limited::start(&[]) else { return };
    let sizes = Sizes::of((0.1, 64.0), Some(0.5), Some(f64::INFINITY));
    bench.launch("bursting", "sleep 1000", sizes, |_| ());
    bench.container("bursting");
    let mut browser = Browser::start(&bench.cluster.folder().join("browser"), &[]);
    let address = &bench.cluster.master.address;
    let page = format!("#/task/{}/bursting", bench.scheduler.framework_id);
    assert_shown(&mut browser, address, "#/tasks", &["0.1 to 0.5", "64 MB to unlimited"]);
    assert_text(&mut browser, address, &page, &["CPUs 0.1 0.5", "Memory 64 MB unlimited"]);
}

#[test]
fn an_executor_shows_requests_limits_and_usage_of_its_tasks() {
    if !available(&[Facility::Program("chromium")]) {
        return;
    }
    let Some(mut bench) = Limited::start(&[]) else { return };
    let tasks = [
        ("bound", "sleep 1000", Sizes::of((0.1, 64.0), Some(0.5), Some(128.0))),
        ("free", "sleep 1000", Sizes::of((0.2, 32.0), Some(f64::INFINITY), Some(f64::INFINITY))),
        ("plain", "sleep 1000", Sizes::of((0.3, 48.0), None, None)),
    ];
    bench.launch_group("group", Some(false), &tasks);
    for (task, ..) in &tasks {
        bench.scheduler.reach(task, "TASK_RUNNING");
    }
    let mut browser = Browser::start(&bench.cluster.folder().join("browser"), &[]);
    let address = &bench.cluster.master.address;
    let framework = &bench.scheduler.framework_id;
    let agent = bench.scheduler.agent_id["value"].as_str().expect("an agent").to_owned();
    let page = format!("#/executor/{framework}/{agent}/group");
    let parts = ["Executor group", "State active", "Type default (task groups)", "no limit"];
    let rows = [
        ("bound TASK_RUNNING 0.1 0.5 ", "64 MB 128 MB"),
        ("free TASK_RUNNING 0.2 unlimited ", "32 MB unlimited"),
        ("plain TASK_RUNNING 0.3 not set ", "48 MB not set"),
    ];
    // CPUs in use, a rate, and memory, as the task's own cgroup counts it, change all the time.
    let has_usage = |executor: &str, cpus: &str, mem: &str| {
        let rest = executor.split_once(cpus).and_then(|(_, rest)| rest.split_once(' ')).map(|(_, rest)| rest);
        let used = rest.and_then(|rest| rest.strip_prefix(mem)).map(str::split_whitespace);
        used.and_then(|mut used| used.nth(1)).is_some_and(|unit| ["KB", "MB"].contains(&unit))
    };
    browser.visit(&format!("http://{address}/{page}"), |shown| {
        let executor = text(shown);
        parts.iter().all(|part| executor.contains(part))
            && rows.iter().all(|(cpus, mem)| has_usage(&executor, cpus, mem))
    });
    for (page, part) in [
        (format!("#/agent/{agent}"), "group default"),
        (format!("#/framework/{framework}"), "group default"),
        (format!("#/task/{framework}/bound"), "Executor group"),
        (format!("#/executor/{framework}/{agent}/none"), "No such executor"),
    ] {
        assert_text(&mut browser, address, &page, &[part]);
    }
}

#[test]
fn reasons_and_messages_of_statuses_are_on_the_page_of_a_task() {
    if !available(&[Facility::Program("chromium")]) {
        return;
    }
    let cluster = Cluster::start();
    let mut scheduler = Scheduler::subscribe(&cluster.http(), Scheduler::info("dev"));
    let offer = scheduler.offer();
    let mut task = Scheduler::task(&offer, "unfetched", "true");
    task["command"]["uris"] = json!([{"value": "/nonexistent/<b>"}]);
    scheduler.launch(&offer, &[task]);
    scheduler.reach("unfetched", "TASK_FAILED");
    let mut browser = Browser::start(&cluster.folder().join("browser"), &[]);
    let page = format!("#/task/{}/unfetched", scheduler.framework_id);
    let parts = [
        "Reason CONTAINER_LAUNCH_FAILED",
        "AGENT CONTAINER_LAUNCH_FAILED Failed to launch container",
        "/nonexistent/&lt;b&gt;",
    ];
    assert_text(&mut browser, &cluster.master.address, &page, &parts);
}

#[test]
fn revocable_resources_are_on_the_pages() {
    if !available(&[Facility::Program("chromium")]) {
        return;
    }
    let flags = [
        "--resources=cpus:1;cpus(ads):4;mem:512;mem(ads):256;disk:64",
        "--resource_estimator=fixed",
        "--fixed_estimator_resources=cpus:1",
    ];
    let cluster = Cluster::with(&[], &flags);
    let mut info = Scheduler::info("dev");
    info["capabilities"].as_array_mut().expect("a list").push(json!({"type": "REVOCABLE_RESOURCES"}));
    let mut scheduler = Scheduler::subscribe(&cluster.http(), info);
    let is_lent = |one: &&Value| one["revocable"]["type"] == "ALLOCATION_SLACK" && one["name"] == "cpus";
    let offer = scheduler.fresh_offer();
    let mut lent =
        offer["resources"].as_array().expect("a list").iter().find(is_lent).expect("slack").clone();
    lent["scalar"]["value"] = json!(3.0);
    let mut task = Scheduler::task(&offer, "borrower", "sleep 1000");
    task["resources"] = json!([lent, scalar("mem", 32.0)]);
    // What is offered to a role counts as held and borrowed too.
    scheduler.call(json!({"type": "SUPPRESS"}));
    scheduler.launch(&offer, &[task]);
    scheduler.reach("borrower", "TASK_RUNNING");
    let mut browser = Browser::start(&cluster.folder().join("browser"), &[]);
    let (framework, agent) = (&scheduler.framework_id, &scheduler.agent_id["value"]);
    for (page, part) in [
        (String::new(), "3 of 5 revocable in use"),
        ("#/agents".to_owned(), "3 / 5 cpus 0 MB / 256 MB mem"),
        (format!("#/agent/{}", agent.as_str().expect("an agent")), "3 revocable cpus"),
        ("#/tasks".to_owned(), "3 revocable 32 MB"),
        (format!("#/task/{framework}/borrower"), "CPUs 3 revocable"),
        ("#/frameworks".to_owned(), "3 revocable 32 MB"),
        (format!("#/framework/{framework}"), "In use 32 MB mem, 3 revocable cpus"),
        ("#/roles".to_owned(), "3 cpus"),
        ("#/role/dev".to_owned(), "Borrows 3 cpus"),
    ] {
        assert_text(&mut browser, &cluster.master.address, &page, &[part]);
    }
}

#[test]
fn unreachable_agents_are_on_the_pages_and_in_lists() {
    let mut cluster = Cluster::with(&["--agent_ping_timeout=1secs", "--max_agent_ping_timeouts=2"], &[]);
    let mut scheduler = Scheduler::subscribe(&cluster.http(), Scheduler::info("dev"));
    let offer = scheduler.offer();
    scheduler.launch(&offer, &[Scheduler::task(&offer, "lonely", "sleep 1000")]);
    scheduler.reach("lonely", "TASK_RUNNING");
    let agent = scheduler.agent_id["value"].as_str().expect("an agent").to_owned();
    cluster.agents[0].kill();
    scheduler.reach("lonely", "TASK_UNREACHABLE");
    let mut browser = Browser::start(&cluster.folder().join("browser"), &[]);
    for (page, parts) in [
        ("#/agents".to_owned(), &["Unreachable agents", agent.as_str()][..]),
        (format!("#/agent/{agent}"), &["State unreachable", "lonely"]),
        (format!("#/task/{}/lonely", scheduler.framework_id), &["Agent is unreachable", "is not registered"]),
    ] {
        assert_text(&mut browser, &cluster.master.address, &page, parts);
    }
    for (command, part) in [
        ("agents", "unreachable"),
        ("agent S0", "unreachable"),
        ("task lonely", "Agent is unreachable"),
        ("gone S0 --yes", "marked gone"),
    ] {
        let ran = Command::new(binary())
            .args(command.split(' '))
            .env("TEPUI_MASTER", &cluster.master.address)
            .output()
            .expect("the binary starts");
        let shown = String::from_utf8_lossy(&ran.stdout);
        assert!(ran.status.success() && shown.contains(part), "{command}: {ran:?}");
    }
    scheduler.reach("lonely", "TASK_GONE_BY_OPERATOR");
}
