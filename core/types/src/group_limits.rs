//! Limits of an executor with all its tasks, from the labels `tepui.limits.cpus` and `tepui.limits.mem` of its
//! ExecutorInfo: a number or `Infinity`. Labels, because every v1 client can set them.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;

use tepui_proto::mesos::v1 as pb;

/// What the keys begin with.
const PREFIX: &str = "tepui.limits.";

/// By resource; the first wrong label as a sentence.
pub fn group_limits(labels: &pb::Labels) -> Result<BTreeMap<&'static str, f64>, String> {
    let mut limits = BTreeMap::new();
    for label in &labels.labels {
        let Some(resource) = label.key.strip_prefix(PREFIX) else { continue };
        let name = match resource {
            "cpus" => "cpus",
            "mem" => "mem",
            _ => return Err(format!("The label '{}' names neither cpus nor mem", label.key)),
        };
        let value = label.value.as_deref().unwrap_or_default();
        let limit: f64 = value.parse().unwrap_or(f64::NAN);
        if limit.is_nan() || limit <= 0.0 {
            let key = &label.key;
            return Err(format!("The label '{key}' must be a positive number or Infinity, not '{value}'"));
        }
        if limits.insert(name, limit).is_some() {
            return Err(format!("The label '{}' is there twice", label.key));
        }
    }
    Ok(limits)
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec::Vec;

    use super::*;

    fn labels(all: &[(&str, &str)]) -> pb::Labels {
        let label = |(key, value): &(&str, &str)| pb::Label {
            key: key.to_string(),
            value: Some(value.to_string()),
            ..Default::default()
        };
        pb::Labels { labels: all.iter().map(label).collect(), ..Default::default() }
    }

    #[test]
    fn group_limits_are_parsed_from_labels() {
        let all = [("a", "b"), ("tepui.limits.cpus", "2.5"), ("tepui.limits.mem", "Infinity")];
        let found: Vec<_> = group_limits(&labels(&all)).expect("valid").into_iter().collect();
        assert_eq!(found, [("cpus", 2.5), ("mem", f64::INFINITY)]);
        assert!(group_limits(&pb::Labels::default()).expect("valid").is_empty());
        for (key, value, why) in [
            ("tepui.limits.disk", "1", "The label 'tepui.limits.disk' names neither cpus nor mem"),
            ("tepui.limits.", "1", "The label 'tepui.limits.' names neither cpus nor mem"),
            ("tepui.limits.mem", "much", "must be a positive number or Infinity, not 'much'"),
            ("tepui.limits.mem", "NaN", "must be a positive number or Infinity, not 'NaN'"),
            ("tepui.limits.mem", "-Infinity", "must be a positive number or Infinity, not '-Infinity'"),
            ("tepui.limits.cpus", "0", "must be a positive number or Infinity, not '0'"),
            ("tepui.limits.cpus", "", "must be a positive number or Infinity, not ''"),
        ] {
            let said = group_limits(&labels(&[(key, value)])).expect_err("refused");
            assert!(said.ends_with(why), "{said}");
        }
        let twice = group_limits(&labels(&[("tepui.limits.mem", "1"), ("tepui.limits.mem", "2")]));
        assert_eq!(twice, Err("The label 'tepui.limits.mem' is there twice".into()));
    }
}
