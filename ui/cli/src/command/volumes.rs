//! `tepui volumes`: persistent volumes; made, resized and destroyed.

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::{Value, json};
use tepui_client::shorthand::{agent_id, scalar};
use tepui_proto::mesos::v1::master::Call;
use tepui_proto::mesos::v1::master::call::{CreateVolumes, DestroyVolumes, GrowVolume, ShrinkVolume, Type};
use tepui_proto::mesos::v1::resource::{DiskInfo, disk_info};
use tepui_proto::mesos::v1::value::Scalar;
use tepui_proto::mesos::v1::{Resource, Volume, volume};

use super::reserve::Reservation;
use super::{block_on, find};
use crate::amount;
use crate::confirm::{Confirm, done};
use crate::listing::{self, List, ListContext, ListFlags, lists, number, text};
use crate::table::Cell;

/// The changes of volumes.
const USAGE: &str = "usage: tepui volumes create AGENT ID MEGABYTES --role ROLE | destroy AGENT ID | \
                     grow AGENT ID MEGABYTES | shrink AGENT ID MEGABYTES";

/// List persistent volumes, or change them: `create AGENT ID MEGABYTES --role ROLE`, `destroy AGENT ID`,
/// `grow`, `shrink`.
#[derive(Args)]
pub struct Volumes {
    #[command(flatten)]
    list: ListFlags,
    #[command(flatten)]
    confirm: Confirm,
    /// `create`, `destroy`, `grow` or `shrink`, followed by agent, volume ID and megabytes. Lists if omitted.
    #[arg(value_name = "create|destroy|grow|shrink AGENT ID [MEGABYTES]", num_args = 0..)]
    words: Vec<String>,
    /// Role of a new volume; its disk must be reserved for that role.
    #[arg(long)]
    role: Option<String>,
    /// Principal of the reservation and the volume, if different from yours.
    #[arg(long, value_name = "NAME")]
    reserver: Option<String>,
    /// Path of the volume in the sandbox of a task.
    #[arg(long, default_value = "data")]
    path: String,
}

impl Volumes {
    pub fn run(self) -> Result<ExitCode> {
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        match words.as_slice() {
            [] => listing::run(&self),
            ["create", agent, id, size] => self.create(agent, id, megabytes(size)?),
            ["destroy", agent, id] => self.destroy(agent, id),
            ["grow", agent, id, by] => self.grow(agent, id, megabytes(by)?),
            ["shrink", agent, id, by] => self.shrink(agent, id, megabytes(by)?),
            _ => bail!("{USAGE}"),
        }
    }

    fn create(&self, agent: &str, id: &str, size: f64) -> Result<ExitCode> {
        let role = self.role.clone().context("--role is missing: the role of the volume")?;
        let reserver = self.reserver.clone().or_else(|| self.list.cluster.principal());
        let reservation = Reservation { role, reserver: reserver.clone() };
        let persistence =
            disk_info::Persistence { id: id.to_string(), principal: reserver, ..Default::default() };
        let volume =
            Volume { container_path: self.path.clone(), mode: volume::Mode::RW, ..Default::default() };
        let disk = DiskInfo { persistence: persistence.into(), volume: volume.into(), ..Default::default() };
        let volume = Resource { disk: disk.into(), ..reservation.of(scalar("disk", size)) };
        self.change(agent, ("created", id), |agent, _| {
            let volumes = vec![volume];
            let create = CreateVolumes { agent_id: agent_id(agent).into(), volumes, ..Default::default() };
            Ok(Call {
                r#type: Some(Type::CREATE_VOLUMES),
                create_volumes: create.into(),
                ..Default::default()
            })
        })
    }

    fn destroy(&self, agent: &str, id: &str) -> Result<ExitCode> {
        self.confirm.require(&format!("The content of volume {id} on agent {agent} will be lost."))?;
        self.change(agent, ("destroyed", id), |agent, entry| {
            let volumes = vec![volume_of(entry, id)?];
            let destroy = DestroyVolumes { agent_id: agent_id(agent).into(), volumes, ..Default::default() };
            Ok(Call {
                r#type: Some(Type::DESTROY_VOLUMES),
                destroy_volumes: destroy.into(),
                ..Default::default()
            })
        })
    }

    fn grow(&self, agent: &str, id: &str, by: f64) -> Result<ExitCode> {
        self.change(agent, ("grew", id), |agent, entry| {
            let volume = volume_of(entry, id)?;
            let addition =
                Resource { scalar: amount_of(by).into(), disk: bare_disk(&volume).into(), ..volume.clone() };
            let grow = GrowVolume {
                agent_id: agent_id(agent).into(),
                volume: volume.into(),
                addition: addition.into(),
                ..Default::default()
            };
            Ok(Call { r#type: Some(Type::GROW_VOLUME), grow_volume: grow.into(), ..Default::default() })
        })
    }

    fn shrink(&self, agent: &str, id: &str, by: f64) -> Result<ExitCode> {
        self.change(agent, ("shrank", id), |agent, entry| {
            let shrink = ShrinkVolume {
                agent_id: agent_id(agent).into(),
                volume: volume_of(entry, id)?.into(),
                subtract: amount_of(by).into(),
                ..Default::default()
            };
            Ok(Call { r#type: Some(Type::SHRINK_VOLUME), shrink_volume: shrink.into(), ..Default::default() })
        })
    }

    /// Finds the agent, sends the call made from its entry, and prints the result.
    fn change(
        &self,
        agent: &str,
        (verb, id): (&str, &str),
        call: impl FnOnce(&str, &Value) -> Result<Call>,
    ) -> Result<ExitCode> {
        let cluster = &self.list.cluster;
        let agent = block_on(async {
            let entry = find::agent(cluster, agent).await?;
            let agent = text(&entry, "id").to_string();
            cluster.change(&call(&agent, &entry)?).await?;
            Ok(agent)
        })?;
        let document = json!({"agent_id": agent, "volume": id, "done": verb});
        done(self.list.json, &document, &format!("{verb} volume {id} on agent {agent}"))?;
        Ok(ExitCode::SUCCESS)
    }
}

fn megabytes(typed: &str) -> Result<f64> {
    match typed.parse::<f64>() {
        Ok(size) if size > 0.0 && size.is_finite() => Ok(size),
        Ok(_) | Err(_) => bail!("{typed:?} is not a number of megabytes"),
    }
}

fn amount_of(value: f64) -> Scalar {
    Scalar { value, ..Default::default() }
}

/// The disk without its volume; `None` if nothing else is set.
fn bare_disk(volume: &Resource) -> Option<DiskInfo> {
    let disk = DiskInfo { persistence: None.into(), volume: None.into(), ..(*volume.disk).clone() };
    (disk != DiskInfo::default()).then_some(disk)
}

/// The reserved resources of an agent that are persistent volumes.
fn volumes(agent: &Value) -> impl Iterator<Item = &Value> {
    let reserved = agent["reserved_resources_full"].as_object().into_iter().flat_map(|roles| roles.values());
    let resources = reserved.flat_map(|resources| resources.as_array().into_iter().flatten());
    resources.filter(|resource| resource["disk"]["persistence"]["id"].is_string())
}

/// The volume exactly as the agent has it.
fn volume_of(agent: &Value, id: &str) -> Result<Resource> {
    let found = volumes(agent).find(|volume| volume["disk"]["persistence"]["id"] == id);
    let found =
        found.with_context(|| format!("no volume {id:?} on this agent; `tepui volumes` lists them"))?;
    let mut volume: Resource = tepui_proto::json::from_slice(found.to_string().as_bytes())
        .map_err(|error| anyhow::anyhow!("the master's description of volume {id}: {error}"))?;
    // Both reservation formats are set; keep the new one.
    volume.role = None;
    volume.reservation = None.into();
    Ok(volume)
}

impl List for Volumes {
    const COLUMNS: &'static [&'static str] =
        &["VOLUME", "SIZE", "ROLE", "AGENT", "HOST", "PATH", "PRINCIPAL"];
    const COLUMNS_KEPT: usize = 5;

    fn flags(&self) -> &ListFlags {
        &self.list
    }

    async fn fetch(&self) -> Result<Value> {
        let agents = self.list.cluster.get("/slaves").await?;
        let mut all = Vec::new();
        for agent in lists(&agents, &["slaves"]) {
            let entry = |volume: &Value| {
                let roles = volume["reservations"].as_array().and_then(|stack| stack.last().cloned());
                let role = roles
                    .map_or_else(|| text(volume, "role").to_string(), |top| text(&top, "role").to_string());
                json!({"slave_id": agent["id"], "hostname": agent["hostname"], "role": role, "volume": volume})
            };
            all.extend(volumes(agent).map(entry));
        }
        Ok(json!({ "volumes": all }))
    }

    fn entries<'v>(&self, answer: &'v Value) -> Result<Vec<&'v Value>> {
        let wanted = |entry: &&Value| self.role.as_deref().is_none_or(|role| text(entry, "role") == role);
        Ok(lists(answer, &["volumes"]).filter(wanted).collect())
    }

    fn rows(&self, entries: &[&Value], seen: &ListContext<'_>) -> Vec<Vec<Cell>> {
        let row = |entry: &&Value| {
            let (volume, persistence) = (&entry["volume"], &entry["volume"]["disk"]["persistence"]);
            let size = number(&volume["scalar"], "value");
            vec![
                Cell::text(text(persistence, "id")),
                Cell::number(amount::megabytes(size), size),
                Cell::text(text(entry, "role")),
                seen.id(entry, "slave_id"),
                Cell::text(text(entry, "hostname")),
                Cell::text(text(&volume["disk"]["volume"], "container_path")),
                Cell::text(text(persistence, "principal")),
            ]
        };
        entries.iter().map(row).collect()
    }

    fn nothing(&self, _: &Value) -> String {
        "no persistent volumes; create one with `tepui volumes create AGENT ID MEGABYTES --role ROLE`"
            .to_string()
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::listing::testing::{check, parsed};

    fn agent() -> Value {
        json!({"id": "m-S0", "hostname": "a", "reserved_resources_full": {"eng": [
            {"name": "cpus", "type": "SCALAR", "scalar": {"value": 1.0}, "role": "eng", "reservation": {},
             "reservations": [{"type": "DYNAMIC", "role": "eng"}]},
            {"name": "disk", "type": "SCALAR", "scalar": {"value": 2048.0}, "role": "eng", "reservation": {},
             "reservations": [{"type": "DYNAMIC", "role": "eng"}],
             "disk": {"persistence": {"id": "v1"}, "volume": {"container_path": "data", "mode": "RW"}}}]}})
    }

    #[test]
    fn volumes_are_listed() {
        let volume = volumes(&agent()).next().unwrap().clone();
        let entry = json!({"slave_id": "m-S0", "hostname": "a", "role": "eng", "volume": volume});
        check::<Volumes>(
            "",
            &json!({ "volumes": [entry] }),
            expect![[r#"
                VOLUME  SIZE  ROLE  AGENT  HOST  PATH
                v1        2G  eng   m-S0   a     data"#]],
        );
    }

    #[test]
    fn volume_is_found_by_id_among_agent_resources() {
        let volume = volume_of(&agent(), "v1").unwrap();
        assert!(volume.role.is_none() && !volume.reservation.is_set() && volume.reservations.len() == 1);
        assert_eq!(bare_disk(&volume), None);
        assert!(volume_of(&agent(), "v2").is_err());
    }

    #[test]
    fn invalid_arguments_are_rejected_before_confirmation() {
        for (typed, expected) in [
            ("create S0 v1", USAGE),
            ("create S0 v1 x --role r", "\"x\" is not a number of megabytes"),
            ("create S0 v1 5", "--role is missing: the role of the volume"),
            ("shrink S0 v1 -5", "\"-5\" is not a number of megabytes"),
        ] {
            let arguments = typed.replace("-5", "0");
            let error = parsed::<Volumes>(&arguments).run().unwrap_err();
            assert_eq!(format!("{error:#}"), expected.replace("-5", "0"), "{typed}");
        }
    }
}
