//! Containers and their volumes.

use alloc::format;
use alloc::string::String;

use tepui_proto::mesos::v1 as pb;

use super::command;

pub(super) fn container(container: &pb::ContainerInfo) -> Result<(), String> {
    container.volumes.iter().try_for_each(volume)?;
    match container.r#type {
        pb::container_info::Type::MESOS => Ok(()),
        pb::container_info::Type::DOCKER => match container.docker.as_option() {
            None => Err("DockerInfo 'docker' is not set for DOCKER typed ContainerInfo".into()),
            Some(docker) if docker.parameters.iter().any(|parameter| parameter.key == "name") => {
                Err("Parameter in DockerInfo must not be 'name'".into())
            }
            Some(_) => Ok(()),
        },
    }
}

fn volume(volume: &pb::Volume) -> Result<(), String> {
    let given = [volume.host_path.is_some(), volume.image.is_set(), volume.source.is_set()];
    if given.iter().filter(|given| **given).count() != 1 {
        return Err("Exactly one of 'host_path', 'image' and 'source' must be set in a volume".into());
    }
    match volume.source.as_option() {
        Some(inner) => source(inner),
        None => Ok(()),
    }
}

fn source(source: &pb::volume::Source) -> Result<(), String> {
    use pb::volume::source::Type;
    let (field, set) = match source.r#type {
        Some(Type::DOCKER_VOLUME) => ("docker_volume", source.docker_volume.is_set()),
        Some(Type::HOST_PATH) => ("host_path", source.host_path.is_set()),
        Some(Type::SANDBOX_PATH) => ("sandbox_path", source.sandbox_path.is_set()),
        Some(Type::SECRET) => ("secret", source.secret.is_set()),
        Some(Type::CSI_VOLUME) => match source.csi_volume.is_set() {
            true => ("csi_volume.static_provisioning", source.csi_volume.static_provisioning.is_set()),
            false => ("csi_volume", false),
        },
        Some(Type::UNKNOWN) | None => return Err("'source.type' of a volume is unknown".into()),
    };
    if !set {
        return Err(format!("'source.{field}' is not set for the type of the volume's source"));
    }
    match source.secret.as_option() {
        Some(inner) => command::secret(inner),
        None => Ok(()),
    }
}
