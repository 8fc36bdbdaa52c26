//! A Docker volume driver for tests: volumes are directories that all its sockets share, and a test chooses its faults.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use serde_json::{Value, json};

/// How a driver behaves from now on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fault {
    #[default]
    None,
    /// Mount fails with an error.
    Fails,
    /// Mount is not answered until the fault is another.
    Hangs,
    /// Mount takes this long.
    Slow(Duration),
    /// Volumes that were created are not known any more.
    Forgets,
}

/// A driver with one socket for each agent, as a storage system has one daemon on each machine. Cheap to clone.
#[derive(Clone, Debug)]
pub struct VolumeDriver {
    folder: PathBuf,
    state: Arc<(Mutex<State>, Condvar)>,
}

#[derive(Debug, Default)]
struct State {
    fault: Fault,
    /// Only on these agents; on all without any.
    faulty: BTreeSet<String>,
    created: BTreeMap<String, Value>,
    /// Volume and agents that have it mounted.
    mounted: BTreeMap<String, BTreeSet<String>>,
    calls: Vec<String>,
}

impl VolumeDriver {
    pub fn new(folder: &Path) -> Self {
        std::fs::create_dir_all(folder).expect("a folder for volumes");
        Self { folder: folder.to_owned(), state: Arc::default() }
    }

    /// Listens in a plugin directory of its own for an agent; the directory is for `--docker_volume_plugin_dirs`.
    pub fn listen(&self, agent: &str, driver: &str) -> PathBuf {
        let directory = self.folder.join("plugins").join(agent);
        std::fs::create_dir_all(&directory).expect("a plugin directory");
        let listener = UnixListener::bind(directory.join(format!("{driver}.sock"))).expect("a socket");
        let (driver, agent) = (self.clone(), agent.to_owned());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (driver, agent) = (driver.clone(), agent.clone());
                std::thread::spawn(move || driver.serve(&agent, stream));
            }
        });
        directory
    }

    /// Behaves like this from now on, on all agents.
    pub fn set(&self, fault: Fault) {
        self.set_on(&[], fault);
    }

    /// The same on some agents only.
    pub fn set_on(&self, agents: &[&str], fault: Fault) {
        let mut state = self.lock();
        state.fault = fault;
        state.faulty = agents.iter().map(|agent| (*agent).to_owned()).collect();
        if fault == Fault::Forgets {
            state.created.clear();
            state.mounted.clear();
        }
        drop(state);
        self.state.1.notify_all();
    }

    /// Where the content of a volume is.
    pub fn volume(&self, name: &str) -> PathBuf {
        self.folder.join("volumes").join(name)
    }

    /// Volumes with the options that they were created with.
    pub fn created(&self) -> BTreeMap<String, Value> {
        self.lock().created.clone()
    }

    /// Agents that have a volume mounted.
    pub fn mounted(&self, volume: &str) -> BTreeSet<String> {
        self.lock().mounted.get(volume).cloned().unwrap_or_default()
    }

    /// How often a call came for a volume on any agent: `Mount data_0`.
    pub fn count(&self, call: &str) -> usize {
        self.lock().calls.iter().filter(|one| *one == call).count()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.0.lock().expect("no code panics while it holds this lock")
    }

    fn serve(&self, agent: &str, mut stream: UnixStream) -> Option<()> {
        let mut reader = BufReader::new(stream.try_clone().ok()?);
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let verb = line.split_whitespace().nth(1)?.rsplit('.').next()?.to_owned();
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
        let answer = self.answer(agent, &verb, &serde_json::from_slice(&body).unwrap_or_default());
        let text = answer.to_string();
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", text.len());
        stream.write_all(head.as_bytes()).ok()?;
        stream.write_all(text.as_bytes()).ok()
    }

    fn answer(&self, agent: &str, verb: &str, body: &Value) -> Value {
        let name = body["Name"].as_str().unwrap_or_default().to_owned();
        self.lock().calls.push(format!("{verb} {name}"));
        let path = self.volume(&name);
        match verb {
            "Activate" => json!({"Implements": ["VolumeDriver"]}),
            "Capabilities" => json!({"Capabilities": {"Scope": "global"}}),
            "Create" => {
                std::fs::create_dir_all(&path).expect("a volume");
                self.lock().created.insert(name, body["Opts"].clone());
                json!({"Err": ""})
            }
            "Mount" => self.mount(agent, &name, &path),
            "Unmount" => {
                if let Some(agents) = self.lock().mounted.get_mut(&name) {
                    agents.remove(agent);
                }
                json!({"Err": ""})
            }
            "Get" | "Path" if self.lock().created.contains_key(&name) => {
                json!({"Volume": {"Name": name, "Mountpoint": path}, "Mountpoint": path, "Err": ""})
            }
            "Remove" => json!({"Err": ""}),
            "List" => json!({"Volumes": [], "Err": ""}),
            _ => json!({"Err": format!("no such volume: {name}")}),
        }
    }

    fn mount(&self, agent: &str, name: &str, path: &Path) -> Value {
        let mut state = self.lock();
        let applies = |state: &State| state.faulty.is_empty() || state.faulty.contains(agent);
        while state.fault == Fault::Hangs && applies(&state) {
            state = self.state.1.wait(state).expect("no code panics while it holds this lock");
        }
        match state.fault {
            Fault::Fails if applies(&state) => return json!({"Err": "the storage is out of order"}),
            Fault::Slow(delay) if applies(&state) => {
                drop(state);
                std::thread::sleep(delay);
                state = self.lock();
            }
            Fault::None | Fault::Fails | Fault::Slow(_) | Fault::Forgets | Fault::Hangs => (),
        }
        if !state.created.contains_key(name) {
            return json!({"Err": format!("no such volume: {name}")});
        }
        state.mounted.entry(name.to_owned()).or_default().insert(agent.to_owned());
        json!({"Mountpoint": path, "Err": ""})
    }
}
