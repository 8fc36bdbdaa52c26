//! Failures of containers on an engine. The texts go to the framework.

use std::io;
use std::path::PathBuf;

use tepui_docker::EngineFault;

use crate::host::background::Interrupted;
use crate::images::LoginFault;

#[derive(Debug, thiserror::Error)]
#[error("the Docker engine does not answer at {}: {err}", socket.display())]
pub struct NoEngine {
    pub socket: PathBuf,
    pub err: io::Error,
}

/// A field of a launch that a container of an engine cannot have.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DocumentFault {
    #[error("a DOCKER container cannot be nested")]
    Nested,
    #[error("'{0}' is missing")]
    Missing(&'static str),
    #[error("'container.hostname' cannot be set on the host's network")]
    HostnameOnHostNetwork,
    #[error("'{0}' cannot be used by a framework that may not use root")]
    Privilege(String),
    #[error(
        "'container.network_infos' must have one entry with a 'name' if 'container.docker.network' is USER"
    )]
    UserNetwork,
    #[error("docker.port_mappings[{index}]: the network '{network}' has no ports of its own")]
    NetworkWithoutPorts { index: usize, network: String },
    #[error("docker.port_mappings[{index}]: the host's port {host} is not among the task's 'ports'")]
    PortOfAnother { index: usize, host: u64 },
    #[error("docker.parameters[{index}] '{key}': {fault}")]
    Parameter { index: usize, key: String, fault: ParameterFault },
    #[error("volumes[{index}] '{path}': {fault}")]
    Volume { index: usize, path: String, fault: VolumeFault },
    #[error("the persistent volume '{0}' does not stay inside the sandbox")]
    PersistentVolume(String),
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ParameterFault {
    #[error("this option of 'docker run' is not supported")]
    Unsupported,
    #[error("'{text}' is {expected}")]
    Value { text: String, expected: &'static str },
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum VolumeFault {
    #[error("a volume of type {0:?} is not for DOCKER containers")]
    Type(tepui_proto::mesos::v1::volume::source::Type),
    #[error("'host_path' or 'source' is missing")]
    NoSource,
    #[error("'host_path' and 'container_path' are both relative")]
    BothRelative,
    #[error("'{}' does not stay inside the sandbox", .0.display())]
    Outside(PathBuf),
    #[error("a path with a colon cannot be a volume")]
    Colon,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum PullFault {
    #[error(transparent)]
    Engine(#[from] EngineFault),
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    #[error(transparent)]
    Login(#[from] LoginFault),
    #[error("cannot read '{file}' of the sandbox: {err}")]
    SandboxFile { file: &'static str, err: io::Error },
}
