//! The options of a service: a JSON file, checked against a schema, whose values are rendered into the spec.
//!
//! Each option stands for a variable of the spec. What the file says wins over the environment, which wins over the defaults.
//! The schema is data (`options/schema.json`) and is shown to users as it is; `check` knows the keywords that it uses.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

const SCHEMA: &str = include_str!("options/schema.json");

/// Path of each option and the variable that it sets.
const VARIABLES: [(&str, &str); 7] = [
    ("external-volumes.use-external-volumes", "USE_EXTERNAL_VOLUMES"),
    ("external-volumes.volume_name", "EXTERNAL_VOLUME_NAME"),
    ("external-volumes.volume_driver_options", "EXTERNAL_VOLUME_DRIVER_OPTIONS"),
    ("external-volumes.volume_sharing", "EXTERNAL_VOLUME_SHARING"),
    (
        "external-volumes.pod-replacement-failure-policy.enable-automatic-pod-replacement",
        "ENABLE_AUTOMATIC_POD_REPLACEMENT",
    ),
    (
        "external-volumes.pod-replacement-failure-policy.permanent-failure-timeout",
        "PERMANENT_FAILURE_TIMEOUT_SECS",
    ),
    ("external-volumes.pod-replacement-failure-policy.min-replace-delay", "MIN_REPLACE_DELAY_SECS"),
];

/// An option as users see it.
#[derive(Debug, Clone, PartialEq)]
pub struct OptionRow {
    pub path: &'static str,
    pub variable: &'static str,
    pub description: String,
    pub value: Value,
    /// Whether the value is the one of the schema.
    pub is_default: bool,
}

/// Options that conform to the schema.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Options {
    given: Map<String, Value>,
}

/// The schema, as a document.
pub fn schema() -> Value {
    serde_json::from_str(SCHEMA).expect("the schema is checked by a test")
}

impl Options {
    /// Options from the text of a file, or everything that is wrong with it.
    pub fn parse(text: &str) -> Result<Options, Vec<String>> {
        let value: Value = serde_json::from_str(text).map_err(|error| vec![format!("not JSON: {error}")])?;
        let mut problems = Vec::new();
        check(&schema(), &value, "", &mut problems);
        match value {
            Value::Object(given) if problems.is_empty() => Ok(Options { given }),
            _ => Err(problems),
        }
    }

    /// The environment that a spec is rendered with.
    pub fn environment(&self, process: BTreeMap<String, String>) -> BTreeMap<String, String> {
        let mut all: BTreeMap<String, String> =
            default_rows().into_iter().map(|row| (row.variable.to_owned(), text(&row.value))).collect();
        all.extend(process);
        let given = self.rows().into_iter().filter(|row| !row.is_default);
        all.extend(given.map(|row| (row.variable.to_owned(), text(&row.value))));
        all
    }

    /// Every option with its value.
    pub fn rows(&self) -> Vec<OptionRow> {
        let mut rows = default_rows();
        for row in &mut rows {
            let found = row.path.split('.').try_fold(None::<&Value>, |at, key| match at {
                None => self.given.get(key).map(Some),
                Some(value) => value.get(key).map(Some),
            });
            if let Some(Some(value)) = found {
                row.value = value.clone();
                row.is_default = false;
            }
        }
        rows
    }
}

fn default_rows() -> Vec<OptionRow> {
    let schema = schema();
    let row = |(path, variable): (&'static str, &'static str)| {
        let at = path.split('.').fold(&schema, |at, key| &at["properties"][key]);
        let description = at["description"].as_str().unwrap_or_default().to_owned();
        OptionRow { path, variable, description, value: at["default"].clone(), is_default: true }
    };
    VARIABLES.map(row).into()
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Appends what of `value` the schema does not allow.
fn check(schema: &Value, value: &Value, path: &str, problems: &mut Vec<String>) {
    let named = |message: String| match path {
        "" => message,
        _ => format!("{path}: {message}"),
    };
    let kind = schema["type"].as_str().unwrap_or_default();
    let has_kind = match kind {
        "object" => value.is_object(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        _ => false,
    };
    if !has_kind {
        return problems.push(named(format!("{value} is not allowed; a value of type {kind} is expected")));
    }
    if let Some(allowed) = schema["enum"].as_array().filter(|allowed| !allowed.contains(value)) {
        let allowed: Vec<String> = allowed.iter().map(text).collect();
        problems.push(named(format!("{value} is not allowed; one of {} is expected", allowed.join(", "))));
    }
    if let (Some(number), Some(least), Some(most)) =
        (value.as_f64(), schema["minimum"].as_f64(), schema["maximum"].as_f64())
        && !(least..=most).contains(&number)
    {
        problems.push(named(format!("{value} is not allowed; {least} to {most} is expected")));
    }
    for (key, member) in value.as_object().into_iter().flatten() {
        let below = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        match schema["properties"].get(key) {
            Some(schema) => check(schema, member, &below, problems),
            None => {
                let known = schema["properties"].as_object().into_iter().flat_map(Map::keys);
                let known: Vec<&str> = known.map(String::as_str).collect();
                problems.push(format!("{below}: unknown option; known: {}", known.join(", ")));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_of_the_schema_has_a_variable_and_a_default() {
        fn leaves(schema: &Value, path: &str, into: &mut Vec<String>) {
            for (key, member) in schema["properties"].as_object().expect("an object") {
                let below = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                assert!(!member["description"].as_str().unwrap_or_default().is_empty(), "{below}");
                match member["type"] == "object" {
                    true => leaves(member, &below, into),
                    false => into.push(below),
                }
            }
        }
        let mut found = Vec::new();
        leaves(&schema(), "", &mut found);
        found.sort();
        let mut known: Vec<&str> = VARIABLES.iter().map(|(path, _)| *path).collect();
        known.sort_unstable();
        assert_eq!(found, known);
        for row in default_rows() {
            let mut problems = Vec::new();
            let at = row.path.split('.').fold(schema(), |at, key| at["properties"][key].clone());
            check(&at, &row.value, row.path, &mut problems);
            assert_eq!(problems, [""; 0], "{}", row.path);
        }
    }

    #[test]
    fn options_file_overrides_environment_and_defaults() {
        let options = Options::parse(
            r#"{"external-volumes": {"use-external-volumes": true,
                "pod-replacement-failure-policy": {"min-replace-delay": 5}}}"#,
        )
        .expect("conforms");
        let process = [("MIN_REPLACE_DELAY_SECS", "7"), ("EXTERNAL_VOLUME_NAME", "mine"), ("OTHER", "x")];
        let process = process.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let all = options.environment(process);
        for (name, value) in [
            ("USE_EXTERNAL_VOLUMES", "true"),
            ("MIN_REPLACE_DELAY_SECS", "5"),
            ("EXTERNAL_VOLUME_NAME", "mine"),
            ("PERMANENT_FAILURE_TIMEOUT_SECS", "1200"),
            ("EXTERNAL_VOLUME_SHARING", "POD_EXCLUSIVE"),
            ("EXTERNAL_VOLUME_DRIVER_OPTIONS", ""),
            ("OTHER", "x"),
        ] {
            assert_eq!(all.get(name).map(String::as_str), Some(value), "{name}");
        }
    }

    #[test]
    fn all_problems_of_a_file_are_named_at_once() {
        let cases = [
            ("[", "not JSON: EOF while parsing a list at line 1 column 1"),
            ("3", "3 is not allowed; a value of type object is expected"),
            (r#"{"x": 1}"#, "x: unknown option; known: external-volumes"),
            (
                r#"{"external-volumes": {"volume_sharing": "ALL"}}"#,
                "external-volumes.volume_sharing: \"ALL\" is not allowed; one of POD_EXCLUSIVE, POD_SHARED is expected",
            ),
            (
                r#"{"external-volumes": {"pod-replacement-failure-policy": {"min-replace-delay": -1}}}"#,
                "external-volumes.pod-replacement-failure-policy.min-replace-delay: -1 is not allowed; 0 to 31536000 is expected",
            ),
            (
                r#"{"external-volumes": {"use-external-volumes": "yes"}}"#,
                "external-volumes.use-external-volumes: \"yes\" is not allowed; a value of type boolean is expected",
            ),
        ];
        for (text, problem) in cases {
            assert_eq!(Options::parse(text), Err(vec![problem.to_owned()]), "{text}");
        }
        let many = r#"{"a": 1, "external-volumes": {"volume_name": 3, "b": {}}}"#;
        assert_eq!(Options::parse(many).expect_err("three problems").len(), 3);
    }
}
