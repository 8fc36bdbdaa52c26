//! The resources that a pod needs, by the part of the pod that owns them.

use tepui_resources::{Name, Range, Ranges, Scalar};

use super::config::ExecutorOverhead;
use super::record::{Owner, Reservation};
use crate::spec::{PodSpec, Port, Volume, VolumeKind};

/// The network on which container ports are mapped to host ports.
pub(super) const BRIDGE_NETWORK: &str = "mesos-bridge";

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Need {
    pub owner: Owner,
    pub kind: NeedKind,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum NeedKind {
    Scalar {
        name: Name,
        amount: Scalar,
    },
    /// A host port; 0 is any of the ranges.
    Port {
        name: String,
        port: u64,
        ranges: Ranges,
    },
    Volume {
        path: String,
        size: Scalar,
        kind: VolumeKind,
    },
}

/// Everything that a pod of this spec reserves: its executor, and each resource set that a task uses.
pub(super) fn needs(pod: &PodSpec, overhead: &ExecutorOverhead) -> Vec<Need> {
    let mut needs = Vec::new();
    for (name, amount) in
        [(Name::Cpus, overhead.cpus), (Name::Mem, overhead.mem_mb), (Name::Disk, overhead.disk_mb)]
    {
        scalar(&mut needs, &Owner::Executor, name, amount);
    }
    volumes(&mut needs, &Owner::Executor, &pod.volumes);
    let used = |id: &str| pod.tasks.iter().any(|task| task.resource_set == id);
    for set in pod.resource_sets.iter().filter(|set| used(&set.id)) {
        let owner = Owner::Set(set.id.clone());
        scalar(&mut needs, &owner, Name::Cpus, set.cpus.unwrap_or(0.0));
        scalar(&mut needs, &owner, Name::Mem, set.memory_mb.unwrap_or(0) as f64);
        scalar(&mut needs, &owner, Name::Gpus, set.gpus.unwrap_or(0.0));
        if uses_host_ports(pod) {
            needs.extend(set.ports.iter().map(|port| Need { owner: owner.clone(), kind: self::port(port) }));
        }
        volumes(&mut needs, &owner, &set.volumes);
    }
    needs
}

/// Host ports are reserved unless all networks of the pod have addresses of their own.
pub(super) fn uses_host_ports(pod: &PodSpec) -> bool {
    pod.networks.is_empty() || pod.networks.iter().any(|network| network.name == BRIDGE_NETWORK)
}

fn scalar(needs: &mut Vec<Need>, owner: &Owner, name: Name, amount: f64) {
    match Scalar::from_f64(amount) {
        Ok(amount) if !amount.is_zero() => {
            needs.push(Need { owner: owner.clone(), kind: NeedKind::Scalar { name, amount } })
        }
        Ok(_) | Err(_) => (),
    }
}

fn volumes(needs: &mut Vec<Need>, owner: &Owner, volumes: &[Volume]) {
    needs.extend(volumes.iter().map(|volume| Need {
        owner: owner.clone(),
        kind: NeedKind::Volume {
            path: volume.path.clone(),
            size: Scalar::from_count(u128::from(volume.size_mb)),
            kind: volume.kind.clone(),
        },
    }));
}

fn port(port: &Port) -> NeedKind {
    let range = |(begin, end): &(u16, u16)| Range { begin: u64::from(*begin), end: u64::from(*end) };
    let ranges = port.ranges.iter().map(range).collect();
    NeedKind::Port { name: port.name.clone(), port: u64::from(port.port), ranges }
}

impl Need {
    /// Whether a reservation was made for this need, whatever its amount.
    pub fn is_met_by(&self, reservation: &Reservation) -> bool {
        let is_plain = reservation.volume.is_none() && reservation.port.is_none();
        self.owner == reservation.owner
            && match &self.kind {
                NeedKind::Scalar { name, .. } => is_plain && reservation.resource == name.as_str(),
                NeedKind::Port { name, port, .. } => reservation
                    .port
                    .as_ref()
                    .is_some_and(|(own, number)| own == name && (*port == 0 || port == number)),
                NeedKind::Volume { path, kind, .. } => reservation.volume.as_ref().is_some_and(|own| {
                    own.path == *path && own.is_mount == matches!(kind, VolumeKind::Mount { .. })
                }),
            }
    }
}
