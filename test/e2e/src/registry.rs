//! A real image registry on a free port.

use std::fs::File;
use std::process::{Child, Command, Stdio};

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE;
use serde_json::json;
use tepui_facilities::Port;

use crate::{Http, wait_for};

pub const USER: &str = "tepui";
pub const PASSWORD: &str = "open sesame";
/// Of the password, as `htpasswd -B` writes it, with the lowest cost.
const USERS: &str = "tepui:$2b$04$IlNNyagXH2398V9L/zSveuPegqFA7EAkfOD/FrhajW4dWfVp73tbC\n";

/// Dropping it ends the process and removes its images.
pub struct Registry {
    child: Child,
    _port: Port,
    /// `127.0.0.1:port`; engines accept registries on loopback without TLS.
    pub address: String,
    _folder: tempfile::TempDir,
}

impl Registry {
    /// Gives images to [`USER`] only.
    pub fn start() -> Registry {
        Self::with_users(true)
    }

    /// Serves images without credentials.
    pub fn open() -> Registry {
        Self::with_users(false)
    }

    fn with_users(has_users: bool) -> Registry {
        let folder =
            tempfile::Builder::new().prefix("tepui-registry-").tempdir().expect("a temporary directory");
        let port = Port::take();
        let address = port.address();
        let (users, images) = (folder.path().join("users"), folder.path().join("images"));
        std::fs::write(&users, USERS).expect("a file");
        let mut config = json!({
            "version": "0.1",
            "storage": {"filesystem": {"rootdirectory": images}},
            "http": {"addr": address},
        });
        if has_users {
            config["auth"] = json!({"htpasswd": {"realm": "registry", "path": users}});
        }
        let file = folder.path().join("config.yml");
        std::fs::write(&file, config.to_string()).expect("a file"); // JSON is YAML.
        let log = File::create(folder.path().join("log")).expect("a log");
        let child = Command::new("docker-registry")
            .arg("serve")
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a log"))
            .stderr(log)
            .spawn()
            .expect("docker-registry starts; test/setup installs it");
        let http = Http::new(&address);
        wait_for("the registry to answer", || {
            std::net::TcpStream::connect(&address).ok()?;
            (http.get("/v2/").status == if has_users { 401 } else { 200 }).then_some(())
        });
        Registry { child, _port: port, address, _folder: folder }
    }

    /// Stops it: it accepts connections and answers nothing.
    pub fn pause(&self) {
        crate::signal(self.child.id(), "STOP");
    }

    pub fn resume(&self) {
        crate::signal(self.child.id(), "CONT");
    }

    /// A header that carries the password, as clients of the Docker API send it.
    pub fn auth(&self) -> String {
        let auth = json!({"username": USER, "password": PASSWORD, "serveraddress": self.address});
        BASE64_URL_SAFE.encode(auth.to_string())
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
