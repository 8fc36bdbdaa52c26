//! The pages, in a real browser: what they show of a cluster in which a task has run.

use std::path::Path;
use std::process::Command;

use serde_json::json;
use tepui_e2e::{Cluster, Limited, Scheduler, Sizes, binary};

/// How long the scripts of a page may think that they run, in milliseconds; the browser does not wait that long.
const SCRIPT_MS: u32 = 4000;

/// What stands on a page once its scripts have run.
fn shown(profile: &Path, address: &str, page: &str) -> String {
    let output = Command::new("chromium")
        .args([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
        ])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("--virtual-time-budget={SCRIPT_MS}"))
        .args(["--dump-dom", &format!("http://{address}/{page}")])
        .output()
        .expect("test/setup installs chromium");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_task_and_its_log_are_on_the_pages() {
    let cluster = Cluster::start();
    let ran = Command::new(binary())
        .args(["run", "--name", "shown", "--", "echo 'a <b>line</b> of it'"])
        .env("TEPUI_MASTER", &cluster.master.address)
        .output()
        .expect("the binary starts");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let state = cluster.http().get("/state").json().expect("JSON");
    let framework = &state["completed_frameworks"][0];
    let (framework_id, task) = (&framework["id"], &framework["completed_tasks"][0]["id"]);
    let task = task.as_str().expect("a task");
    let task_page = format!("#/task/{}/{task}", framework_id.as_str().expect("a framework"));
    let framework_page = format!("#/framework/{}", framework_id.as_str().expect("a framework"));
    let agent = state["slaves"][0]["id"].as_str().expect("an agent");
    let agent_page = format!("#/agent/{agent}");
    let profile = cluster.folder().join("browser");
    for (page, parts) in [
        ("", &[task, "TASK_FINISHED", "Newest tasks"][..]),
        ("#/tasks", &[task, "TASK_FINISHED"]),
        ("#/agents", &[agent]),
        (&agent_page, &[agent, task, "active"]),
        ("#/agent/none", &["No such agent"]),
        ("#/frameworks", &["tepui run shown"]),
        (&framework_page, &["tepui run shown", "ended", task]),
        ("#/framework/none", &["No such framework"]),
        ("#/roles", &["Nobody has a role"]),
        ("#/role/none", &["No such role"]),
        ("#/none", &["No such page"]),
        (&task_page, &[task, "stdout", "a &lt;b&gt;line&lt;/b&gt; of it"]),
        ("#/task/none/none", &["No such task"]),
    ] {
        let shown = shown(&profile, &cluster.master.address, page);
        for part in parts {
            assert!(shown.contains(part), "{part:?} is not on the page {page:?}:\n{shown}");
        }
    }
}

#[test]
fn why_a_framework_gets_no_offers_is_on_the_pages() {
    let cluster = Cluster::start();
    let mut scheduler = Scheduler::subscribe(&cluster.http(), Scheduler::info("eng/<b>"));
    let offer = scheduler.offer();
    scheduler.call(json!({"type": "SUPPRESS"}));
    let decline = json!({"offer_ids": [offer["id"]], "filters": {"refuse_seconds": 0.0}});
    scheduler.call(json!({"type": "DECLINE", "decline": decline}));
    let profile = cluster.folder().join("browser");
    let id = &scheduler.framework_id;
    for (page, parts) in [
        (format!("#/framework/{id}"), &["eng/&lt;b&gt;", "1 agent: nothing but that it is suppressed"][..]),
        ("#/roles".to_owned(), &["eng/&lt;b&gt;"]),
        (
            "#/role/eng%2F%3Cb%3E".to_owned(),
            &["Role eng/&lt;b&gt;", id, "it asked for no offers in this role"],
        ),
    ] {
        let shown = shown(&profile, &cluster.master.address, &page);
        for part in parts {
            assert!(shown.contains(part), "{part:?} is not on the page {page:?}:\n{shown}");
        }
    }
}

/// Names are text on every page, whatever is in them.
#[test]
fn names_with_anything_in_them_are_text_on_the_pages() {
    const WILD: &str = "</script><b onclick=\"x\">'`\u{1b}[31m\u{7}{{1+1}}";
    const SHOWN: &str = "&lt;/script&gt;&lt;b onclick=\"x\"&gt;'`";
    let cluster = Cluster::start();
    let mut info = Scheduler::info("dev");
    info["name"] = json!(WILD);
    let mut scheduler = Scheduler::subscribe(&cluster.http(), info);
    let offer = scheduler.offer();
    let mut task = Scheduler::task(&offer, "plain", "sleep 1000");
    task["name"] = json!(WILD);
    scheduler.launch(&offer, &[task]);
    scheduler.reach("plain", "TASK_RUNNING");
    let profile = cluster.folder().join("browser");
    let id = &scheduler.framework_id;
    for page in ["#/frameworks".to_owned(), format!("#/framework/{id}"), format!("#/task/{id}/plain")] {
        let shown = shown(&profile, &cluster.master.address, &page);
        assert!(shown.contains(SHOWN), "the name is not on the page {page:?}:\n{shown}");
        assert!(!shown.contains("<b onclick"), "it is more than text on the page {page:?}:\n{shown}");
    }
}

#[test]
fn requests_and_limits_are_on_the_pages() {
    let Some(mut bench) = Limited::start(&[]) else { return };
    let sizes = Sizes::of((0.1, 64.0), Some(0.5), Some(f64::INFINITY));
    bench.launch("bursting", "sleep 1000", sizes, |_| ());
    bench.container("bursting");
    let profile = bench.cluster.folder().join("browser");
    let address = &bench.cluster.master.address;
    let page = format!("#/task/{}/bursting", bench.scheduler.framework_id);
    let table = shown(&profile, address, "#/tasks");
    assert!(table.contains("0.1 to 0.5") && table.contains("64 MB to unlimited"), "{table}");
    let facts = shown(&profile, address, &page);
    assert!(facts.contains("0.1 to 0.5 CPUs, 64 MB to unlimited memory"), "{facts}");
}
