//! Regular and revocable resources: the seven use cases with real engines and the real docker CLI. Needs root.
//!
//! `node-0` and `node-1` have two cpus and offer four more as usage slack; `node-2` lends what is reserved for the role `ads`.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::{Value, json};
use tepui_e2e::swarm::{Manager, Node, Ran, Swarm, exit_code};
use tepui_e2e::{Http, Scheduler, wait_for};

const BOTH: &str = "cpus:2;mem:1024;disk:1024;ports:[31000-31100]";
const SLACK: &str = "cpus:4";
const RESERVED: &str = "cpus(ads):2;mem(ads):256;disk(ads):64;disk:64;ports:[31000-31100]";
/// Only nodes with usage slack.
const PAIR: &str = "-e constraint:node!=node-2";

/// A node of both kinds.
fn both() -> Node {
    Node {
        resources: Some(BOTH.to_owned()),
        agent_flags: vec![
            "--resource_estimator=fixed".to_owned(),
            format!("--fixed_estimator_resources={SLACK}"),
        ],
        ..Node::default()
    }
}

/// The next manager has the same framework without the capability.
#[test]
fn disabled_revocable_resources_leave_running_containers_alone() {
    let manage = ["--cluster-opt=mesos.enablerevocable=true", "--cluster-opt=mesos.tasktimeout=1m"];
    let Some(swarm) = Swarm::with(&[both()], &[], &manage) else { return };
    let revocable = "-e constraint:res-type==revocable";
    let id = swarm.ok(&format!("run -d --name cheap -c 1 --net none {revocable} busybox sleep 1000"));
    let Swarm { mut manager, cluster, engines } = swarm;
    manager.kill();
    let state = cluster.folder().join("swarm");
    let manager =
        Manager::start(&cluster.master.address, &state, &["--cluster-opt=mesos.tasktimeout=2s"], &[]);
    let swarm = Swarm { manager, cluster, engines };
    swarm.wait_for_offers(1);
    let [framework] = &frameworks(&swarm)[..] else { panic!("another framework") };
    assert!(!framework["capabilities"].to_string().contains("REVOCABLE_RESOURCES"), "{framework}");
    let info = swarm.ok("info");
    assert!(info.contains("res-type=regular") && !info.contains("cpus(revocable)"), "{info}");
    assert_eq!(swarm.ok("ps -q --no-trunc --filter label=res-type=revocable"), id);
    let disabled = "revocable resources are not enabled (cluster option mesos.enablerevocable)";
    swarm.fails(&format!("create -c 1 --net none {revocable} busybox true"), &[disabled]);
    for soft in ["==~revocable", "==*"] {
        let created = swarm.ok(&format!("create -c 1 --net none -e constraint:res-type{soft} busybox true"));
        assert_eq!(kind(&swarm, &created), "regular", "{soft}");
    }
    // It was placed on what is no longer offered.
    swarm.ok("kill cheap");
    wait_for("the task to terminate", || {
        let framework = frameworks(&swarm).pop()?;
        framework["tasks"].as_array()?.iter().all(|task| task["name"] != "cheap").then_some(())
    });
    swarm.fails("start cheap", &["container failed to start after 2s", "node-0: "]);
}

#[test]
fn containers_get_the_requested_kind_of_resources() {
    let both = both();
    let lent = Node { resources: Some(RESERVED.to_owned()), ..Node::default() };
    let manage = [
        "--cluster-opt=mesos.enablerevocable=true",
        "--cluster-opt=mesos.tasktimeout=4s",
        "--cluster-opt=mesos.offertimeout=2s",
    ];
    let Some(swarm) = Swarm::with(&[both.clone(), both, lent], &[], &manage) else { return };
    swarm.play(&[
        ("labels of engines", labels_of_engines),
        ("use case 1: the option", option),
        ("use cases 2 and 3: regular", regular),
        ("use cases 4 and 5: revocable", revocable),
        ("use case 6: any", any),
        ("use case 7: the type is shown", type_is_shown),
        ("forms of the constraint", forms),
        ("every command with each kind", commands),
        ("revocable memory that is not offered", no_memory),
        ("tasks on the wire", wire),
        ("lent resources are reclaimed", reclaimed),
    ]);
}

fn kind(swarm: &Swarm, id: &str) -> String {
    swarm.ok(&format!("inspect -f '{{{{index .Config.Labels \"res-type\"}}}}' {id}"))
}

/// Creates a container of two cpus and says which kind it got.
fn create(swarm: &Swarm, choice: &str) -> String {
    let id = swarm.ok(&format!("create -c 2 --net none {PAIR} {choice} busybox true"));
    kind(swarm, &id)
}

fn no_room(swarm: &Swarm, choice: &str) {
    swarm.fails(
        &format!("create -c 2 --net none {PAIR} {choice} busybox true"),
        &["container failed to start after 4s"],
    );
}

fn labels_of_engines(swarm: &Swarm) {
    wait_for("offers of both kinds", || {
        let info = swarm.ok("info");
        let labels: Vec<&str> =
            info.lines().filter_map(|line| line.trim().strip_prefix("└ Labels: ")).collect();
        let of = |kind: &str| labels.iter().filter(|text| text.contains(&format!("res-type={kind}"))).count();
        (of("any") == 2 && of("revocable") == 1 && info.contains("cpus(revocable): 4")).then_some(())
    });
}

/// Repeats a soft choice until it finds its first kind: it takes the other one while that is on its way back.
fn first_choice(swarm: &Swarm, expected: &str, create: impl Fn() -> String) -> String {
    wait_for("the first choice", || {
        let id = create();
        if kind(swarm, &id) == expected {
            return Some(id);
        }
        swarm.ok(&format!("rm -f {id}"));
        None
    })
}

/// Whether the framework of a manager with this option and variable is offered revocable resources; `None` if it does not start.
fn is_capable(swarm: &Swarm, number: usize, option: Option<&str>, variable: Option<&str>) -> Option<bool> {
    let option = option.map(|value| format!("--cluster-opt=mesos.enablerevocable={value}"));
    let arguments: Vec<&str> = option.as_deref().into_iter().collect();
    let variables: Vec<(&str, &str)> =
        variable.map(|value| ("SWARM_MESOS_ENABLE_REVOCABLE", value)).into_iter().collect();
    let (master, state) = (&swarm.cluster.master.address, swarm.cluster.folder().join(format!("m{number}")));
    let before = frameworks(swarm).len();
    let started = std::panic::catch_unwind(|| Manager::start(master, &state, &arguments, &variables));
    let _manager = started.ok()?;
    let all = wait_for("the framework", || Some(frameworks(swarm)).filter(|all| all.len() > before));
    let newest = all.iter().max_by(|a, b| time(a).total_cmp(&time(b)));
    let capabilities = newest.expect("a framework")["capabilities"].to_string();
    Some(capabilities.contains("REVOCABLE_RESOURCES"))
}

fn time(framework: &Value) -> f64 {
    framework["registered_time"].as_f64().unwrap_or_default()
}

fn frameworks(swarm: &Swarm) -> Vec<Value> {
    let state = swarm.cluster.http().get("/state").json().expect("a state");
    let all = state["frameworks"].as_array().into_iter().chain(state["completed_frameworks"].as_array());
    all.flatten().cloned().collect()
}

fn option(swarm: &Swarm) {
    for (number, (option, variable, expected)) in [
        (None, None, Some(false)),
        (Some("True"), None, Some(true)),
        (None, Some("1"), Some(true)),
        (Some("false"), Some("true"), Some(false)),
        (Some("t"), Some("false"), Some(true)),
        (Some("yes"), None, None),
        (None, Some("on"), None),
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(is_capable(swarm, number, option, variable), expected, "{option:?} {variable:?}");
    }
    let state = swarm.cluster.folder().join("off");
    let off = Manager::start(&swarm.cluster.master.address, &state, &[], &[]);
    let create = ["create", "-c", "1", "-e", "constraint:res-type==revocable", "busybox", "true"];
    let rejected = off.docker(&create);
    let text = "revocable resources are not enabled (cluster option mesos.enablerevocable)";
    assert!(rejected.code != 0 && rejected.stderr.contains(text), "{}", rejected.stderr);
}

fn regular(swarm: &Swarm) {
    // Without a constraint regular resources are used, and only those.
    assert_eq!(create(swarm, ""), "regular");
    assert_eq!(create(swarm, "-e constraint:res-type==regular"), "regular");
    no_room(swarm, "-e constraint:res-type==regular");
    no_room(swarm, "");
    // Use case 3: what is left is revocable.
    assert_eq!(create(swarm, "-e constraint:res-type==~regular"), "revocable");
    swarm.fails(
        "create -c 1 --net none -e constraint:node==node-2 busybox true",
        &["container failed to start after 4s"],
    );
    swarm.clean();
    wait_for("regular resources", || {
        (create(swarm, "-e constraint:res-type==~regular") == "regular").then_some(())
    });
}

fn revocable(swarm: &Swarm) {
    for _ in 0..4 {
        assert_eq!(create(swarm, "-e constraint:res-type==revocable"), "revocable");
    }
    no_room(swarm, "-e constraint:res-type==revocable");
    // Use case 5: what is left is regular.
    assert_eq!(create(swarm, "-e constraint:res-type==~revocable"), "regular");
}

fn any(swarm: &Swarm) {
    let any = "-e constraint:res-type==*";
    first_choice(swarm, "regular", || swarm.ok(&format!("create -c 2 --net none {PAIR} {any} busybox true")));
    let kinds: Vec<String> = (0..5).map(|_| create(swarm, any)).collect();
    assert_eq!(kinds.iter().filter(|kind| *kind == "regular").count(), 1, "{kinds:?}");
    no_room(swarm, "-e constraint:res-type==*");
}

fn type_is_shown(swarm: &Swarm) {
    let run = format!("run -d -c 1 --net none {PAIR}");
    let soft = format!("{run} -l res-type=gold -e constraint:res-type==~revoca* busybox sleep 100");
    let revocable = first_choice(swarm, "revocable", || swarm.ok(&soft));
    let regular = swarm.ok(&format!("{run} busybox sleep 100"));
    for (filter, expected) in [("revocable", &revocable), ("regular", &regular)] {
        assert_eq!(&swarm.ok(&format!("ps -q --no-trunc --filter label=res-type={filter}")), expected);
    }
    assert_eq!(swarm.ok("ps -q --filter label=res-type=gold"), "");
    let gold = swarm.sh("create -c 1 --net none -l res-type=gold busybox true");
    let warned = &gold.stderr;
    assert!(warned.contains("WARNING: the label res-type is set to the type of the resources"), "{warned}");
    // Both may be on the node of the revocable one, which has room for two.
    swarm.ok(&format!("rm -f {regular} {}", gold.stdout.trim()));
    // An affinity to the type is one to the label: beside such a container, on regular resources.
    let beside = swarm.ok("create -c 1 --net none -e affinity:res-type==revocable busybox true");
    let node = |id: &str| swarm.ok(&format!("inspect -f {{{{.Node.Name}}}} {id}"));
    assert_eq!((kind(swarm, &beside).as_str(), node(&beside)), ("regular", node(&revocable)));
    let constraints = "{{index .Config.Labels \"com.docker.swarm.constraints\"}}";
    let written = swarm.docker(&["inspect", "-f", constraints, &revocable]).stdout;
    assert!(written.contains("res-type==~revoca*"), "{written}");
    // A node has no type while none of its resources are offered.
    wait_for("the type of the node", || {
        let label =
            swarm.docker(&["inspect", "-f", "{{index .Node.Labels \"res-type\"}}", &revocable]).stdout;
        ["any", "regular", "revocable"].contains(&label.trim()).then_some(())
    });
}

/// Through the API: the docker CLI merges repeated variables.
fn forms(swarm: &Swarm) {
    let http = Http::new(swarm.manager.host.trim_start_matches("tcp://"));
    let post = |labels: Value, env: &[&str]| {
        let body = json!({
            "Image": "busybox", "Cmd": ["true"], "Env": env, "Labels": labels,
            "HostConfig": {"CpuShares": 1, "NetworkMode": "none"},
        });
        let answer = http.post("/v1.41/containers/create", &body);
        let document = answer.json().expect("a document");
        (
            answer.status,
            document["message"].as_str().or(document["Id"].as_str()).unwrap_or_default().to_owned(),
        )
    };
    let no_kind = |form: &str| {
        format!("constraint res-type{form} does not allow any resource type (regular, revocable)")
    };
    for (form, error) in [
        ("!=re*", no_kind("!=re*")),
        ("==gold", no_kind("==gold")),
        ("==any", no_kind("==any")),
        ("!=~re*", no_kind("!=~re*")),
        ("==/(/", "constraint res-type==/(/ is not a valid pattern".to_owned()),
        ("=regular", "error from constraint filter: One of operator ==, != is expected".to_owned()),
        ("==", "error from constraint filter: Value '' is invalid".to_owned()),
    ] {
        assert_eq!(post(json!({}), &[&format!("constraint:res-type{form}")]), (400, error), "{form}");
    }
    let several = "only one constraint with key \"res-type\" is allowed, got 2: res-type==regular, res-type==~revocable";
    let both = ["constraint:res-type==regular", "constraint:res-type==~revocable"];
    assert_eq!(post(json!({}), &both), (400, several.to_owned()));
    let label = json!({"com.docker.swarm.constraints": "[\"res-type==regular\"]"});
    assert_eq!(post(label, &both[1..]), (400, several.to_owned()));
    for (form, expected, is_soft) in [
        ("!=revocable", "regular", false),
        ("==revoca*", "revocable", false),
        ("!=~regular", "revocable", true),
        ("==/^reg/", "regular", false),
        ("==re*", "regular", true),
    ] {
        let create = || {
            let (status, id) =
                post(json!({}), &["constraint:node==node-0", &format!("constraint:res-type{form}")]);
            assert_eq!(status, 201, "{form}: {id}");
            id
        };
        let id = if is_soft { first_choice(swarm, expected, create) } else { create() };
        assert_eq!(kind(swarm, &id), expected, "{form}");
        swarm.ok(&format!("rm {id}"));
    }
}

fn commands(swarm: &Swarm) {
    for kind in ["regular", "revocable"] {
        let with = format!("-c 1 --net none {PAIR} -e constraint:res-type=={kind}");
        assert_eq!(
            swarm.ok(&format!("run {with} --name short busybox sh -c 'echo one; echo two'")),
            "one\ntwo"
        );
        assert_eq!(swarm.ok("logs short"), "one\ntwo", "it ran once");
        assert_eq!(swarm.ok(&format!("run --rm {with} busybox echo gone")), "gone");
        swarm.ok(&format!("run -d {with} --name long busybox sh -c 'echo begun; sleep 100'"));
        assert_eq!(swarm.ok("exec long echo inside"), "inside");
        let terminal = "sh -c 'test -t 0 && echo terminal'";
        for line in [format!("run -it --rm {with} busybox {terminal}"), format!("exec -it long {terminal}")] {
            let shown = swarm.in_terminal(&line);
            assert!(shown.contains("terminal"), "{line}: {shown}");
        }
        let mut follow = swarm.manager.command(&["logs", "-f", "long"]);
        let mut follow = follow.stdout(Stdio::piped()).spawn().expect("docker starts");
        let mut output = BufReader::new(follow.stdout.take().expect("piped")).lines();
        assert_eq!(output.next().expect("a line").expect("read"), "begun");
        swarm.ok("kill long");
        assert!(output.next().is_none() && exit_code(&mut follow) == Some(0));
        assert_eq!(swarm.ok("wait long"), "137");
        swarm.ok("rm short long");
    }
}

/// The estimator offers cpus only.
fn no_memory(swarm: &Swarm) {
    swarm.fails(
        &format!("create -m 20m --net none {PAIR} -e constraint:res-type==revocable busybox true"),
        &["no resources available to schedule container", "node-0: requested 20 revocable mem, offered 0"],
    );
}

/// Every amount of a task is of one kind.
fn wire(swarm: &Swarm) {
    for kind in ["regular", "revocable"] {
        swarm.ok(&format!("run -d --name wire-{kind} -c 1 -p 31080:80 --net none {PAIR} -e constraint:res-type=={kind} busybox sleep 100"));
    }
    let tasks = swarm.cluster.http().post("/api/v1", &json!({"type": "GET_TASKS"})).json().expect("tasks");
    let tasks = tasks["get_tasks"]["tasks"].as_array().expect("a list").clone();
    for kind in ["regular", "revocable"] {
        let task = tasks.iter().find(|it| it["name"] == format!("wire-{kind}"));
        for resource in task.expect("a task")["resources"].as_array().expect("a list") {
            let is_revocable = resource.get("revocable").is_some();
            let expected = kind == "revocable" && resource["name"] != "ports";
            assert_eq!(is_revocable, expected, "{resource}");
        }
    }
}

/// Reserved cpus and memory of an offer, which may be lent.
fn owned(offer: &Value) -> Vec<Value> {
    let all = offer["resources"].as_array().into_iter().flatten();
    let is_owned = |it: &&Value| {
        let is_reserved = it["reservations"].as_array().is_some_and(|all| !all.is_empty());
        is_reserved
            && it.get("revocable").is_none()
            && ["cpus", "mem"].contains(&it["name"].as_str().unwrap_or_default())
    };
    all.filter(is_owned).cloned().collect()
}

/// The owner of lent resources needs them while a container runs and its output is followed.
fn reclaimed(swarm: &Swarm) {
    let with = "-c 1 -m 64m --net none -e constraint:node==node-2 -e constraint:res-type==revocable";
    let with = with.replacen(
        "-e constraint:node==node-2",
        "-l 'com.docker.swarm.constraints=[\"node==node-2\"]'",
        1,
    );
    swarm.ok(&format!("run -d --name borrower {with} busybox sh -c 'echo begun; sleep 1000'"));
    let mut follow = swarm.manager.command(&["logs", "-f", "borrower"]);
    let mut follow = follow.stdout(Stdio::piped()).spawn().expect("docker starts");
    let mut line = String::new();
    let mut output = BufReader::new(follow.stdout.take().expect("piped"));
    output.read_line(&mut line).expect("output");
    assert_eq!(line, "begun\n");
    let mut events = swarm.events(&["--filter", "container=borrower"]);
    let mut owner = Scheduler::subscribe(&swarm.cluster.http(), Scheduler::info("ads"));
    // Nodes without reservations offer to this role too.
    let offer = wait_for("the owner's offer", || {
        let event = owner.event("offers", |event| event["type"] == "OFFERS").expect("the stream lives");
        let mut offers = event["offers"]["offers"].as_array().into_iter().flatten();
        offers.find(|offer| !owned(offer).is_empty()).cloned()
    });
    let mut task = Scheduler::task(&offer, "owned", "true");
    task["resources"] = owned(&offer).into();
    owner.launch(&offer, &[task]);
    owner.reach("owned", "TASK_FINISHED");
    // The stream ends with the container.
    assert_eq!(exit_code(&mut follow), Some(0));
    let shown = wait_for("the end of the container", || {
        let shown = swarm.ok("ps -a --filter name=borrower --format '{{.Status}}'");
        shown.contains("Exited").then_some(shown)
    });
    assert!(shown.contains("137") || shown.contains("143"), "{shown}");
    let error = wait_for("the reason", || {
        Some(swarm.ok("inspect -f {{.State.Error}} borrower")).filter(|error| !error.is_empty())
    });
    assert!(error.to_lowercase().contains("preempted") || error.contains("reclaim"), "{error}");
    events.kill().expect("it runs");
    let text = Ran::of(events.wait_with_output().expect("it ended")).stdout;
    assert!(text.contains("die"), "{text}");
}
