//! The text that Prometheus reads (exposition format 0.0.4): samples of one name together, under their type.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::{Kind, Metrics, Sample};

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
        let mut text = String::new();
        families.iter().for_each(|samples| self.family(&mut text, samples));
        text
    }

    fn family(&self, text: &mut String, samples: &[&Sample]) {
        let Some(first) = samples.first() else { return };
        let name = self.prometheus_name(first);
        let kind = if first.kind == Kind::Counter { "counter" } else { "gauge" };
        let _ = writeln!(text, "# TYPE {name} {kind}");
        for sample in samples {
            text.push_str(&name);
            self.labels(text, sample);
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

    fn labels(&self, text: &mut String, sample: &Sample) {
        let of_group = self.groups[sample.group].labels.iter().map(|(name, value)| (*name, value.as_str()));
        let of_sample = sample.by.iter().map(|(name, value)| (*name, &**value));
        let mut open = '{';
        for (name, value) in of_group.chain(of_sample) {
            text.push(open);
            let _ = write!(text, "{name}=\"");
            value.chars().for_each(|c| match c {
                '\\' => text.push_str("\\\\"),
                '"' => text.push_str("\\\""),
                '\n' => text.push_str("\\n"),
                // Some readers take the others for the end of a line.
                other if other.is_control() => text.push(char::REPLACEMENT_CHARACTER),
                other => text.push(other),
            });
            text.push('"');
            open = ',';
        }
        if open == ',' {
            text.push('}');
        }
    }
}
