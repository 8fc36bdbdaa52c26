//! A real etcd on free ports of this machine, for what is measured with several masters.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tepui_client::operator::Client;
use tepui_facilities::Port;

/// How long the members may take to find each other.
const HEALTHY_TIMEOUT: Duration = Duration::from_secs(60);

/// Running members. Dropping it ends them.
#[derive(Debug)]
pub struct Etcd {
    members: Vec<Child>,
    clients: Vec<String>,
    _ports: Vec<Port>,
}

impl Etcd {
    pub async fn start(folder: &Path, members: usize) -> Result<Self> {
        let ports: Vec<Port> = (0..members * 2).map(|_| Port::take()).collect();
        let url = |port: &Port| format!("http://{}", port.address());
        let peer = |at: usize| url(&ports[members + at]);
        let cluster: Vec<String> = (0..members).map(|at| format!("m{at}={}", peer(at))).collect();
        let mut etcd = Self { members: Vec::new(), clients: Vec::new(), _ports: Vec::new() };
        for (at, port) in ports.iter().take(members).enumerate() {
            let log = File::create(folder.join(format!("etcd-{at}.log")))?;
            let child = Command::new("etcd")
                .arg(format!("--name=m{at}"))
                .arg(format!("--data-dir={}", folder.join(format!("etcd-{at}")).display()))
                .arg(format!("--listen-client-urls={}", url(port)))
                .arg(format!("--advertise-client-urls={}", url(port)))
                .arg(format!("--listen-peer-urls={}", peer(at)))
                .arg(format!("--initial-advertise-peer-urls={}", peer(at)))
                .arg(format!("--initial-cluster={}", cluster.join(",")))
                .args(["--heartbeat-interval=50", "--election-timeout=500"])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(log)
                .spawn()
                .context("etcd does not start; test/setup installs it")?;
            etcd.members.push(child);
            etcd.clients.push(port.address());
        }
        etcd._ports = ports;
        etcd.healthy().await?;
        Ok(etcd)
    }

    /// `etcd://host:port,host:port/prefix`.
    pub fn address(&self) -> String {
        format!("etcd://{}/tepui/bench", self.clients.join(","))
    }

    async fn healthy(&self) -> Result<()> {
        let began = Instant::now();
        for client in &self.clients {
            let client = Client::new(client)?;
            while client.get("/health").await.is_err() {
                if began.elapsed() > HEALTHY_TIMEOUT {
                    bail!("etcd does not become healthy");
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        Ok(())
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        for child in &mut self.members {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
