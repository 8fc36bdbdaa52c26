//! `tepui maintenance`: machines that will not be there; scheduled, taken down, brought up.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use serde_json::{Value, json};
use tepui_client::shorthand::duration_info;
use tepui_proto::mesos::v1::maintenance::{Schedule, Window};
use tepui_proto::mesos::v1::master::Call;
use tepui_proto::mesos::v1::master::call::{
    StartMaintenance, StopMaintenance, Type, UpdateMaintenanceSchedule,
};
use tepui_proto::mesos::v1::{MachineID, TimeInfo, Unavailability};

use super::block_on;
use crate::amount;
use crate::confirm::{Confirm, done};
use crate::flags::value;
use crate::listing::{self, List, ListContext, ListFlags, lists, text};
use crate::output::Tone;
use crate::table::Cell;

/// What can be done to machines.
const USAGE: &str =
    "usage: tepui maintenance schedule|cancel|down|up MACHINE...; a machine is HOST, @IP or HOST@IP";

/// List machines in maintenance, or change their schedule and state.
#[derive(Args)]
pub struct Maintenance {
    #[command(flatten)]
    list: ListFlags,
    #[command(flatten)]
    confirm: Confirm,
    /// `schedule`, `cancel`, `down` or `up`, followed by machines: HOST, @IP or HOST@IP. Lists if omitted.
    #[arg(value_name = "schedule|cancel|down|up MACHINE", num_args = 0..)]
    words: Vec<String>,
    /// Time until the maintenance starts.
    #[arg(long = "start_in", value_parser = value::duration, default_value = "0secs", value_name = "DURATION")]
    start_in: Duration,
    /// Length of the maintenance [default: unlimited].
    #[arg(long, value_parser = value::duration)]
    duration: Option<Duration>,
}

impl Maintenance {
    pub fn run(self) -> Result<ExitCode> {
        let Some((verb, machines)) = self.words.split_first() else { return listing::run(&self) };
        let machines: Vec<MachineID> = machines.iter().map(|typed| machine(typed)).collect();
        if machines.is_empty() {
            bail!("{USAGE}");
        }
        match verb.as_str() {
            "schedule" => self.reschedule("scheduled", &machines, true),
            "cancel" => self.reschedule("cancelled the maintenance of", &machines, false),
            "down" => {
                let consequence = "All tasks on these machines will be killed and their agents shut down.";
                self.confirm.require(&format!("{consequence} Machines: {}", names(&machines)))?;
                let start = StartMaintenance { machines: machines.clone(), ..Default::default() };
                let call = Call {
                    r#type: Some(Type::START_MAINTENANCE),
                    start_maintenance: start.into(),
                    ..Default::default()
                };
                block_on(self.list.cluster.change(&call))?;
                self.print("took down", &machines)
            }
            "up" => {
                let stop = StopMaintenance { machines: machines.clone(), ..Default::default() };
                let call = Call {
                    r#type: Some(Type::STOP_MAINTENANCE),
                    stop_maintenance: stop.into(),
                    ..Default::default()
                };
                block_on(self.list.cluster.change(&call))?;
                self.print("brought up", &machines)
            }
            _ => bail!("{USAGE}"),
        }
    }

    /// Removes the machines from the current schedule and, if `with`, adds them in a new window.
    fn reschedule(&self, verb: &str, machines: &[MachineID], with: bool) -> Result<ExitCode> {
        let cluster = &self.list.cluster;
        block_on(async {
            let get = Call { r#type: Some(Type::GET_MAINTENANCE_SCHEDULE), ..Default::default() };
            let now = cluster.call(&get).await?.get_maintenance_schedule.schedule.clone();
            let mut schedule = now.into_option().unwrap_or_default();
            let missing = take_out(&mut schedule, machines);
            if with {
                schedule.windows.push(self.window(machines));
            } else if !missing.is_empty() {
                bail!("not scheduled: {}; `tepui maintenance` lists scheduled machines", names(&missing));
            }
            let update = UpdateMaintenanceSchedule { schedule: schedule.into(), ..Default::default() };
            let call = Call {
                r#type: Some(Type::UPDATE_MAINTENANCE_SCHEDULE),
                update_maintenance_schedule: update.into(),
                ..Default::default()
            };
            cluster.change(&call).await
        })?;
        self.print(verb, machines)
    }

    fn window(&self, machines: &[MachineID]) -> Window {
        let start = amount::now() + self.start_in.as_secs_f64();
        let unavailability = Unavailability {
            start: TimeInfo { nanoseconds: (start * 1e9) as i64, ..Default::default() }.into(),
            duration: self.duration.map(duration_info).into(),
            ..Default::default()
        };
        Window { machine_ids: machines.to_vec(), unavailability: unavailability.into(), ..Default::default() }
    }

    fn print(&self, verb: &str, machines: &[MachineID]) -> Result<ExitCode> {
        let document = json!({"done": verb, "machines": names(machines).split(' ').collect::<Vec<_>>()});
        done(self.list.json, &document, &format!("{verb} {}", names(machines)))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// `host`, `@ip` or `host@ip`.
fn machine(typed: &str) -> MachineID {
    let (hostname, ip) = typed.split_once('@').unwrap_or((typed, ""));
    let some = |text: &str| (!text.is_empty()).then(|| text.to_string());
    MachineID { hostname: some(hostname), ip: some(ip), ..Default::default() }
}

fn name(machine: &MachineID) -> String {
    match (machine.hostname.as_deref(), machine.ip.as_deref()) {
        (Some(hostname), None) => hostname.to_string(),
        (hostname, ip) => format!("{}@{}", hostname.unwrap_or_default(), ip.unwrap_or_default()),
    }
}

fn names(machines: &[MachineID]) -> String {
    machines.iter().map(name).collect::<Vec<_>>().join(" ")
}

/// Returns the machines that are not scheduled.
fn take_out(schedule: &mut Schedule, machines: &[MachineID]) -> Vec<MachineID> {
    let same = |one: &MachineID, other: &MachineID| name(one).eq_ignore_ascii_case(&name(other));
    let scheduled = schedule.windows.iter().flat_map(|window| &window.machine_ids);
    let missing = machines.iter().filter(|named| !scheduled.clone().any(|id| same(named, id)));
    let missing = missing.cloned().collect();
    for window in &mut schedule.windows {
        window.machine_ids.retain(|id| !machines.iter().any(|named| same(named, id)));
    }
    schedule.windows.retain(|window| !window.machine_ids.is_empty());
    missing
}

impl List for Maintenance {
    const COLUMNS: &'static [&'static str] =
        &["HOST", "IP", "MODE", "START", "DURATION", "AGREED", "REFUSED"];
    const COLUMNS_KEPT: usize = 4;

    fn flags(&self) -> &ListFlags {
        &self.list
    }

    async fn fetch(&self) -> Result<Value> {
        let cluster = &self.list.cluster;
        let status = cluster.get("/maintenance/status").await?;
        let schedule = cluster.get("/maintenance/schedule").await?;
        Ok(joined(&schedule, &status))
    }

    fn entries<'v>(&self, answer: &'v Value) -> Result<Vec<&'v Value>> {
        Ok(lists(answer, &["machines"]).collect())
    }

    fn rows(&self, entries: &[&Value], _: &ListContext<'_>) -> Vec<Vec<Cell>> {
        let nanos = |value: &Value| value["nanoseconds"].as_f64().map(|nanos| nanos / 1e9);
        let row = |entry: &&Value| {
            let (start, duration) = (nanos(&entry["start"]), nanos(&entry["duration"]));
            let answers = |wanted: &str| {
                let count =
                    lists(entry, &["statuses"]).filter(|answer| text(answer, "status") == wanted).count();
                Cell::number(if count == 0 { String::new() } else { count.to_string() }, count as f64)
            };
            let down = text(entry, "mode") == "DOWN";
            vec![
                Cell::text(text(&entry["id"], "hostname")),
                Cell::text(text(&entry["id"], "ip")),
                Cell::text(text(entry, "mode")).tone(if down { Tone::Bad } else { Tone::Plain }),
                Cell::text(start.map(amount::moment).unwrap_or_default()),
                Cell::text(duration.map(amount::duration).unwrap_or_default()),
                answers("ACCEPT"),
                answers("DECLINE"),
            ]
        };
        entries.iter().map(row).collect()
    }

    fn nothing(&self, _: &Value) -> String {
        "no machine is in maintenance; plan it with `tepui maintenance schedule HOST --start_in 10mins`"
            .to_string()
    }
}

/// Each machine with its mode, its window and the answers of frameworks.
fn joined(schedule: &Value, status: &Value) -> Value {
    let draining =
        lists(status, &["draining_machines"]).map(|it| (&it["id"], "DRAINING", it["statuses"].clone()));
    let down = lists(status, &["down_machines"]).map(|id| (id, "DOWN", Value::Null));
    let window = |id: &Value| {
        let mut windows = lists(schedule, &["windows"]);
        windows
            .find(|window| lists(window, &["machine_ids"]).any(|one| one == id))
            .cloned()
            .unwrap_or_default()
    };
    let entry = |(id, mode, statuses): (&Value, &str, Value)| {
        let unavailability = &window(id)["unavailability"];
        let (start, duration) = (&unavailability["start"], &unavailability["duration"]);
        json!({"id": id, "mode": mode, "statuses": statuses, "start": start, "duration": duration})
    };
    json!({ "machines": draining.chain(down).map(entry).collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::listing::testing::{check, parsed};

    #[test]
    fn machines_are_listed() {
        let id = json!({"hostname": "h1", "ip": "10.0.0.1"});
        let unavailability = json!({"start": {"nanoseconds": 1_700_000_000_000_000_000u64}, "duration": {"nanoseconds": 3_600_000_000_000u64}});
        let windows =
            json!({"windows": [{"machine_ids": [id, {"hostname": "h2"}], "unavailability": unavailability}]});
        let statuses = json!([{"status": "ACCEPT"}, {"status": "DECLINE"}, {"status": "ACCEPT"}]);
        let status = json!({"draining_machines": [{"id": id, "statuses": statuses}], "down_machines": [{"hostname": "h2"}]});
        check::<Maintenance>(
            "",
            &joined(&windows, &status),
            expect![[r#"
            HOST  IP        MODE      START                    DURATION  AGREED  REFUSED
            h1    10.0.0.1  DRAINING  2023-11-14 22:13:20 UTC  1h             2        1
            h2              DOWN      2023-11-14 22:13:20 UTC  1h"#]],
        );
    }

    #[test]
    fn machines_are_parsed_and_removed_from_the_schedule() {
        for typed in ["h1", "@10.0.0.1", "h1@10.0.0.1"] {
            assert_eq!(name(&machine(typed)), typed);
        }
        let mut schedule = Schedule {
            windows: vec![Window { machine_ids: vec![machine("h1"), machine("h2")], ..Default::default() }],
            ..Default::default()
        };
        assert_eq!(take_out(&mut schedule, &[machine("H1"), machine("h3")]), [machine("h3")]);
        assert_eq!(schedule.windows[0].machine_ids, [machine("h2")]);
        assert_eq!(take_out(&mut schedule, &[machine("h2")]), []);
        assert!(schedule.windows.is_empty());
        let error = parsed::<Maintenance>("down").run().unwrap_err();
        assert_eq!(error.to_string(), USAGE);
    }
}
