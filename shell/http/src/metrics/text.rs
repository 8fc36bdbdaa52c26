//! The text that Prometheus reads (exposition format 0.0.4): samples of one name together, under their type.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::{Group, Kind, Metrics, Sample};

/// Before every name.
const PREFIX: &str = "tepui_";

impl Metrics {
    pub fn text(&self) -> String {
        let mut at: HashMap<(&str, &str), usize> = HashMap::new();
        let mut families: Vec<Vec<&Sample>> = Vec::new();
        for sample in self.samples.iter().filter(|sample| sample.kind != Kind::Sum) {
            let family = (self.groups[sample.group].name, &*sample.name);
            let index = *at.entry(family).or_insert_with(|| {
                families.push(Vec::new());
                families.len() - 1
            });
            families[index].push(sample);
        }
        let labels: Vec<String> = self.groups.iter().map(labels).collect();
        let mut text = String::new();
        families.iter().for_each(|samples| self.family(&mut text, samples, &labels));
        text
    }

    /// `labels` are those of the groups, each written once for all its samples.
    fn family(&self, text: &mut String, samples: &[&Sample], labels: &[String]) {
        let Some(first) = samples.first() else { return };
        let name = self.prometheus_name(first);
        let kind = if first.kind == Kind::Counter { "counter" } else { "gauge" };
        let _ = writeln!(text, "# TYPE {name} {kind}");
        for sample in samples {
            text.push_str(&name);
            let own = sample.by.as_ref().map(|(name, value)| label(name, value));
            let parts = [labels[sample.group].as_str(), own.as_deref().unwrap_or_default()];
            match parts {
                ["", ""] => (),
                [one, ""] | ["", one] => _ = write!(text, "{{{one}}}"),
                [of_group, own] => _ = write!(text, "{{{of_group},{own}}}"),
            }
            let _ = writeln!(text, " {}", sample.value);
        }
    }

    fn prometheus_name(&self, sample: &Sample) -> String {
        let group = self.groups[sample.group].name;
        let joint = if group.is_empty() { "" } else { "_" };
        let end = if sample.kind == Kind::Counter { "_total" } else { "" };
        let allowed = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        let middle: String =
            group.chars().chain(joint.chars()).chain(sample.name.chars()).map(allowed).collect();
        format!("{PREFIX}{middle}{end}")
    }
}

fn labels(group: &Group) -> String {
    let labels: Vec<String> = group.labels.iter().map(|(name, value)| label(name, value)).collect();
    labels.join(",")
}

/// `name="value"`
fn label(name: &str, value: &str) -> String {
    let mut text = format!("{name}=\"");
    value.chars().for_each(|c| match c {
        '\\' => text.push_str("\\\\"),
        '"' => text.push_str("\\\""),
        '\n' => text.push_str("\\n"),
        // Some readers take the others for the end of a line.
        other if other.is_control() => text.push(char::REPLACEMENT_CHARACTER),
        other => text.push(other),
    });
    text.push('"');
    text
}
