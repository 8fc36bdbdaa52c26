//! Removes values of one run from an answer: ids, times, directories.

use serde_json::Value;

/// Replaces every UUID by `U`, removes offer numbers, and names directories by their purpose.
pub fn text(text: &str, directories: &[(String, &str)]) -> String {
    let mut named = text.to_string();
    for (path, name) in directories {
        named = named.replace(path, name);
    }
    let mut out = String::new();
    let mut rest = named.as_str();
    while let Some(c) = rest.chars().next() {
        if starts_with_uuid(rest) {
            out.push('U');
            rest = &rest[36..];
            if let Some(number) = rest.strip_prefix("-O") {
                out.push_str("-O");
                rest = number.trim_start_matches(|c: char| c.is_ascii_digit());
            }
        } else {
            out.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    out
}

/// The same for everything in a document, names of members included. Times become one time.
pub fn document(value: &Value, directories: &[(String, &str)]) -> Value {
    match value {
        Value::String(one) => Value::String(text(one, directories)),
        Value::Array(values) => values.iter().map(|value| document(value, directories)).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| (text(name, directories), document(value, directories)))
            .collect(),
        Value::Number(number) if is_time(number) => {
            if number.is_f64() {
                1.0e9.into()
            } else {
                1_000_000_000_000_000_000_u64.into()
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// Seconds since the epoch with a fraction, or nanoseconds since the epoch.
fn is_time(number: &serde_json::Number) -> bool {
    match number.as_u64() {
        Some(whole) => whole > 1_000_000_000_000_000_000,
        None => number.as_f64().is_some_and(|seconds| (1.0e9..4.0e9).contains(&seconds)),
    }
}

fn starts_with_uuid(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() >= 36
        && bytes[..36].iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}
