//! Containers of the agent's operator API: standalone, nested, deeper; answers and cgroup values.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tepui_client::operator::Client;
use tepui_client::{Endpoint, Fault, Format, shorthand, v1};
use tepui_e2e::{Cluster, Http, Response, Scheduler, cgroup_mount, is_limited, limits_in, scalar, wait_for};
use tepui_facilities::{Facility, available};

const RESOURCES: &str = "--resources=cpus:8;mem:4096;disk:4096;ports:[31000-32000]";

fn call(http: &Http, kind: &str, body: Value) -> Response {
    http.post("/api/v1", &json!({"type": kind, kind.to_lowercase(): body}))
}

fn launch(http: &Http, id: &Value, command: &str, extra: Value) -> Response {
    let mut body = json!({"container_id": id, "command": {"value": command}});
    for (key, value) in extra.as_object().into_iter().flatten() {
        body[key] = value.clone();
    }
    call(http, "LAUNCH_CONTAINER", body)
}

fn wait(http: &Http, id: &Value) -> Response {
    call(http, "WAIT_CONTAINER", json!({"container_id": id}))
}

fn request(cpus: f64, mem: f64) -> Value {
    json!([scalar("cpus", cpus), scalar("mem", mem)])
}

fn shown(http: &Http, parameters: Value) -> Vec<Value> {
    // A recovering agent does not know its containers yet.
    let known = || {
        let answer = call(http, "GET_CONTAINERS", parameters.clone());
        (answer.status != 503).then_some(answer)
    };
    let answer = wait_for("the agent to know", known).json().expect("an answer");
    answer["get_containers"]["containers"].as_array().cloned().unwrap_or_default()
}

/// A task group with one long task; the container of that task.
fn group(cluster: &Cluster) -> (Scheduler, Value) {
    let mut scheduler = Scheduler::subscribe(&cluster.http(), Scheduler::info("dev"));
    let offer = scheduler.offer();
    let executor = json!({
        "type": "DEFAULT", "executor_id": {"value": "group"}, "framework_id": {"value": scheduler.framework_id},
        "resources": [scalar("cpus", 0.1), scalar("mem", 64.0), scalar("disk", 1.0)]
    });
    let tasks = json!({"tasks": [Scheduler::task(&offer, "task", "sleep 1000")]});
    scheduler.accept(
        &offer,
        json!([{"type": "LAUNCH_GROUP", "launch_group": {"executor": executor, "task_group": tasks}}]),
    );
    let status = scheduler.reach("task", "TASK_RUNNING");
    let container = status["container_status"]["container_id"].clone();
    (scheduler, container)
}

fn below(parent: &Value, value: &str) -> Value {
    json!({"value": value, "parent": parent})
}

#[test]
fn standalone_container_lifecycle() {
    let mut cluster = Cluster::start();
    let http = cluster.agent_http();
    let id = json!({"value": "alone"});
    let script = "echo hello; pwd; while [ ! -e stop ]; do sleep 0.1; done; exit 3";
    assert_eq!(launch(&http, &id, script, json!({"resources": request(0.1, 32.0)})).status, 200);
    assert_eq!(launch(&http, &id, script, json!({})).status, 202, "it is there already");
    let sandbox = cluster.agents[0].work_dir.join("containers/alone");
    wait_for("its words", || {
        std::fs::read_to_string(sandbox.join("stdout")).ok().filter(|text| text.lines().count() == 2)
    });

    assert_eq!(shown(&http, json!({})), Vec::<Value>::new(), "only for those who ask");
    assert_eq!(shown(&http, json!({"show_nested": true})), Vec::<Value>::new());
    let all = shown(&http, json!({"show_standalone": true}));
    assert_eq!(all.len(), 1);
    assert_eq!((&all[0]["container_id"], all[0].get("framework_id")), (&id, None));
    assert!(all[0]["container_status"]["executor_pid"].as_u64() > Some(0), "{}", all[0]);
    assert!(all[0]["resource_statistics"]["processes"].as_u64() > Some(0), "{}", all[0]);

    let path = format!("/files/download?path={}/stdout", sandbox.display());
    assert!(http.get(&path).text().starts_with("hello\n"), "its sandbox can be read");

    // It outlives its agent, as others do.
    cluster.agents[0].kill();
    cluster.agents[0].restart();
    wait_for("the agent to know it again", || {
        (shown(&http, json!({"show_standalone": true})).len() == 1).then_some(())
    });
    let waiting = std::thread::spawn({
        let (http, id) = (http.clone(), id.clone());
        move || wait(&http, &id)
    });
    assert_eq!(call(&http, "REMOVE_CONTAINER", json!({"container_id": id})).status, 500, "it runs");
    wait_for("the call to wait", || {
        let metrics = http.get("/metrics/snapshot").json()?;
        (metrics["slave/container_waits_pending"] == 1.0).then_some(())
    });
    std::fs::write(sandbox.join("stop"), "").expect("written");
    let ended = waiting.join().expect("no panic");
    assert_eq!(ended.status, 200, "{}", ended.text());
    assert_eq!(ended.json().expect("an answer")["wait_container"]["exit_status"], 3 << 8);
    assert_eq!(wait(&http, &id).status, 404, "one that stood alone is forgotten");
    assert_eq!(call(&http, "KILL_CONTAINER", json!({"container_id": id})).status, 404);
    assert_eq!(call(&http, "REMOVE_CONTAINER", json!({"container_id": id})).status, 500, "as v1 has it");
    assert_eq!(shown(&http, json!({"show_standalone": true})), Vec::<Value>::new());
}

#[test]
fn signals_are_delivered_and_children_die_with_their_parent() {
    let cluster = Cluster::start();
    let http = cluster.agent_http();
    let id = json!({"value": "top"});
    let child = below(&id, "child");
    assert_eq!(launch(&http, &id, "sleep 1000", json!({})).status, 200);
    assert_eq!(
        launch(&http, &child, "trap 'exit 5' USR1; echo set; while :; do sleep 0.1; done", json!({})).status,
        200
    );
    assert_eq!(shown(&http, json!({"show_nested": true})).len(), 1, "below one that stands alone");
    let listed = |query: &str| -> Vec<String> {
        let all = http.get(&format!("/containers{query}")).json().expect("a list");
        let id = |one: &Value| one["container_id"].as_str().expect("an id").to_owned();
        all.as_array().expect("a list").iter().map(id).collect()
    };
    assert_eq!(listed(""), Vec::<String>::new(), "as v1 has it");
    assert_eq!(listed("?show_standalone=true"), ["top"]);
    assert_eq!(listed("?show_standalone=true&show_nested=true&container_id=top"), ["top", "child"]);
    assert_eq!(listed("?show_nested=true&container_id=other"), Vec::<String>::new());
    assert_eq!(listed("?show_nested=true&framework_id=F"), Vec::<String>::new());
    let stdout = cluster.agents[0].work_dir.join("containers/top/containers/child/stdout");
    wait_for("the trap", || std::fs::read_to_string(&stdout).is_ok_and(|text| text == "set\n").then_some(()));
    assert_eq!(call(&http, "KILL_CONTAINER", json!({"container_id": child, "signal": 10})).status, 200);
    let ended = wait(&http, &child);
    assert_eq!(ended.json().expect("an answer")["wait_container"]["exit_status"], 5 << 8);
    assert_eq!(wait(&http, &child).status, 200, "a nested one is remembered");
    assert_eq!(call(&http, "REMOVE_CONTAINER", json!({"container_id": child})).status, 200);
    assert_eq!(wait(&http, &child).status, 404);
    assert!(!stdout.exists(), "its sandbox is gone");

    let second = below(&id, "second");
    assert_eq!(launch(&http, &second, "sleep 1000", json!({})).status, 200);
    assert_eq!(call(&http, "KILL_CONTAINER", json!({"container_id": id})).status, 200);
    let ended = wait(&http, &id);
    // It may be removed before the request.
    assert!(
        ended.status == 404 || ended.json().expect("an answer")["wait_container"]["exit_status"] == 9,
        "{}",
        ended.text()
    );
    wait_for("both to be gone", || {
        let all = shown(&http, json!({"show_standalone": true, "show_nested": true}));
        all.is_empty().then_some(())
    });
    assert_eq!(wait(&http, &second).status, 404);
}

#[test]
fn rejected_launches_have_a_reason() {
    let cluster = Cluster::start();
    let http = cluster.agent_http();
    let (_scheduler, task) = group(&cluster);
    let executor = &task["parent"];
    let own = json!({"type": "MESOS", "linux_info": {"share_cgroups": false}});
    let limits = json!({"mem": {"value": 64.0}});
    let deep = below(&task, "deep");
    for (id, extra, status, words) in [
        (json!({"value": "a/b"}), json!({}), 400, "invalid character"),
        (json!({"value": ""}), json!({}), 400, "empty"),
        (below(&json!({"value": "nobody"}), "x"), json!({}), 404, "nobody"),
        (deep.clone(), json!({"resources": request(0.1, 32.0)}), 400, "resources and limits cannot be set"),
        (deep.clone(), json!({"limits": limits}), 400, "resources and limits cannot be set"),
        (deep.clone(), json!({"container": own}), 400, "share_cgroups"),
        (
            below(executor, "x"),
            json!({"resources": request(0.1, 32.0), "limits": limits}),
            400,
            "share_cgroups",
        ),
        (
            below(executor, "x"),
            json!({"resources": request(0.1, 32.0), "limits": limits, "container": own}),
            400,
            "needs the isolator 'cgroups/mem'",
        ),
        (json!({"value": "x"}), json!({"limits": {"gpus": {"value": 1.0}}}), 400, "'gpus'"),
    ] {
        let answer = launch(&http, &id, "true", extra.clone());
        assert_eq!(answer.status, status, "{id} {extra}: {}", answer.text());
        assert!(answer.text().contains(words), "{id} {extra}: {}", answer.text());
    }
    // Without any of that it can be.
    assert_eq!(launch(&http, &deep, "exit 2", json!({})).status, 200);
    assert_eq!(wait(&http, &deep).json().expect("an answer")["wait_container"]["exit_status"], 2 << 8);
    assert_eq!(call(&http, "LAUNCH_NESTED_CONTAINER", json!({"container_id": {"value": "x"}})).status, 400);
}

#[test]
fn requests_and_limits_of_containers_are_set_in_cgroups() {
    if !available(&[Facility::Cgroups]) {
        return;
    }
    let cluster = Cluster::with(&[], &[RESOURCES, "--isolation=cgroups/cpu,cgroups/mem"]);
    let http = cluster.agent_http();
    let (_scheduler, task) = group(&cluster);
    let own = json!({"type": "MESOS", "linux_info": {"share_cgroups": false}});
    let values = |path: PathBuf| limits_in(&cluster.cgroups_root(0).join(path));
    let limits = json!({"cpus": {"value": 0.5}, "mem": {"value": 64.0}});
    let limited = json!({"resources": request(0.2, 32.0), "limits": limits, "container": own});

    let alone = json!({"value": "alone"});
    assert_eq!(launch(&http, &alone, "sleep 1000", limited.clone()).status, 200);
    assert_eq!(values("alone".into()), (204, 50_000, 32, 64));
    let small = json!({"value": "small"});
    assert_eq!(launch(&http, &small, "sleep 1000", json!({"resources": request(0.01, 10.0)})).status, 200);
    assert_eq!(values("small".into()), (10, -1, 32, 32));

    let executor = task["parent"]["value"].as_str().expect("an id").to_owned();
    let nested = below(&task["parent"], "nested");
    let launched = launch(&http, &nested, "sleep 1000", limited);
    assert_eq!(launched.status, 200, "{}", launched.text());
    let nested_path = Path::new(&executor).join("mesos/nested");
    assert_eq!(values(nested_path), (204, 50_000, 32, 64));
    // A container with shared cgroups is counted with its parent.
    let shared = below(&task["parent"], "shared");
    assert_eq!(launch(&http, &shared, "sleep 1000", json!({"resources": request(0.1, 32.0)})).status, 200);
    let root = cgroup_mount("memory").join(cluster.cgroups_root(0));
    let there = root.join(&executor).join("mesos/shared");
    assert!(!is_limited(&there), "{}", there.display());
    for id in [&alone, &small, &nested, &shared] {
        assert_eq!(call(&http, "KILL_CONTAINER", json!({"container_id": id})).status, 200);
    }
    wait_for("the cgroups to be gone", || {
        (!root.join("alone").exists() && !root.join("small").exists()).then_some(())
    });
}

/// The same calls in protobuf, by the client library.
#[test]
fn json_and_protobuf_container_calls_agree() {
    let cluster = Cluster::start();
    let endpoint = Endpoint::parse(&cluster.agents[0].address, 0).expect("an address");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    for format in [Format::Protobuf, Format::Json] {
        let client = Client::at(endpoint.clone()).with_format(format);
        let id = shorthand::container_id(format!("{format:?}"));
        runtime.block_on(async {
            use v1::agent::call::{GetContainers, KillContainer, LaunchContainer, Type, WaitContainer};
            let call = |kind| v1::agent::Call { r#type: Some(kind), ..Default::default() };
            let mut launch = call(Type::LAUNCH_CONTAINER);
            launch.launch_container = LaunchContainer {
                container_id: id.clone().into(),
                command: shorthand::shell("sleep 1000").into(),
                ..Default::default()
            }
            .into();
            assert_eq!(client.agent_with_status(&launch).await.expect("launched").0, 200);
            assert_eq!(client.agent_with_status(&launch).await.expect("launched").0, 202);
            let mut list = call(Type::GET_CONTAINERS);
            list.get_containers = GetContainers { show_standalone: Some(true), ..Default::default() }.into();
            let listed = client.agent(&list).await.expect("listed").get_containers;
            assert_eq!(*listed.containers[0].container_id, id);
            let mut kill = call(Type::KILL_CONTAINER);
            kill.kill_container =
                KillContainer { container_id: id.clone().into(), signal: Some(15), ..Default::default() }
                    .into();
            let mut wait = call(Type::WAIT_CONTAINER);
            wait.wait_container =
                WaitContainer { container_id: id.clone().into(), ..Default::default() }.into();
            let (ended, killed) = tokio::join!(client.agent(&wait), client.agent(&kill));
            killed.expect("killed");
            assert_eq!(ended.expect("it ended").wait_container.exit_status, Some(15));
            let gone = client.agent(&kill).await.expect_err("gone");
            assert!(matches!(gone, Fault::Refused { status: 404, .. }), "{gone}");
        });
    }
}
