//! A Docker engine of a test's own: its own directories, socket and pid file, and one image made on the spot.
//!
//! It ends with the test, however that ends, and takes its containers, mounts and files along.
#![allow(dead_code)]

use std::io::{Read, Write};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tepui_facilities::patience;

const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The image that every engine here has.
pub const IMAGE: &str = "busybox";

/// What the image can do.
const APPLETS: [&str; 19] = [
    "sh", "sleep", "cat", "echo", "true", "false", "wget", "nc", "httpd", "ls", "id", "env", "dd", "mkdir",
    "touch", "head", "tail", "kill", "ping",
];

/// In whose network the engine lives.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Networks {
    /// The machine's; there is no bridge, so as not to meet those of others.
    Host,
    /// One of its own, with a bridge.
    Own,
}

pub struct Dockerd {
    dir: tempfile::TempDir,
    child: Option<Child>,
    networks: Networks,
    name: Option<String>,
    arguments: Vec<String>,
}

impl Dockerd {
    /// An engine that answers, with [`IMAGE`].
    pub fn start(networks: Networks) -> Dockerd {
        let dockerd = Self::without_image(networks, None, &[]);
        dockerd.import(IMAGE);
        dockerd
    }

    /// An engine that answers, without any image. Its own name is `name` if that is given.
    pub fn without_image(networks: Networks, name: Option<&str>, arguments: &[String]) -> Dockerd {
        let dir = tempfile::Builder::new().prefix("tepui-dockerd-").tempdir().expect("a directory");
        let mut dockerd = Dockerd {
            dir,
            child: None,
            networks,
            name: name.map(str::to_owned),
            arguments: arguments.to_vec(),
        };
        dockerd.restart();
        dockerd
    }

    /// Kills the engine and those that it started, as a crash of the machine would; containers may go on.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("the engine can be killed");
            child.wait().expect("the engine can be waited for");
        }
        // It was killed too. If it is not reaped, the next engine would take it for a running one.
        std::fs::remove_file(self.dir.path().join("exec/containerd/containerd.pid")).ok();
    }

    /// Ends the engine in order, with its containers.
    pub fn stop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        if let Some(pid) = Pid::from_raw(child.id().cast_signed()) {
            kill_process(pid, Signal::TERM).ok(); // It may have ended by itself.
        }
        let begun = Instant::now();
        while matches!(child.try_wait(), Ok(None)) {
            if begun.elapsed() > patience() {
                child.kill().ok();
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Starts the engine again after it was killed or stopped.
    pub fn restart(&mut self) {
        let (networks, dir) = (self.networks, &self.dir);
        let mut command = Command::new("unshare");
        command.args((networks == Networks::Own).then_some("--net"));
        match &self.name {
            // The name of the machine is the name of the engine.
            Some(name) => command.args(["--uts", "sh", "-c", "busybox hostname \"$0\" && exec \"$@\"", name]),
            None => &mut command,
        };
        // Killed with the test process, should that be killed.
        command.args(["setpriv", "--pdeathsig", "TERM", "dockerd", "--iptables=false"]).args(&self.arguments);
        // Without rules of the kernel's, a process of the engine's passes on what comes to a published port.
        match networks {
            Networks::Host => command.args(["--bridge=none", "--userland-proxy=false"]),
            Networks::Own => command.arg("--userland-proxy=true"),
        };
        for (flag, name) in [("--data-root", "data"), ("--exec-root", "exec"), ("--pidfile", "pid")] {
            command.arg(flag).arg(dir.path().join(name));
        }
        command.arg("--host").arg(format!("unix://{}", dir.path().join("docker.sock").display()));
        let log =
            std::fs::File::options().create(true).append(true).open(dir.path().join("log")).expect("a file");
        // A machine without a disk has neither other file systems to layer nor a root to leave.
        if std::env::var_os("DOCKER_RAMDISK").is_some() {
            command.arg("--storage-driver=vfs");
        }
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("a file")).stderr(log);
        let child = command.spawn().expect("setpriv of util-linux and dockerd of docker.io are installed");
        self.child = Some(child);
        self.wait_until_it_answers();
    }

    fn id(&self) -> u32 {
        self.child.as_ref().expect("the engine runs").id()
    }

    pub fn socket(&self) -> PathBuf {
        self.dir.path().join("docker.sock")
    }

    fn wait_until_it_answers(&mut self) {
        let begun = Instant::now();
        while request(&self.socket(), "GET", "/_ping", &[]).is_none_or(|(status, _)| status != 200) {
            let child = self.child.as_mut().expect("the engine runs");
            let ended = child.try_wait().expect("a child");
            let log = || std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default();
            assert!(ended.is_none() && begun.elapsed() < patience(), "dockerd does not answer:\n{}", log());
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Makes an image of nothing but busybox.
    pub fn import(&self, name: &str) {
        let root = self.dir.path().join("root");
        std::fs::remove_dir_all(&root).ok(); // There is none before the first image.
        std::fs::create_dir_all(root.join("bin")).expect("made");
        std::fs::create_dir_all(root.join("tmp")).expect("made");
        std::fs::copy("/bin/busybox", root.join("bin/busybox")).expect("busybox-static is installed");
        APPLETS.iter().for_each(|applet| symlink("busybox", root.join("bin").join(applet)).expect("linked"));
        let tar = Command::new("tar").arg("-C").arg(&root).args(["-c", "."]).output().expect("tar runs");
        assert!(tar.status.success());
        let path = format!("/images/create?fromSrc=-&repo={name}&tag=latest");
        let (status, said) = request(&self.socket(), "POST", &path, &tar.stdout).expect("an answer");
        assert_eq!(status, 200, "{said}");
    }

    /// Asks a web server at a port of the engine's network.
    pub fn ask(&self, port: u16) -> String {
        let request = r"printf 'GET / HTTP/1.0\r\n\r\n'";
        let script = format!("busybox ip link set lo up && {request} | busybox nc -w 5 127.0.0.1 {port}");
        let engine = self.id().to_string();
        let asked = Command::new("nsenter").args(["-t", &engine, "-n", "sh", "-c", &script]).output();
        let asked = asked.expect("nsenter of util-linux is installed");
        String::from_utf8_lossy(&asked.stdout).into_owned()
    }

    /// What the engine says of a container; nothing if there is none.
    pub fn inspect(&self, name: &str) -> Option<String> {
        let (status, said) = request(&self.socket(), "GET", &format!("/containers/{name}/json"), &[])?;
        (status == 200).then_some(said)
    }

    pub fn is_running(&self, name: &str) -> bool {
        self.inspect(name).is_some_and(|said| said.contains("\"Running\":true"))
    }

    /// Of the first process of a container that runs.
    pub fn pid(&self, name: &str) -> i32 {
        let said = self.inspect(name).expect("a container");
        let pid = said.split("\"Pid\":").nth(1).and_then(|rest| rest.split(',').next());
        pid.expect("a pid").parse().expect("a number")
    }

    /// Makes a container without an owner.
    pub fn create(&self, name: &str, label: &str) {
        let made = format!(
            "{{\"Image\":\"{IMAGE}\",\"Cmd\":[\"/bin/sleep\",\"1000\"],\"Labels\":{{\"tepui.work_dir\":\"{label}\"}}}}"
        );
        let path = format!("/containers/create?name={name}");
        let (status, said) = request(&self.socket(), "POST", &path, made.as_bytes()).expect("an answer");
        assert_eq!(status, 201, "{said}");
    }

    pub fn create_network(&self, name: &str, subnet: &str) {
        let network =
            format!("{{\"Name\":\"{name}\",\"IPAM\":{{\"Config\":[{{\"Subnet\":\"{subnet}\"}}]}}}}");
        let made = request(&self.socket(), "POST", "/networks/create", network.as_bytes());
        let (status, said) = made.expect("an answer");
        assert_eq!(status, 201, "{said}");
    }

    /// Containers end at once; asked by the engine they would take their time.
    fn remove_containers(&self) {
        let Some((_, listed)) = request(&self.socket(), "GET", "/containers/json?all=1", &[]) else { return };
        for id in listed.split("\"Id\":\"").skip(1).filter_map(|rest| rest.split('"').next()) {
            request(&self.socket(), "DELETE", &format!("/containers/{id}?force=1&v=1"), &[]);
        }
    }
}

impl Drop for Dockerd {
    fn drop(&mut self) {
        self.remove_containers();
        self.stop();
        let mounts = std::fs::read_to_string("/proc/mounts").unwrap_or_default();
        let ours = mounts.lines().filter_map(|line| line.split(' ').nth(1));
        let mut ours: Vec<&str> = ours.filter(|path| Path::new(path).starts_with(self.dir.path())).collect();
        ours.reverse();
        for path in ours {
            Command::new("umount").args(["-l", path]).status().ok();
        }
    }
}

/// One request, and the whole answer. `None` without a listener.
pub fn request(socket: &Path, method: &str, path: &str, body: &[u8]) -> Option<(u16, String)> {
    let mut stream = UnixStream::connect(socket).ok()?;
    let kind = if body.starts_with(b"{") { "json" } else { "x-tar" };
    let kind = format!("Content-Type: application/{kind}");
    let head = format!("{method} {path} HTTP/1.0\r\n{kind}\r\nContent-Length: {}\r\n\r\n", body.len());
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(body).ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
}

/// What the kernel holds a container to; the controller of cgroups on v2 has no name.
pub fn file_of(pid: i32, controller: &str, file: &str) -> String {
    let text = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).expect("its cgroups");
    let place = text.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let is_it = fields.next()?.split(',').any(|name| name == controller);
        fields.next().filter(|_| is_it)
    });
    let path = format!("/sys/fs/cgroup/{controller}{}/{file}", place.expect("a cgroup"));
    std::fs::read_to_string(path).expect("a file").trim().to_owned()
}
