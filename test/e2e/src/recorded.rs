//! Answers recorded from a v1 master, and how far ours may differ from them.
//!
//! Two answers agree if they have the same keys and types and, except for what differs from run to run (ids, times,
//! addresses), the same values.

use serde_json::Value;

/// One recorded exchange or event.
#[derive(Clone, Debug)]
pub struct Recorded {
    pub name: String,
    pub method: Option<String>,
    pub path: Option<String>,
    pub headers: Vec<(String, String)>,
    pub body: Option<String>,
    pub status: u16,
    pub response_headers: Vec<(String, String)>,
    pub response: Value,
}

/// Reads a file of one JSON object per line.
pub fn read(text: &str) -> Vec<Recorded> {
    text.lines().map(|line| recorded(&serde_json::from_str(line).expect("a line is JSON"))).collect()
}

fn recorded(line: &Value) -> Recorded {
    let text = |key: &str| line[key].as_str().map(str::to_string);
    let pairs = |key: &str| {
        let pairs = line[key].as_object().into_iter().flatten();
        pairs.map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_string())).collect()
    };
    Recorded {
        name: text("name").expect("a name"),
        method: text("method"),
        path: text("path"),
        headers: pairs("headers"),
        body: text("body"),
        status: line["status"].as_u64().expect("a status") as u16,
        response_headers: pairs("resp_headers"),
        response: line["resp"].clone(),
    }
}

/// Keys whose values differ from run to run; only their types are compared.
const VOLATILE: &[&str] = &[
    "value",
    "timestamp",
    "uuid",
    "executor_pid",
    "port",
    "ip",
    "hostname",
    "id",
    "pid",
    "version",
    "nanoseconds",
];

/// Every way in which `got` differs from `expected`, as `path: what`.
pub fn differences(expected: &Value, got: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare("", expected, got, &mut found);
    found
}

fn compare(path: &str, expected: &Value, got: &Value, found: &mut Vec<String>) {
    match (expected, got) {
        (Value::Object(expected), Value::Object(got)) => {
            for (key, value) in expected {
                match got.get(key) {
                    Some(got) => compare(&format!("{path}.{key}"), value, got, found),
                    None => found.push(format!("{path}.{key}: missing")),
                }
            }
            found.extend(
                got.keys()
                    .filter(|key| !expected.contains_key(*key))
                    .map(|key| format!("{path}.{key}: extra")),
            );
        }
        (Value::Array(expected), Value::Array(got)) => compare_arrays(path, expected, got, found),
        _ if kind(expected) != kind(got) => {
            found.push(format!("{path}: {} instead of {}", kind(got), kind(expected)));
        }
        _ if expected != got && !is_volatile(path) => {
            found.push(format!("{path}: {got} instead of {expected}"))
        }
        _ => {}
    }
}

/// Arrays are compared as bags: each expected element needs one of ours that agrees.
fn compare_arrays(path: &str, expected: &[Value], got: &[Value], found: &mut Vec<String>) {
    if expected.len() != got.len() {
        found.push(format!("{path}: {} elements instead of {}", got.len(), expected.len()));
        return;
    }
    let mut left: Vec<&Value> = got.iter().collect();
    for (index, expected) in expected.iter().enumerate() {
        match left.iter().position(|got| differences(expected, got).is_empty()) {
            Some(at) => {
                left.remove(at);
            }
            None => found.push(format!("{path}[{index}]: nothing agrees with {expected}")),
        }
    }
}

fn is_volatile(path: &str) -> bool {
    path.rsplit('.').next().is_some_and(|key| VOLATILE.contains(&key))
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.is_f64() => "a fractional number",
        Value::Number(_) => "a whole number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn differences_are_found_and_named() {
        let recorded = json!({"a": 1.0, "id": {"value": "x"}, "list": [{"n": "b"}, {"n": "c"}]});
        let table = [
            (json!({"a": 1.0, "id": {"value": "y"}, "list": [{"n": "c"}, {"n": "b"}]}), vec![]),
            (
                json!({"a": 1, "id": {"value": "x"}, "list": [{"n": "b"}, {"n": "c"}]}),
                vec![".a: a whole number instead of a fractional number"],
            ),
            (
                json!({"id": {}, "list": [{"n": "b"}, {"n": "d"}], "z": 1}),
                vec![
                    ".a: missing",
                    ".id.value: missing",
                    ".list[1]: nothing agrees with {\"n\":\"c\"}",
                    ".z: extra",
                ],
            ),
        ];
        for (ours, expected) in table {
            assert_eq!(differences(&recorded, &ours), expected);
        }
    }
}
