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
    /// What every contact begins with.
    greetings: Arc<Mutex<Vec<String>>>,
    greets: Arc<Mutex<Greets>>,
    made: Arc<Mutex<Vec<String>>>,
}

/// How a driver answers what it can do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Greets {
    #[default]
    Well,
    /// It does not know the call.
    AsOfOld,
    Never,
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
        let plugin = Plugin {
            volumes: dir.join("volumes"),
            calls: Arc::default(),
            greetings: Arc::default(),
            greets: Arc::default(),
            made: Arc::default(),
        };
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

    /// What every contact begins with, since this was last called.
    pub fn greetings(&self) -> Vec<String> {
        std::mem::take(&mut *self.greetings.lock().unwrap())
    }

    /// From now on it answers like this.
    pub fn greet(&self, how: Greets) {
        *self.greets.lock().unwrap() = how;
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
        let (status, answer) = match self.answer(&call, &serde_json::from_slice(&body).unwrap_or_default()) {
            Some(answer) => ("200 OK", answer.to_string()),
            None => ("404 Not Found", String::from("404 page not found\n")),
        };
        let length = answer.len();
        write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{answer}")
            .ok()
    }

    /// None: it does not know the call.
    fn answer(&self, call: &str, body: &Value) -> Option<Value> {
        let name = body["Name"].as_str().unwrap_or_default();
        let is_made = self.made.lock().unwrap().iter().any(|made| made == name);
        let (_, verb) = call.split_once('.')?;
        if let "Activate" | "Capabilities" = verb {
            self.greetings.lock().unwrap().push(verb.to_owned());
            let how = *self.greets.lock().unwrap();
            return match (verb, how) {
                ("Activate", _) => Some(json!({"Implements": ["VolumeDriver"]})),
                (_, Greets::Well) => Some(json!({"Capabilities": {"Scope": "global"}})),
                (_, Greets::AsOfOld) => None,
                (_, Greets::Never) => loop {
                    std::thread::park();
                },
            };
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
