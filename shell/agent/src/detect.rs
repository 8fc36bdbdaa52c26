//! What the machine has: resources that `--resources` does not name, and the boot id.

use std::path::Path;

use tepui_proto::mesos::v1 as pb;
use tepui_resources::{DiskKind, Format, Name, Range, Resource, Resources, parse};

const MEGABYTE: u64 = 1024 * 1024;
const GIGABYTE: u64 = 1024 * MEGABYTE;

/// Assumed when the system does not say.
const MEM_UNKNOWN_BYTES: u64 = GIGABYTE;
const DISK_UNKNOWN_BYTES: u64 = 10 * GIGABYTE;

/// Ports that are offered when none are named.
const PORTS: Range = Range { begin: 31_000, end: 32_000 };

/// The agent's resources: what the text names, and the rest as found. An amount of zero means "none of it".
pub(crate) fn resources(
    text: Option<&str>,
    default_role: &str,
    work_dir: &Path,
) -> Result<Vec<pb::Resource>, String> {
    let text = text.map(read_if_file).transpose()?.unwrap_or_default();
    let named = parse::resources(&text, default_role).map_err(|err| err.to_string())?;
    named.iter().try_for_each(prepare_disk)?;
    let is_named = |name: &Name| named.iter().any(|resource| resource.name() == name);
    let scalar = |name: &str, amount: u64| {
        parse::resources(&format!("{name}:{amount}"), default_role).map_err(|err| err.to_string())
    };
    let mut all = named.clone();
    for (name, detect) in [
        (Name::Cpus, cpus as fn(&Path) -> u64),
        (Name::Mem, |_| mem_megabytes()),
        (Name::Disk, disk_megabytes),
    ] {
        if !is_named(&name) {
            all.extend(scalar(name.as_str(), detect(work_dir))?);
        }
    }
    let ports = Name::new("ports");
    if !is_named(&ports) {
        let range = format!("ports:[{}-{}]", PORTS.begin, PORTS.end);
        all.extend(parse::resources(&range, default_role).map_err(|err| err.to_string())?);
    }
    let all: Resources = all.into_iter().collect();
    Ok(all.to_proto(Format::Post))
}

/// The part of this machine for one of several agents on it, as `--resources` writes it.
pub fn share_of_machine(index: u32, agents: u32, work_dir: &Path) -> String {
    let part = |all: u64| all / u64::from(agents);
    let cpus = processors() as f64 / f64::from(agents);
    let (mem, disk) = (part(mem_megabytes()), part(disk_megabytes(work_dir)));
    let ports = part(PORTS.end - PORTS.begin + 1);
    let first = PORTS.begin + u64::from(index) * ports;
    format!("cpus:{cpus:.3};mem:{mem};disk:{disk};ports:[{first}-{}]", first + ports - 1)
}

pub(crate) fn attributes(text: Option<&str>) -> Result<Vec<pb::Attribute>, String> {
    let text = text.map(read_if_file).transpose()?.unwrap_or_default();
    parse::attributes(&text).map_err(|err| err.to_string())
}

/// Names this boot of the machine; empty if the system does not say.
pub(crate) fn boot_id() -> String {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim().to_owned()
}

/// How full the file system of a directory is, 0.0 to 1.0.
pub(crate) fn disk_usage(path: &Path) -> std::io::Result<f64> {
    let stat = rustix::fs::statvfs(path)?;
    let used = stat.f_blocks.saturating_sub(stat.f_bfree);
    // As df counts: of what ordinary users could have.
    let usable = used + stat.f_bavail;
    Ok(if usable == 0 { 0.0 } else { used as f64 / usable as f64 })
}

/// `file:///path` stands for the content of the file.
fn read_if_file(text: &str) -> Result<String, String> {
    match text.strip_prefix("file://") {
        Some(path) => std::fs::read_to_string(path).map_err(|err| format!("cannot read {path}: {err}")),
        None => Ok(text.to_owned()),
    }
}

fn cpus(_: &Path) -> u64 {
    processors()
}

/// How many processors this machine has.
pub(crate) fn processors() -> u64 {
    use nix::unistd::{SysconfVar, sysconf};
    match sysconf(SysconfVar::_NPROCESSORS_ONLN) {
        Ok(Some(count)) if count > 0 => count as u64,
        Ok(_) | Err(_) => 1,
    }
}

/// Leaves a gigabyte to the system, or half of little.
fn mem_megabytes() -> u64 {
    match memory_bytes() {
        Some(total) if total >= 2 * GIGABYTE => (total - GIGABYTE) / MEGABYTE,
        Some(total) => total / 2 / MEGABYTE,
        None => MEM_UNKNOWN_BYTES / MEGABYTE,
    }
}

/// All memory of this machine.
pub(crate) fn memory_bytes() -> Option<u64> {
    total_bytes(&std::fs::read_to_string("/proc/meminfo").ok()?)
}

fn total_bytes(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

/// Leaves five gigabytes to the system, or half of little.
fn disk_megabytes(work_dir: &Path) -> u64 {
    let total = rustix::fs::statvfs(work_dir).map(|stat| stat.f_blocks.saturating_mul(stat.f_frsize));
    match total {
        Ok(total) if total >= 10 * GIGABYTE => (total - 5 * GIGABYTE) / MEGABYTE,
        Ok(total) => total / 2 / MEGABYTE,
        Err(_) => DISK_UNKNOWN_BYTES / MEGABYTE,
    }
}

/// A disk with a directory of its own must have it.
fn prepare_disk(resource: &Resource) -> Result<(), String> {
    match resource.disk().and_then(|disk| disk.source.as_ref()).map(|source| &source.kind) {
        None => Ok(()),
        Some(DiskKind::Path { root: Some(root) }) => std::fs::create_dir_all(&**root)
            .map_err(|err| format!("cannot create the disk root {root}: {err}")),
        Some(DiskKind::Mount { root: Some(root) }) => match is_mount_point(Path::new(&**root)) {
            true => Ok(()),
            false => Err(format!("the disk's root {root} is not a mount point")),
        },
        Some(DiskKind::Path { root: None } | DiskKind::Mount { root: None }) => {
            Err("a disk of type PATH or MOUNT needs a root".to_owned())
        }
        Some(DiskKind::Raw | DiskKind::Block) => {
            Err("a disk of type RAW or BLOCK cannot be given to an agent".to_owned())
        }
    }
}

fn is_mount_point(root: &Path) -> bool {
    let Ok(root) = std::fs::canonicalize(root) else { return false };
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap_or_default();
    // Blanks in names are written as octal escapes there.
    let escaped = root.to_string_lossy().replace(' ', "\\040");
    mounts.lines().any(|line| line.split(' ').nth(1) == Some(&escaped))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: Option<&str>) -> Result<String, String> {
        let resources = resources(text, "*", Path::new("/"))?;
        Ok(Resources::from_proto(&resources).unwrap().to_string())
    }

    #[test]
    fn agents_of_one_machine_divide_its_resources_and_ports() {
        let part = |index, agents| share_of_machine(index, agents, Path::new("/"));
        let all = |agents| -> Resources {
            (0..agents).flat_map(|index| parse::resources(&part(index, agents), "*").unwrap()).collect()
        };
        let (whole, parts) = (all(1), all(4));
        assert!(whole.contains(&parts), "{parts} is more than {whole}");
        assert_eq!(parts.cpus(), whole.cpus());
        assert!(part(0, 4).ends_with(";ports:[31000-31249]"), "{}", part(0, 4));
        assert!(part(3, 4).ends_with(";ports:[31750-31999]"), "{}", part(3, 4));
    }

    #[test]
    fn explicit_resources_override_detection() {
        assert_eq!(
            shown(Some("cpus:4;mem:1024;disk:10;ports:[1-2]")).unwrap(),
            "cpus:4; mem:1024; disk:10; ports:[1-2]"
        );
        assert!(!shown(Some("cpus:0;mem:1;disk:1;ports:[1-2]")).unwrap().contains("cpus"));
        let found = shown(Some("gpus:2")).unwrap();
        for name in ["cpus:", "mem:", "disk:", "ports:[31000-32000]", "gpus:2"] {
            assert!(found.contains(name), "{found}");
        }
    }

    #[test]
    fn invalid_resources_are_rejected() {
        for text in [
            "cpus",
            "cpus:x",
            "file:///nowhere/at/all",
            r#"[{"name":"disk","type":"SCALAR","scalar":{"value":1},"disk":{"source":{"type":"MOUNT","mount":{"root":"/proc/self/fd"}}}}]"#,
        ] {
            assert!(shown(Some(text)).is_err(), "{text}");
        }
    }

    #[test]
    fn resources_are_read_from_a_file_url() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "cpus:3;mem:5;disk:7;ports:[1-2]").unwrap();
        let url = format!("file://{}", file.path().display());
        assert_eq!(shown(Some(&url)).unwrap(), "cpus:3; mem:5; disk:7; ports:[1-2]");
    }

    #[test]
    fn total_memory_is_parsed_from_meminfo() {
        assert_eq!(total_bytes("MemTotal:       16384 kB\nMemFree: 1 kB\n"), Some(16 * MEGABYTE));
        assert_eq!(total_bytes("garbage"), None);
        assert!(mem_megabytes() > 0);
    }
}
