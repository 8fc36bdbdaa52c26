//! Limits and shared cgroups: every rule and its message.

use super::*;

const SHARED: (&str, &str) = ("container", "{'type':'MESOS','linux_info':{'share_cgroups':true}}");
const OWN: (&str, &str) = ("container", "{'type':'MESOS','linux_info':{'share_cgroups':false}}");
const SILENT: (&str, &str) = ("container", "{'type':'MESOS','linux_info':{}}");

#[test]
fn limit_names_and_values_are_validated() {
    table(
        check_task,
        [
            (&[("limits", "{'cpus':{'value':0.1},'mem':{'value':32}}")][..], ""),
            (&[("limits", "{'cpus':{'value':'Infinity'},'mem':{'value':'Infinity'}}")], ""),
            (
                &[("limits", "{'gpus':{'value':1}}")],
                "Only cpus and mem may be included in a task's resource limits, not 'gpus'",
            ),
            (
                &[("limits", "{'cpus':{'value':0.09}}")],
                "The cpu limit must be greater than or equal to the cpu request: 'limits.cpus' is 0.09, the request 0.1",
            ),
            (
                &[("limits", "{'mem':{'value':-0.0}}")],
                "The memory limit must be greater than or equal to the memory request: 'limits.mem' is -0, the request 32",
            ),
            (
                &[("limits", "{'cpus':{'value':'-Infinity'}}")],
                "The cpu limit 'limits.cpus' must be a number or Infinity, not -inf",
            ),
            (
                &[("limits", "{'mem':{'value':'-Infinity'}}")],
                "The memory limit 'limits.mem' must be a number or Infinity, not -inf",
            ),
        ],
    );
}

#[test]
fn limits_require_the_agent_capability_and_valid_numbers() {
    let limited: pb::TaskInfo = message(TASK, &[("limits", "{'cpus':{'value':1}}")]);
    let without = with_launch(&[], |launch| task::launch(launch, &limited));
    assert_eq!(
        sentence(without),
        "Task has resource limits, but its agent has no TASK_RESOURCE_LIMITS capability"
    );
    let mut no_number = limited.clone();
    no_number.limits.insert("cpus".into(), pb::value::Scalar { value: f64::NAN, ..Default::default() });
    assert_eq!(
        sentence(with_launch(ALL_CAPABILITIES, |launch| task::launch(launch, &no_number))),
        "The cpu limit 'limits.cpus' must be a number or Infinity, not NaN"
    );
    let mut no_request = limited;
    no_request.resources.retain(|resource| resource.name != "cpus");
    assert_eq!(
        sentence(with_launch(ALL_CAPABILITIES, |launch| task::launch(launch, &no_request))),
        "A task with the cpu limit 'limits.cpus' must have a cpu request"
    );
}

#[test]
fn requests_are_optional_with_best_effort_tasks() {
    for (members, without) in [
        (&[("resources", "[]")] as &[(&str, &str)], "Task uses no resources"),
        (
            &[("resources", "[]"), ("limits", "{'mem':{'value':64},'cpus':{'value':'Infinity'}}")],
            "Task uses no resources",
        ),
    ] {
        let info: pb::TaskInfo = message(TASK, members);
        let check = |switch| {
            sentence(with_switches(ALL_CAPABILITIES, (switch, false), |launch| task::launch(launch, &info)))
        };
        assert_eq!((check(false).as_str(), check(true).as_str()), (without, ""));
    }
    let wrong: pb::TaskInfo =
        message(TASK, &[("resources", "[]"), ("limits", "{'mem':{'value':'-Infinity'}}")]);
    assert_eq!(
        sentence(with_switches(ALL_CAPABILITIES, (true, false), |launch| task::launch(launch, &wrong))),
        "The memory limit 'limits.mem' must be a number or Infinity, not -inf"
    );
}

/// Only tasks of a LAUNCH_GROUP may set how they have their cgroups.
#[test]
fn share_cgroups_is_rejected_outside_of_groups() {
    let of_task = "Only tasks in a task group may have 'share_cgroups' set";
    let to_false = "Only tasks in a task group may have 'share_cgroups' set to 'false'";
    table(
        check_task,
        [
            (&[SILENT][..], ""),
            (&[SHARED], of_task),
            (&[OWN], to_false),
            (
                &[(
                    "container",
                    "{'type':'DOCKER','docker':{'image':'i'},'linux_info':{'share_cgroups':true}}",
                )],
                of_task,
            ),
            (
                &[(
                    "container",
                    "{'type':'DOCKER','docker':{'image':'i'},'linux_info':{'share_cgroups':false}}",
                )],
                to_false,
            ),
        ],
    );
    let of_executor = "Only the executor of a task group may have 'share_cgroups' set";
    table(check_executor, [(&[SILENT][..], ""), (&[SHARED], of_executor), (&[OWN], of_executor)]);
}

/// A group of two tasks under the executor `id`, which all have the cgroup setting of the argument.
fn sharing(id: &str, tasks: [Option<bool>; 2], executor: Option<bool>) -> String {
    let container = |said: Option<bool>| match said {
        Some(true) => SHARED,
        Some(false) => OWN,
        None => SILENT,
    };
    let id = format!("{{'value':'{id}'}}");
    let members = [GROUP_EXECUTOR[0], GROUP_EXECUTOR[1], ("executor_id", id.as_str()), container(executor)];
    let executor: pb::ExecutorInfo = message(EXECUTOR, &members);
    let task = |(name, said): (&str, Option<bool>)| {
        let name = format!("{{'value':'{name}'}}");
        let mut task: pb::TaskInfo = message(TASK, &[("task_id", name.as_str()), container(said)]);
        task.executor = executor.clone().into();
        task
    };
    let tasks = ["t", "u"].into_iter().zip(tasks).map(task).collect();
    let task_group = pb::TaskGroupInfo { tasks, ..Default::default() };
    let group = LaunchGroup {
        executor: executor.clone().into(),
        task_group: task_group.into(),
        ..Default::default()
    };
    sentence(with_launch(ALL_CAPABILITIES, |launch| group::launch_group(launch, &group)))
}

#[test]
fn share_cgroups_is_fixed_per_executor_id() {
    let (shared, own) = (Some(true), Some(false));
    let wrong = |who: &str, said: bool, id: &str| {
        format!(
            "{who} has 'container.linux_info.share_cgroups' {said}, but under executor '{id}' it is {} for all tasks: \
             use that, or another executor id",
            !said
        )
    };
    for (id, tasks, executor, expected) in [
        // A new executor.
        ("new", [None, None], None, String::new()),
        ("new", [shared, None], None, String::new()),
        ("new", [own, own], None, String::new()),
        ("new", [own, None], None, wrong("Task 'u'", true, "new")),
        ("new", [None, own], None, wrong("Task 'u'", false, "new")),
        // The executor's setting is the default.
        ("new", [None, own], own, String::new()),
        ("new", [None, shared], shared, String::new()),
        ("new", [shared, None], own, wrong("Task 't'", true, "new")),
        ("new", [None, own], shared, wrong("Task 'u'", false, "new")),
        // Its tasks have long ended.
        ("own", [own, own], None, String::new()),
        ("own", [None, None], own, String::new()),
        ("own", [None, None], None, wrong("Task 't'", true, "own")),
        ("own", [own, own], shared, wrong("Executor 'own'", true, "own")),
        ("shared", [None, None], None, String::new()),
        ("shared", [own, own], None, wrong("Task 't'", false, "shared")),
        ("shared", [None, None], own, wrong("Executor 'shared'", false, "shared")),
    ] {
        assert_eq!(sharing(id, tasks, executor), expected, "{id} {tasks:?} {executor:?}");
    }
    // Tasks of a LAUNCH share the cgroups of their executor.
    table(
        check_executor,
        [
            (&[("executor_id", "{'value':'shared'}")][..], ""),
            (
                &[("executor_id", "{'value':'own'}")],
                "A task that is not in a group shares the cgroups of its executor, but under executor 'own' \
                 'share_cgroups' is false for all tasks: use another executor id",
            ),
        ],
    );
}

/// Whatever the type of their executor.
#[test]
fn limits_in_groups_require_own_cgroups() {
    const LIMITS: (&str, &str) = ("limits", "{'cpus':{'value':1}}");
    const CUSTOM: &[(&str, &str)] = &[("type", "'CUSTOM'"), ("command", "{'value':'run'}")];
    let refused = "Task 't' is invalid: Resource limits may only be set on a task of a group if its 'share_cgroups' is 'false'";
    for executor in [&[][..], CUSTOM] {
        assert_eq!(check_group(&[LIMITS], executor), refused);
        assert_eq!(check_group(&[LIMITS, SHARED], executor), refused);
        assert_eq!(
            check_group(&[LIMITS, OWN], executor),
            "Task 'u' has 'container.linux_info.share_cgroups' true, but under executor 'e' it is false for all tasks: \
             use that, or another executor id",
            "that is all that is wrong with it"
        );
    }
}

/// The group requests 0.3 cpus and 96 megabytes.
#[test]
fn group_limit_labels_are_validated() {
    let labels = |cpus: &str, mem: &str| {
        let of = |name: &str, value: &str| format!("{{'key':'tepui.limits.{name}','value':'{value}'}}");
        format!("{{'labels':[{},{}]}}", of("cpus", cpus), of("mem", mem))
    };
    let check = |capabilities, switch, cpus: &str, mem: &str| {
        check_group_with(capabilities, (false, switch), &[], &[("labels", labels(cpus, mem).as_str())])
    };
    for (cpus, mem, why) in [
        ("0.3", "96", ""),
        ("Infinity", "Infinity", ""),
        ("0.2", "96", "The cpus limit 0.2 of the task group is less than its request of 0.3"),
        ("0.3", "95.5", "The mem limit 95.5 of the task group is less than its request of 96"),
        ("1", "none", "The label 'tepui.limits.mem' must be a positive number or Infinity, not 'none'"),
        ("NaN", "96", "The label 'tepui.limits.cpus' must be a positive number or Infinity, not 'NaN'"),
    ] {
        assert_eq!(check(ALL_CAPABILITIES, true, cpus, mem), why);
        assert_eq!(check(ALL_CAPABILITIES, false, cpus, mem), "", "labels like any others");
    }
    assert_eq!(
        check(&[], true, "1", "96"),
        "Task group has resource limits, but its agent has no TASK_RESOURCE_LIMITS capability"
    );
}

/// Shared and separate cgroups are different executors, also if nothing else differs.
#[test]
fn linux_infos_are_compared_with_share_cgroups() {
    let executor = |container| -> pb::ExecutorInfo {
        message(EXECUTOR, &[GROUP_EXECUTOR[0], GROUP_EXECUTOR[1], container])
    };
    let check = |named: pb::ExecutorInfo| {
        let mut task: pb::TaskInfo = message(TASK, &[OWN]);
        task.executor = named.into();
        let task_group = pb::TaskGroupInfo { tasks: Vec::from([task]), ..Default::default() };
        let group = LaunchGroup {
            executor: executor(OWN).into(),
            task_group: task_group.into(),
            ..Default::default()
        };
        sentence(with_launch(ALL_CAPABILITIES, |launch| group::launch_group(launch, &group)))
    };
    assert_eq!(check(executor(OWN)), "");
    assert_eq!(check(executor(SILENT)), "The `ExecutorInfo` of task 't' is different from its group's");
}
