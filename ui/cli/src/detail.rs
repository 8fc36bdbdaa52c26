//! The details of one entity: named values in two columns, then tables with headings.

use serde_json::Value;
use unicode_width::UnicodeWidthStr;

use crate::amount;
use crate::listing::{lists, text};
use crate::output::{Tone, printable};
use crate::table::Table;

#[derive(Clone, Debug, Default)]
pub struct Detail {
    values: Vec<(&'static str, String, Tone)>,
    tables: Vec<(String, Table)>,
}

impl Detail {
    /// Adds a value; an empty one is omitted.
    pub fn value(&mut self, name: &'static str, value: impl AsRef<str>) -> &mut Self {
        self.toned(name, value, Tone::Plain)
    }

    pub fn toned(&mut self, name: &'static str, value: impl AsRef<str>, tone: Tone) -> &mut Self {
        if !value.as_ref().is_empty() {
            self.values.push((name, printable(value.as_ref()), tone));
        }
        self
    }

    /// Adds a protocol message verbatim; an unset one is omitted.
    pub fn message(&mut self, name: &'static str, value: &Value) -> &mut Self {
        match value {
            Value::Null => self,
            Value::Object(fields) if fields.is_empty() => self,
            Value::String(text) => self.value(name, text),
            other => self.value(name, other.to_string()),
        }
    }

    /// Adds a moment and how long ago it was; "never" is left out.
    pub fn moment(&mut self, name: &'static str, moment: f64, now: f64) -> &mut Self {
        match amount::moment(moment) {
            never if never.is_empty() => self,
            at => self.value(name, format!("{at} ({} ago)", amount::duration(now - moment))),
        }
    }

    /// Adds a table under a heading; one without rows is left out.
    pub fn table(&mut self, heading: impl Into<String>, table: Table) -> &mut Self {
        if !table.is_empty() {
            self.tables.push((heading.into(), table));
        }
        self
    }

    pub fn render(&self, colours: bool) -> String {
        let width = self.values.iter().map(|(name, ..)| name.width()).max().unwrap_or(0);
        let value = |(name, value, tone): &(&str, String, Tone)| {
            let padding = " ".repeat(width - name.width() + 2);
            format!("{}{padding}{}", Tone::Heading.paint(name, colours), tone.paint(value, colours))
        };
        let mut lines: Vec<String> = self.values.iter().map(value).collect();
        for (heading, table) in &self.tables {
            lines.push(String::new());
            lines.push(Tone::Heading.paint(heading, colours));
            lines.extend(table.lines(colours).into_iter().map(|line| format!("  {line}")));
        }
        lines.join("\n")
    }
}

/// `cpus:0.5 mem:64M ports:[31000-32000]` from the resources of an endpoint's answer, without zeros.
pub fn resources(of: &Value) -> String {
    const FIRST: [&str; 4] = ["cpus", "mem", "disk", "gpus"];
    let Some(all) = of.as_object() else { return String::new() };
    let known = FIRST.iter().filter_map(|name| Some((*name, all.get(*name)?)));
    let others =
        all.iter().map(|(name, value)| (name.as_str(), value)).filter(|(name, _)| !FIRST.contains(name));
    let shown: Vec<String> = known.chain(others).filter_map(|(name, value)| resource(name, value)).collect();
    shown.join(" ")
}

fn resource(name: &str, value: &Value) -> Option<String> {
    let is_size = ["mem", "disk"].iter().any(|size| name.strip_suffix("_revocable").unwrap_or(name) == *size);
    match (value.as_f64(), value) {
        (Some(0.0), _) => None,
        (Some(amount), _) if is_size => Some(format!("{name}:{}", amount::megabytes(amount))),
        (Some(amount), _) => Some(format!("{name}:{}", amount::number(amount))),
        (None, Value::String(text)) => Some(format!("{name}:{text}")),
        (None, other) => Some(format!("{name}:{other}")),
    }
}

/// `key=value key` of labels, which stand bare in classic answers and wrapped in v1's.
pub fn labels(of: &Value) -> String {
    let bare = of.as_array().into_iter().flatten();
    let show = |label: &Value| match label["value"].as_str() {
        Some(value) => format!("{}={value}", text(label, "key")),
        None => text(label, "key").to_string(),
    };
    bare.chain(lists(of, &["labels"])).map(show).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;
    use crate::table::Cell;

    #[test]
    fn details_are_printed_in_order() {
        let mut detail = Detail::default();
        detail
            .value("task", "t\x1b1")
            .value("role", "")
            .toned("state", "running", Tone::Good)
            .message("container", &json!({"type": "MESOS"}))
            .message("discovery", &Value::Null)
            .moment("registered", 60.0, 90.0)
            .moment("unregistered", 0.0, 90.0)
            .table("HISTORY", Table::new(&["STATE"], vec![vec![Cell::text("running")]]))
            .table("OFFERS", Table::new(&["OFFER"], vec![]));
        expect![[r#"
            task        t\u{1b}1
            state       running
            container   {"type":"MESOS"}
            registered  1970-01-01 00:01:00 UTC (30s ago)

            HISTORY
              STATE
              running"#]]
        .assert_eq(&detail.render(false));
    }

    #[test]
    fn resources_and_labels_are_short() {
        let some = json!({"cpus": 0.5, "disk": 0.0, "gpus": 0.0, "mem": 2048.0, "ports": "[31000-32000]", "mem_revocable": 64.0});
        assert_eq!(resources(&some), "cpus:0.5 mem:2G mem_revocable:64M ports:[31000-32000]");
        assert_eq!(resources(&json!(null)), "");
        let labels_of = json!([{"key": "a", "value": "b"}, {"key": "c"}]);
        assert_eq!(labels(&labels_of), "a=b c");
        assert_eq!(labels(&json!({"labels": labels_of})), "a=b c");
    }
}
