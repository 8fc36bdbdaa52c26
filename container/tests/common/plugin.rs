//! A volume driver for tests, as Docker's plugin protocol wants it: volumes are directories.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use super::Host;

/// Listens on `<dir>/<name>.sock` until the test ends. What it does depends on the name of the volume: `refused…` is not
/// made, `hanging…` is never mounted, `stuck…` is not unmounted.
#[derive(Clone)]
pub struct Plugin {
    volumes: PathBuf,
    calls: Arc<Mutex<Vec<String>>>,
    made: Arc<Mutex<Vec<String>>>,
}

/// A host with a driver called `disk`, whose answers are waited for so long.
pub fn host(patience: Duration) -> Option<(Host, Plugin)> {
    let host = Host::linux_with("filesystem/linux,docker/volume", |options| {
        let dir = options.work_dir.parent().unwrap().to_owned();
        options.docker_volumes.plugin_dirs = vec![dir.join("none"), dir.join("plugins")];
        options.docker_volumes.mount_timeout = patience;
        options.docker_volumes.unmount_timeout = patience;
        options.docker_volumes.chown = true;
    })?;
    let plugin = Plugin::start(&host.dir.path().join("plugins"), "disk");
    Some((host, plugin))
}

impl Plugin {
    pub fn start(dir: &Path, name: &str) -> Plugin {
        std::fs::create_dir_all(dir).unwrap();
        let listener = UnixListener::bind(dir.join(format!("{name}.sock"))).unwrap();
        let plugin = Plugin { volumes: dir.join("volumes"), calls: Arc::default(), made: Arc::default() };
        let serving = plugin.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (plugin, reader) = (serving.clone(), stream.try_clone().unwrap());
                std::thread::spawn(move || plugin.serve(reader, stream));
            }
        });
        plugin
    }

    /// Listens on a port, too. Returns the address.
    pub fn listen(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let serving = self.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (plugin, reader) = (serving.clone(), stream.try_clone().unwrap());
                std::thread::spawn(move || plugin.serve(reader, stream));
            }
        });
        address
    }

    /// What was asked since this was last called, without what every contact begins with.
    pub fn calls(&self) -> Vec<String> {
        std::mem::take(&mut *self.calls.lock().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.volumes.join(name)
    }

    fn serve(&self, reader: impl Read, mut stream: impl Write) -> Option<()> {
        let mut reader = BufReader::new(reader);
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let call = line.split_whitespace().nth(1)?.trim_start_matches('/').to_owned();
        let mut length = 0;
        loop {
            line.clear();
            reader.read_line(&mut line).ok()?;
            match line.trim().to_lowercase().split_once(':') {
                Some(("content-length", value)) => length = value.trim().parse().ok()?,
                Some(_) => (),
                None => break,
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let answer = self.answer(&call, &serde_json::from_slice(&body).unwrap_or_default())?.to_string();
        write!(
            stream,
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{answer}",
            answer.len()
        )
        .ok()
    }

    /// None: it never answers, and keeps the connection.
    fn answer(&self, call: &str, body: &Value) -> Option<Value> {
        let name = body["Name"].as_str().unwrap_or_default();
        let is_made = self.made.lock().unwrap().iter().any(|made| made == name);
        let (_, verb) = call.split_once('.')?;
        match verb {
            "Activate" => return Some(json!({"Implements": ["VolumeDriver"]})),
            "Capabilities" => return Some(json!({"Capabilities": {"Scope": "local"}})),
            _ => (),
        }
        let options = if verb == "Create" { format!(" {}", body["Opts"]) } else { String::new() };
        if verb == "List" {
            return Some(json!({"Volumes": [], "Err": ""}));
        }
        self.calls.lock().unwrap().push(format!("{verb} {name}{options}"));
        Some(match verb {
            "Create" if name.starts_with("refused") => json!({"Err": "no room for another volume"}),
            "Create" if is_made => json!({"Err": "it is there already"}),
            "Create" => {
                std::fs::create_dir_all(self.path(name)).unwrap();
                self.made.lock().unwrap().push(name.to_owned());
                json!({"Err": ""})
            }
            "Mount" if name.starts_with("hanging") => loop {
                std::thread::park();
            },
            "Unmount" if name.starts_with("stuck") => json!({"Err": "somebody still uses it"}),
            "Get" if is_made => json!({"Volume": {"Name": name, "Mountpoint": self.path(name)}, "Err": ""}),
            "Remove" => json!({"Err": ""}),
            "Mount" | "Path" if is_made => json!({"Mountpoint": self.path(name), "Err": ""}),
            "Unmount" if is_made => json!({"Err": ""}),
            _ => json!({"Err": format!("no such volume: {name}")}),
        })
    }
}
