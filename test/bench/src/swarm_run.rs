//! `swarm-run`: the calls of `docker run -d` through `tepui swarm`, in turns with the same engine directly. Needs root.
//!
//! A real engine, agent, master and manager. Each container is created, waited for (until the head of that answer arrives) and
//! started, each call over a connection of its own as the docker CLI does it, and removed after that. `held`: the manager holds
//! an offer when the create arrives. `back to back`: it may have to wait for one.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use http::{Method, Response, StatusCode};
use hyper::body::Incoming;
use serde_json::{Value, json};

use crate::dockerd::{Dockerd, IMAGE, Networks};
use crate::program::Program;
use crate::report::{Report, Row};
use crate::spread::Spread;
use crate::web;

const RESOURCES: &str = "cpus:64;mem:65536;disk:65536;ports:[31000-32000]";
/// Between two looks at the manager.
const LOOK_EVERY: Duration = Duration::from_millis(5);

#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Containers of each kind.
    #[arg(long, default_value_t = 100)]
    pub samples: usize,
}

/// Where containers are run.
enum Target<'a> {
    Engine(&'a Path),
    Manager(&'a str),
}

pub fn run(options: &Options) -> Result<Report> {
    tokio::runtime::Runtime::new()?.block_on(all(options))
}

async fn all(options: &Options) -> Result<Report> {
    let folder = tempfile::Builder::new().prefix("tepui-bench-").tempdir()?;
    let engine = Dockerd::start(Networks::Host);
    let socket = engine.socket();
    let master = Program::master(folder.path(), &[])?;
    let flags = [
        format!("--resources={RESOURCES}"),
        format!("--attributes=docker_socket:{}", socket.display()),
        "--hostname=127.0.0.1".to_owned(),
    ];
    let _agent = Program::agent(folder.path(), 0, &master.address, &flags)?;
    let cluster = ["mesos.tasktimeout=10m".to_owned(), "mesos.offerrefusetimeout=10ms".to_owned()];
    let manager = Program::swarm(folder.path(), &master.address, &cluster)?;
    let (direct, through) = (Target::Engine(&socket), Target::Manager(&manager.address));
    let [mut alone, mut held, mut pressed] = [(); 3].map(|()| Spread::default());
    for number in 0..options.samples {
        alone.push(direct.run(&format!("direct-{number}")).await?);
        wait_for_offer(&manager.address).await?;
        held.push(through.run(&format!("held-{number}")).await?);
        pressed.push(through.run(&format!("pressed-{number}")).await?);
    }
    let mut report = Report::new("swarm-run").setting("samples", options.samples);
    for (what, spread) in [("engine", &alone), ("manager, held", &held), ("manager, back to back", &pressed)]
    {
        let ratio = |percent: f64| spread.percentile_ms(percent) / alone.percentile_ms(percent);
        let row = spread.percentiles(Row::new().with("what", what));
        report.push(row.measured("ratio_p50", ratio(50.0)).measured("ratio_p99", ratio(99.0)));
    }
    Ok(report)
}

impl Target<'_> {
    /// Creates and starts a container; how long that took. Its exit is awaited from before its start on. Then it is removed.
    async fn run(&self, name: &str) -> Result<Duration> {
        let body = json!({
            "Image": IMAGE,
            "Cmd": ["sleep", "1000"],
            "HostConfig": {"Memory": 20 << 20, "NetworkMode": "none"},
        });
        let began = Instant::now();
        let path = format!("/v1.41/containers/create?name={name}");
        let (status, created) = web::document(self.call(Method::POST, &path, &body).await?).await?;
        ensure!(status == StatusCode::CREATED, "create {name}: {status} {created}");
        let id = created["Id"].as_str().context("a created container has an id")?;
        let path = format!("/v1.41/containers/{id}/wait?condition=next-exit");
        let exit = self.call(Method::POST, &path, &json!({})).await?;
        ensure!(exit.status() == StatusCode::OK, "wait {name}: {}", exit.status());
        let path = format!("/v1.41/containers/{id}/start");
        let (status, answer) = web::document(self.call(Method::POST, &path, &json!({})).await?).await?;
        ensure!(status == StatusCode::NO_CONTENT, "start {name}: {status} {answer}");
        let took = began.elapsed();
        let path = format!("/v1.41/containers/{id}?force=1");
        let (status, answer) = web::document(self.call(Method::DELETE, &path, &json!({})).await?).await?;
        ensure!(status == StatusCode::NO_CONTENT, "remove {name}: {status} {answer}");
        Ok(took)
    }

    async fn call(&self, method: Method, path: &str, body: &Value) -> Result<Response<Incoming>> {
        match self {
            Target::Engine(socket) => web::call_unix(socket, method, path, body).await,
            Target::Manager(address) => web::call(address, method, path, body).await,
        }
    }
}

async fn wait_for_offer(manager: &str) -> Result<()> {
    loop {
        let info = web::get_json(manager, "/v1.41/info").await?;
        let rows = info["SystemStatus"].as_array().cloned().unwrap_or_default();
        if rows.contains(&json!(["Offers", "1"])) && rows.iter().any(|row| row[1] == "Healthy") {
            return Ok(());
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
