//! linux/devices: the operator's `--allowed_devices` are there in containers with a root file system of their own.
//!
//! That they may be used is for `cgroups/devices`, which gets the same list.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::fault::{DeviceFault, FlagFault, PlanFault};
use super::filesystem_linux::below_root;
use super::site::Site;
use crate::cgroups::devices::{AllowedDevice, DeviceAccess};
use crate::plan::{Make, Mount, NodeKind, Plan, Root, Target};

pub(super) fn plan(site: &Site, plan: &mut Plan) -> Result<(), PlanFault> {
    if site.rootfs.is_some() {
        plan.mounts.extend(site.options.allowed_devices.iter().map(node));
    }
    Ok(())
}

/// The file's mode is open to all: access is decided by the cgroup.
fn node(device: &AllowedDevice) -> Mount {
    let bit = |has: bool, bits: u32| if has { bits } else { 0 };
    Mount::Node {
        target: Target::new(Root::Rootfs, below_root(&device.path), Make::Nothing),
        kind: device.kind,
        major: device.major,
        minor: device.minor,
        mode: bit(device.access.read, 0o444) | bit(device.access.write, 0o222),
    }
}

/// The value of the flag.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Listed {
    allowed_devices: Vec<ListedDevice>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListedDevice {
    device: ListedPath,
    #[serde(default)]
    access: ListedAccess,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListedPath {
    path: PathBuf,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ListedAccess {
    read: bool,
    write: bool,
    mknod: bool,
}

/// From the value of the flag; every device must exist.
pub fn parse(text: &str) -> Result<Vec<AllowedDevice>, FlagFault> {
    const RIGHT: &str =
        r#"write {"allowed_devices":[{"device":{"path":"/dev/fuse"},"access":{"read":true}}]}"#;
    let listed: Listed = serde_json::from_str(text).map_err(|err| FlagFault::Json { err, right: RIGHT })?;
    listed.allowed_devices.into_iter().map(resolve_device).collect()
}

fn resolve_device(ListedDevice { device, access }: ListedDevice) -> Result<AllowedDevice, FlagFault> {
    let ListedAccess { read, write, mknod } = access;
    let wrong = |why| FlagFault::Device { path: device.path.clone(), why };
    if !(read || write || mknod) {
        return Err(wrong(DeviceFault::NoAccess));
    }
    let (kind, number) = number(&device.path).map_err(wrong)?;
    Ok(AllowedDevice {
        kind,
        major: libc::major(number),
        minor: libc::minor(number),
        access: DeviceAccess { read, write, mknod },
        path: device.path,
    })
}

fn number(path: &Path) -> Result<(NodeKind, u64), DeviceFault> {
    let found = std::fs::metadata(path)?;
    match found.file_type() {
        kind if kind.is_char_device() => Ok((NodeKind::Character, found.rdev())),
        kind if kind.is_block_device() => Ok((NodeKind::Block, found.rdev())),
        _ => Err(DeviceFault::NotADevice),
    }
}
