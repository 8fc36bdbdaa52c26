//! The run configuration of an image: command, environment, directory and user (docker/runtime).
//!
//! Pure. The framework's values come first; the image provides defaults.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use tepui_proto::mesos::v1 as pb;

use super::fault::{DocumentFault, ImageFault};

/// The part of an image's configuration that is about running it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(crate) struct Runtime {
    env: Option<Vec<String>>,
    entrypoint: Option<Vec<String>>,
    cmd: Option<Vec<String>>,
    working_dir: Option<String>,
    user: Option<String>,
}

/// The rest of the document is about how the image was made.
#[derive(Deserialize)]
struct Document {
    config: Option<Runtime>,
}

impl Runtime {
    pub fn parse(config: &[u8]) -> Result<Runtime, DocumentFault> {
        let document: Document = serde_json::from_slice(config)
            .map_err(|err| DocumentFault::Json { what: "image configuration", err })?;
        Ok(document.config.unwrap_or_default())
    }

    /// Where the command begins, unless in the sandbox.
    pub fn directory(&self) -> Option<&str> {
        self.working_dir.as_deref().filter(|path| path.starts_with('/'))
    }

    pub fn user(&self) -> Option<&str> {
        self.user.as_deref().filter(|user| !user.is_empty())
    }

    /// The command with what the image adds, by the table of v1.
    pub fn command(&self, given: &pb::CommandInfo) -> Result<pb::CommandInfo, ImageFault> {
        if given.shell.unwrap_or(true) || given.value.is_some() {
            return Ok(given.clone());
        }
        let (entrypoint, cmd) = (some(&self.entrypoint), some(&self.cmd));
        let words: Vec<String> = match (entrypoint, cmd.split_first()) {
            ([], None) => {
                return Err(ImageFault::NoExecutable);
            }
            ([], Some((_, _))) if given.arguments.is_empty() => cmd.to_vec(),
            ([], Some((program, _))) => [std::slice::from_ref(program), &given.arguments].concat(),
            (entrypoint, _) if given.arguments.is_empty() => [entrypoint, cmd].concat(),
            (entrypoint, _) => [entrypoint, &given.arguments].concat(),
        };
        Ok(pb::CommandInfo { value: words.first().cloned(), arguments: words, ..given.clone() })
    }

    /// Variables to set for a command: not those that it sets itself, nor those that only the agent may.
    pub fn environment(&self, command: &pb::CommandInfo) -> BTreeMap<String, String> {
        let own: BTreeSet<&str> =
            command.environment.variables.iter().map(|variable| variable.name.as_str()).collect();
        let is_ours = |name: &str| name.starts_with("MESOS_") || name.starts_with("LIBPROCESS_");
        let pairs = some(&self.env).iter().filter_map(|line| line.split_once('='));
        let taken = pairs.filter(|(name, _)| !name.is_empty() && !own.contains(name) && !is_ours(name));
        taken.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }
}

fn some(words: &Option<Vec<String>>) -> &[String] {
    words.as_deref().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_entrypoint_and_cmd_complete_the_command() {
        let runtime =
            |text: &str| Runtime::parse(format!("{{\"config\":{text}}}").as_bytes()).expect("a config");
        let both = r#"{"Entrypoint":["/e","e1"],"Cmd":["c0","c1"]}"#;
        let cmd = r#"{"Entrypoint":null,"Cmd":["c0","c1"]}"#;
        let none = "{}";
        // The table of v1: what the image has, shell, value, arguments, what runs.
        for (image, shell, value, arguments, runs) in [
            (both, true, Some("v"), "", "v | "),
            (both, false, Some("v"), "a b", "v | a b"),
            (both, false, None, "", "/e | /e e1 c0 c1"),
            (both, false, None, "a b", "/e | /e e1 a b"),
            (cmd, false, None, "", "c0 | c0 c1"),
            (cmd, false, None, "a b", "c0 | c0 a b"),
            (none, false, None, "a b", "No executable is found"),
            (none, false, Some("v"), "", "v | "),
        ] {
            let given = pb::CommandInfo {
                shell: Some(shell),
                value: value.map(str::to_owned),
                arguments: arguments.split_whitespace().map(str::to_owned).collect(),
                ..Default::default()
            };
            let shown = match runtime(image).command(&given) {
                Ok(command) => {
                    format!("{} | {}", command.value.unwrap_or_default(), command.arguments.join(" "))
                }
                Err(fault) => fault.to_string(),
            };
            assert!(shown.starts_with(runs), "{image} {shell} {value:?} {arguments}: {shown}");
        }
    }

    #[test]
    fn image_variables_do_not_override_the_task() {
        let runtime = Runtime::parse(
            br#"{"config":{"Env":["A=1","B=x=y","MESOS_SANDBOX=/x","bad","=z"],"WorkingDir":"","User":""}}"#,
        );
        let runtime = runtime.expect("a config");
        let variable = pb::environment::Variable { name: "A".into(), ..Default::default() };
        let environment = pb::Environment { variables: vec![variable], ..Default::default() };
        let command = pb::CommandInfo { environment: environment.into(), ..Default::default() };
        assert_eq!(runtime.environment(&command), BTreeMap::from([("B".into(), "x=y".into())]));
        assert_eq!((runtime.user(), runtime.directory()), (None, None));
    }
}
