//! Flags in all forms of v1 clusters, normalised for clap.
//!
//! `--work-dir` and `--work_dir` are the same flag, `--no-strict` means `--strict=false`, `TEPUI_WORK_DIR` and
//! `MESOS_WORK_DIR` are used for a flag of a program that is not set, and a value `file:///path` is the content of that file.
//!
//! Absent: the meaning of flags.

pub mod access;
pub mod agent;
pub mod both;
pub mod disk;
pub mod docker;
pub mod etcd;
pub mod eviction;
pub mod features;
pub mod heading;
pub mod image_gc;
pub mod images;
pub mod isolators;
pub mod limits;
pub mod logger;
pub mod master;
pub mod oversubscription;
pub mod tls;
mod unsupported;
pub mod value;

use std::collections::BTreeSet;
use std::ffi::OsString;

use anyhow::{Context, Result, bail};
use clap::{Arg, Command};

/// Environment prefixes, the stronger first.
const ENVIRONMENT_PREFIXES: [&str; 2] = ["TEPUI_", "MESOS_"];

/// Commands all of whose flags may stand in the environment; of the others, only some.
const PROGRAMS: [&str; 3] = ["master", "agent", "dev"];

/// Flags whose value names a file and is not replaced by its content.
const PATH_FLAGS: [&str; 22] = [
    "work_dir",
    "runtime_dir",
    "log_dir",
    "external_log_file",
    "audit_log",
    "whitelist",
    "fetcher_cache_dir",
    "docker_registry",
    "docker_store_dir",
    "docker_config",
    // Their content is not for `/flags`.
    "credentials",
    "credential",
    "http_credentials",
    "jwt_secret_key",
    "executor_secret_key",
    "tls_cert",
    "tls_key",
    "tls_ca",
    "token_file",
    "etcd_ca",
    "etcd_cert",
    "etcd_key",
];

/// Flags of every command that may stand in the environment.
const EVERYWHERE: [&str; 7] =
    ["master", "principal", "secret", "token_file", "tls_ca", "tls_cert", "tls_key"];

/// Rewrites the arguments behind the subcommand `name` and adds flags from the environment.
///
/// `lookup` reads the environment; it is an argument so that tests need none.
pub fn normalise(
    command: &Command,
    arguments: Vec<String>,
    lookup: impl Fn(&str) -> Option<String>,
) -> Result<Vec<OsString>> {
    let mut given = BTreeSet::new();
    let mut out = Vec::new();
    let mut rest = arguments.into_iter();
    let mut words_before = words_before_others(command);
    let mut is_value = false;
    while let Some(argument) = rest.next() {
        if argument == "--" {
            out.push(argument.into());
            out.extend(rest.by_ref().map(OsString::from));
            break;
        }
        let Some(flag) = argument.strip_prefix("--") else {
            let is_word = !is_value && !argument.starts_with('-');
            is_value = false;
            out.push(argument.into());
            match words_before {
                Some(0) if is_word => {
                    out.extend(rest.by_ref().map(OsString::from));
                    break;
                }
                Some(words) if is_word => words_before = Some(words - 1),
                Some(_) | None => (),
            }
            continue;
        };
        let (name, value) = split(command, flag);
        is_value = value.is_none() && find(command, &name).is_some_and(needs_value);
        if let Some(reason) = unsupported::reason(command.get_name(), &name) {
            bail!("--{name} is not supported: {reason}");
        }
        given.insert(canonical(command, &name));
        out.push(join(&name, value)?);
    }
    for name in unsupported::names(command.get_name()) {
        let reason = unsupported::reason(command.get_name(), name);
        if let (Some((variable, _)), Some(reason)) = (from_environment(name, &lookup), reason) {
            bail!("{variable} is set and not supported: {reason}");
        }
    }
    let mut from_environment = environment(command, &given, lookup)?;
    from_environment.extend(out);
    Ok(from_environment)
}

/// Splits `work-dir=x` into the flag's name and its value; `no-strict` into `strict` and `false`.
fn split(command: &Command, flag: &str) -> (String, Option<String>) {
    let (name, value) = match flag.split_once('=') {
        Some((name, value)) => (name, Some(value.to_string())),
        None => (flag, None),
    };
    let name = name.to_lowercase().replace('-', "_");
    let negated =
        name.strip_prefix("no_").filter(|positive| value.is_none() && find(command, positive).is_some());
    match negated {
        Some(positive) if find(command, &name).is_none() => (positive.to_string(), Some("false".to_string())),
        _ => (name, value),
    }
}

fn join(name: &str, value: Option<String>) -> Result<OsString> {
    Ok(match value {
        Some(value) => format!("--{name}={}", content(name, value)?).into(),
        None => format!("--{name}").into(),
    })
}

/// The content of the file that a `file://` value names, without the last line break; other values as they are.
fn content(name: &str, value: String) -> Result<String> {
    match value.strip_prefix("file://") {
        Some(path) if !PATH_FLAGS.contains(&name) => {
            let text = std::fs::read_to_string(path)
                .with_context(|| format!("--{name}: cannot read the file {path}"))?;
            Ok(text.trim_end_matches('\n').to_string())
        }
        _ => Ok(value),
    }
}

/// Flags that are set in the environment only.
fn environment(
    command: &Command,
    given: &BTreeSet<String>,
    lookup: impl Fn(&str) -> Option<String>,
) -> Result<Vec<OsString>> {
    let mut found = Vec::new();
    for argument in command.get_arguments() {
        let Some(name) = argument.get_long() else { continue };
        let may_be = PROGRAMS.contains(&command.get_name()) || EVERYWHERE.contains(&name);
        if given.contains(name) || !may_be || !takes_value(argument) {
            continue;
        }
        let names = std::iter::once(name).chain(aliases(argument));
        if let Some(value) =
            names.into_iter().find_map(|name| from_environment(name, &lookup)).map(|(_, value)| value)
        {
            found.push(join(name, Some(value))?);
        }
    }
    Ok(found)
}

/// Whether it accepts `--flag=value`: booleans of programs do, switches of other commands do not.
fn takes_value(argument: &Arg) -> bool {
    argument.get_num_args().map_or(argument.get_action().takes_values(), |count| count.takes_values())
}

/// Whether the word behind it is its value.
fn needs_value(argument: &Arg) -> bool {
    argument.get_num_args().map_or(argument.get_action().takes_values(), |count| count.min_values() > 0)
}

/// The number of words before an executed command, whose flags are not ours; `None` without such a command.
fn words_before_others(command: &Command) -> Option<usize> {
    let is_others = |argument: &&Arg| argument.is_trailing_var_arg_set();
    command.get_positionals().find(is_others)?;
    Some(command.get_positionals().filter(|argument| !is_others(argument)).count())
}

/// The variable that stands in for a flag, and its value.
fn from_environment(name: &str, lookup: impl Fn(&str) -> Option<String>) -> Option<(String, String)> {
    let upper = name.to_uppercase();
    let set = |prefix: &&str| {
        let variable = format!("{prefix}{upper}");
        let value = lookup(&variable).filter(|value| !value.is_empty())?;
        Some((variable, value))
    };
    ENVIRONMENT_PREFIXES.iter().find_map(set)
}

fn find<'c>(command: &'c Command, name: &str) -> Option<&'c Arg> {
    command
        .get_arguments()
        .find(|argument| argument.get_long() == Some(name) || aliases(argument).any(|alias| alias == name))
}

fn canonical(command: &Command, name: &str) -> String {
    find(command, name).and_then(Arg::get_long).unwrap_or(name).to_string()
}

fn aliases(argument: &Arg) -> impl Iterator<Item = &str> {
    argument.get_all_aliases().unwrap_or_default().into_iter()
}

#[cfg(test)]
mod tests;
