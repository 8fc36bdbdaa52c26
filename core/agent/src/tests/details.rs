//! The contents of what goes out, where the protocol or other programs depend on them.

use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

use expect_test::{Expect, expect};
use tepui_proto::json;
use tepui_types::{ExecutorId, FrameworkId};

use super::driver::World;

fn play(script: &str) -> World {
    World::default().run(&format!("start\nrecovered\ngo\n{script}"))
}

fn shown<M: json::ToJson>(world: &World, messages: &[M], expected: Expect) {
    let text = |message: &M| String::from_utf8(json::to_vec(message)).expect("JSON is text");
    let lines: Vec<String> =
        messages.iter().map(|message| world.renamed(text(message)).replace(",\"", ",\n \"")).collect();
    expected.assert_eq(&lines.join("\n"));
}

#[test]
fn status_updates_contain_container_and_agent() {
    let world = play(
        "
        launch t1
        t1 launched 77
        t1 subscribe
        t1 update t1 RUNNING
        ",
    );
    shown(
        &world,
        &world.statuses,
        expect![[r#"
        {"task_id":{"value":"t1"},
         "state":"TASK_RUNNING",
         "source":"SOURCE_EXECUTOR",
         "agent_id":{"value":"S0"},
         "executor_id":{"value":"t1"},
         "timestamp":1005.0,
         "uuid":"dDFSVU5OSU5HAAAAAAAAAA==",
         "container_status":{"container_id":{"value":"C1"},
         "network_infos":[{"ip_addresses":[{"protocol":"IPv4",
         "ip_address":"10.0.0.1"}]}],
         "executor_pid":77}}"#]],
    );
}

#[test]
fn agent_generated_update_has_no_container_status() {
    let mut world = play("launch t1\nt1 failed fetch exited with status 1");
    world.statuses[0].uuid = None;
    shown(
        &world,
        &world.statuses,
        expect![[r#"
        {"task_id":{"value":"t1"},
         "state":"TASK_FAILED",
         "message":"Failed to launch container: exited with status 1",
         "source":"SOURCE_AGENT",
         "reason":"REASON_CONTAINER_LAUNCH_FAILED",
         "agent_id":{"value":"S0"},
         "executor_id":{"value":"t1"},
         "timestamp":1005.0}"#]],
    );
}

#[test]
fn status_of_a_nested_task_names_its_container() {
    let mut world = play(
        "
        group e1 a
        e1 launched 7
        e1 subscribe
        e1 update a STARTING in=C1.x
        ack a
        call launch C1.x
        container C1.x launched 9
        e1 update a RUNNING in=C1.x
        ack a
        container C1.x exited 0
        e1 update a FINISHED in=C1.x
        ",
    );
    for status in &mut world.statuses {
        status.uuid = None;
    }
    let statuses: Vec<_> = world.statuses.iter().map(|status| (*status.container_status).clone()).collect();
    shown(
        &world,
        &statuses,
        expect![[r#"
            {"container_id":{"value":"x",
             "parent":{"value":"C1"}},
             "network_infos":[{"ip_addresses":[{"protocol":"IPv4",
             "ip_address":"10.0.0.1"}]}],
             "executor_pid":7}
            {"container_id":{"value":"x",
             "parent":{"value":"C1"}},
             "network_infos":[{"ip_addresses":[{"protocol":"IPv4",
             "ip_address":"10.0.0.1"}]}],
             "executor_pid":9}
            {"container_id":{"value":"x",
             "parent":{"value":"C1"}},
             "network_infos":[{"ip_addresses":[{"protocol":"IPv4",
             "ip_address":"10.0.0.1"}]}],
             "executor_pid":9}"#]],
    );
}

#[test]
fn generated_command_executor_has_the_expected_info() {
    let world = play("launch t1 run=0123456789abcde\nlaunch t2 run=0123456789abcdef");
    let state = world.agent.as_ref().expect("an agent").state();
    let executors = state.frameworks.values().flat_map(|framework| framework.executors.values());
    let infos: Vec<_> = executors.map(|executor| (*executor.info).clone()).collect();
    shown(
        &world,
        &infos[..1],
        expect![[r#"
        {"executor_id":{"value":"t1"},
         "framework_id":{"value":"F"},
         "command":{"shell":false,
         "value":"/tepui",
         "arguments":["/tepui",
         "executor",
         "command"]},
         "resources":[{"name":"cpus",
         "type":"SCALAR",
         "scalar":{"value":0.1},
         "allocation_info":{"role":"dev"}},{"name":"mem",
         "type":"SCALAR",
         "scalar":{"value":32.0},
         "allocation_info":{"role":"dev"}}],
         "name":"Command Executor (Task: t1) (Command: sh -c '0123456789abcde')",
         "source":"t1"}"#]],
    );
    assert_eq!(
        infos[1].name.as_deref(),
        Some("Command Executor (Task: t2) (Command: sh -c '0123456789ab...')")
    );
}

#[test]
fn executor_environment_has_endpoint_checkpoint_and_timeouts() {
    let world = play("launch t1\nlaunch t2 framework=G");
    let lines = |spec: &tepui_types::LaunchSpec| {
        let entries = spec.environment.iter().map(|(name, value)| world.renamed(format!("{name}={value}\n")));
        entries.collect::<String>()
    };
    expect![[r#"
        LIBPROCESS_IP=10.0.0.1
        LIBPROCESS_PORT=0
        MESOS_AGENT_ENDPOINT=10.0.0.1:5051
        MESOS_CHECKPOINT=1
        MESOS_DIRECTORY=/w/slaves/S0/frameworks/F/executors/t1/runs/C1
        MESOS_EXECUTOR_ID=t1
        MESOS_EXECUTOR_SHUTDOWN_GRACE_PERIOD=5secs
        MESOS_FRAMEWORK_ID=F
        MESOS_HTTP_COMMAND_EXECUTOR=1
        MESOS_RECOVERY_TIMEOUT=15mins
        MESOS_SANDBOX=/w/slaves/S0/frameworks/F/executors/t1/runs/C1
        MESOS_SLAVE_ID=S0
        MESOS_SLAVE_PID=slave(1)@10.0.0.1:5051
        MESOS_SUBSCRIPTION_BACKOFF_MAX=2secs
    "#]]
    .assert_eq(&lines(&world.specs[0]));
    let (checkpointing, not) = (lines(&world.specs[0]), lines(&world.specs[1]));
    let missing: Vec<&str> = checkpointing
        .lines()
        .filter(|line| !not.lines().any(|other| other.split('=').next() == line.split('=').next()))
        .collect();
    expect![[r#"
        MESOS_RECOVERY_TIMEOUT=15mins
        MESOS_SUBSCRIPTION_BACKOFF_MAX=2secs"#]]
    .assert_eq(&missing.join("\n"));
}

#[test]
fn launch_spec_of_an_executor() {
    let world = play("launch t1\ngroup e1 a\nlaunch t3 executor=e3");
    let line = |spec: &tepui_types::LaunchSpec| {
        world.renamed(format!(
            "{} {:?}\n  as {}\n  in {}\n  {}\n",
            spec.command.value.clone().unwrap_or_default(),
            spec.command.arguments,
            spec.user.clone().unwrap_or_default(),
            spec.sandbox,
            spec.latest_link.clone().unwrap_or_default(),
        ))
    };
    expect![[r#"
        /tepui ["/tepui", "executor", "command"]
          as nobody
          in /w/slaves/S0/frameworks/F/executors/t1/runs/C1
          /w/slaves/S0/frameworks/F/executors/t1/runs/latest
        /tepui ["/tepui", "executor", "default"]
          as nobody
          in /w/slaves/S0/frameworks/F/executors/e1/runs/C2
          /w/slaves/S0/frameworks/F/executors/e1/runs/latest
        ./executor []
          as nobody
          in /w/slaves/S0/frameworks/F/executors/e3/runs/C3
          /w/slaves/S0/frameworks/F/executors/e3/runs/latest
    "#]]
    .assert_eq(&world.specs.iter().map(line).collect::<String>());
}

/// As the tables of the design have it: limits where there are some, else requests, and the executor's own request. So a
/// task without a limit on processors counts with its request, also where nothing makes that its own limit.
#[test]
fn limits_of_an_executor_are_sums() {
    for (first, second, expected) in [
        ("", "", (None, None)),
        ("cpus:2", "", (Some(3.5), None)),
        ("mem:128", "", (None, Some(224.0))),
        ("cpus:2;mem:128", "cpus:3;mem:256", (Some(5.5), Some(416.0))),
        ("cpus:inf;mem:inf", "cpus:3;mem:256", (Some(f64::INFINITY), Some(f64::INFINITY))),
        ("cpus:inf", "mem:128", (Some(f64::INFINITY), Some(224.0))),
    ] {
        for cfs in [false, true] {
            let mut world = World::default();
            world.config.isolation = Vec::from(["cgroups/all".to_string()]);
            world.config.cgroups_enable_cfs = cfs;
            let world = world.run(&std::format!(
                "start\nrecovered\ngo\nlaunch t1 limits={first} executor=e1\n\
                 launch t2 limits={second} executor=e1 old\ne1 subscribe"
            ));
            let state = &world.agent.as_ref().expect("it runs").state;
            let executor = state.executor(&FrameworkId::new("F"), &ExecutorId::new("e1"));
            let (_, limits) = executor.and_then(|executor| executor.applied.clone()).expect("it was told");
            let of = |name: &str| limits.get(name).copied();
            assert_eq!((of("cpus"), of("mem")), expected, "{first} and {second}");
        }
    }
}

/// The executor receives the isolation of its tasks, also if the framework named it for the group alone.
#[test]
fn group_tasks_are_stored_with_their_executor() {
    let world = play("group e1 a,b");
    let state = &world.agent.as_ref().expect("it runs").state;
    let executor = state.executor(&FrameworkId::new("F"), &ExecutorId::new("e1")).expect("it is known");
    assert_eq!(executor.tasks.size(), 2);
    for task in executor.tasks.values() {
        assert_eq!(*task.info.executor, *executor.info, "{}", task.id);
    }
}

/// One executor id has one kind of isolation for ever: a later master receives it, also for terminated executors.
#[test]
fn share_cgroups_is_reported_for_completed_frameworks() {
    let world = play(
        "
        launch t1 executor=e1
        e1 subscribe
        e1 update t1 FINISHED
        ack t1
        e1 exited 0
        launch t2
        t2 subscribe
        t2 update t2 FINISHED
        ack t2
        t2 exited 0
        down
        wait 1s
        up
        ",
    );
    let last = world.subscribes.last().expect("a subscription");
    let told = last
        .isolations
        .iter()
        .map(|one| (one.framework_id.value.as_str(), one.executor_id.value.as_str(), one.shares_cgroups));
    assert_eq!(told.collect::<Vec<_>>(), [("F", "e1", true)]);
    assert!(last.frameworks.is_empty());
}

/// Those of a command and of an executor that a framework brings are in its own container; those of groups are not.
#[test]
fn oom_scores_follow_the_placement_of_tasks() {
    let world = play("launch t1\nlaunch t2 executor=e1\ngroup e2 a");
    let holds: Vec<bool> = world.specs.iter().map(|spec| spec.holds_tasks).collect();
    assert_eq!(holds, [true, true, false]);
}

#[test]
fn volumes_are_shown_in_the_sandbox() {
    let world = play("operation o1 RESERVE disk:64\noperation o2 CREATE disk:64\nlaunch t1 volume");
    let volume = &world.specs[0].volumes[0];
    assert_eq!((volume.source.as_str(), volume.target.as_str()), ("/w/volumes/roles/dev/v", "data"));
}

#[test]
fn a_subscription_reports_the_complete_state() {
    let world = play(
        "
        launch t1 executor=e1
        e1 subscribe
        launch t2 executor=e1 old
        e1 update t2 FINISHED
        ack t2
        operation o1 RESERVE cpus:1
        down
        wait 1s
        up
        ",
    );
    let last = world.subscribes.last().expect("a subscription");
    let total = tepui_resources::Resources::from_proto(&last.total_resources).expect("resources");
    let tasks = |tasks: &[tepui_proto::mesos::v1::Task]| {
        let one = |task: &tepui_proto::mesos::v1::Task| format!("{} {:?}", task.task_id.value, task.state);
        tasks.iter().map(one).collect::<Vec<_>>().join(", ")
    };
    let lines = [
        format!("{} version {} pid {}", last.agent_info.id.value, last.version, last.pid),
        format!("{total}"),
        format!("{} capabilities", last.capabilities.len()),
        format!("tasks {}", tasks(&last.tasks)),
        format!("completed {}", tasks(&last.completed_tasks)),
        format!(
            "executor {} of {}",
            last.executors[0].executor_id.value, last.executors[0].framework_id.value
        ),
        format!("framework {}", last.frameworks[0].id.value),
        format!("operation {:?}", last.operations[0].latest_status.state),
    ];
    expect![[r#"
        S0 version 1.0 pid slave(1)@10.0.0.1:5051
        cpus:3; cpus(reservations: [(DYNAMIC,dev)]):1; mem:1024; disk:2048
        8 capabilities
        tasks t1 TASK_STAGING
        completed t2 TASK_FINISHED
        executor e1 of F
        framework F
        operation OPERATION_FINISHED"#]]
    .assert_eq(&lines.join("\n"));
}

/// Nothing is promised to it, its executor included, and nothing is in its way; only if the switch is on.
#[test]
fn best_effort_tasks_have_the_lowest_shares() {
    let world = World::default().run(
        "isolation cgroups/cpu cgroups/mem\nbest effort\nstart\nrecovered\ngo
         launch none needs=
         launch bound needs= limits=mem:128
         launch half needs=cpus:1
         group shared s needs=
         ",
    );
    let names = |index: usize| -> std::vec::Vec<(&str, f64)> {
        let spec = &world.specs[index];
        spec.resources.iter().map(|one| (one.name.as_str(), one.scalar.value)).collect()
    };
    let limit = |index: usize, name: &str| world.specs[index].limits.get(name).copied();
    let infinite = Some(f64::INFINITY);
    assert_eq!((names(0), limit(0, "cpus"), limit(0, "mem")), (Vec::new(), infinite, infinite));
    assert_eq!((limit(1, "cpus"), limit(1, "mem")), (infinite, Some(128.0)));
    assert_eq!((names(2), limit(2, "cpus"), limit(2, "mem")), (Vec::from([("cpus", 1.1)]), None, infinite));
    assert_eq!((limit(3, "cpus"), limit(3, "mem")), (None, None), "it shares what its group has");
}

/// The limit of the whole executor stands above those of its tasks, and never below what these were promised.
#[test]
fn labels_set_the_limits_of_a_group() {
    let limits = |switch: &str, labels: &str| {
        let world = World::default().run(&format!(
            "isolation cgroups/cpu cgroups/mem\n{switch}\nstart\nrecovered\ngo\ngroup e a,b labels={labels}"
        ));
        let spec = world.specs.first().map(|spec| spec.limits.clone()).unwrap_or_default();
        (spec.get("cpus").copied(), spec.get("mem").copied())
    };
    let both = "tepui.limits.cpus:4;tepui.limits.mem:512";
    assert_eq!(limits("group limits", both), (Some(4.0), Some(512.0)));
    assert_eq!(limits("lenient", both), (None, None), "only if the switch is on");
    assert_eq!(limits("group limits", "tepui.limits.mem:Infinity"), (None, Some(f64::INFINITY)));
    assert_eq!(limits("group limits", "tepui.limits.mem:1"), (None, Some(160.0)));
}

/// Tasks of a group may leave out their executor; the executor receives them with it.
#[test]
fn launch_group_event_sets_the_executor_of_each_task() {
    let world = World::default().run("start\nrecovered\ngo\ngroup e a,b\ne subscribe");
    let executors: Vec<&str> =
        world.grouped.iter().map(|task| task.executor.executor_id.value.as_str()).collect();
    assert_eq!(executors, ["e", "e"]);
    assert!(world.grouped.iter().all(|task| task.executor.framework_id.value == "F"));
}

#[test]
fn group_limit_requires_its_isolator() {
    let world = World::default().run(
        "isolation cgroups/cpu\ngroup limits\nstart\nrecovered\ngo\ngroup e a labels=tepui.limits.mem:512",
    );
    let status = world.statuses.last().expect("it is dropped");
    assert_eq!(
        status.message.as_deref(),
        Some("A limit on 'mem' needs the isolator 'cgroups/mem', which this agent lacks")
    );
}

#[test]
fn task_resource_limits_capability_is_reported_by_default() {
    let can = tepui_proto::mesos::v1::agent_info::capability::Type::TASK_RESOURCE_LIMITS;
    assert!(World::default().config.capabilities.contains(&can));
    let told = &play("").subscribes[0].capabilities;
    assert!(told.iter().any(|one| one.r#type == Some(can)), "the master hears of it");
}
