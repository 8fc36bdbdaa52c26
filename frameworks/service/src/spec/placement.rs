//! Placement constraints in Marathon's notation, as JSON or as text.

use regex::Regex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Limit of the constraints of a pod.
const CONSTRAINTS_MAX: usize = 64;
/// Limit of a compiled pattern.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// All constraints of a pod must hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Constraint {
    pub subject: Subject,
    pub operator: Operator,
}

/// What of an agent a constraint looks at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Subject {
    Hostname,
    Region,
    Zone,
    Attribute(String),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operator {
    /// At most so many pods of the type for each value. `UNIQUE` is one.
    MaxPer(u32),
    Is(String),
    IsNot(String),
    /// A pattern that matches the whole value.
    Like(String),
    Unlike(String),
    /// Round robin over the values; with a number, that many values are expected.
    GroupBy(Option<u32>),
}

impl Constraint {
    /// Reads `["hostname","UNIQUE"]`, `[["a","IS","b"],…]` or `hostname:UNIQUE,a:IS:b`. An empty text is no constraint.
    pub fn parse(text: &str) -> Result<Vec<Constraint>, String> {
        let text = text.trim();
        let rows = match text.chars().next() {
            None => Vec::new(),
            Some('[') => json_rows(text)?,
            Some(_) => text_rows(text)?,
        };
        if rows.len() > CONSTRAINTS_MAX {
            return Err(format!("{} constraints; the limit is {CONSTRAINTS_MAX}", rows.len()));
        }
        rows.iter().map(|row| constraint(row)).collect()
    }
}

fn json_rows(text: &str) -> Result<Vec<Vec<String>>, String> {
    let expected = "a list as [\"hostname\", \"UNIQUE\"], or a list of such lists, is expected";
    let value: Value =
        serde_json::from_str(text).map_err(|error| format!("not JSON: {error}; {expected}"))?;
    let cells = value.as_array().ok_or(expected)?;
    let row = |cells: &Vec<Value>| {
        cells.iter().map(cell).collect::<Option<Vec<String>>>().ok_or(expected.to_owned())
    };
    match cells.iter().all(Value::is_array) {
        true => cells.iter().filter_map(Value::as_array).map(row).collect(),
        false => Ok(vec![row(cells)?]),
    }
}

fn cell(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(_) | Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Cuts at `,` and `:`; a backslash takes the next character as it is.
fn text_rows(text: &str) -> Result<Vec<Vec<String>>, String> {
    let mut rows = vec![vec![String::new()]];
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        let row = rows.last_mut().expect("one row at least");
        match character {
            ',' => rows.push(vec![String::new()]),
            ':' => row.push(String::new()),
            '\\' => {
                let next = characters.next().ok_or("a backslash at the end escapes nothing")?;
                row.last_mut().expect("one cell at least").push(next);
            }
            other => row.last_mut().expect("one cell at least").push(other),
        }
    }
    Ok(rows)
}

fn constraint(row: &[String]) -> Result<Constraint, String> {
    let (field, operator, parameter) = match row {
        [field, operator] => (field.trim(), operator.trim(), None),
        [field, operator, parameter] => (field.trim(), operator.trim(), Some(parameter.trim())),
        _ => {
            return Err(format!(
                "constraint {:?} has {} parts; 2 or 3 are expected",
                row.join(":"),
                row.len()
            ));
        }
    };
    let subject = match field {
        "" => return Err(format!("constraint {:?} names no field", row.join(":"))),
        "hostname" | "@hostname" => Subject::Hostname,
        "@region" => Subject::Region,
        "@zone" => Subject::Zone,
        attribute => Subject::Attribute(attribute.to_owned()),
    };
    let name = operator.to_ascii_uppercase();
    let needed = || match parameter {
        Some(text) if !text.is_empty() => Ok(text.to_owned()),
        Some(_) | None => Err(format!("operator {name} needs a parameter: {field}:{name}:VALUE")),
    };
    let operator = match name.as_str() {
        "UNIQUE" => Operator::MaxPer(1),
        "MAX_PER" => Operator::MaxPer(count(&name, &needed()?)?),
        "CLUSTER" | "IS" => Operator::Is(needed()?),
        "IS_NOT" => Operator::IsNot(needed()?),
        "LIKE" => Operator::Like(pattern(needed()?)?),
        "UNLIKE" => Operator::Unlike(pattern(needed()?)?),
        "GROUP_BY" => {
            let parameter = parameter.filter(|text| !text.is_empty());
            Operator::GroupBy(parameter.map(|text| count(&name, text)).transpose()?)
        }
        _ => {
            let names = "UNIQUE, MAX_PER, CLUSTER, IS, IS_NOT, LIKE, UNLIKE, GROUP_BY";
            return Err(format!("unknown operator {operator:?}; one of {names} is expected"));
        }
    };
    Ok(Constraint { subject, operator })
}

fn count(operator: &str, text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(count) if count > 0 => Ok(count),
        Ok(_) | Err(_) => Err(format!("operator {operator} needs a whole number above 0, not {text:?}")),
    }
}

fn pattern(text: String) -> Result<String, String> {
    let compiled = regex::RegexBuilder::new(&anchored(&text)).size_limit(PATTERN_BYTES_MAX).build();
    compiled.map(|_: Regex| text.clone()).map_err(|error| format!("bad pattern {text:?}: {error}"))
}

/// The pattern for a match of the whole value.
fn anchored(pattern: &str) -> String {
    format!("^(?:{pattern})$")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        match Constraint::parse(text) {
            Ok(rules) => rules
                .iter()
                .map(|rule| format!("{:?} {:?}", rule.subject, rule.operator))
                .collect::<Vec<_>>()
                .join("; "),
            Err(message) => format!("error: {}", message.lines().next().unwrap_or_default()),
        }
    }

    #[test]
    fn constraints_parse_from_text_and_json() {
        let cases = [
            ("", ""),
            ("[]", ""),
            ("hostname:UNIQUE", "Hostname MaxPer(1)"),
            ("@hostname:unique:ignored", "Hostname MaxPer(1)"),
            ("[\"hostname\", \"UNIQUE\"]", "Hostname MaxPer(1)"),
            (
                "[[\"@zone\", \"GROUP_BY\", 3], [\"rack\", \"IS\", \"a\"]]",
                "Zone GroupBy(Some(3)); Attribute(\"rack\") Is(\"a\")",
            ),
            ("@region:GROUP_BY,rack:MAX_PER:2", "Region GroupBy(None); Attribute(\"rack\") MaxPer(2)"),
            ("rack:LIKE:a\\:b\\,c.*", "Attribute(\"rack\") Like(\"a:b,c.*\")"),
            (
                "rack:UNLIKE:x,rack:IS_NOT:y,rack:CLUSTER:z",
                "Attribute(\"rack\") Unlike(\"x\"); Attribute(\"rack\") IsNot(\"y\"); Attribute(\"rack\") Is(\"z\")",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn invalid_constraints_are_rejected_with_the_expected_syntax() {
        let cases = [
            ("hostname", "error: constraint \"hostname\" has 1 parts; 2 or 3 are expected"),
            ("a:b:c:d", "error: constraint \"a:b:c:d\" has 4 parts; 2 or 3 are expected"),
            (":UNIQUE", "error: constraint \":UNIQUE\" names no field"),
            ("hostname:IS", "error: operator IS needs a parameter: hostname:IS:VALUE"),
            ("hostname:MAX_PER:0", "error: operator MAX_PER needs a whole number above 0, not \"0\""),
            ("hostname:GROUP_BY:x", "error: operator GROUP_BY needs a whole number above 0, not \"x\""),
            ("hostname:LIKE:(", "error: bad pattern \"(\": regex parse error:"),
            (
                "hostname:UNIQE",
                "error: unknown operator \"UNIQE\"; one of UNIQUE, MAX_PER, CLUSTER, IS, IS_NOT, LIKE, UNLIKE, GROUP_BY is expected",
            ),
            ("hostname:IS:a\\", "error: a backslash at the end escapes nothing"),
            ("[{}]", "error: a list as [\"hostname\", \"UNIQUE\"], or a list of such lists, is expected"),
            (
                "[\"hostname\"",
                "error: not JSON: EOF while parsing a list at line 1 column 11; a list as [\"hostname\", \"UNIQUE\"], or a list of such lists, is expected",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(shown(text), expected, "{text}");
        }
    }
}
