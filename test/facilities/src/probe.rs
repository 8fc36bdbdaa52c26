//! Whether the machine has a facility; if not, why.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Facility;

/// The reason why a facility is missing; `None` if it is available.
pub(crate) fn missing(facility: Facility) -> Option<String> {
    match facility {
        Facility::Root => (!is_root()).then(|| "the tests run as another user".to_owned()),
        Facility::Mounts => missing_mounts(),
        Facility::Cgroups => {
            missing_controllers(&["cpu", "memory"], &|name| v1_mount(name).or_else(v2_mount))
        }
        Facility::CgroupsV1 => missing_controllers(&["cpu", "memory", "freezer"], &v1_mount),
        Facility::CgroupsV2 => {
            missing_controllers(&["cgroup2"], &|_| mounts_of("cgroup2").next().map(|it| it.0))
        }
        Facility::Docker => ["dockerd", "containerd", "runc", "setpriv", "unshare", "nsenter", "tar"]
            .into_iter()
            .find_map(missing_program)
            .or_else(|| missing(Facility::Root))
            .or_else(|| missing(Facility::Mounts))
            .or_else(|| missing(Facility::Busybox)),
        Facility::Busybox => missing_file(Path::new("/bin/busybox")),
        Facility::Pymesos => missing_file(&pymesos()),
        Facility::Buttervolume => {
            missing_file(&buttervolume()).or_else(|| missing_program("mkfs.btrfs")).or_else(|| {
                let kinds = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
                (!kinds.contains("btrfs")).then(|| "the kernel has no btrfs".to_owned())
            })
        }
        Facility::Postgresql => missing_program("psql").or_else(|| {
            let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
            let has_server = versions.into_iter().any(|version| version.path().join("bin/initdb").exists());
            (!has_server).then(|| "no /usr/lib/postgresql/*/bin/initdb".to_owned())
        }),
        Facility::Program(name) => missing_program(name),
    }
}

/// Whether this process may create cgroups and namespaces, and switch users.
pub fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|this| this.uid() == 0)
}

/// Where cgroups are mounted, of both versions.
pub fn cgroup_mounts() -> Vec<PathBuf> {
    mounts_of("cgroup").chain(mounts_of("cgroup2")).map(|(path, _)| path).collect()
}

/// Where a controller of v1 is mounted.
pub fn v1_mount(controller: &str) -> Option<PathBuf> {
    let has = |options: &str| options.split(',').any(|option| option == controller);
    mounts_of("cgroup").find(|(_, options)| has(options)).map(|(path, _)| path)
}

/// The mount point of cgroup v2, if it has the memory controller: then it has all controllers.
pub fn v2_mount() -> Option<PathBuf> {
    let (path, _) = mounts_of("cgroup2").next()?;
    let controllers = std::fs::read_to_string(path.join("cgroup.controllers")).ok()?;
    controllers.split_whitespace().any(|one| one == "memory").then_some(path)
}

/// The mount point of a controller in the machine's cgroup version. The test requires [`Facility::Cgroups`].
pub fn cgroup_mount(controller: &str) -> PathBuf {
    v1_mount(controller).or_else(v2_mount).expect("the controller is mounted")
}

/// The name or value of the version of cgroups that controls memory on this machine.
pub fn by_version<T>(v1: T, v2: T) -> T {
    if v2_mount().is_some() { v2 } else { v1 }
}

/// Mounts of a type of file system: path and options.
fn mounts_of(kind: &str) -> impl Iterator<Item = (PathBuf, String)> {
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap_or_default();
    let parse = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let [_, path, its_kind, options, ..] = words.as_slice() else { return None };
        (*its_kind == kind).then(|| (PathBuf::from(path), (*options).to_owned()))
    };
    mounts.lines().filter_map(parse).collect::<Vec<_>>().into_iter()
}

fn missing_controllers(controllers: &[&str], mount: &dyn Fn(&str) -> Option<PathBuf>) -> Option<String> {
    missing(Facility::Root).or_else(|| {
        controllers.iter().find_map(|controller| match mount(controller) {
            None => Some(format!("{controller} is not mounted")),
            Some(path) => missing_write(&path),
        })
    })
}

fn missing_write(mount: &Path) -> Option<String> {
    let probe = mount.join(format!("tepui-probe-{}-{:?}", std::process::id(), std::thread::current().id()));
    let created = std::fs::create_dir(&probe).and_then(|()| std::fs::remove_dir(&probe));
    created.err().map(|err| format!("cannot create a cgroup in {}: {err}", mount.display()))
}

fn missing_mounts() -> Option<String> {
    let script = "mount -t tmpfs none /mnt";
    let output = Command::new("unshare").args(["-m", "sh", "-c", script]).stdin(Stdio::null()).output();
    match output {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(format!("cannot mount: {}", String::from_utf8_lossy(&output.stderr).trim())),
        Err(err) => Some(format!("cannot start unshare: {err}")),
    }
}

fn missing_program(name: &str) -> Option<String> {
    let is_program = |path: PathBuf| {
        std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|folder| is_program(folder.join(name)));
    (!found).then(|| format!("no program {name} in PATH"))
}

fn missing_file(path: &Path) -> Option<String> {
    (!path.exists()).then(|| format!("no {}", path.display()))
}

/// The volume driver in the virtual environment that `test/setup` creates in the target directory.
pub fn buttervolume() -> PathBuf {
    let test = std::env::current_exe().unwrap_or_default();
    let target = test.ancestors().nth(3).unwrap_or(Path::new(".")); // target/<profile>/deps/<test>
    target.join("buttervolume/bin/buttervolume")
}

/// The Python of the virtual environment that `test/setup` creates in the target directory.
pub fn pymesos() -> PathBuf {
    let test = std::env::current_exe().unwrap_or_default();
    let target = test.ancestors().nth(3).unwrap_or(Path::new(".")); // target/<profile>/deps/<test>
    target.join("pymesos/bin/python")
}
