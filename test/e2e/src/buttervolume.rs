//! A real volume driver: buttervolume on a btrfs file system in a file. Dropping it kills the driver and unmounts the file.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::wait_for;

pub struct Buttervolume {
    daemon: Child,
    mount: PathBuf,
}

impl Buttervolume {
    /// Name of the driver.
    pub const DRIVER: &str = "btrfs";

    /// Volumes in `folder`, the socket in `plugins`. Needs `Facility::Buttervolume`.
    pub fn start(folder: &Path, plugins: &Path) -> Self {
        let (disk, mount) = (folder.join("disk"), folder.join("btrfs"));
        std::fs::create_dir_all(&mount).expect("a mount point");
        std::fs::create_dir_all(plugins).expect("a plugin directory");
        let (disk, at) = (disk.display(), mount.display());
        shell(&format!("truncate -s 1G {disk} && mkfs.btrfs -q {disk} && mount -o loop {disk} {at}"));
        let socket = plugins.join(format!("{}.sock", Self::DRIVER));
        let log = std::fs::File::create(folder.join("buttervolume.log")).expect("a log");
        let daemon = Command::new(tepui_facilities::buttervolume())
            .arg("run")
            .env("BUTTERVOLUME_SOCKET", &socket)
            .env("BUTTERVOLUME_VOLUMES_PATH", format!("{}/", mount.display()))
            .env("BUTTERVOLUME_SNAPSHOTS_PATH", format!("{}/snapshots/", mount.display()))
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("buttervolume starts");
        wait_for("buttervolume", || socket.exists().then_some(()));
        Self { daemon, mount }
    }

    /// Where the content of a volume is.
    pub fn volume(&self, name: &str) -> PathBuf {
        self.mount.join(name)
    }

    /// The storage takes no writes any more, below the tasks that have it mounted; or takes them again.
    pub fn set_read_only(&self, is_read_only: bool) {
        let mode = if is_read_only { "ro" } else { "rw" };
        shell(&format!("mount -o remount,{mode} {}", self.mount.display()));
    }
}

impl Buttervolume {
    /// The driver answers nothing until it goes on: its process is stopped.
    pub fn set_hanging(&self, is_hanging: bool) {
        let signal = if is_hanging { "STOP" } else { "CONT" };
        crate::signal(self.daemon.id(), signal);
    }
}

impl Drop for Buttervolume {
    fn drop(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
        let _ = Command::new("umount").arg("-l").arg(&self.mount).status();
    }
}

fn shell(script: &str) {
    let done = Command::new("sh").args(["-c", script]).stdout(Stdio::null()).status().expect("sh starts");
    assert!(done.success(), "{script}");
}
