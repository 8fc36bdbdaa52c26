//! Tables: what is changed in a message that is right, and the sentence that comes of it.
//!
//! Messages are written as JSON with single quotes.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use tepui_proto::json;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::agent_info::capability::Type as AgentCapability;
use tepui_proto::mesos::v1::offer::operation::LaunchGroup;
use tepui_resources::{Operation, Resources};
use tepui_types::{AgentId, ExecutorId, FrameworkId, TaskId};

use crate::values::limits::Limits;

use super::{Known, Launch, RunningExecutor, Scene, TaskUse, framework, group, operation, task};

mod limits;
mod sizes;

/// Small ones: messages of the tables are far below them.
const SIZES: Limits = Limits {
    framework_info: 4000,
    task_info: 4000,
    operation: 4000,
    agent_info: 4000,
    tasks_of_framework: 7000,
    frameworks: 10,
    role_config: 4000,
    maintenance_schedule: 4000,
};

type Members = &'static [(&'static str, &'static str)];

const ALL_CAPABILITIES: &[AgentCapability] = &[
    AgentCapability::MULTI_ROLE,
    AgentCapability::HIERARCHICAL_ROLE,
    AgentCapability::RESERVATION_REFINEMENT,
    AgentCapability::RESIZE_VOLUME,
    AgentCapability::TASK_RESOURCE_LIMITS,
];

/// `members` over `defaults`; an empty value leaves a member out.
fn message<M: json::FromJson + Default>(defaults: &[(&str, &str)], members: &[(&str, &str)]) -> M {
    let all: BTreeMap<&str, &str> = defaults.iter().chain(members).copied().collect();
    let fields: Vec<String> = all
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(key, value)| format!("'{key}':{value}"))
        .collect();
    let text = format!("{{{}}}", fields.join(",")).replace('\'', "\"");
    json::from_slice(text.as_bytes()).unwrap_or_else(|wrong| panic!("{text}: {wrong}"))
}

const RESOURCES: &str =
    "[{'name':'cpus','type':'SCALAR','scalar':{'value':0.1},'allocation_info':{'role':'dev'}},
    {'name':'mem','type':'SCALAR','scalar':{'value':32},'allocation_info':{'role':'dev'}}]";
const EXECUTOR_RESOURCES: &str =
    "[{'name':'cpus','type':'SCALAR','scalar':{'value':0.1},'allocation_info':{'role':'dev'}},
    {'name':'mem','type':'SCALAR','scalar':{'value':32},'allocation_info':{'role':'dev'}},
    {'name':'disk','type':'SCALAR','scalar':{'value':32},'allocation_info':{'role':'dev'}}]";
const TASK: &[(&str, &str)] = &[
    ("name", "'t'"),
    ("task_id", "{'value':'t'}"),
    ("agent_id", "{'value':'S0'}"),
    ("resources", RESOURCES),
    ("command", "{'value':'true'}"),
];
const EXECUTOR: &[(&str, &str)] = &[
    ("executor_id", "{'value':'e'}"),
    ("framework_id", "{'value':'F'}"),
    ("resources", EXECUTOR_RESOURCES),
    ("command", "{'value':'run'}"),
];
const GROUP_EXECUTOR: &[(&str, &str)] = &[("type", "'DEFAULT'"), ("command", "")];

/// A framework with a live task `t-run`, an unreachable `t-away`, a running executor `running`, and two that once ran
/// tasks which shared their cgroups and tasks which did not: `shared` and `own`.
struct Books {
    running: pb::ExecutorInfo,
    resources: Resources,
}

impl Known for Books {
    fn task(&self, id: &TaskId) -> TaskUse {
        match id.as_str() {
            "t-run" => TaskUse::Live,
            "t-away" => TaskUse::Unreachable,
            _ => TaskUse::Unused,
        }
    }

    fn executor(&self, id: &ExecutorId) -> Option<RunningExecutor<'_>> {
        let running = RunningExecutor { info: &self.running, resources: &self.resources };
        (id.as_str() == "running").then_some(running)
    }

    fn shares_cgroups(&self, id: &ExecutorId) -> Option<bool> {
        match id.as_str() {
            "shared" => Some(true),
            "own" => Some(false),
            _ => None,
        }
    }
}

fn books() -> Books {
    let running: pb::ExecutorInfo = message(EXECUTOR, &[("executor_id", "{'value':'running'}")]);
    Books { resources: Resources::from_proto(&running.resources).unwrap(), running }
}

fn offered() -> Resources {
    let list = "[{'name':'cpus','type':'SCALAR','scalar':{'value':4},'allocation_info':{'role':'dev'}},
        {'name':'mem','type':'SCALAR','scalar':{'value':128},'allocation_info':{'role':'dev'}},
        {'name':'disk','type':'SCALAR','scalar':{'value':1000},'allocation_info':{'role':'dev'}},
        {'name':'ports','type':'RANGES','ranges':{'range':[{'begin':31000,'end':32000}]},'allocation_info':{'role':'dev'}}]";
    resources(list)
}

fn resources(list: &str) -> Resources {
    let task: pb::TaskInfo = message(TASK, &[("resources", list)]);
    Resources::from_proto(&task.resources).unwrap()
}

fn with_launch<T>(capabilities: &[AgentCapability], check: impl FnOnce(&Launch<'_>) -> T) -> T {
    with_switches(capabilities, (false, false), check)
}

/// With tasks that ask for nothing, and with limits of groups.
fn with_switches<T>(
    capabilities: &[AgentCapability],
    (best_effort_tasks, task_group_limits): (bool, bool),
    check: impl FnOnce(&Launch<'_>) -> T,
) -> T {
    let (framework_id, agent_id) = (FrameworkId::new("F"), AgentId::new("S0"));
    let (remaining, known) = (offered(), books());
    check(&Launch {
        framework_id: &framework_id,
        agent_id: &agent_id,
        agent_capabilities: capabilities,
        best_effort_tasks,
        task_group_limits,
        limits: &SIZES,
        task_bytes: 1000,
        remaining: &remaining,
        known: &known,
    })
}

fn sentence<T>(result: Result<T, String>) -> String {
    result.err().unwrap_or_default()
}

fn check_task(members: &[(&str, &str)]) -> String {
    let info: pb::TaskInfo = message(TASK, members);
    sentence(with_launch(ALL_CAPABILITIES, |launch| task::launch(launch, &info)))
}

/// A task whose executor is changed.
fn check_executor(members: &[(&str, &str)]) -> String {
    let mut info: pb::TaskInfo = message(TASK, &[("command", "")]);
    info.executor = message::<pb::ExecutorInfo>(EXECUTOR, members).into();
    sentence(with_launch(ALL_CAPABILITIES, |launch| task::launch(launch, &info)))
}

/// A group of two tasks, `t` changed and `u`.
fn check_group(task: &[(&str, &str)], executor: &[(&str, &str)]) -> String {
    check_group_with(ALL_CAPABILITIES, (false, false), task, executor)
}

fn check_group_with(
    capabilities: &[AgentCapability],
    switches: (bool, bool),
    task: &[(&str, &str)],
    executor: &[(&str, &str)],
) -> String {
    let executor_members: Vec<(&str, &str)> = GROUP_EXECUTOR.iter().chain(executor).copied().collect();
    let executor: pb::ExecutorInfo = message(EXECUTOR, &executor_members);
    let first: pb::TaskInfo = message(TASK, task);
    let second: pb::TaskInfo = message(TASK, &[("task_id", "{'value':'u'}")]);
    let mut tasks = Vec::from([first, second]);
    tasks
        .iter_mut()
        .filter(|task| !task.executor.is_set())
        .for_each(|task| task.executor = executor.clone().into());
    let task_group = pb::TaskGroupInfo { tasks, ..Default::default() };
    let info = LaunchGroup { executor: executor.into(), task_group: task_group.into(), ..Default::default() };
    sentence(with_switches(capabilities, switches, |launch| group::launch_group(launch, &info)))
}

fn table<'a>(check: impl Fn(&[(&str, &str)]) -> String, rows: impl IntoIterator<Item = (Members, &'a str)>) {
    for (members, expected) in rows {
        assert_eq!(check(members), expected, "{members:?}");
    }
}

/// Messages of a v1 master, verbatim; those about limits are longer.
#[test]
fn task_errors_match_the_recorded_v1_messages() {
    table(
        check_task,
        [
            (&[][..], ""),
            (&[("task_id", "{'value':'t-run'}")], "Task has duplicate ID: t-run"),
            (
                &[("command", "")],
                "Task should have at least one (but not both) of CommandInfo or ExecutorInfo present",
            ),
            (
                &[("limits", "{'cpus':{'value':1},'disk':{'value':1}}")],
                "Only cpus and mem may be included in a task's resource limits, not 'disk'",
            ),
            (
                &[("limits", "{'mem':{'value':16}}")],
                "The memory limit must be greater than or equal to the memory request: 'limits.mem' is 16, the request 32",
            ),
            (
                &[("limits", "{'cpus':{'value':-1}}")],
                "The cpu limit must be greater than or equal to the cpu request: 'limits.cpus' is -1, the request 0.1",
            ),
            (
                &[("container", "{'type':'MESOS','linux_info':{'share_cgroups':false}}")],
                "Only tasks in a task group may have 'share_cgroups' set to 'false'",
            ),
            (
                &[("health_check", "{'type':'HTTP'}")],
                "Task uses invalid health check: Expecting 'http' to be set for HTTP health check",
            ),
            (
                &[("health_check", "{'type':'COMMAND','command':{'value':'true'},'interval_seconds':-1}")],
                "Task uses invalid health check: Expecting 'interval_seconds' to be non-negative",
            ),
            (
                &[("check", "{'type':'TCP'}")],
                "Task uses invalid check: Expecting 'tcp' to be set for TCP check",
            ),
            (
                &[("command", "{'value':'true','environment':{'variables':[{'name':'A','type':'SECRET'}]}}")],
                "Task's `CommandInfo` is invalid: Environment variable 'A' of type 'SECRET' must have a secret set",
            ),
            (
                &[("container", "{'type':'DOCKER'}")],
                "Task's `ContainerInfo` is invalid: DockerInfo 'docker' is not set for DOCKER typed ContainerInfo",
            ),
            (&[("command", "{'shell':false,'value':'/bin/echo','arguments':['echo','x']}")], ""),
        ],
    );
}

/// The order in which resources are named differs; everything else is as recorded.
#[test]
fn resources_of_another_role_are_not_available() {
    let other = RESOURCES.replace("'dev'", "'other'");
    assert_eq!(
        check_task(&[("resources", other.as_str())]),
        "Total resources cpus(allocated: other):0.1; mem(allocated: other):32 required by task and its executor is \
         more than available cpus(allocated: dev):4; mem(allocated: dev):128; disk(allocated: dev):1000; \
         ports(allocated: dev):[31000-32000]"
    );
}

#[test]
fn tasks_are_validated() {
    table(
        check_task,
        [
            (&[("task_id", "{'value':''}")][..], "TaskID '' is invalid: ID must not be empty"),
            (
                &[("task_id", "{'value':'a/b'}")],
                "TaskID 'a/b' is invalid: ID contains the invalid character '/'",
            ),
            (&[("task_id", "{'value':'t-away'}")], "Task reuses the ID of an unreachable task: t-away"),
            (&[("agent_id", "{'value':'S1'}")], "Task uses invalid agent S1 while agent S0 is expected"),
            (
                &[("kill_policy", "{'grace_period':{'nanoseconds':-1}}")],
                "Task's 'kill_policy.grace_period' must be non-negative",
            ),
            (
                &[("max_completion_time", "{'nanoseconds':-1}")],
                "Task's 'max_completion_time' must be non-negative",
            ),
            (&[("max_completion_time", "{'nanoseconds':0}")], ""),
            (&[("resources", "")], "Task uses no resources"),
            (
                &[("resources", "[{'name':'cpus','type':'SCALAR','scalar':{'value':-1}}]")],
                "Task uses invalid resources: Resource 'cpus' is invalid: Invalid scalar resource: 'scalar.value' is negative",
            ),
            (
                &[("resources", "[{'name':'cpus','type':'SCALAR','scalar':{'value':1}}]")],
                "Task uses invalid resources: The resource 'cpus' is not allocated to a role: 'allocation_info.role' must be set",
            ),
        ],
    );
}

#[test]
fn health_checks_and_checks_are_validated() {
    let health = |text: &'static str| check_task(&[("health_check", text)]);
    let check = |text: &'static str| check_task(&[("check", text)]);
    for (text, expected) in [
        ("{}", "HealthCheck must specify 'type'"),
        ("{'type':'UNKNOWN'}", "'UNKNOWN' is not a valid health check type"),
        ("{'type':'COMMAND'}", "Expecting 'command' to be set for COMMAND health check"),
        ("{'type':'COMMAND','command':{}}", "Expecting 'command.value' to be set for COMMAND health check"),
        ("{'type':'HTTP','http':{'port':1,'scheme':'ftp'}}", "Unsupported HTTP health check scheme: 'ftp'"),
        (
            "{'type':'HTTP','http':{'port':1,'path':'x'}}",
            "The path 'x' of HTTP health check must start with '/'",
        ),
        (
            "{'type':'TCP','tcp':{'port':1},'delay_seconds':-0.5}",
            "Expecting 'delay_seconds' to be non-negative",
        ),
        (
            "{'type':'TCP','tcp':{'port':1},'grace_period_seconds':-1}",
            "Expecting 'grace_period_seconds' to be non-negative",
        ),
        (
            "{'type':'TCP','tcp':{'port':1},'timeout_seconds':'Infinity'}",
            "Expecting 'timeout_seconds' to be finite",
        ),
    ] {
        assert_eq!(health(text), format!("Task uses invalid health check: {expected}"), "{text}");
    }
    assert_eq!(
        health("{'type':'HTTP','http':{'port':1,'scheme':'https','path':'/x'},'delay_seconds':0}"),
        ""
    );
    for (text, expected) in [
        ("{}", "CheckInfo must specify 'type'"),
        ("{'type':'COMMAND'}", "Expecting 'command' to be set for COMMAND check"),
        (
            "{'type':'COMMAND','command':{'command':{}}}",
            "Expecting 'command.value' to be set for COMMAND check",
        ),
        ("{'type':'HTTP','http':{'port':1,'path':'x'}}", "The path 'x' of HTTP check must start with '/'"),
        (
            "{'type':'TCP','tcp':{'port':1},'interval_seconds':-1}",
            "Expecting 'interval_seconds' to be non-negative",
        ),
    ] {
        assert_eq!(check(text), format!("Task uses invalid check: {expected}"), "{text}");
    }
    assert_eq!(check("{'type':'COMMAND','command':{'command':{'value':'true'}}}"), "");
}

#[test]
fn environment_variables_and_volumes_are_validated() {
    let variable = |text: &str| {
        let command = format!("{{'value':'x','environment':{{'variables':[{{'name':'A',{text}}}]}}}}");
        check_task(&[("command", command.as_str())])
    };
    let begin = "Task's `CommandInfo` is invalid: Environment variable 'A' of type";
    for (text, expected) in [
        ("'type':'VALUE'", "'VALUE' must have a value set"),
        ("'value':'v','secret':{}", "'VALUE' must not have a secret set"),
        ("'type':'UNKNOWN'", "'UNKNOWN' is not allowed"),
        ("'type':'SECRET','value':'v','secret':{}", "'SECRET' must not have a value set"),
        (
            "'type':'SECRET','secret':{'type':'VALUE'}",
            "'SECRET' specifies an invalid secret: Secret of type VALUE must have the 'value' field set",
        ),
        (
            "'type':'SECRET','secret':{'type':'REFERENCE','value':{'data':''}}",
            "'SECRET' specifies an invalid secret: Secret of type REFERENCE must have the 'reference' field set",
        ),
        (
            "'type':'SECRET','secret':{'type':'VALUE','value':{'data':'YQBi'}}",
            "'SECRET' specifies a secret containing null bytes",
        ),
    ] {
        assert_eq!(variable(text), format!("{begin} {expected}"), "{text}");
    }
    assert_eq!(variable("'value':''"), "");
    assert_eq!(variable("'type':'SECRET','secret':{'type':'VALUE','value':{'data':'YWI='}}"), "");

    let volume = |text: &str| {
        let container = format!("{{'type':'MESOS','volumes':[{{'mode':'RW','container_path':'p',{text}}}]}}");
        check_task(&[("container", container.as_str())])
    };
    let begin = "Task's `ContainerInfo` is invalid:";
    for (text, expected) in [
        (
            "'host_path':'/a','source':{'type':'HOST_PATH','host_path':{'path':'/a'}}",
            "Exactly one of 'host_path', 'image' and 'source' must be set in a volume",
        ),
        ("'source':{}", "'source.type' of a volume is unknown"),
        (
            "'source':{'type':'DOCKER_VOLUME'}",
            "'source.docker_volume' is not set for the type of the volume's source",
        ),
        (
            "'source':{'type':'CSI_VOLUME','csi_volume':{'plugin_name':'p'}}",
            "'source.csi_volume.static_provisioning' is not set for the type of the volume's source",
        ),
    ] {
        assert_eq!(volume(text), format!("{begin} {expected}"), "{text}");
    }
    assert_eq!(volume("'host_path':'/a'"), "");
    let name = "{'type':'DOCKER','docker':{'image':'i','parameters':[{'key':'name','value':'n'}]}}";
    assert_eq!(
        check_task(&[("container", name)]),
        format!("{begin} Parameter in DockerInfo must not be 'name'")
    );
}

#[test]
fn executors_are_validated() {
    table(
        check_executor,
        [
            (&[][..], ""),
            (&[("type", "'CUSTOM'")], ""),
            (&[("resources", "")], ""),
            (
                &[("executor_id", "{'value':'..'}")],
                "Executor's ID '..' is invalid: '.' and '..' are disallowed as IDs",
            ),
            (&[("type", "'DEFAULT'")], "'ExecutorInfo.command' must not be set for 'DEFAULT' executor"),
            (
                &[("type", "'DEFAULT'"), ("command", "")],
                "'ExecutorInfo.type' must be 'CUSTOM' for the executor of a LAUNCH",
            ),
            (
                &[
                    ("type", "'DEFAULT'"),
                    ("command", ""),
                    ("container", "{'type':'DOCKER','docker':{'image':'i'}}"),
                ],
                "'ExecutorInfo.container.type' must be 'MESOS' for 'DEFAULT' executor",
            ),
            (
                &[("type", "'CUSTOM'"), ("command", "")],
                "'ExecutorInfo.command' must be set for 'CUSTOM' executor",
            ),
            (&[("command", "")], "'ExecutorInfo.command' must be set"),
            (
                &[("shutdown_grace_period", "{'nanoseconds':-1}")],
                "ExecutorInfo's 'shutdown_grace_period' must be non-negative",
            ),
            (&[("framework_id", "")], "'ExecutorInfo.framework_id' must be set"),
            (
                &[("framework_id", "{'value':'G'}")],
                "ExecutorInfo has an invalid FrameworkID (Actual: G vs Expected: F)",
            ),
            (&[("executor_id", "{'value':'running'}")], ""),
            (&[("executor_id", "{'value':'running'}"), ("labels", "{'labels':[{'key':'k'}]}")], ""),
            (
                &[("executor_id", "{'value':'running'}"), ("command", "{'value':'other'}")],
                "ExecutorInfo is not compatible with existing ExecutorInfo with same ExecutorID 'running': 'command' differs",
            ),
            (
                &[("executor_id", "{'value':'running'}"), ("resources", "")],
                "ExecutorInfo is not compatible with existing ExecutorInfo with same ExecutorID 'running': 'resources' differs",
            ),
            (
                &[(
                    "resources",
                    "[{'name':'cpus','type':'SCALAR','scalar':{'value':3.95},'allocation_info':{'role':'dev'}}]",
                )],
                "Total resources cpus(allocated: dev):4.05; mem(allocated: dev):32 required by task and its executor is \
                 more than available cpus(allocated: dev):4; mem(allocated: dev):128; disk(allocated: dev):1000; \
                 ports(allocated: dev):[31000-32000]",
            ),
        ],
    );
}

#[test]
fn a_task_and_its_executor_do_not_share_ports() {
    let ports = |from: u32, to: u32| {
        format!(
            "[{{'name':'ports','type':'RANGES','ranges':{{'range':[{{'begin':{from},'end':{to}}}]}},'allocation_info':{{'role':'dev'}}}}]"
        )
    };
    let check = |own: String, executor: String| {
        let mut info: pb::TaskInfo = message(TASK, &[("command", ""), ("resources", own.as_str())]);
        info.executor = message::<pb::ExecutorInfo>(EXECUTOR, &[("resources", executor.as_str())]).into();
        sentence(with_launch(ALL_CAPABILITIES, |launch| task::launch(launch, &info)))
    };
    assert_eq!(check(ports(31000, 31001), ports(31002, 31003)), "");
    assert_eq!(
        check(ports(31000, 31001), ports(31001, 31003)),
        "The same elements of 'ports' are used twice, by a task and by its executor"
    );
}

#[test]
fn task_groups_are_validated() {
    for (task, executor, expected) in [
        (&[][..], &[][..], ""),
        (&[("task_id", "{'value':'u'}")], &[], "Task 'u' is invalid: Task has duplicate ID: u"),
        (&[("task_id", "{'value':'t-run'}")], &[], "Task 't-run' is invalid: Task has duplicate ID: t-run"),
        (&[("command", "")], &[], ""),
        (
            &[("container", "{'type':'DOCKER','docker':{'image':'i'}}")],
            &[],
            "Task 't' is invalid: Docker ContainerInfo is not supported on the task",
        ),
        (
            &[
                ("container", "{'type':'MESOS','network_infos':[{}]}"),
                ("health_check", "{'type':'TCP','tcp':{'port':1}}"),
            ],
            &[],
            "Task 't' is invalid: HTTP and TCP health checks are not supported for tasks with a network of their own",
        ),
        (&[], &[("type", "")], "'ExecutorInfo.type' must be set to 'DEFAULT' or 'CUSTOM'"),
        (&[], &[("framework_id", "")], "'ExecutorInfo.framework_id' must be set"),
        (
            &[],
            &[
                ("type", "'CUSTOM'"),
                ("command", "{'value':'x'}"),
                ("container", "{'type':'DOCKER','docker':{'image':'i'}}"),
            ],
            "Docker ContainerInfo is not supported on the executor",
        ),
        (
            &[],
            &[
                ("executor_id", "{'value':'running'}"),
                ("type", ""),
                ("command", "{'value':'run'}"),
                ("container", "{'type':'MESOS','linux_info':{'share_cgroups':false}}"),
            ],
            "ExecutorInfo is not compatible with existing ExecutorInfo with same ExecutorID 'running': 'container' differs",
        ),
        (&[], &[("resources", "")], "Executor 'e' needs at least 0.01 cpus, not 0"),
        (&[], &[("resources", RESOURCES)], "Executor 'e' needs some disk"),
        (
            &[("executor", "{'executor_id':{'value':'other'}}")],
            &[],
            "The `ExecutorInfo` of task 't' is different from its group's",
        ),
        (
            &[(
                "resources",
                "[{'name':'mem','type':'SCALAR','scalar':{'value':65},'allocation_info':{'role':'dev'}}]",
            )],
            &[],
            "Total resources cpus(allocated: dev):0.2; mem(allocated: dev):129; disk(allocated: dev):32 required by task \
             group and its executor are more than available cpus(allocated: dev):4; mem(allocated: dev):128; \
             disk(allocated: dev):1000; ports(allocated: dev):[31000-32000]",
        ),
    ] {
        assert_eq!(check_group(task, executor), expected, "{task:?} {executor:?}");
    }
    let empty = LaunchGroup::default();
    assert_eq!(
        sentence(with_launch(ALL_CAPABILITIES, |launch| group::launch_group(launch, &empty))),
        "Task group cannot be empty"
    );
}

#[test]
fn framework_infos_are_validated() {
    const INFO: &[(&str, &str)] = &[("user", "'root'"), ("name", "'x'")];
    const MULTI: (&str, &str) = ("capabilities", "[{'type':'MULTI_ROLE'}]");
    let check = |members: &[(&str, &str)]| sentence(framework::info(&message(INFO, members)));
    table(
        check,
        [
            (&[][..], ""),
            // The first two are messages of a v1 master, verbatim.
            (
                &[MULTI, ("roles", "['/x']")],
                "'FrameworkInfo.roles' contains invalid role: Role '/x' cannot start with a slash",
            ),
            (
                &[MULTI, ("role", "'a'"), ("roles", "['b']")],
                "'FrameworkInfo.role' must not be set when the framework is MULTI_ROLE capable",
            ),
            (
                &[("roles", "['b']")],
                "'FrameworkInfo.roles' must not be set when the framework is not MULTI_ROLE capable",
            ),
            (&[MULTI, ("roles", "['a','b','a']")], "'FrameworkInfo.roles' contains a duplicate: a"),
            (&[MULTI, ("roles", "['a/b','*']")], ""),
            (
                &[("role", "'a b'")],
                "'FrameworkInfo.role' is not a valid role: Role 'a b' cannot contain the character ' '",
            ),
            (&[("role", "''")], "'FrameworkInfo.role' is not a valid role: Empty role name is invalid"),
            (
                &[("id", "{'value':'a/b'}")],
                "'FrameworkInfo.id' is invalid: ID contains the invalid character '/'",
            ),
            (&[("id", "{'value':''}")], ""),
            (&[("failover_timeout", "-1")], ""),
            (
                &[("failover_timeout", "1e10")],
                "'FrameworkInfo.failover_timeout' is not a usable number of seconds: 10000000000",
            ),
            (
                &[("failover_timeout", "'Infinity'")],
                "'FrameworkInfo.failover_timeout' is not a usable number of seconds: inf",
            ),
            (
                &[("offer_filters", "{'a':{'min_allocatable_resources':{'quantities':[{}]}}}")],
                "'FrameworkInfo.offer_filters' of role 'a' has an empty entry in 'min_allocatable_resources.quantities'",
            ),
            (
                &[(
                    "offer_filters",
                    "{'a':{'min_allocatable_resources':{'quantities':[{'quantities':{'cpus':{'value':-1}}}]}}}",
                )],
                "'FrameworkInfo.offer_filters' of role 'a' has an invalid quantity of 'cpus': -1",
            ),
        ],
    );
    let mut no_number: pb::FrameworkInfo = message(INFO, &[]);
    no_number.failover_timeout = Some(f64::NAN);
    assert!(framework::info(&no_number).is_err());
    for (role, expected) in [
        ("a/", "Role 'a/' cannot end with a slash"),
        ("a//b", "Role 'a//b' cannot contain two adjacent slashes"),
        ("a/./b", "Role 'a/./b' cannot contain '.' as a component"),
        ("..", "Role '..' cannot contain '..' as a component"),
        ("a/*", "Role 'a/*' cannot contain '*' as a component"),
        ("-a", "Role '-a' cannot have a component that starts with a dash"),
    ] {
        assert_eq!(framework::role_name(role), Err(expected.to_string()));
    }
}

fn check_operation(scene: &Scene<'_>, text: &str) -> String {
    let message: pb::offer::Operation = json::from_slice(text.replace('\'', "\"").as_bytes())
        .unwrap_or_else(|wrong| panic!("{text}: {wrong}"));
    match Operation::from_proto(&message) {
        Ok(parsed) => sentence(operation::operation(scene, &parsed.unwrap())),
        Err(why) => why.to_string(),
    }
}

fn reserve(role: &str, allocated: &str, principal: &str) -> String {
    let principal = if principal.is_empty() { String::new() } else { format!(",'principal':'{principal}'") };
    let allocated = if allocated.is_empty() {
        String::new()
    } else {
        format!(",'allocation_info':{{'role':'{allocated}'}}")
    };
    format!(
        "{{'type':'RESERVE','reserve':{{'resources':[{{'name':'mem','type':'SCALAR','scalar':{{'value':1}},
        'reservations':[{{'type':'DYNAMIC','role':'{role}'{principal}}}]{allocated}}}]}}}}"
    )
}

fn volume(what: &str, principal: &str, extra: &str) -> String {
    format!(
        "{{'type':'{}','{what}':{{'volumes':[{{'name':'disk','type':'SCALAR','scalar':{{'value':8}},
        'reservations':[{{'type':'DYNAMIC','role':'dev'}}],'allocation_info':{{'role':'dev'}}{extra},
        'disk':{{'persistence':{{'id':'v'{principal}}},'volume':{{'mode':'RW','container_path':'d'}}}}}}]}}}}",
        what.to_uppercase()
    )
}

const VOLUME: &str = "[{'name':'disk','type':'SCALAR','scalar':{'value':8},
    'reservations':[{'type':'DYNAMIC','role':'dev'}],
    'disk':{'persistence':{'id':'v'},'volume':{'mode':'RW','container_path':'d'}}}]";

#[test]
fn offer_operations_are_validated() {
    let roles = Vec::from(["dev".to_string(), "dev/sub".to_string()]);
    let (nothing, there) = (Resources::new(), resources(VOLUME));
    let used = there.clone().allocate(&"dev".into());
    let scheduler = Scene {
        roles: Some(&roles),
        shared_resources: false,
        principal: None,
        agent_capabilities: ALL_CAPABILITIES,
        total: &nothing,
        used: &nothing,
    };
    let named = Scene { principal: Some("ops"), ..scheduler };
    let sharing = Scene { shared_resources: true, ..scheduler };
    let old_agent = Scene { agent_capabilities: &[], ..scheduler };
    let with_volume = Scene { total: &there, ..scheduler };
    let in_use = Scene { used: &used, ..with_volume };
    let disk = "disk(allocated: dev)(reservations: [(DYNAMIC,dev)])";
    let grow = format!(
        "{{'type':'SHRINK_VOLUME','shrink_volume':{{'volume':{},'subtract':{{'value':1}}}}}}",
        &VOLUME[1..VOLUME.len() - 1]
    );
    for (scene, text, expected) in [
        (&scheduler, reserve("dev", "dev", ""), String::new()),
        (&scheduler, reserve("dev/sub", "dev/sub", ""), String::new()),
        (
            &scheduler,
            reserve("dev", "dev/sub", ""),
            "Resource mem(allocated: dev/sub)(reservations: [(DYNAMIC,dev)]):1 is reserved for another role than it is allocated to"
                .into(),
        ),
        (
            &scheduler,
            reserve("ops", "ops", ""),
            "Resource mem(allocated: ops)(reservations: [(DYNAMIC,ops)]):1 is reserved for a role that the framework does not have"
                .into(),
        ),
        (
            &old_agent,
            reserve("dev/sub", "dev/sub", ""),
            "The agent of mem(allocated: dev/sub)(reservations: [(DYNAMIC,dev/sub)]):1 has no HIERARCHICAL_ROLE capability".into(),
        ),
        (&named, reserve("dev", "dev", "ops"), String::new()),
        (
            &named,
            reserve("dev", "dev", "eve"),
            "A reserve operation of principal 'ops' has 'reservation.principal' set to 'eve'".into(),
        ),
        (
            &named,
            reserve("dev", "dev", ""),
            "A reserve operation of principal 'ops' must have 'reservation.principal' set to it".into(),
        ),
        (&sharing, volume("create", "", ",'shared':{}"), String::new()),
        (&scheduler, volume("create", "", ""), String::new()),
        (
            &scheduler,
            volume("create", "", ",'shared':{}"),
            format!("Create of shared {disk}[v:d]<SHARED>:8 needs the framework capability SHARED_RESOURCES"),
        ),
        (
            &named,
            volume("create", "", ""),
            "A create operation of principal 'ops' must have 'disk.persistence.principal' set to it".into(),
        ),
        (&named, volume("create", ",'principal':'ops'", ""), String::new()),
        (
            &with_volume,
            volume("create", "", ""),
            "Persistence ID 'v' is not unique: 'disk.persistence.id' is there twice in role 'dev'".into(),
        ),
        (&with_volume, volume("destroy", "", ""), String::new()),
        (
            &scheduler,
            volume("destroy", "", ""),
            format!("Persistent volume {disk}[v:d]:8 does not exist on the agent"),
        ),
        (&in_use, volume("destroy", "", ""), format!("Persistent volume {disk}[v:d]:8 is in use")),
        (&scheduler, grow.clone(), String::new()),
        (
            &old_agent,
            grow,
            "Volume disk(reservations: [(DYNAMIC,dev)])[v:d]:8 cannot be resized: its agent has no RESIZE_VOLUME capability"
                .into(),
        ),
    ] {
        assert_eq!(check_operation(scene, &text), expected, "{text}");
    }
}
