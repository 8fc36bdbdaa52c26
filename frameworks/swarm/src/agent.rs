//! An agent as the manager knows it: the offers it holds and the Docker engine beside it.
//!
//! The label `res-type` is derived from the offers each time it is needed; it cannot be out of date.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use tepui_fsm::Mono;
use tepui_placement::{HeldOffer, Kind, totals};
use tepui_resources::{Name, Scalar};
use tepui_types::OfferId;

use crate::address::EngineAddress;
use crate::occupant::{Image, Occupant};

#[derive(Clone, Debug)]
pub struct Agent {
    pub hostname: String,
    pub address: EngineAddress,
    /// The Unix socket of the engine on the agent's machine, for our executor.
    pub socket: String,
    pub offers: BTreeMap<OfferId, HeldOffer>,
    /// Offers declined unused since the last one arrived: without others, they show the resources of the agent.
    pub declined: Vec<HeldOffer>,
    pub engine: EngineLink,
    /// The master says that it is no more part of the cluster. Its next offer proves the contrary.
    pub failed: bool,
    /// Until when an offer was to be held that the master has rescinded: what it offers instead is held no longer.
    pub(crate) rescinded: Option<Mono>,
}

/// The connection to the engine of an agent. It does not depend on the offers held.
#[derive(Clone, Debug)]
pub enum EngineLink {
    Connecting,
    Up(Arc<Engine>),
    Down {
        error: String,
        /// What it was before, if it was there.
        last: Option<Arc<Engine>>,
    },
}

/// What an engine says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Engine {
    pub id: String,
    pub name: String,
    pub labels: BTreeMap<String, String>,
    pub occupants: Vec<Occupant>,
    pub images: Vec<Image>,
}

impl Agent {
    pub fn new(hostname: String, address: EngineAddress, socket: String) -> Self {
        Self {
            hostname,
            address,
            socket,
            offers: BTreeMap::new(),
            declined: Vec::new(),
            engine: EngineLink::Connecting,
            failed: false,
            rescinded: None,
        }
    }

    /// The last that is known of its engine.
    pub fn engine(&self) -> Option<&Arc<Engine>> {
        match &self.engine {
            EngineLink::Up(engine) => Some(engine),
            EngineLink::Down { last, .. } => last.as_ref(),
            EngineLink::Connecting => None,
        }
    }

    /// The name of the engine, or its address as long as that is not known.
    pub fn name(&self) -> String {
        self.engine().map_or_else(|| alloc::format!("{}", self.address), |engine| engine.name.clone())
    }

    pub fn is_healthy(&self) -> bool {
        matches!(self.engine, EngineLink::Up(_))
    }

    /// Cpus and memory (in MiB) of one kind in all offers held.
    pub fn offered(&self, kind: Kind) -> (Scalar, Scalar) {
        let sum = totals(self.offers.values(), kind);
        (sum.get(&Name::Cpus), sum.get(&Name::Mem))
    }

    /// Only cpus and memory count: nearly every offer has regular disk and ports. None without either.
    pub fn res_type(&self) -> Option<&'static str> {
        let has = |kind| {
            let (cpus, memory) = self.offered(kind);
            !cpus.is_zero() || !memory.is_zero()
        };
        match (has(Kind::Regular), has(Kind::Revocable)) {
            (true, true) => Some("any"),
            (true, false) => Some(Kind::Regular.as_str()),
            (false, true) => Some(Kind::Revocable.as_str()),
            (false, false) => None,
        }
    }

    /// The labels of the engine with the type of its resources, which takes the place of one that the daemon was given.
    pub fn labels(&self) -> BTreeMap<String, String> {
        let mut labels = self.engine().map(|engine| engine.labels.clone()).unwrap_or_default();
        match self.res_type() {
            Some(res_type) => labels.insert(crate::RES_TYPE.into(), res_type.into()),
            None => labels.remove(crate::RES_TYPE),
        };
        labels
    }
}

impl Engine {
    /// From the engine's answer to GET /info. A label without `=` makes an engine invalid, as in classic Swarm.
    pub fn from_info(info: &serde_json::Value) -> Result<Engine, String> {
        let text = |field: &str| info[field].as_str().unwrap_or_default();
        if info["NCPU"].as_i64().unwrap_or(0) == 0 || info["MemTotal"].as_i64().unwrap_or(0) == 0 {
            return Err("it reports neither cpus nor memory; a Swarm manager is not an engine".into());
        }
        let mut labels = BTreeMap::new();
        for label in info["Labels"].as_array().into_iter().flatten().filter_map(serde_json::Value::as_str) {
            let (key, value) =
                label.split_once('=').ok_or_else(|| alloc::format!("its label {label:?} has no value"))?;
            // `node` is a key of constraints that means the name.
            if key != "node" {
                labels.insert(key.into(), value.into());
            }
        }
        let built_in = [
            ("storagedriver", "Driver"),
            ("kernelversion", "KernelVersion"),
            ("operatingsystem", "OperatingSystem"),
            ("ostype", "OSType"),
        ];
        labels.extend(built_in.map(|(key, field)| (key.into(), text(field).into())));
        Ok(Engine { id: text("ID").into(), name: text("Name").into(), labels, ..Engine::default() })
    }
}

#[cfg(test)]
mod tests;
