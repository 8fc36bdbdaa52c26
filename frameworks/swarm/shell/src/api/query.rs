//! The query of a call: its parameters, and the filters in one of them.

use std::collections::BTreeMap;

use serde_json::Value;

use super::error::ApiError;

/// Filters and their values in one call.
const FILTER_VALUES_MAX: usize = 1000;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    pairs: Vec<(String, String)>,
}

impl Query {
    pub fn parse(query: Option<&str>) -> Self {
        let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes()).into_owned().collect();
        Self { pairs }
    }

    /// The first value of a parameter; none if it is absent or empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.pairs.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.pairs.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// As engines read it: everything counts as true but these words.
    pub fn is_true(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| {
            !matches!(value.trim().to_ascii_lowercase().as_str(), "" | "0" | "no" | "false" | "none")
        })
    }

    pub fn number(&self, name: &str) -> Result<Option<i64>, ApiError> {
        let parse = |value: &str| {
            value
                .parse()
                .map_err(|_| ApiError::bad(format!("parameter {name} must be a number, not {value:?}")))
        };
        self.get(name).map(parse).transpose()
    }

    /// Replaces a parameter, or adds it.
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.pairs.retain(|(key, _)| key != name);
        self.pairs.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn without(mut self, name: &str) -> Self {
        self.pairs.retain(|(key, _)| key != name);
        self
    }

    pub fn filters(&self) -> Result<Filters, ApiError> {
        self.get("filters").map_or_else(|| Ok(Filters::default()), Filters::parse)
    }

    pub fn text(&self) -> String {
        let mut text = form_urlencoded::Serializer::new(String::new());
        for (key, value) in &self.pairs {
            text.append_pair(key, value);
        }
        text.finish()
    }
}

/// Values by the name of the filter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filters {
    values: BTreeMap<String, Vec<String>>,
}

impl Filters {
    /// `{"label":{"a=b":true}}` as of now, `{"label":["a=b"]}` as of API 1.21.
    pub fn parse(text: &str) -> Result<Self, ApiError> {
        let wrong = |why: &str| {
            ApiError::bad(format!("parameter filters must be an object of lists of strings: {why}"))
        };
        let document: BTreeMap<String, Value> =
            serde_json::from_str(text).map_err(|error| wrong(&error.to_string()))?;
        let mut values = BTreeMap::new();
        for (name, given) in document {
            let list: Option<Vec<String>> = match &given {
                Value::Array(list) => list.iter().map(|it| it.as_str().map(str::to_owned)).collect(),
                Value::Object(set) => {
                    Some(set.iter().filter(|(_, on)| **on != false).map(|(key, _)| key.clone()).collect())
                }
                _ => None,
            };
            let list = list.ok_or_else(|| wrong(&format!("the values of {name:?}")))?;
            values.insert(name, list);
        }
        match values.values().map(Vec::len).sum::<usize>() {
            0..=FILTER_VALUES_MAX => Ok(Self { values }),
            count => Err(wrong(&format!("{count} values are more than {FILTER_VALUES_MAX}"))),
        }
    }

    /// Rejects filters that this call does not have.
    pub fn check(&self, known: &[&str]) -> Result<(), ApiError> {
        match self.values.keys().find(|name| !known.contains(&name.as_str())) {
            Some(name) => {
                Err(ApiError::bad(format!("Invalid filter '{name}'; there are: {}", known.join(", "))))
            }
            None => Ok(()),
        }
    }

    pub fn get(&self, name: &str) -> &[String] {
        self.values.get(name).map(Vec::as_slice).unwrap_or_default()
    }

    pub fn has(&self, name: &str) -> bool {
        !self.get(name).is_empty()
    }

    /// Without values every candidate passes; with values one of them has to match.
    pub fn any(&self, name: &str, matches: impl Fn(&str) -> bool) -> bool {
        let values = self.get(name);
        values.is_empty() || values.iter().any(|value| matches(value))
    }

    pub fn exactly(&self, name: &str, candidate: &str) -> bool {
        self.any(name, |value| value == candidate)
    }

    pub fn truth(&self, name: &str) -> Result<Option<bool>, ApiError> {
        let wrong = || ApiError::bad(format!("Invalid filter: 'type'='{name}'"));
        match self.get(name) {
            [] => Ok(None),
            [one] => match one.as_str() {
                "1" | "true" | "True" | "TRUE" | "t" | "T" => Ok(Some(true)),
                "0" | "false" | "False" | "FALSE" | "f" | "F" => Ok(Some(false)),
                _ => Err(wrong()),
            },
            _ => Err(wrong()),
        }
    }

    /// All of `key` and `key=value` must hold of the labels.
    pub fn labels<'l>(&self, find: impl Fn(&str) -> Option<&'l str>) -> bool {
        self.labels_of("label", &find) && self.get("label!").iter().all(|wanted| !has_label(wanted, &find))
    }

    fn labels_of<'l>(&self, name: &str, find: &impl Fn(&str) -> Option<&'l str>) -> bool {
        self.get(name).iter().all(|wanted| has_label(wanted, find))
    }

    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.values.entry(name.to_owned()).or_default().push(value.to_owned());
        self
    }

    /// As a parameter for an engine.
    pub fn text(&self) -> String {
        serde_json::to_string(&self.values).unwrap_or_default()
    }
}

fn has_label<'l>(wanted: &str, find: &impl Fn(&str) -> Option<&'l str>) -> bool {
    match wanted.split_once('=') {
        Some((key, value)) => find(key) == Some(value),
        None => find(wanted).is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_parsed_in_list_and_map_format() {
        for (text, expected) in [
            (r#"{"label":{"a=b":true,"c":true}}"#, Some(&["a=b", "c"][..])),
            (r#"{"label":["a=b","c"]}"#, Some(&["a=b", "c"][..])),
            (r#"{"label":{"a=b":true,"c":false}}"#, Some(&["a=b"][..])),
            (r#"{"label":[]}"#, Some(&[][..])),
            ("{}", Some(&[][..])),
            (r#"{"label":"a"}"#, None),
            (r#"{"label":[1]}"#, None),
            ("[]", None),
            ("{", None),
            ("\u{0}", None),
        ] {
            let parsed = Filters::parse(text).ok();
            assert_eq!(
                parsed.as_ref().map(|filters| filters.get("label").to_vec()),
                expected.map(|list| list.iter().map(|it| (*it).to_owned()).collect()),
                "{text}"
            );
        }
        let many: Vec<String> = (0..=FILTER_VALUES_MAX).map(|number| number.to_string()).collect();
        assert!(Filters::parse(&serde_json::json!({"id": many}).to_string()).is_err());
        let error =
            Filters::parse(r#"{"colour":["red"]}"#).and_then(|filters| filters.check(&["id", "name"]));
        assert_eq!(error.expect_err("unknown").message, "Invalid filter 'colour'; there are: id, name");
    }

    #[test]
    fn all_label_filters_must_match() {
        let labels = BTreeMap::from([("a", "b"), ("c", "")]);
        for (text, expected) in [
            (r#"{}"#, true),
            (r#"{"label":["a"]}"#, true),
            (r#"{"label":["a=b"]}"#, true),
            (r#"{"label":["a=b","c"]}"#, true),
            (r#"{"label":["a=c"]}"#, false),
            (r#"{"label":["a=b","d"]}"#, false),
            (r#"{"label":["c="]}"#, true),
            (r#"{"label!":["d"]}"#, true),
            (r#"{"label!":["a"]}"#, false),
        ] {
            let filters = Filters::parse(text).expect(text);
            assert_eq!(filters.labels(|key| labels.get(key).copied()), expected, "{text}");
        }
    }

    #[test]
    fn parameters_are_read_as_engines_do() {
        let query = Query::parse(Some("all=1&size=0&limit=5&name=&x=No&t=a%20b&names=a&names=b"));
        assert!(
            query.is_true("all") && !query.is_true("size") && !query.is_true("x") && !query.is_true("none")
        );
        assert_eq!(query.number("limit"), Ok(Some(5)));
        assert_eq!(query.get("name"), None);
        assert_eq!(query.number("t").expect_err("text").message, "parameter t must be a number, not \"a b\"");
        assert_eq!(query.all("names").collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(Query::parse(Some("a=1&b=2")).with("a", "x y").text(), "b=2&a=x+y");
    }
}
