//! `cargo run --profile dist -p tepui-bench -- <name>`: runs one benchmark, prints its table, writes its JSON.
#![forbid(unsafe_code)]

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use tepui_bench::{
    Report, allocator, containers, end_to_end, failover, idle, launch, long_running, memory, metrics,
    operators, reading, registry, service, state, swarm, swarm_front, swarm_run, takeover, weights,
};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The numbers of SPECIFICATION.md. Build the binary first: cargo build --profile dist.
#[derive(Parser)]
#[command(name = "tepui-bench")]
struct Bench {
    #[command(subcommand)]
    which: Benchmark,
    /// Also write the result to this file, as JSON.
    #[arg(long, global = true)]
    json: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Benchmark {
    /// Short tasks through the HTTP API, on simulated agents.
    Launch(launch::Options),
    /// A killed master comes back; so do thousands of agents.
    Failover(failover::Options),
    /// Memory of the master per agent and per task.
    Memory(memory::Options),
    /// Processor time of `tepui dev` while nothing happens.
    Idle(idle::Options),
    /// Real tasks on real agents.
    EndToEnd(end_to_end::Options),
    /// Containers launched and ended, by how many are alive; and beside a bare fork and exec.
    Containers(containers::Options),
    /// An agent whose containers only stand there: idle, read, recovered.
    LongRunning(long_running::Options),
    /// The leading one of several masters is killed; another takes its place.
    Takeover(takeover::Options),
    /// Changes of the registry, made durable.
    Registry(registry::Options),
    /// The allocator alone.
    Allocator(allocator::Options),
    /// Launches in a large cluster without and with readers.
    Read(reading::Options),
    /// `/state` with many running and completed tasks, read by several clients at once.
    State(state::Options),
    /// Followers of the operators' event stream.
    Operators(operators::Options),
    /// Metrics of many frameworks.
    Metrics(metrics::Options),
    /// The manager of `tepui swarm` with thousands of engines and containers.
    Swarm(swarm::Options),
    /// `docker info` and `docker ps -a` through `tepui swarm`, with simulated agents and engines.
    SwarmFront(swarm_front::Options),
    /// `docker run -d` through `tepui swarm`, beside the same engine directly.
    SwarmRun(swarm_run::Options),
    /// The scheduler of `tepui service`: deployment, cost of one more pod, restart.
    Service(service::Options),
    /// Many clients change weights at once.
    Weights(weights::Options),
}

fn main() -> Result<()> {
    let bench = Bench::parse();
    let report = run(&bench.which)?;
    print!("{report}");
    println!("{}", report.to_json());
    if let Some(path) = &bench.json {
        let text = format!("{:#}\n", report.to_json());
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

fn run(which: &Benchmark) -> Result<Report> {
    match which {
        Benchmark::Launch(options) => launch::run(options),
        Benchmark::Failover(options) => failover::run(options),
        Benchmark::Memory(options) => memory::run(options),
        Benchmark::Idle(options) => idle::run(options),
        Benchmark::EndToEnd(options) => end_to_end::run(options),
        Benchmark::Containers(options) => containers::run(options),
        Benchmark::LongRunning(options) => long_running::run(options),
        Benchmark::Takeover(options) => takeover::run(options),
        Benchmark::Allocator(options) => allocator::run(options),
        Benchmark::Read(options) => reading::run(options),
        Benchmark::State(options) => state::run(options),
        Benchmark::Operators(options) => operators::run(options),
        Benchmark::Metrics(options) => metrics::run(options),
        Benchmark::Registry(options) => registry::run(options),
        Benchmark::Swarm(options) => swarm::run(options),
        Benchmark::SwarmFront(options) => swarm_front::run(options),
        Benchmark::SwarmRun(options) => swarm_run::run(options),
        Benchmark::Service(options) => service::run(options),
        Benchmark::Weights(options) => weights::run(options),
    }
}
