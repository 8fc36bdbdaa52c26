//! Volumes of a container as the engine mounts them: directories of the host, volumes of drivers, persistent volumes, and
//! the sandbox.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tepui_proto::mesos::v1 as pb;
use tepui_types::LaunchSpec;

use super::fault::{DocumentFault, VolumeFault};
use crate::host::beneath;

/// Adds `Binds` and `Mounts` to a `HostConfig`. Paths relative to the sandbox are seen below `sandbox`.
pub(super) fn add(spec: &LaunchSpec, sandbox: &Path, config: &mut Value) -> Result<(), DocumentFault> {
    let Some(info) = &spec.container else { return Ok(()) };
    let driver = info.docker.volume_driver.as_deref();
    let (mut binds, mut mounts) = (Vec::new(), Vec::new());
    for (index, volume) in info.volumes.iter().enumerate() {
        let added = match volume.source.r#type {
            None => bind(volume, driver, spec, sandbox).map(|bind| binds.push(bind)),
            Some(pb::volume::source::Type::HOST_PATH) => {
                let path = &volume.source.host_path.path;
                let volume = pb::Volume { host_path: Some(path.clone()), ..volume.clone() };
                bind(&volume, None, spec, sandbox).map(|bind| binds.push(bind))
            }
            Some(pb::volume::source::Type::DOCKER_VOLUME) => {
                mounts.push(driven(volume, sandbox));
                Ok(())
            }
            Some(kind) => Err(VolumeFault::Type(kind)),
        };
        let path = &volume.container_path;
        added.map_err(|fault| DocumentFault::Volume { index, path: path.clone(), fault })?;
    }
    // Mounts have no colons to trip over, as paths of sandboxes may.
    let mount = |source: &str, target: PathBuf, read_only: bool| json!({"Type": "bind", "Source": source, "Target": target, "ReadOnly": read_only});
    mounts.push(mount(&spec.sandbox, sandbox.to_owned(), false));
    for volume in &spec.volumes {
        if !beneath::is_inner(Path::new(&volume.target)) {
            return Err(DocumentFault::PersistentVolume(volume.target.clone()));
        }
        mounts.push(mount(&volume.source, sandbox.join(&volume.target), volume.read_only));
    }
    if let Some(driver) = driver {
        config["VolumeDriver"] = driver.into();
    }
    config["Binds"] = binds.into();
    config["Mounts"] = mounts.into();
    Ok(())
}

/// `host:container:mode`, in which missing directories of the host are made.
fn bind(
    volume: &pb::Volume,
    driver: Option<&str>,
    spec: &LaunchSpec,
    sandbox: &Path,
) -> Result<Value, VolumeFault> {
    let Some(host) = volume.host_path.as_deref() else {
        return Err(VolumeFault::NoSource);
    };
    let (from, to) = (Path::new(host), Path::new(&volume.container_path));
    let inner = |path: &Path| match beneath::is_inner(path) {
        true => Ok(()),
        false => Err(VolumeFault::Outside(path.to_owned())),
    };
    let from = match (from.is_absolute(), to.is_absolute(), driver) {
        (_, _, Some(_)) | (true, _, None) => from.to_owned(),
        (false, true, None) => inner(from).map(|()| Path::new(&spec.sandbox).join(from))?,
        (false, false, None) => return Err(VolumeFault::BothRelative),
    };
    if !to.is_absolute() {
        inner(to)?;
    }
    let (from, to) = (from.display().to_string(), sandbox.join(to).display().to_string());
    if from.contains(':') || to.contains(':') {
        return Err(VolumeFault::Colon);
    }
    Ok(format!("{from}:{to}:{}", if is_read_only(volume) { "ro" } else { "rw" }).into())
}

fn driven(volume: &pb::Volume, sandbox: &Path) -> Value {
    let source = &volume.source.docker_volume;
    let mut mount = json!({
        "Type": "volume",
        "Source": source.name,
        "Target": sandbox.join(&volume.container_path),
        "ReadOnly": is_read_only(volume),
    });
    if let Some(driver) = &source.driver {
        let options = source.driver_options.parameter.iter();
        let options: serde_json::Map<String, Value> =
            options.map(|option| (option.key.clone(), option.value.clone().into())).collect();
        mount["VolumeOptions"] = json!({"DriverConfig": {"Name": driver, "Options": options}});
    }
    mount
}

fn is_read_only(volume: &pb::Volume) -> bool {
    volume.mode == pb::volume::Mode::RO
}
