//! `tepui reserve` and `tepui unreserve`: dynamic reservations on an agent.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use serde_json::json;
use tepui_client::shorthand::{agent_id, scalar};
use tepui_proto::mesos::v1::Resource;
use tepui_proto::mesos::v1::master::Call;
use tepui_proto::mesos::v1::master::call::{ReserveResources, Type, UnreserveResources};
use tepui_proto::mesos::v1::resource::{ReservationInfo, reservation_info};

use super::{Cluster, block_on, find};
use crate::confirm::done;
use crate::flags::value;
use crate::listing::text;

/// Reserve resources of an agent for a role: `tepui reserve AGENT cpus:2,mem:512 --role eng`.
#[derive(Args)]
pub struct Reserve {
    #[command(flatten)]
    what: ResourcesArgument,
}

/// Unreserve resources of an agent: `tepui unreserve AGENT cpus:2 --role eng`.
#[derive(Args)]
pub struct Unreserve {
    #[command(flatten)]
    what: ResourcesArgument,
}

#[derive(Args)]
struct ResourcesArgument {
    #[command(flatten)]
    cluster: Cluster,
    /// Agent ID, a suffix of it, or its hostname.
    agent: String,
    /// Resources, as in `cpus:2,mem:512`; mem and disk in megabytes.
    #[arg(value_parser = value::amounts)]
    resources: Amounts,
    #[command(flatten)]
    reservation: Reservation,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

type Amounts = value::Amounts;

/// The owner of a reservation.
#[derive(Args, Clone, Debug)]
pub struct Reservation {
    /// Role of the reservation.
    #[arg(long)]
    pub role: String,
    /// Principal of the reservation, if different from yours.
    #[arg(long, value_name = "NAME")]
    pub reserver: Option<String>,
}

impl Reservation {
    /// The resource, reserved.
    pub fn of(&self, resource: Resource) -> Resource {
        let reservation = ReservationInfo {
            r#type: Some(reservation_info::Type::DYNAMIC),
            role: Some(self.role.clone()),
            principal: self.reserver.clone(),
            ..Default::default()
        };
        Resource { reservations: vec![reservation], ..resource }
    }
}

impl Reserve {
    pub fn run(self) -> Result<ExitCode> {
        self.what.run("reserved", |id, resources| {
            let reserve = ReserveResources { agent_id: agent_id(id).into(), resources, ..Default::default() };
            Call {
                r#type: Some(Type::RESERVE_RESOURCES),
                reserve_resources: reserve.into(),
                ..Default::default()
            }
        })
    }
}

impl Unreserve {
    pub fn run(self) -> Result<ExitCode> {
        self.what.run("unreserved", |id, resources| {
            let unreserve =
                UnreserveResources { agent_id: agent_id(id).into(), resources, ..Default::default() };
            Call {
                r#type: Some(Type::UNRESERVE_RESOURCES),
                unreserve_resources: unreserve.into(),
                ..Default::default()
            }
        })
    }
}

impl ResourcesArgument {
    fn run(&self, verb: &str, call: impl FnOnce(&str, Vec<Resource>) -> Call) -> Result<ExitCode> {
        let reserver = self.reservation.reserver.clone().or_else(|| self.cluster.principal());
        let reservation = Reservation { reserver, ..self.reservation.clone() };
        let amounts = self.resources.0.iter();
        let resources = amounts.map(|(name, amount)| reservation.of(scalar(name, *amount))).collect();
        let id = block_on(async {
            let agent = find::agent(&self.cluster, &self.agent).await?;
            let id = text(&agent, "id").to_string();
            self.cluster.change(&call(&id, resources)).await?;
            Ok(id)
        })?;
        let role = &self.reservation.role;
        let document = json!({"agent_id": id, "role": role, "resources": self.resources.0});
        done(self.json, &document, &format!("{verb} {} for {role} on agent {id}", self.resources))?;
        Ok(ExitCode::SUCCESS)
    }
}
