//! Expressions of constraints, affinities and whitelists: `KEY==VALUE`, `KEY!=VALUE`, soft as `KEY==~VALUE`.
//!
//! A value is a glob in which `*` stands for anything and every other character keeps its meaning in a regular expression,
//! or a regular expression between slashes. Parsed once, when a container is created; a pattern that does not compile is
//! kept and matches nothing, as classic Swarm has it.

use alloc::borrow::ToOwned;
use alloc::string::String;
use core::fmt;

use regex::{Regex, RegexBuilder};

/// The largest compiled pattern. Patterns come from clients.
const PATTERN_BYTES_MAX: usize = 1 << 20;

#[derive(Clone, Debug)]
pub struct Expression {
    pub key: String,
    pub operator: Operator,
    /// Without the tilde.
    pub value: String,
    /// Ignored if nothing satisfies it.
    pub soft: bool,
    /// `None` if the value is not a pattern.
    pattern: Option<Regex>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    Equal,
    NotEqual,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExpressionError {
    Operator,
    Key(String),
    Value(String),
}

impl Expression {
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        let (operator, at) = match (text.find("=="), text.find("!=")) {
            (Some(at), _) => (Operator::Equal, at),
            (None, Some(at)) => (Operator::NotEqual, at),
            (None, None) => return Err(ExpressionError::Operator),
        };
        let (key, value) = (&text[..at], &text[at + 2..]);
        if !is_key(key) {
            return Err(ExpressionError::Key(key.to_owned()));
        }
        if !is_value(value) {
            return Err(ExpressionError::Value(value.to_owned()));
        }
        let bare = value.trim_start_matches('~');
        Ok(Self {
            key: key.to_owned(),
            operator,
            value: bare.to_owned(),
            soft: bare.len() < value.len(),
            pattern: compile(bare),
        })
    }

    /// Whether the value can be compared with anything at all.
    pub fn is_pattern(&self) -> bool {
        self.pattern.is_some()
    }

    /// `==` holds if any candidate matches, `!=` if none does.
    pub fn holds<'c>(&self, candidates: impl IntoIterator<Item = &'c str>) -> bool {
        let matches = |candidate| self.pattern.as_ref().is_some_and(|pattern| pattern.is_match(candidate));
        let any = candidates.into_iter().any(matches);
        match self.operator {
            Operator::Equal => any,
            Operator::NotEqual => !any,
        }
    }

    /// As the user wrote it.
    pub fn written(&self) -> String {
        let tilde = if self.soft { "~" } else { "" };
        alloc::format!("{}{}{tilde}{}", self.key, self.operator, self.value)
    }
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Operator::Equal => "==",
            Operator::NotEqual => "!=",
        })
    }
}

/// Without the tilde, as classic Swarm lists it.
impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{}", self.key, self.operator, self.value)
    }
}

impl fmt::Display for ExpressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExpressionError::Operator => f.write_str("One of operator ==, != is expected"),
            ExpressionError::Key(key) => write!(f, "Key '{key}' is invalid"),
            ExpressionError::Value(value) => write!(f, "Value '{value}' is invalid"),
        }
    }
}

/// A letter or underscore and at least one character more.
fn is_key(key: &str) -> bool {
    let mut bytes = key.bytes();
    let first = bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    let others = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    first && key.len() > 1 && bytes.all(others)
}

fn is_value(value: &str) -> bool {
    let rest = value.strip_prefix(['=', '!', '/']).unwrap_or(value);
    let body = rest.strip_prefix('~').unwrap_or(rest);
    let allowed = |c: char| {
        c.is_ascii_alphanumeric()
            || matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0c')
            || matches!(
                c,
                ':' | '-'
                    | '_'
                    | '.'
                    | '*'
                    | '/'
                    | '('
                    | ')'
                    | '?'
                    | '+'
                    | '['
                    | ']'
                    | '\\'
                    | '^'
                    | '$'
                    | '|'
            )
    };
    value == "/" || !body.is_empty() && body.chars().all(allowed)
}

fn compile(value: &str) -> Option<Regex> {
    let inner = value.strip_prefix('/').and_then(|rest| rest.strip_suffix('/'));
    let pattern = match inner {
        Some(inner) => inner.to_owned(),
        None if value == "/" => return None,
        None => alloc::format!("^{}$", value.replace('*', ".*")),
    };
    RegexBuilder::new(&pattern).size_limit(PATTERN_BYTES_MAX).build().ok()
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn malformed_expressions_are_named() {
        for (text, error) in [
            ("", "One of operator ==, != is expected"),
            ("node", "One of operator ==, != is expected"),
            ("node=node-1", "One of operator ==, != is expected"),
            ("==a", "Key '' is invalid"),
            ("n==a", "Key 'n' is invalid"),
            ("1node==a", "Key '1node' is invalid"),
            ("no de==a", "Key 'no de' is invalid"),
            ("nöde==a", "Key 'nöde' is invalid"),
            ("node==", "Value '' is invalid"),
            ("node!=", "Value '' is invalid"),
            ("node==~", "Value '~' is invalid"),
            ("node==~~a", "Value '~~a' is invalid"),
            ("node==a,b", "Value 'a,b' is invalid"),
            ("node==a@b", "Value 'a@b' is invalid"),
            ("node==a{2}", "Value 'a{2}' is invalid"),
            ("node==\"a\"", "Value '\"a\"' is invalid"),
            ("node==ä", "Value 'ä' is invalid"),
            // `==` is searched first, anywhere.
            ("node==a!=b", "Value 'a!=b' is invalid"),
            ("node!=a==b", "Key 'node!=a' is invalid"),
        ] {
            let got = Expression::parse(text).expect_err(text);
            assert_eq!(got.to_string(), error, "{text}");
        }
    }

    #[test]
    fn expressions_are_parsed() {
        use Operator::{Equal, NotEqual};
        for (text, key, operator, value, soft) in [
            ("node==a", "node", Equal, "a", false),
            ("node!=a", "node", NotEqual, "a", false),
            ("node==~a", "node", Equal, "a", true),
            ("node!=~a*", "node", NotEqual, "a*", true),
            ("_x==a b", "_x", Equal, "a b", false),
            ("com.example-x_y==1", "com.example-x_y", Equal, "1", false),
            ("image==repo:5000/a:1.0", "image", Equal, "repo:5000/a:1.0", false),
            ("node===a", "node", Equal, "=a", false),
            ("node==!a", "node", Equal, "!a", false),
            ("node==/~a/", "node", Equal, "/~a/", false),
        ] {
            let got = Expression::parse(text).expect(text);
            assert_eq!(
                (&*got.key, got.operator, &*got.value, got.soft),
                (key, operator, value, soft),
                "{text}"
            );
            assert_eq!(got.written(), text);
        }
    }

    #[test]
    fn expressions_match_candidates() {
        for (text, candidates, expected) in [
            ("node==node-1", &["node-1"][..], true),
            ("node==node-1", &["node-10"], false),
            ("node==node-*", &["node-10"], true),
            ("node==*", &[""], true),
            ("node==*", &[], false),
            ("node!=node-1", &["node-1", "x"], false),
            ("node!=node-1", &["node-2"], true),
            ("node!=node-1", &[], true),
            ("node==Node-1", &["node-1"], false),
            // Everything but the star is a regular expression.
            ("node==a.c", &["abc"], true),
            ("node==a|b", &["axx"], true),
            ("node==a|b", &["xxb"], true),
            ("node==a|b", &["xax"], false),
            ("node==/node-[12]$/", &["my node-2"], true),
            ("node==/NODE/", &["node"], false),
            ("node==/(?i)NODE/", &["node"], true),
            ("node==//", &["anything"], true),
            // What does not compile matches nothing.
            ("node==/(/", &["("], false),
            ("node!=/(/", &["("], true),
            ("node==(", &["("], false),
            ("node==/", &["/"], false),
        ] {
            let expression = Expression::parse(text).expect(text);
            assert_eq!(expression.holds(candidates.iter().copied()), expected, "{text} {candidates:?}");
        }
    }
}
