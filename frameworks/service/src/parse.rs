//! From the text of a spec file to a checked `ServiceSpec`, or to all problems of the file at once.
//!
//! Each part of the file has a module; what they reject is decided here and nowhere later.

mod container;
mod external;
mod plans;
mod pod;
mod resources;
mod task;

use std::collections::BTreeMap;

use crate::mustache::{self, Rendered};
use crate::problem::{PROBLEMS_MAX, Problem, Report, Severity};
use crate::reader::{Field, Members, Reader};
use crate::spec::{ReplacementPolicy, ServiceSpec};
use crate::yaml;

const NAME_CHARACTERS_MAX: usize = 63;
/// Limit of the task instances of a service.
const TASK_INSTANCES_MAX: u64 = 1_000_000;
const DEFAULT_USER: &str = "root";
const DEFAULT_ZOOKEEPER: &str = "master.mesos:2181";
const DEFAULT_PERMANENT_FAILURE_TIMEOUT_SECS: u64 = 1200;
const DEFAULT_MIN_REPLACE_DELAY_SECS: u64 = 600;

/// A spec file and what is rendered into it.
#[derive(Clone, Copy)]
pub struct Input<'i> {
    /// Name for problems.
    pub file: &'i str,
    pub text: &'i str,
    pub env: &'i BTreeMap<String, String>,
    /// Reads a config template by its path relative to the file.
    pub template: &'i dyn Fn(&str) -> Result<String, String>,
}

/// The spec with the warnings about it, or the problems that forbid it.
pub fn parse(input: Input<'_>) -> Result<(ServiceSpec, Report), Report> {
    let mut reader = Reader::default();
    let rendered = match mustache::render(input.text, input.env) {
        Ok(rendered) => rendered,
        Err(error) => {
            let (line, column) = place(input.text, error.at);
            let problem = Problem {
                severity: Severity::Error,
                line,
                column,
                path: String::new(),
                message: error.message,
            };
            return Err(Report { file: input.file.to_owned(), problems: vec![problem] });
        }
    };
    let spec = document(&mut reader, input, &rendered.text);
    let report = report(input, &rendered, reader);
    match spec {
        Some(spec) if report.errors() == 0 => Ok((spec, report)),
        Some(_) | None => Err(report),
    }
}

fn document(reader: &mut Reader, input: Input<'_>, text: &str) -> Option<ServiceSpec> {
    match yaml::read(text) {
        Ok((root, faults)) => {
            for fault in faults {
                reader.error(fault.at, &fault.path, fault.message);
            }
            let spec = service(reader, input, &Field::root(&root));
            reader.reject_conflicts();
            spec
        }
        Err(fault) => {
            reader.error(fault.at, &fault.path, fault.message);
            None
        }
    }
}

/// Problems in the order of the file, with lines and columns of the template.
fn report(input: Input<'_>, rendered: &Rendered, reader: Reader) -> Report {
    let byte = |characters: usize| {
        rendered.text.char_indices().nth(characters).map_or(rendered.text.len(), |(byte, _)| byte)
    };
    let mut problems: Vec<Problem> = Vec::new();
    for (at, mut problem) in reader.problems {
        (problem.line, problem.column) = place(input.text, rendered.template_offset(byte(at)));
        problems.push(problem);
    }
    for (name, at) in rendered.missing.iter().take(PROBLEMS_MAX) {
        let (line, column) = place(input.text, *at);
        let message = format!("variable {name} is not set; it renders as nothing");
        problems.push(Problem { severity: Severity::Warning, line, column, path: String::new(), message });
    }
    problems.sort_by_key(|problem| (problem.line, problem.column));
    Report { file: input.file.to_owned(), problems }
}

/// Line and column, from 1, of an offset in bytes.
fn place(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

fn service(reader: &mut Reader, input: Input<'_>, root: &Field<'_>) -> Option<ServiceSpec> {
    let mut members = reader.members(root)?;
    let name = reader.required(&mut members, "name", service_name);
    let web_url = reader.optional(&mut members, "web-url", Reader::text_or_absent);
    let scheduler = reader.optional(&mut members, "scheduler", scheduler).unwrap_or_default();
    let replacement = replacement(reader, &mut members, input.env);
    let service = name.clone().unwrap_or_default();
    let pods = reader.required(&mut members, "pods", |reader, field| {
        let mut missing = false;
        let pods = reader.named(field, |reader, name, field| {
            let pod = pod::pod(reader, input, &service, name, field);
            missing |= pod.is_none();
            pod
        })?;
        if pods.is_empty() && !missing {
            reader.wrong(field, "is empty; one pod at least is required");
        }
        // Plans and sums are checked against all pods or not at all.
        (!missing).then_some(pods)
    });
    let plans = match (members.take("plans"), &pods) {
        (Some(field), Some(pods)) => plans::plans(reader, pods, &field),
        (None, Some(pods)) => {
            plans::check_generated(reader, pods, members.at);
            Some(Vec::new())
        }
        (_, None) => None,
    };
    reader.reject_unknown(&members);
    let instances: u64 = pods.iter().flatten().map(|pod| u64::from(pod.count) * pod.tasks.len() as u64).sum();
    if instances > TASK_INSTANCES_MAX {
        reader.error(
            members.at,
            "pods",
            format!("{instances} task instances; the limit is {TASK_INSTANCES_MAX}"),
        );
    }
    let name = name?;
    Some(ServiceSpec {
        web_url,
        principal: scheduler.principal.unwrap_or_else(|| format!("{name}-principal")),
        user: scheduler.user.unwrap_or_else(|| DEFAULT_USER.to_owned()),
        zookeeper: scheduler.zookeeper.unwrap_or_else(|| DEFAULT_ZOOKEEPER.to_owned()),
        replacement,
        pods: pods?,
        plans: plans?,
        name,
    })
}

fn service_name(reader: &mut Reader, field: &Field<'_>) -> Option<String> {
    let name = reader.filled_text(field)?;
    let characters = name.chars().filter(|character| *character != '/').count();
    if name.contains("__") {
        reader.wrong(field, format!("{name:?} contains `__`, which separates the parts of task ids"));
    } else if characters > NAME_CHARACTERS_MAX {
        let message =
            format!("has {characters} characters without slashes; the limit is {NAME_CHARACTERS_MAX}");
        reader.wrong(field, message);
    } else if name.contains(|character: char| character.is_control() || character.is_whitespace()) {
        reader.wrong(field, format!("{name:?} contains blanks or control characters"));
    }
    Some(name)
}

/// Names of pods and tasks become parts of task ids, which become names of directories.
fn check_name(reader: &mut Reader, kind: &str, name: &str, field: &Field<'_>) {
    let forbidden = |c: char| c.is_control() || c.is_whitespace() || c == '/' || c == '\\';
    if name.contains("__") {
        reader.wrong(field, format!("{kind} name contains `__`, which separates the parts of task ids"));
    } else if name.contains(forbidden) {
        reader.wrong(field, format!("{kind} name contains blanks, slashes or control characters"));
    }
}

#[derive(Default)]
struct Scheduler {
    principal: Option<String>,
    user: Option<String>,
    zookeeper: Option<String>,
}

fn scheduler(reader: &mut Reader, field: &Field<'_>) -> Option<Scheduler> {
    let mut members = reader.members(field)?;
    let scheduler = Scheduler {
        principal: reader.optional(&mut members, "principal", Reader::text_or_absent),
        user: reader.optional(&mut members, "user", Reader::text_or_absent),
        zookeeper: reader.optional(&mut members, "zookeeper", Reader::text_or_absent),
    };
    reader.reject_unknown(&members);
    Some(scheduler)
}

/// The policy of the file, else the one that packages of the SDK set in the environment.
fn replacement(
    reader: &mut Reader,
    members: &mut Members<'_>,
    env: &BTreeMap<String, String>,
) -> Option<ReplacementPolicy> {
    if let Some(field) = members.take("replacement-failure-policy") {
        let mut members = reader.members(&field)?;
        let mut seconds = |key, default| {
            let given = reader.optional_scalar(&mut members, key, task::seconds);
            given.unwrap_or(default)
        };
        let policy = ReplacementPolicy {
            permanent_failure_timeout_secs: seconds(
                "permanent-failure-timeout-secs",
                DEFAULT_PERMANENT_FAILURE_TIMEOUT_SECS,
            ),
            min_replace_delay_secs: seconds("min-replace-delay-secs", DEFAULT_MIN_REPLACE_DELAY_SECS),
        };
        reader.reject_unknown(&members);
        return Some(policy);
    }
    let enabled = env.get("ENABLE_AUTOMATIC_POD_REPLACEMENT").map(String::as_str).unwrap_or_default();
    if !enabled.starts_with(['t', 'T', 'y', 'Y']) {
        return None;
    }
    let mut seconds = |name: &str, default: u64| match env.get(name).map(|text| (text, text.parse::<u64>())) {
        None => default,
        Some((_, Ok(value))) => value,
        Some((text, Err(_))) => {
            reader.error(0, "", format!("variable {name} is {text:?}; a number of seconds is expected"));
            default
        }
    };
    Some(ReplacementPolicy {
        permanent_failure_timeout_secs: seconds(
            "PERMANENT_FAILURE_TIMEOUT_SECS",
            DEFAULT_PERMANENT_FAILURE_TIMEOUT_SECS,
        ),
        min_replace_delay_secs: seconds("MIN_REPLACE_DELAY_SECS", DEFAULT_MIN_REPLACE_DELAY_SECS),
    })
}

#[cfg(test)]
mod tests;
