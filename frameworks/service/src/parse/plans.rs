//! `plans`: names of pods and tasks, strategies, and what can be launched together.

use std::collections::BTreeSet;

use crate::reader::{Field, Reader};
use crate::spec::{Groups, PhaseSpec, PlanSpec, PodSpec, StepsSpec};

/// Limit of the steps of a phase.
const STEPS_MAX: usize = 1_000_000;
const REQUIRED_PLAN: &str = "deploy";

pub fn plans(reader: &mut Reader, pods: &[PodSpec], field: &Field<'_>) -> Option<Vec<PlanSpec>> {
    let members = reader.members(field)?;
    if members.names().all(|name| name != REQUIRED_PLAN) {
        reader.wrong(field, "plan `deploy` is required where plans are given");
    }
    reader.named(field, |reader, name, field| plan(reader, pods, name, field))
}

/// Without plans every pod is one step: its tasks must be launchable together.
pub fn check_generated(reader: &mut Reader, pods: &[PodSpec], at: usize) {
    for pod in pods {
        let tasks: Vec<&str> = pod.tasks.iter().map(|task| task.name.as_str()).collect();
        if let Some(conflict) = conflict(pod, &tasks) {
            let message = format!("{conflict}; give a `deploy` plan that launches them in different steps");
            reader.error(at, &format!("pods.{}", pod.name), message);
        }
    }
}

fn plan(reader: &mut Reader, pods: &[PodSpec], name: &str, field: &Field<'_>) -> Option<PlanSpec> {
    let mut members = reader.members(field)?;
    let parallel = reader.optional_scalar(&mut members, "strategy", |reader, field| {
        reader.choice(field, &[("serial", false), ("parallel", true)], false)
    });
    let phases = reader.required(&mut members, "phases", |reader, field| {
        reader.named(field, |reader, name, field| phase(reader, pods, name, field))
    });
    reader.reject_unknown(&members);
    Some(PlanSpec { name: name.to_owned(), parallel: parallel.unwrap_or(false), phases: phases? })
}

fn phase(reader: &mut Reader, pods: &[PodSpec], name: &str, field: &Field<'_>) -> Option<PhaseSpec> {
    /// Whether parallel, whether canary.
    const STRATEGIES: &[(&str, (bool, bool))] = &[
        ("serial", (false, false)),
        ("parallel", (true, false)),
        ("serial-canary", (false, true)),
        ("canary", (false, true)),
        ("parallel-canary", (true, true)),
    ];
    let mut members = reader.members(field)?;
    let pod = reader.required(&mut members, "pod", |reader, field| {
        let name = reader.filled_text(field)?;
        let pod = pods.iter().find(|pod| pod.name == name);
        if pod.is_none() {
            let known: Vec<&str> = pods.iter().map(|pod| pod.name.as_str()).collect();
            reader.wrong(field, format!("there is no pod {name:?}; the pods are {}", known.join(", ")));
        }
        pod
    });
    let strategy = reader
        .optional_scalar(&mut members, "strategy", |reader, field| reader.choice(field, STRATEGIES, false));
    let steps = members.take("steps");
    reader.reject_unknown(&members);
    let pod = pod?;
    let steps = match steps {
        Some(field) => Some(self::steps(reader, pod, &field)?),
        None => {
            check_together(
                reader,
                pod,
                &pod.tasks.iter().map(|task| task.name.clone()).collect::<Vec<_>>(),
                field,
            );
            None
        }
    };
    let (parallel, canary) = strategy.unwrap_or((false, false));
    Some(PhaseSpec { name: name.to_owned(), pod: pod.name.clone(), parallel, canary, steps })
}

fn steps(reader: &mut Reader, pod: &PodSpec, field: &Field<'_>) -> Option<StepsSpec> {
    let mut steps = StepsSpec::default();
    let mut keys: BTreeSet<String> = BTreeSet::new();
    reader.list(field, |reader, field| {
        let entries = reader.named(field, |reader, key, field| {
            if !keys.insert(key.to_owned()) {
                reader.wrong(field, format!("key {key:?} is given twice in `steps`"));
            }
            Some((step_index(reader, key, field)?, groups(reader, pod, field)?))
        })?;
        if reader.members(field)?.names().count() != 1 {
            reader.wrong(field, "an element of `steps` has one entry: an index or `default`");
        }
        for (index, groups) in entries {
            match index {
                StepIndex::Pod(index) => drop(steps.by_index.insert(index, groups)),
                StepIndex::Default => steps.default = Some(groups),
            }
        }
        Some(())
    })?;
    let missing = |index: &u32| steps.groups(*index).is_none();
    if let Some(index) = (0..pod.count).find(missing).filter(|index| !keys.contains(&index.to_string())) {
        let message = format!("no steps for instance {index} of pod {}, and no `default`", pod.name);
        reader.wrong(field, message);
    }
    let count: usize = (0..pod.count).filter_map(|index| steps.groups(index)).map(Vec::len).sum();
    if count > STEPS_MAX {
        reader.wrong(field, format!("{count} steps; the limit is {STEPS_MAX}"));
    }
    for index in steps.by_index.keys().filter(|index| **index >= pod.count) {
        let message =
            format!("steps for instance {index} have no effect: pod {} has {}", pod.name, pod.count);
        reader.warning(field.at, &field.path, message);
    }
    Some(steps)
}

/// The key of an element of `steps`.
enum StepIndex {
    Default,
    Pod(u32),
}

fn step_index(reader: &mut Reader, key: &str, field: &Field<'_>) -> Option<StepIndex> {
    match (key, key.parse()) {
        ("default", _) => Some(StepIndex::Default),
        (_, Ok(index)) => Some(StepIndex::Pod(index)),
        (_, Err(_)) => {
            reader.wrong(
                field,
                format!("{key:?} is not allowed; the index of a pod instance or `default` is expected"),
            );
            None
        }
    }
}

fn groups(reader: &mut Reader, pod: &PodSpec, field: &Field<'_>) -> Option<Groups> {
    reader.list(field, |reader, field| {
        let group = reader.list(field, |reader, field| {
            let name = reader.filled_text(field)?;
            if pod.task(&name).is_none() {
                let known: Vec<&str> = pod.tasks.iter().map(|task| task.name.as_str()).collect();
                let message = format!("pod {} has no task {name:?}; it has: {}", pod.name, known.join(", "));
                reader.wrong(field, message);
            }
            Some(name)
        })?;
        if group.is_empty() {
            reader.wrong(field, "a step launches one task at least");
        }
        check_together(reader, pod, &group, field);
        Some(group)
    })
}

fn check_together(reader: &mut Reader, pod: &PodSpec, tasks: &[String], field: &Field<'_>) {
    let tasks: Vec<&str> = tasks.iter().map(String::as_str).collect();
    if let Some(conflict) = conflict(pod, &tasks) {
        reader.wrong(field, format!("{conflict}; launch them in different steps"));
    }
}

/// Why two of the tasks cannot run at once.
fn conflict(pod: &PodSpec, tasks: &[&str]) -> Option<String> {
    let specs: Vec<_> = tasks.iter().filter_map(|name| pod.task(name)).collect();
    for (index, task) in specs.iter().enumerate() {
        for other in &specs[..index] {
            if other.name == task.name {
                return Some(format!("task {} is named twice", task.name));
            }
            if other.resource_set == task.resource_set {
                return Some(format!(
                    "tasks {} and {} share resource set {}",
                    other.name, task.name, task.resource_set
                ));
            }
            let prefix =
                |task: &crate::spec::TaskSpec| task.discovery.as_ref().and_then(|it| it.prefix.clone());
            if let Some(prefix) = prefix(task).filter(|it| prefix(other).as_ref() == Some(it)) {
                return Some(format!(
                    "tasks {} and {} share discovery prefix {prefix}",
                    other.name, task.name
                ));
            }
        }
    }
    None
}
