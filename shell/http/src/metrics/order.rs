//! Samples in the order of their v1 names.
//!
//! Groups are many and alike: they are put in order by their paths, and the names inside a group mostly have the order that
//! it had in the group before. Sorting all names as one list costs more than writing them.

use std::ops::Range;

use super::{Metrics, Sample};

/// Samples that follow each other: those of a group, or one that is in none.
struct Run {
    /// What all their names begin with; the whole name of one that is in no group.
    path: String,
    is_group: bool,
    samples: Range<usize>,
}

/// The names inside a run, in order. Reused from run to run.
#[derive(Default)]
struct RunNames {
    names: String,
    ends: Vec<usize>,
    order: Vec<usize>,
}

impl Metrics {
    /// Hands out every sample under its v1 name, in the order of the names.
    pub(super) fn each(&self, mut take: impl FnMut(&str, f64)) {
        let (mut names_in_run, mut name) = (RunNames::default(), String::new());
        for run in self.sorted_runs() {
            let samples = &self.samples[run.samples];
            name.clear();
            name.push_str(&run.path);
            if !run.is_group {
                samples.iter().for_each(|sample| take(&name, sample.value));
                continue;
            }
            names_in_run.sort(samples);
            for at in &names_in_run.order {
                name.truncate(run.path.len());
                name.push_str(names_in_run.name(*at));
                take(&name, samples[*at].value);
            }
        }
    }

    fn sorted_runs(&self) -> Vec<Run> {
        let runs = self.runs(true);
        // What comes behind a group and begins as it does belongs between its members.
        let interleaved = runs.windows(2).any(|two| two[0].is_group && two[1].path.starts_with(&two[0].path));
        if interleaved { self.runs(false) } else { runs }
    }

    fn runs(&self, grouped: bool) -> Vec<Run> {
        let mut runs = Vec::new();
        let mut at = 0;
        while let Some(sample) = self.samples.get(at) {
            let path = &self.groups[sample.group].path;
            let is_group = grouped && !path.is_empty();
            let end = match is_group {
                true => {
                    at + self.samples[at..].iter().take_while(|other| other.group == sample.group).count()
                }
                false => at + 1,
            };
            let mut path = path.clone();
            if !is_group {
                write_name(&mut path, sample);
            }
            runs.push(Run { path, is_group, samples: at..end });
            at = end;
        }
        runs.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        runs
    }
}

impl RunNames {
    fn sort(&mut self, samples: &[Sample]) {
        self.names.clear();
        self.ends.clear();
        for sample in samples {
            write_name(&mut self.names, sample);
            self.ends.push(self.names.len());
        }
        let mut order = std::mem::take(&mut self.order);
        if order.len() != samples.len() {
            order = (0..samples.len()).collect();
        }
        order.sort_unstable_by(|a, b| self.name(*a).cmp(self.name(*b)));
        self.order = order;
    }

    fn name(&self, at: usize) -> &str {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.names[start..self.ends[at]]
    }
}

/// The name of a sample inside its group.
fn write_name(text: &mut String, sample: &Sample) {
    text.push_str(&sample.name);
    if let Some(by) = &sample.by {
        text.push('/');
        text.push_str(&by.of);
        if !by.end.is_empty() {
            text.push('/');
            text.push_str(by.end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Group;
    use super::*;

    fn names(metrics: &Metrics) -> Vec<String> {
        let mut names = Vec::new();
        metrics.each(|name, _| names.push(name.to_owned()));
        names
    }

    /// Whatever groups there are, also such as begin alike: the order is that of the names.
    #[test]
    fn metrics_are_sorted_by_name() {
        for paths in [&["b/", "a/"][..], &["a/", "a/b/"], &["a/b/", "a/"], &["a/", "a/"], &["", "x"]] {
            let mut metrics = Metrics::default();
            metrics.gauge("a/c", 1.0);
            for path in paths {
                let group = Group { path: (*path).to_owned(), ..Group::default() };
                metrics.within(group, |metrics| {
                    for name in ["z", "c", "b/d", "b"] {
                        metrics.gauge(name, 1.0);
                    }
                    metrics.gauge_by("c", "by", "a", 1.0);
                });
            }
            metrics.gauge("A", 1.0);
            let found = names(&metrics);
            let mut sorted = found.clone();
            sorted.sort();
            assert_eq!(found, sorted, "{paths:?}");
            assert_eq!(found.len(), 2 + 5 * paths.len());
        }
    }
}
