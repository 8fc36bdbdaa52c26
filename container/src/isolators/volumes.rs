//! volume/host_path, volume/sandbox_path, volume/secret: the volumes of `ContainerInfo` that need no image or driver.
//!
//! Mount point: an absolute path in the container's own root file system, or else one that exists on the host; a
//! relative path in the sandbox. Volumes of images and drivers are made ready before, see [`Site::ready`].

use std::path::{Component, Path, PathBuf};

use tepui_proto::mesos::v1::{self as pb, volume::source::Type, volume::source::sandbox_path};

use super::fault::{PlanFault, VolumeFault};
use super::filesystem_linux::{below_root, in_sandbox};
use super::site::Site;
use crate::host::beneath;
use crate::plan::{Make, Mount, NewDirectory, Plan, Root, Secret, Source, Target};

/// Only its user reads a secret.
const SECRET_MODE: u32 = 0o600;

/// What a volume shows.
enum Kind<'a> {
    HostPath(&'a str),
    /// Of the container's own sandbox.
    Own(&'a str),
    /// Of its parent's sandbox.
    Parents(&'a str),
    Secret(&'a pb::Secret),
    /// Made ready by another part: its name.
    Others(&'static str),
}

pub(super) fn plan(site: &Site, plan: &mut Plan) -> Result<(), PlanFault> {
    let volumes = site.spec.container.iter().flat_map(|info| &info.volumes);
    for (index, volume) in volumes.enumerate() {
        let named = |fault| PlanFault::Volume { index, container_path: volume.container_path.clone(), fault };
        if site.spec.is_session {
            return Err(named(VolumeFault::OfSession));
        }
        let mount = kind(volume).and_then(|kind| mount(site, index, volume, &kind, plan)).map_err(named)?;
        plan.mounts.extend(mount);
    }
    Ok(())
}

fn kind(volume: &pb::Volume) -> Result<Kind<'_>, VolumeFault> {
    let path = volume.host_path.as_deref();
    match (path, volume.image.is_set(), volume.source.as_option()) {
        (Some(path), false, None) if path.starts_with('/') => Ok(Kind::HostPath(path)),
        (Some(path), false, None) => Ok(Kind::Own(path)),
        (None, true, None) => Ok(Kind::Others("volume/image")),
        (None, false, Some(source)) => kind_of_source(source),
        _ => Err(VolumeFault::Source),
    }
}

fn kind_of_source(source: &pb::volume::Source) -> Result<Kind<'_>, VolumeFault> {
    match source.r#type.unwrap_or(Type::UNKNOWN) {
        Type::HOST_PATH if source.host_path.path.starts_with('/') => {
            Ok(Kind::HostPath(&source.host_path.path))
        }
        Type::HOST_PATH => Err(VolumeFault::RelativeHostPath(source.host_path.path.clone())),
        Type::SANDBOX_PATH => match source.sandbox_path.r#type.unwrap_or(sandbox_path::Type::UNKNOWN) {
            sandbox_path::Type::SELF => Ok(Kind::Own(&source.sandbox_path.path)),
            sandbox_path::Type::PARENT => Ok(Kind::Parents(&source.sandbox_path.path)),
            sandbox_path::Type::UNKNOWN => Err(VolumeFault::SandboxPathType),
        },
        Type::SECRET => Ok(Kind::Secret(&source.secret)),
        Type::DOCKER_VOLUME => Ok(Kind::Others("docker/volume")),
        Type::CSI_VOLUME => Ok(Kind::Others("volume/csi")),
        Type::UNKNOWN => Err(VolumeFault::SourceType),
    }
}

/// `None`: there is nothing to mount.
fn mount(
    site: &Site,
    index: usize,
    volume: &pb::Volume,
    kind: &Kind,
    plan: &mut Plan,
) -> Result<Option<Mount>, VolumeFault> {
    let container_path = Path::new(&volume.container_path);
    let read_only = volume.mode == pb::volume::Mode::RO;
    let source = match kind {
        Kind::HostPath(path) => host_path(site, Path::new(path), plan)?,
        Kind::Own(_) if !container_path.is_absolute() => {
            return Err(VolumeFault::RelativeContainerPath);
        }
        Kind::Own(path) => sandbox_path(site, Path::new(&site.spec.sandbox), Path::new(path), plan)?,
        Kind::Parents(path) => parents_path(site, Path::new(path), plan)?,
        Kind::Secret(secret) => return self::secret(site, container_path, secret).map(Some),
        Kind::Others(isolator) => match site.ready.get(&index) {
            Some(path) if site.has(isolator) => Source::host(path),
            Some(_) | None => return Err(VolumeFault::NeedsIsolator(isolator)),
        },
    };
    if matches!(kind, Kind::HostPath(path) if site.rootfs.is_none() && Path::new(path) == container_path) {
        return Ok(None); // It is there already.
    }
    let is_file = source.whole().is_file();
    let target = target(site, container_path, if is_file { Make::File } else { Make::Directory })?;
    Ok(Some(Mount::Bind { source, target, read_only }))
}

/// Mount point of a volume in a container.
fn target(site: &Site, container_path: &Path, make: Make) -> Result<Target, VolumeFault> {
    if container_path.as_os_str().is_empty()
        || container_path.components().any(|part| part == Component::ParentDir)
    {
        return Err(VolumeFault::ContainerPath);
    }
    Ok(match (container_path.is_absolute(), site.rootfs) {
        (true, Some(_)) => Target::new(Root::Rootfs, below_root(container_path), make),
        (true, None) if container_path.exists() => {
            Target::new(Root::Host, below_root(container_path), Make::Nothing)
        }
        (true, None) => return Err(VolumeFault::NotOnHost),
        (false, _) => in_sandbox(site, container_path, make),
    })
}

fn host_path(site: &Site, path: &Path, plan: &mut Plan) -> Result<Source, VolumeFault> {
    if path.exists() {
        return Ok(Source::host(path));
    }
    let made = site.options.host_path_volume_force_creation.iter().find_map(|root| {
        let rest = beneath::relative(root, path)?;
        Some(Source { root: root.clone(), path: rest.to_owned() })
    });
    let source = made.ok_or_else(|| VolumeFault::NoHostPath(path.to_owned()))?;
    plan.directories.push(NewDirectory { source: source.clone(), owner: None });
    Ok(source)
}

fn sandbox_path(site: &Site, sandbox: &Path, path: &Path, plan: &mut Plan) -> Result<Source, VolumeFault> {
    if !beneath::is_inner(path) {
        return Err(VolumeFault::SandboxPath(path.to_owned()));
    }
    let inside = beneath::relative(site.work_dir, sandbox);
    let inside = inside.ok_or(VolumeFault::SandboxOutside)?;
    let source = Source { root: site.work_dir.to_owned(), path: inside.join(path) };
    make_missing(site, &source, plan);
    Ok(source)
}

/// Mounts in the parent's sandbox are visible in its mount namespace only, so the source is used.
fn parents_path(site: &Site, path: &Path, plan: &mut Plan) -> Result<Source, VolumeFault> {
    let parent = site.parent.ok_or(VolumeFault::NoParent)?;
    let volume =
        parent.volumes.iter().find_map(|volume| Some((volume, path.strip_prefix(&volume.target).ok()?)));
    let Some((volume, rest)) = volume else { return sandbox_path(site, &parent.sandbox, path, plan) };
    if !rest.as_os_str().is_empty() && !beneath::is_inner(rest) {
        return Err(VolumeFault::ParentsPath(path.to_owned()));
    }
    let source = Source { root: PathBuf::from(&volume.source), path: rest.to_owned() };
    if !rest.as_os_str().is_empty() {
        make_missing(site, &source, plan);
    }
    Ok(source)
}

fn make_missing(site: &Site, source: &Source, plan: &mut Plan) {
    let owner = site.identity.map(|identity| (identity.uid, identity.gid));
    plan.directories.push(NewDirectory { source: source.clone(), owner });
}

fn secret(site: &Site, container_path: &Path, secret: &pb::Secret) -> Result<Mount, VolumeFault> {
    if !site.has("volume/secret") {
        return Err(VolumeFault::NeedsIsolator("volume/secret"));
    }
    let value = secret.value.as_option().ok_or(VolumeFault::NoSecretValue)?;
    Ok(Mount::Secret {
        target: target(site, container_path, Make::File)?,
        content: Secret(value.data.to_vec()),
        mode: SECRET_MODE,
        owner: site.identity.map(|identity| (identity.uid, identity.gid)),
    })
}
