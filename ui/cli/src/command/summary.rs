//! `tepui summary`: the cluster in one line, also the heading of every `--watch`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use serde_json::Value;

use super::{Cluster, block_on};
use crate::listing::number;
use crate::output::{self, Tone};
use crate::{amount, watch};

/// Show a one-line summary of the cluster.
#[derive(Args)]
pub struct Summary {
    #[command(flatten)]
    cluster: Cluster,
    /// Refresh every second, until Ctrl-C.
    #[arg(long, short)]
    watch: bool,
}

impl Summary {
    pub fn run(self) -> Result<ExitCode> {
        block_on(async {
            match self.watch {
                true => watch::run(async || line(&self.cluster, output::colours()).await).await,
                false => output::line(&line(&self.cluster, output::colours()).await?),
            }
        })?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The summary line from the cluster's metrics.
pub async fn line(cluster: &Cluster, colours: bool) -> Result<String> {
    let metrics = cluster.get("/metrics/snapshot").await?;
    Ok(render(&metrics, &cluster.master, colours))
}

/// The text below the summary line, if that is available.
pub async fn above(cluster: &Cluster, text: String, colours: bool) -> String {
    match line(cluster, colours).await {
        Ok(line) => format!("{line}\n\n{text}"),
        Err(_) => text, // Only the heading is missing.
    }
}

fn render(metrics: &Value, master: &str, colours: bool) -> String {
    let value = |key: &str| number(metrics, &format!("master/{key}"));
    let mut parts = vec![
        Tone::Heading.paint(&output::printable(master), colours),
        format!("up {}", amount::duration(value("uptime_secs"))),
        format!("agents {}", counts(&value, &AGENTS, colours)),
        format!("frameworks {}", counts(&value, &FRAMEWORKS, colours)),
        format!("tasks {}", counts(&value, &TASKS, colours)),
    ];
    for (name, show) in RESOURCES {
        let (used, total) = (value(&format!("{name}_used")), value(&format!("{name}_total")));
        if total > 0.0 {
            let percent = (used / total * 100.0).round();
            parts.push(format!("{name} {}/{} {percent}%", show(used), show(total)));
        }
    }
    let lent: Vec<String> = RESOURCES.iter().filter_map(|one| revocable(&value, one)).collect();
    if !lent.is_empty() {
        parts.push(format!("revocable {}", lent.join(" ")));
    }
    if value("outstanding_offers") > 0.0 {
        parts.push(format!("offers {}", value("outstanding_offers")));
    }
    parts.join(" | ")
}

/// `cpus:3/8`: revocable resources, used and total.
fn revocable(value: &impl Fn(&str) -> f64, (name, show): &(&str, fn(f64) -> String)) -> Option<String> {
    let part = |part: &str| value(&format!("{name}_revocable_{part}"));
    let (used, total) = (part("used"), part("total"));
    (used > 0.0 || total > 0.0).then(|| format!("{name}:{}/{}", show(used), show(total)))
}

/// A metric, its label and its tone. The first is printed even if it is zero.
type Count = (&'static str, &'static str, Tone);

const AGENTS: [Count; 3] = [
    ("slaves_active", "active", Tone::Good),
    ("slaves_inactive", "inactive", Tone::Busy),
    ("slaves_unreachable", "unreachable", Tone::Bad),
];
const FRAMEWORKS: [Count; 2] =
    [("frameworks_active", "active", Tone::Good), ("frameworks_inactive", "inactive", Tone::Busy)];
const TASKS: [Count; 5] = [
    ("tasks_running", "running", Tone::Good),
    ("tasks_staging", "staging", Tone::Busy),
    ("tasks_starting", "starting", Tone::Busy),
    ("tasks_killing", "killing", Tone::Busy),
    ("tasks_unreachable", "unreachable", Tone::Bad),
];
const RESOURCES: [(&str, fn(f64) -> String); 4] = [
    ("cpus", amount::number),
    ("mem", amount::megabytes),
    ("disk", amount::megabytes),
    ("gpus", amount::number),
];

fn counts(value: &impl Fn(&str) -> f64, of: &[Count], colours: bool) -> String {
    let told = of.iter().enumerate().filter(|(place, (key, ..))| *place == 0 || value(key) > 0.0);
    let show = |(_, (key, name, tone)): (usize, &Count)| {
        let tone = if value(key) > 0.0 { *tone } else { Tone::Plain };
        tone.paint(&format!("{} {name}", value(key)), colours)
    };
    told.map(show).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    #[test]
    fn summary_is_rendered_on_one_line() {
        let metrics = json!({
            "master/uptime_secs": 192.4, "master/slaves_active": 3.0, "master/slaves_inactive": 1.0,
            "master/frameworks_active": 2.0, "master/tasks_running": 12.0, "master/tasks_staging": 1.0,
            "master/cpus_used": 2.5, "master/cpus_total": 16.0, "master/mem_used": 1024.0, "master/mem_total": 8000.0,
            "master/cpus_revocable_used": 3.0, "master/cpus_revocable_total": 8.0, "master/mem_revocable_total": 96.0,
            "master/outstanding_offers": 4.0,
        });
        expect![[r#"10.0.0.1:5050 | up 3m12s | agents 3 active, 1 inactive | frameworks 2 active | tasks 12 running, 1 staging | cpus 2.5/16 16% | mem 1G/7.8G 13% | revocable cpus:3/8 mem:0/96M | offers 4"#]]
            .assert_eq(&render(&metrics, "10.0.0.1:5050", false));
        expect![[r#"m | up 0s | agents 0 active | frameworks 0 active | tasks 0 running"#]]
            .assert_eq(&render(&json!({}), "m", false));
    }
}
