//! What is too large is refused with the name of the field that makes it so.

use super::*;

fn labels(bytes: usize) -> String {
    format!("{{'labels':[{{'key':'k','value':'{}'}}]}}", "x".repeat(bytes))
}

#[test]
fn oversized_task_names_its_largest_field() {
    let data = format!("'{}'", "QUFB".repeat(2000));
    let command = format!("{{'value':'{}'}}", "x".repeat(5000));
    let name = format!("'{}'", "x".repeat(4500));
    for (member, value, taken) in [
        ("labels", labels(5000), 5009),
        ("data", data, 6000),
        ("command", command, 5003),
        ("name", name, 4500),
    ] {
        let said = check_task(&[(member, &value)]);
        assert!(said.starts_with("'TaskInfo' takes "), "{said}");
        let end =
            format!("more than the limit of 4000; its field '{member}' takes {taken} (--max_task_info_size)");
        assert!(said.ends_with(&end), "{said}");
    }
    assert_eq!(check_task(&[("labels", &labels(3000))]), "");
}

#[test]
fn group_executor_counts_towards_the_size_limit() {
    let executor: pb::ExecutorInfo = message(EXECUTOR, &[("labels", &labels(5000))]);
    let tasks = Vec::from([message(TASK, &[])]);
    let task_group = pb::TaskGroupInfo { tasks, ..Default::default() };
    let info = LaunchGroup { executor: executor.into(), task_group: task_group.into(), ..Default::default() };
    let said = with_launch(ALL_CAPABILITIES, |launch| sentence(group::launch_group(launch, &info)));
    assert!(said.starts_with("'ExecutorInfo' takes ") && said.contains("'labels' takes 5009"), "{said}");
    let said = check_group(&[], &[("labels", &labels(5000))]);
    assert!(said.contains("'TaskInfo' takes ") && said.contains("its field 'executor' takes "), "{said}");
    let said = check_group(&[("labels", &labels(5000))], &[]);
    assert!(said.starts_with("Task 't' is invalid: 'TaskInfo' takes "), "{said}");
}

/// The framework has tasks of 1000 bytes already, and may have 7000.
#[test]
fn total_task_size_of_a_framework_is_limited() {
    let tasks = |count: usize| -> Vec<pb::TaskInfo> {
        (0..count).map(|_| message(TASK, &[("labels", &labels(2000))])).collect()
    };
    let room = |count| with_launch(ALL_CAPABILITIES, |launch| sentence(task::room(launch, &tasks(count))));
    assert_eq!(room(2), "");
    let said = room(3);
    assert!(said.starts_with("The tasks of the framework take 1000 bytes"), "{said}");
    assert!(said.ends_with("the limit of 7000 (--max_task_bytes_per_framework)"), "{said}");
}
