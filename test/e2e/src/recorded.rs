//! Answers recorded from a v1 master, and the comparison with ours.
//!
//! Two answers agree if they have the same keys and types and, except for volatile ones (ids, times, addresses), the same
//! values.

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

/// All differences of `got` from `expected`, as `path: difference`.
pub fn differences(expected: &Value, got: &Value) -> Vec<String> {
    differences_but(VOLATILE, expected, got)
}

/// The same, with other keys whose values may differ.
pub fn differences_but(volatile: &[&str], expected: &Value, got: &Value) -> Vec<String> {
    let mut comparison = Comparison { volatile, found: Vec::new() };
    comparison.compare("", expected, got);
    comparison.found
}

struct Comparison<'v> {
    volatile: &'v [&'v str],
    found: Vec<String>,
}

impl Comparison<'_> {
    fn compare(&mut self, path: &str, expected: &Value, got: &Value) {
        match (expected, got) {
            (Value::Object(expected), Value::Object(got)) => {
                for (key, value) in expected {
                    match got.get(key) {
                        Some(got) => self.compare(&format!("{path}.{key}"), value, got),
                        None => self.found.push(format!("{path}.{key}: missing")),
                    }
                }
                let extra = got.keys().filter(|key| !expected.contains_key(*key));
                self.found.extend(extra.map(|key| format!("{path}.{key}: extra")));
            }
            (Value::Array(expected), Value::Array(got)) => self.compare_arrays(path, expected, got),
            _ if kind(expected) != kind(got) => {
                self.found.push(format!("{path}: {} instead of {}", kind(got), kind(expected)));
            }
            _ if expected != got && !self.is_volatile(path) => {
                self.found.push(format!("{path}: {got} instead of {expected}"));
            }
            _ => {}
        }
    }

    /// Arrays are compared as bags: each expected element is held against the one of ours that has its id or name, or
    /// else is closest to it.
    fn compare_arrays(&mut self, path: &str, expected: &[Value], got: &[Value]) {
        if expected.len() != got.len() {
            self.found.push(format!("{path}: {} elements instead of {}", got.len(), expected.len()));
            return;
        }
        let mut left: Vec<&Value> = got.iter().collect();
        for (index, expected) in expected.iter().enumerate() {
            let mut closest: Option<(usize, (bool, usize), Vec<String>)> = None;
            for (at, got) in left.iter().enumerate() {
                let mut part = Comparison { volatile: self.volatile, found: Vec::new() };
                part.compare(&format!("{path}[{index}]"), expected, got);
                let distance = (names(expected) != names(got), part.found.len());
                if closest.as_ref().is_none_or(|(_, nearest, _)| distance < *nearest) {
                    closest = Some((at, distance, part.found));
                }
            }
            if let Some((at, _, found)) = closest {
                left.remove(at);
                self.found.extend(found);
            }
        }
    }

    fn is_volatile(&self, path: &str) -> bool {
        path.rsplit('.').next().is_some_and(|key| self.volatile.contains(&key))
    }
}

/// The identifying fields of an array element.
fn names(element: &Value) -> [&Value; 3] {
    [&element["id"], &element["task_id"]["value"], &element["name"]]
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
                vec![".a: missing", ".id.value: missing", ".list[1].n: \"d\" instead of \"c\"", ".z: extra"],
            ),
        ];
        for (ours, expected) in table {
            assert_eq!(differences(&recorded, &ours), expected);
        }
    }
}
