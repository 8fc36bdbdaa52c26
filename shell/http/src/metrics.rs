//! Metrics, collected once and written in two forms: v1's flat names, and the text that Prometheus reads.
//!
//! Filled by a program from one snapshot. A name is the path that v1 knows, `master/tasks_running`; what Prometheus
//! would rather have as labels comes with a [`Group`].

mod order;
mod text;

use std::borrow::Cow;

use http::HeaderMap;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use tepui_proto::json::JsonWriter;
use tepui_proto::mesos::v1 as pb;
use tepui_types::duration_from_text;

use crate::negotiate::asks_for_type;
use crate::{DocumentWriter, HttpError, Query, write_json};

/// What may not stand in a part of a path as it is: the same signs as in v1.
const PART: &AsciiSet = &CONTROLS
    .add(b'$')
    .add(b'&')
    .add(b'+')
    .add(b',')
    .add(b'/')
    .add(b':')
    .add(b';')
    .add(b'=')
    .add(b'?')
    .add(b'@')
    .add(b' ')
    .add(b'"')
    .add(b'<')
    .add(b'>')
    .add(b'#')
    .add(b'%')
    .add(b'{')
    .add(b'}')
    .add(b'|')
    .add(b'\\')
    .add(b'^')
    .add(b'~')
    .add(b'[')
    .add(b']')
    .add(b'`');

/// All metrics of one moment.
#[derive(Debug)]
pub struct Metrics {
    /// The first one is no group.
    groups: Vec<Group>,
    samples: Vec<Sample>,
}

/// Metrics about one thing among many.
#[derive(Clone, Debug, Default)]
pub struct Group {
    /// Before each name in v1: `master/frameworks/web/F1/`.
    pub path: String,
    /// The same without the thing: `master/framework`.
    pub name: &'static str,
    pub labels: Vec<(&'static str, String)>,
}

#[derive(Debug)]
struct Sample {
    group: usize,
    name: Cow<'static, str>,
    by: Option<By>,
    kind: Kind,
    value: f64,
}

/// A part of the path that becomes a label.
#[derive(Debug)]
struct By {
    label: &'static str,
    of: Cow<'static, str>,
    /// What comes behind it in the path; empty if nothing.
    end: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Only grows.
    Counter,
    Gauge,
    /// The sum of others that Prometheus makes by itself.
    Sum,
}

/// How a document of metrics is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MetricsForm {
    /// `/metrics/snapshot`: one object from name to number.
    Snapshot,
    /// `/metrics`: the text that Prometheus reads.
    Text,
    /// The same in OpenMetrics.
    OpenMetrics,
}

const OPEN_METRICS: &str = "application/openmetrics-text";

impl MetricsForm {
    pub fn content_type(self) -> &'static str {
        match self {
            MetricsForm::Snapshot => "application/json",
            MetricsForm::Text => "text/plain; version=0.0.4; charset=utf-8",
            MetricsForm::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }

    /// The form that the Accept header asks for, where there is a choice.
    pub fn negotiated(self, headers: &HeaderMap) -> Self {
        match self {
            MetricsForm::Text if asks_for_type(headers, OPEN_METRICS) => MetricsForm::OpenMetrics,
            other => other,
        }
    }

    /// As a whole, for those that are few.
    pub fn write(self, metrics: &Metrics) -> Vec<u8> {
        match self {
            MetricsForm::Snapshot => {
                let mut w = JsonWriter::new();
                metrics.json(&mut w);
                w.into_vec()
            }
            MetricsForm::Text | MetricsForm::OpenMetrics => {
                let mut whole = Vec::new();
                metrics.text(self == MetricsForm::OpenMetrics, |mut piece| whole.append(&mut piece));
                whole
            }
        }
    }

    /// Piece by piece, for those that may be many.
    pub fn draw(self, metrics: &Metrics, mut writer: DocumentWriter) {
        match self {
            MetricsForm::Snapshot => write_json(writer, |w| metrics.json(w)),
            MetricsForm::Text | MetricsForm::OpenMetrics => {
                metrics.text(self == MetricsForm::OpenMetrics, |piece| writer.write(piece));
                writer.finish();
            }
        }
    }
}

/// What a query about metrics may say: how long the answer may take, which ours never does.
pub fn check_timeout(query: &Query) -> Result<(), HttpError> {
    match query.get("timeout") {
        Some(timeout) if duration_from_text(timeout).is_none() => {
            Err(HttpError::bad_request(format!("Invalid timeout '{timeout}'.\n")))
        }
        Some(_) | None => Ok(()),
    }
}

/// A part of a path, without what would end or break it.
pub fn path_part(text: &str) -> String {
    utf8_percent_encode(text, PART).to_string()
}

impl Default for Metrics {
    fn default() -> Self {
        Self { groups: vec![Group::default()], samples: Vec::new() }
    }
}

impl Metrics {
    pub fn counter(&mut self, name: impl Into<Cow<'static, str>>, value: u64) {
        self.add(name.into(), None, Kind::Counter, value as f64);
    }

    pub fn gauge(&mut self, name: impl Into<Cow<'static, str>>, value: f64) {
        self.add(name.into(), None, Kind::Gauge, value);
    }

    /// `name/value` in v1, `name{label="value"}` in Prometheus.
    pub fn counter_by(
        &mut self,
        name: &'static str,
        label: &'static str,
        of: impl Into<Cow<'static, str>>,
        value: u64,
    ) {
        self.add(name.into(), Some(By { label, of: of.into(), end: "" }), Kind::Counter, value as f64);
    }

    pub fn gauge_by(
        &mut self,
        name: &'static str,
        label: &'static str,
        of: impl Into<Cow<'static, str>>,
        value: f64,
    ) {
        self.gauge_of(name, (label, of), "", value);
    }

    /// `name/value/end` in v1, `name_end{label="value"}` in Prometheus.
    pub fn gauge_of(
        &mut self,
        name: &'static str,
        (label, of): (&'static str, impl Into<Cow<'static, str>>),
        end: &'static str,
        value: f64,
    ) {
        self.add(name.into(), Some(By { label, of: of.into(), end }), Kind::Gauge, value);
    }

    /// The sum of what follows under the same name.
    pub fn sum(&mut self, name: &'static str, value: u64) {
        self.add(name.into(), None, Kind::Sum, value as f64);
    }

    /// Everything added by `fill` is about one thing.
    pub fn within(&mut self, group: Group, fill: impl FnOnce(&mut Self)) {
        let outside = self.groups.len();
        self.groups.push(group);
        fill(self);
        // The next one outside of it starts again from no group.
        debug_assert_eq!(self.groups.len(), outside + 1, "groups are not nested");
        self.groups.push(Group::default());
    }

    /// For so many more.
    pub fn reserve(&mut self, samples: usize) {
        self.samples.reserve(samples);
    }

    /// `/metrics/snapshot`: one object from name to number, sorted by name.
    fn json(&self, w: &mut JsonWriter) {
        w.object(|w| {
            self.each(|name, value| {
                w.field(name, &value);
                w.flush_if_large();
            });
        });
    }

    /// GET_METRICS: the same as a list.
    pub fn list(&self) -> Vec<pb::Metric> {
        let mut list = Vec::with_capacity(self.samples.len());
        self.each(|name, value| {
            list.push(pb::Metric { name: name.to_owned(), value: Some(value), ..Default::default() });
        });
        list
    }

    fn add(&mut self, name: Cow<'static, str>, by: Option<By>, kind: Kind, value: f64) {
        let group = self.groups.len() - 1;
        self.samples.push(Sample { group, name, by, kind, value });
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn sample() -> Metrics {
        let mut metrics = Metrics::default();
        metrics.gauge("master/uptime_secs", 1.5);
        for (name, id) in [("we\"b/x", "F1"), ("b", "F2")] {
            let group = Group {
                path: format!("master/frameworks/{}/{id}/", path_part(name)),
                name: "master/framework",
                labels: vec![("framework", name.to_owned()), ("framework_id", id.to_owned())],
            };
            metrics.within(group, |metrics| {
                metrics.sum("calls", 3);
                metrics.counter_by("calls", "call", "accept", 1);
                metrics.counter_by("calls", "call", "kill", 2);
                metrics.gauge("subscribed", 1.0);
                for role in ["a/b", "a_b"] {
                    metrics.gauge_of("roles", ("role", role), "suppressed", 0.0);
                }
            });
        }
        metrics.counter("master/slave_removals/reason_unhealthy", 4);
        metrics
    }

    #[test]
    fn snapshot_metric_names_are_v1_paths() {
        expect![[r#"{"master/frameworks/b/F2/calls":3.0,"master/frameworks/b/F2/calls/accept":1.0,"master/frameworks/b/F2/calls/kill":2.0,"master/frameworks/b/F2/roles/a/b/suppressed":0.0,"master/frameworks/b/F2/roles/a_b/suppressed":0.0,"master/frameworks/b/F2/subscribed":1.0,"master/frameworks/we%22b%2Fx/F1/calls":3.0,"master/frameworks/we%22b%2Fx/F1/calls/accept":1.0,"master/frameworks/we%22b%2Fx/F1/calls/kill":2.0,"master/frameworks/we%22b%2Fx/F1/roles/a/b/suppressed":0.0,"master/frameworks/we%22b%2Fx/F1/roles/a_b/suppressed":0.0,"master/frameworks/we%22b%2Fx/F1/subscribed":1.0,"master/slave_removals/reason_unhealthy":4.0,"master/uptime_secs":1.5}"#]]
        .assert_eq(&String::from_utf8(MetricsForm::Snapshot.write(&sample())).unwrap());
        assert_eq!(sample().list().len(), 14);
    }

    #[test]
    fn names_are_encoded_as_in_v1() {
        for (name, encoded) in [
            ("plain-name_1.0(x)*!'", "plain-name_1.0(x)*!'"),
            ("a b/c\\d\n", "a%20b%2Fc%5Cd%0A"),
            ("$&+,:;=?@", "%24%26%2B%2C%3A%3B%3D%3F%40"),
            ("\"<>#%{}|^~[]`", "%22%3C%3E%23%25%7B%7D%7C%5E%7E%5B%5D%60"),
            ("é", "%C3%A9"),
        ] {
            assert_eq!(path_part(name), encoded);
        }
    }

    #[test]
    fn prometheus_gets_labels() {
        expect![[r#"
            # TYPE tepui_master_uptime_secs gauge
            tepui_master_uptime_secs 1.5
            # TYPE tepui_master_framework_calls_total counter
            tepui_master_framework_calls_total{framework="we\"b/x",framework_id="F1",call="accept"} 1
            tepui_master_framework_calls_total{framework="we\"b/x",framework_id="F1",call="kill"} 2
            tepui_master_framework_calls_total{framework="b",framework_id="F2",call="accept"} 1
            tepui_master_framework_calls_total{framework="b",framework_id="F2",call="kill"} 2
            # TYPE tepui_master_framework_subscribed gauge
            tepui_master_framework_subscribed{framework="we\"b/x",framework_id="F1"} 1
            tepui_master_framework_subscribed{framework="b",framework_id="F2"} 1
            # TYPE tepui_master_framework_roles_suppressed gauge
            tepui_master_framework_roles_suppressed{framework="we\"b/x",framework_id="F1",role="a/b"} 0
            tepui_master_framework_roles_suppressed{framework="we\"b/x",framework_id="F1",role="a_b"} 0
            tepui_master_framework_roles_suppressed{framework="b",framework_id="F2",role="a/b"} 0
            tepui_master_framework_roles_suppressed{framework="b",framework_id="F2",role="a_b"} 0
            # TYPE tepui_master_slave_removals_reason_unhealthy_total counter
            tepui_master_slave_removals_reason_unhealthy_total 4
        "#]]
        .assert_eq(&String::from_utf8(MetricsForm::Text.write(&sample())).unwrap());
    }

    #[test]
    fn open_metrics_format_is_well_formed() {
        let mut metrics = Metrics::default();
        metrics.gauge("master/uptime_secs", 1.5);
        metrics.counter("master/slave_removals", 4);
        metrics.gauge("master/cpus_total", 8.0);
        expect![[r#"
            # TYPE tepui_master_uptime_secs gauge
            tepui_master_uptime_secs 1.5
            # TYPE tepui_master_slave_removals counter
            tepui_master_slave_removals_total 4
            # TYPE tepui_master_cpus_total gauge
            tepui_master_cpus_total 8
            # EOF
        "#]]
        .assert_eq(&String::from_utf8(MetricsForm::OpenMetrics.write(&metrics)).unwrap());
        let asked = |accept: &'static str| {
            let headers =
                HeaderMap::from_iter([(http::header::ACCEPT, http::HeaderValue::from_static(accept))]);
            [MetricsForm::Text, MetricsForm::Snapshot].map(|form| form.negotiated(&headers))
        };
        let prometheus =
            "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.2,*/*;q=0.1";
        assert_eq!(asked(prometheus), [MetricsForm::OpenMetrics, MetricsForm::Snapshot]);
        for other in ["*/*", "text/plain", "application/openmetrics-text;q=0"] {
            assert_eq!(asked(other), [MetricsForm::Text, MetricsForm::Snapshot], "{other}");
        }
    }
}
