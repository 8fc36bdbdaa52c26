//! Histories that once violated something, recorded when they did. They always run.

/// Each by its name, with its text.
pub const REGRESSIONS: &[(&str, &str)] = &[
    (
        "acknowledged_end_on_an_unreachable_agent",
        include_str!("../regressions/acknowledged_end_on_an_unreachable_agent.txt"),
    ),
    (
        "drained_to_be_gone_and_drained_again",
        include_str!("../regressions/drained_to_be_gone_and_drained_again.txt"),
    ),
    ("dropped_task_is_not_named", include_str!("../regressions/dropped_task_is_not_named.txt")),
    (
        "framework_removed_by_a_deposed_leader",
        include_str!("../regressions/framework_removed_by_a_deposed_leader.txt"),
    ),
    ("kill_ahead_of_its_launch", include_str!("../regressions/kill_ahead_of_its_launch.txt")),
    ("kill_of_an_ended_double", include_str!("../regressions/kill_of_an_ended_double.txt")),
    ("late_duplicate_of_a_dropped_task", include_str!("../regressions/late_duplicate_of_a_dropped_task.txt")),
    ("machine_down_then_crash", include_str!("../regressions/machine_down_then_crash.txt")),
    (
        "registers_when_drained_to_be_gone",
        include_str!("../regressions/registers_when_drained_to_be_gone.txt"),
    ),
];
