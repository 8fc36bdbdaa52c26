//! ContainerInfo of executors and tasks: volumes, networks, limits of the kernel, secrets.

use tepui_proto::Enumeration as _;
use tepui_proto::mesos::v1 as pb;

use super::context::{Context, labels, port_key};
use super::need::{BRIDGE_NETWORK, uses_host_ports};
use crate::spec::{ExternalVolume, IpcMode, Network, PodSpec, Seccomp, TaskSpec, VolumeMode};

type VolumeType = pb::volume::source::Type;

pub(super) fn executor_container(context: &Context<'_>) -> pb::ContainerInfo {
    let pod = context.pod;
    pb::ContainerInfo {
        r#type: pb::container_info::Type::MESOS,
        volumes: shared_volumes(context),
        network_infos: pod.networks.iter().map(|network| self::network(context, network)).collect(),
        linux_info: pb::LinuxInfo {
            share_cgroups: shared_cgroups(pod),
            ipc_mode: pod.ipc_mode.map(ipc_mode),
            shm_size: pod.shm_size_mb.and_then(|size| u32::try_from(size).ok()),
            ..Default::default()
        }
        .into(),
        rlimit_info: rlimits(pod).into(),
        ..Default::default()
    }
}

pub(super) fn task_container(context: &Context<'_>, task: &TaskSpec) -> pb::ContainerInfo {
    let pod = context.pod;
    let mut volumes = Vec::new();
    if pod.image.is_some() {
        volumes.push(volume("/tmp", pb::volume::Mode::RW, Some("tmp"), None));
    }
    volumes.extend(shared_volumes(context));
    volumes.extend(pod.volumes.iter().map(|own| parent_volume(&own.path)));
    pb::ContainerInfo {
        r#type: pb::container_info::Type::MESOS,
        volumes,
        mesos: pod.image.as_deref().map(image).into(),
        linux_info: pb::LinuxInfo {
            share_cgroups: shared_cgroups(pod),
            share_pid_namespace: Some(pod.share_pid_namespace),
            seccomp: seccomp(&pod.seccomp).into(),
            ipc_mode: task.ipc_mode.map(ipc_mode),
            shm_size: task.shm_size_mb.and_then(|size| u32::try_from(size).ok()),
            ..Default::default()
        }
        .into(),
        rlimit_info: rlimits(pod).into(),
        ..Default::default()
    }
}

/// Tasks have cgroups of their own, all of a pod or none, if their requests allow it or their limits need it.
fn shared_cgroups(pod: &PodSpec) -> Option<bool> {
    let sets = || pod.tasks.iter().filter_map(|task| pod.resource_set(&task.resource_set));
    let has_limits = sets().any(|set| set.limits.cpus.is_some() || set.limits.memory_mb.is_some());
    let has_requests = sets().all(|set| set.cpus.is_some() && set.memory_mb.is_some());
    (has_limits || has_requests).then_some(false)
}

/// Volumes that the executor and every task have.
fn shared_volumes(context: &Context<'_>) -> Vec<pb::Volume> {
    let pod = context.pod;
    let mut volumes = Vec::new();
    for own in &pod.host_volumes {
        volumes.push(volume(&own.container_path, mode(own.mode), Some(&own.host_path), None));
    }
    volumes.extend(pod.external_volumes.iter().map(|own| external_volume(context, own)));
    for own in &pod.secrets {
        let Some(file) = &own.file else { continue };
        volumes.push(secret_volume(file, &own.secret));
    }
    volumes
}

fn volume(
    path: &str,
    mode: pb::volume::Mode,
    host_path: Option<&str>,
    source: Option<pb::volume::Source>,
) -> pb::Volume {
    pb::Volume {
        mode,
        container_path: path.to_owned(),
        host_path: host_path.map(str::to_owned),
        source: source.into(),
        ..Default::default()
    }
}

fn mode(mode: VolumeMode) -> pb::volume::Mode {
    match mode {
        VolumeMode::ReadWrite => pb::volume::Mode::RW,
        VolumeMode::ReadOnly => pb::volume::Mode::RO,
    }
}

/// The volume of a Docker plugin; its options are in the order of their names.
fn external_volume(context: &Context<'_>, own: &ExternalVolume) -> pb::Volume {
    let parameter = |(key, value): (String, String)| pb::Parameter { key, value, ..Default::default() };
    let parameter = own.driver_options().into_iter().map(parameter).collect();
    let docker_volume = pb::volume::source::DockerVolume {
        driver: Some(own.plugin.clone()),
        name: own.name(&context.spec.name, &context.pod.name, context.instance.index),
        driver_options: pb::Parameters { parameter, ..Default::default() }.into(),
        ..Default::default()
    };
    let source = pb::volume::Source {
        r#type: Some(VolumeType::DOCKER_VOLUME),
        docker_volume: docker_volume.into(),
        ..Default::default()
    };
    volume(&own.container_path, mode(own.mode), None, Some(source))
}

/// A persistent volume of the executor, in the sandbox of a task.
fn parent_volume(path: &str) -> pb::Volume {
    let sandbox_path = pb::volume::source::SandboxPath {
        r#type: Some(pb::volume::source::sandbox_path::Type::PARENT),
        path: path.to_owned(),
        ..Default::default()
    };
    let source = pb::volume::Source {
        r#type: Some(VolumeType::SANDBOX_PATH),
        sandbox_path: sandbox_path.into(),
        ..Default::default()
    };
    volume(path, pb::volume::Mode::RW, None, Some(source))
}

pub(super) fn secret(name: &str) -> pb::Secret {
    let reference = pb::secret::Reference { name: name.to_owned(), ..Default::default() };
    pb::Secret {
        r#type: Some(pb::secret::Type::REFERENCE),
        reference: reference.into(),
        ..Default::default()
    }
}

fn secret_volume(path: &str, name: &str) -> pb::Volume {
    let source = pb::volume::Source {
        r#type: Some(VolumeType::SECRET),
        secret: secret(name).into(),
        ..Default::default()
    };
    volume(path, pb::volume::Mode::RO, None, Some(source))
}

fn image(name: &str) -> pb::container_info::MesosInfo {
    let docker = pb::image::Docker { name: name.to_owned(), ..Default::default() };
    let image = pb::Image { r#type: pb::image::Type::DOCKER, docker: docker.into(), ..Default::default() };
    pb::container_info::MesosInfo { image: image.into(), ..Default::default() }
}

fn seccomp(seccomp: &Seccomp) -> Option<pb::SeccompInfo> {
    match seccomp {
        Seccomp::Default => None,
        Seccomp::Unconfined => Some(pb::SeccompInfo { unconfined: Some(true), ..Default::default() }),
        Seccomp::Profile(name) => {
            Some(pb::SeccompInfo { profile_name: Some(name.clone()), ..Default::default() })
        }
    }
}

fn ipc_mode(mode: IpcMode) -> pb::linux_info::IpcMode {
    match mode {
        IpcMode::Private => pb::linux_info::IpcMode::PRIVATE,
        IpcMode::ShareParent => pb::linux_info::IpcMode::SHARE_PARENT,
    }
}

fn rlimits(pod: &PodSpec) -> Option<pb::RLimitInfo> {
    use pb::r_limit_info::{RLimit, r_limit};
    let limit = |own: &crate::spec::RLimit| {
        let name = own.name.replacen("RLIMIT_", "RLMT_", 1);
        RLimit {
            r#type: r_limit::Type::from_proto_name(&name),
            soft: own.values.map(|(soft, _)| soft),
            hard: own.values.map(|(_, hard)| hard),
            ..Default::default()
        }
    };
    let rlimits: Vec<RLimit> = pod.rlimits.iter().map(limit).collect();
    Some(pb::RLimitInfo { rlimits, ..Default::default() }).filter(|info| !info.rlimits.is_empty())
}

/// On the bridge, each port of the pod that has no mapping of its own is mapped to itself.
fn network(context: &Context<'_>, network: &Network) -> pb::NetworkInfo {
    let mapping = |host: u32, container: u32| pb::network_info::PortMapping {
        host_port: host,
        container_port: container,
        ..Default::default()
    };
    let given = network.port_mappings.iter();
    let mut mappings: Vec<pb::network_info::PortMapping> =
        given.map(|(host, container)| mapping(u32::from(*host), u32::from(*container))).collect();
    if network.name == BRIDGE_NETWORK && uses_host_ports(context.pod) {
        for set in &context.pod.resource_sets {
            for port in &set.ports {
                let number = context.ports.get(&port_key(&set.id, &port.name));
                let Some(number) = number.and_then(|number| u32::try_from(*number).ok()) else { continue };
                if mappings.iter().all(|own| own.host_port != number) {
                    mappings.push(mapping(number, number));
                }
            }
        }
    }
    let own = network.labels.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    pb::NetworkInfo {
        name: Some(network.name.clone()),
        labels: Some(labels(own)).filter(|labels| !labels.labels.is_empty()).into(),
        port_mappings: mappings,
        ..Default::default()
    }
}
