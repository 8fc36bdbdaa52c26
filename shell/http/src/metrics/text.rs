//! The text that Prometheus reads (exposition format 0.0.4, OpenMetrics 1.0): samples of one name together, under their
//! type.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::{Group, Kind, Metrics, Sample};

/// Before every name.
const PREFIX: &str = "tepui_";

/// Behind the names of counters.
const COUNTER_END: &str = "_total";

/// What is handed over at a time.
const PIECE_BYTES: usize = 128 * 1024;

impl Metrics {
    /// Writes the text piece by piece. OpenMetrics names a counter without the suffix of its samples, and has an end
    /// marker.
    pub(super) fn text(&self, is_open: bool, mut take: impl FnMut(Vec<u8>)) {
        let labels: Vec<String> = self.groups.iter().map(labels).collect();
        let mut text = String::with_capacity(PIECE_BYTES);
        for samples in self.families() {
            let Some(first) = samples.first() else { continue };
            let name = self.prometheus_name(first);
            let is_counter = first.kind == Kind::Counter;
            let kind = if is_counter { "counter" } else { "gauge" };
            let is_cut = is_open && is_counter;
            let known = if is_cut { name.strip_suffix(COUNTER_END).unwrap_or(&name) } else { &name };
            let _ = writeln!(text, "# TYPE {known} {kind}");
            for sample in samples {
                text.push_str(&name);
                write_sample(&mut text, &labels[sample.group], sample);
                if text.len() >= PIECE_BYTES {
                    let piece = std::mem::replace(&mut text, String::with_capacity(PIECE_BYTES));
                    take(piece.into_bytes());
                }
            }
        }
        if is_open {
            text.push_str("# EOF\n");
        }
        take(text.into_bytes());
    }

    /// Samples of one name together, in the order in which the names came first.
    fn families(&self) -> Vec<Vec<&Sample>> {
        let mut known: HashMap<(&str, &str, &str), usize> = HashMap::new();
        let mut families: Vec<Vec<&Sample>> = Vec::new();
        // Groups are alike: mostly a sample belongs where the one at its place in the group before it did.
        let mut before: Vec<(&str, &str, &str, usize)> = Vec::new();
        let (mut group, mut place) = (usize::MAX, 0);
        for sample in self.samples.iter().filter(|sample| sample.kind != Kind::Sum) {
            if sample.group != group {
                (group, place) = (sample.group, 0);
            }
            let (of, name, end) = (self.groups[group].name, &*sample.name, sample.end());
            let index = match before.get(place) {
                Some((other_of, other, other_end, index))
                    if is_same(of, other_of) && is_same(name, other) && is_same(end, other_end) =>
                {
                    *index
                }
                Some(_) | None => *known.entry((of, name, end)).or_insert_with(|| {
                    families.push(Vec::new());
                    families.len() - 1
                }),
            };
            families[index].push(sample);
            match before.get_mut(place) {
                Some(there) => *there = (of, name, end, index),
                None => before.push((of, name, end, index)),
            }
            place += 1;
        }
        families
    }

    fn prometheus_name(&self, sample: &Sample) -> String {
        let group = self.groups[sample.group].name;
        let joint = if group.is_empty() { "" } else { "_" };
        let end = if sample.kind == Kind::Counter { COUNTER_END } else { "" };
        let behind = if sample.end().is_empty() { "" } else { "_" };
        let allowed = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        let parts = [group, joint, &sample.name, behind, sample.end()];
        let middle: String = parts.into_iter().flat_map(str::chars).map(allowed).collect();
        format!("{PREFIX}{middle}{end}")
    }
}

impl Sample {
    fn end(&self) -> &'static str {
        self.by.as_ref().map_or("", |by| by.end)
    }
}

/// Whether it is the very same text; if not, it may still be equal.
fn is_same(one: &str, other: &str) -> bool {
    std::ptr::eq(one, other)
}

/// What comes behind the name: labels, those of the group first, and the value.
fn write_sample(text: &mut String, of_group: &str, sample: &Sample) {
    if !of_group.is_empty() || sample.by.is_some() {
        text.push('{');
        text.push_str(of_group);
        if let Some(by) = &sample.by {
            text.push_str(if of_group.is_empty() { "" } else { "," });
            write_label(text, by.label, &by.of);
        }
        text.push('}');
    }
    text.push(' ');
    match sample.value as i64 {
        // Most are counts, which are written faster as such.
        count if count as f64 == sample.value => text.push_str(itoa::Buffer::new().format(count)),
        _ => _ = write!(text, "{}", sample.value),
    }
    text.push('\n');
}

fn labels(group: &Group) -> String {
    let mut text = String::new();
    for (name, value) in &group.labels {
        text.push_str(if text.is_empty() { "" } else { "," });
        write_label(&mut text, name, value);
    }
    text
}

/// `name="value"`
fn write_label(text: &mut String, name: &str, value: &str) {
    text.push_str(name);
    text.push_str("=\"");
    match value.chars().any(|c| matches!(c, '\\' | '"') || c.is_control()) {
        false => text.push_str(value),
        true => value.chars().for_each(|c| match c {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            // Some readers take the others for the end of a line.
            other if other.is_control() => text.push(char::REPLACEMENT_CHARACTER),
            other => text.push(other),
        }),
    }
    text.push('"');
}
