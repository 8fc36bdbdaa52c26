//! The program `./bootstrap` of tasks: its arguments, and which config templates it renders.
//!
//! Arguments are those of the SDK's program of that name, in the syntax of Go's flags (`-resolve=false`).
//! Deliberately absent: waiting for the task's own name, because no DNS of ours serves it.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::mustache::RENDERED_BYTES_MAX;
use crate::spec::{PodSpec, TaskSpec};

/// Name of the program in the sandbox, and of its artifact.
pub const FILE_NAME: &str = "bootstrap";
/// Variables of the environment that name a template and its destination.
pub const TEMPLATE_PREFIX: &str = "CONFIG_TEMPLATE_";
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(300);

/// Flags that take no value or `true` or `false`.
const SWITCHES: &[&str] = &[
    "verbose",
    "print-env",
    "insecure",
    "resolve",
    "self-resolve",
    "template",
    "install-certs",
    "get-task-ip",
];
const VALUES: &[&str] = &["resolve-hosts", "resolve-timeout", "template-max-bytes"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arguments {
    pub is_verbose: bool,
    pub prints_environment: bool,
    /// Names to wait for until they resolve.
    pub resolve_hosts: Vec<String>,
    pub resolve_timeout: Duration,
    pub renders_templates: bool,
    pub template_bytes_max: usize,
    /// Prints the address of the task and does nothing else.
    pub prints_task_ip: bool,
}

/// A config file of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigFile {
    pub variable: String,
    /// Relative to the sandbox.
    pub template: String,
    /// Relative to the working directory.
    pub dest: String,
}

/// Whether a command runs the program, as far as its text shows.
pub fn is_mentioned(cmd: &str) -> bool {
    cmd.contains(FILE_NAME)
}

/// Whether the scheduler gives its program to a task: not to one that brings its own by URI, as specs of the SDK do.
pub(crate) fn is_used(pod: &PodSpec, task: &TaskSpec) -> bool {
    let name =
        |uri: &str| uri.rsplit('/').next().and_then(|last| last.split(['.', '?']).next()).map(str::to_owned);
    let brings_own = pod.uris.iter().any(|uri| name(uri).as_deref() == Some(FILE_NAME));
    !brings_own && (!task.configs.is_empty() || is_mentioned(&task.cmd))
}

/// Reads the arguments of the program.
pub fn arguments(words: &[String]) -> Result<Arguments, String> {
    let mut given: BTreeMap<&str, &str> = BTreeMap::new();
    let mut words = words.iter().map(String::as_str);
    while let Some(word) = words.next() {
        let flag = word.strip_prefix("--").or_else(|| word.strip_prefix('-'));
        let flag = flag.ok_or_else(|| format!("unexpected argument {word:?}; flags are expected"))?;
        let (name, value) = flag.split_once('=').map_or((flag, None), |(name, value)| (name, Some(value)));
        let value = match value {
            Some(value) => value,
            None if SWITCHES.contains(&name) => "true",
            None => words.next().ok_or_else(|| format!("flag -{name} needs a value"))?,
        };
        if !SWITCHES.contains(&name) && !VALUES.contains(&name) {
            let all: Vec<String> = SWITCHES.iter().chain(VALUES).map(|name| format!("-{name}")).collect();
            return Err(format!("unknown flag -{name}; flags: {}", all.join(", ")));
        }
        given.insert(name, value);
    }
    let switch = |name: &str, default: bool| match given.get(name).copied() {
        None => Ok(default),
        Some("true" | "1") => Ok(true),
        Some("false" | "0") => Ok(false),
        Some(other) => Err(format!("flag -{name} is {other:?}; true or false is expected")),
    };
    let hosts = given.get("resolve-hosts").copied().unwrap_or_default();
    let hosts = if switch("resolve", true)? { hosts } else { "" };
    Ok(Arguments {
        is_verbose: switch("verbose", false)?,
        prints_environment: switch("print-env", false)?,
        resolve_hosts: hosts
            .split(',')
            .map(str::trim)
            .filter(|host| !host.is_empty())
            .map(str::to_owned)
            .collect(),
        resolve_timeout: given.get("resolve-timeout").map_or(Ok(RESOLVE_TIMEOUT), |text| duration(text))?,
        renders_templates: switch("template", true)?,
        template_bytes_max: given
            .get("template-max-bytes")
            .map_or(Ok(RENDERED_BYTES_MAX), |text| bytes(text))?,
        prints_task_ip: switch("get-task-ip", false)?,
    })
}

fn bytes(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|bytes| (1..=RENDERED_BYTES_MAX).contains(bytes)).ok_or_else(|| {
        format!("flag -template-max-bytes is {text:?}; a number from 1 to {RENDERED_BYTES_MAX} is expected")
    })
}

/// `1h30m`, `5m`, `10s`, `500ms`.
fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("flag -resolve-timeout is {text:?}; a duration as 5m or 30s is expected");
    let mut rest = text;
    let mut sum = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
        let (number, after) = rest.split_at(digits);
        let end = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let unit_ms = match &after[..end] {
            "ms" => 1,
            "s" => 1000,
            "m" => 60_000,
            "h" => 3_600_000,
            _ => return Err(wrong()),
        };
        let number: u64 = number.parse().map_err(|_| wrong())?;
        sum = sum.saturating_add(Duration::from_millis(number.saturating_mul(unit_ms)));
        rest = &after[end..];
    }
    if text.is_empty() { Err(wrong()) } else { Ok(sum) }
}

/// The config files that an environment names.
pub fn config_files(env: &BTreeMap<String, String>) -> Result<Vec<ConfigFile>, String> {
    let named = env.iter().filter(|(name, _)| name.starts_with(TEMPLATE_PREFIX));
    let file = |(variable, value): (&String, &String)| {
        let parts = value.split_once(',').filter(|(template, dest)| !template.is_empty() && !dest.is_empty());
        let (template, dest) = parts
            .ok_or_else(|| format!("variable {variable} is {value:?}; `TEMPLATE,DESTINATION` is expected"))?;
        Ok(ConfigFile { variable: variable.clone(), template: template.to_owned(), dest: dest.to_owned() })
    };
    named.map(file).collect()
}

/// The address of the task in its network.
pub fn task_ip(env: &BTreeMap<String, String>) -> Result<&str, String> {
    let set = ["MESOS_CONTAINER_IP", "LIBPROCESS_IP"].into_iter().find_map(|name| env.get(name));
    set.map(String::as_str).ok_or_else(|| "neither MESOS_CONTAINER_IP nor LIBPROCESS_IP is set".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Arguments, String> {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        arguments(&words)
    }

    #[test]
    fn arguments_are_those_of_the_sdk() {
        let usual = parse("").expect("defaults");
        assert!(usual.renders_templates && !usual.prints_environment && usual.resolve_hosts.is_empty());
        let set =
            parse("-verbose --template=false -resolve-hosts a.b,c -resolve-timeout=1m30s").expect("flags");
        assert!(set.is_verbose && !set.renders_templates);
        assert_eq!(set.resolve_hosts, ["a.b", "c"]);
        assert_eq!(set.resolve_timeout, Duration::from_secs(90));
        assert!(parse("-resolve=false -resolve-hosts=a").expect("flags").resolve_hosts.is_empty());
        for (text, expected) in [
            ("run", "unexpected argument \"run\""),
            ("-colour=red", "unknown flag -colour; flags: -verbose"),
            ("-resolve=maybe", "flag -resolve is \"maybe\"; true or false"),
            ("-resolve-timeout", "flag -resolve-timeout needs a value"),
            ("-resolve-timeout=5", "a duration as 5m"),
            ("-template-max-bytes=0", "a number from 1 to"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn config_files_come_from_the_environment() {
        let env = |name: &str, value: &str| BTreeMap::from([(name.to_owned(), value.to_owned())]);
        let files = config_files(&env("CONFIG_TEMPLATE_A", "config-templates/a,etc/a.conf")).expect("a file");
        assert_eq!(
            (files[0].template.as_str(), files[0].dest.as_str()),
            ("config-templates/a", "etc/a.conf")
        );
        assert!(config_files(&env("OTHER", "x")).expect("none").is_empty());
        for wrong in ["a", ",b", "a,"] {
            let error = config_files(&env("CONFIG_TEMPLATE_A", wrong)).expect_err(wrong);
            assert!(error.contains("CONFIG_TEMPLATE_A"), "{error}");
        }
    }
}
