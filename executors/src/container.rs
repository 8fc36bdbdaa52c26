//! The container executor: holds the resources of one container of a Docker engine that clients start and stop themselves.
//!
//! It creates the container, reports it, and follows it to its end by the events of the engine. A container outlives its
//! engine's restarts here, and an executor outlives those of its agent.

pub mod machine;

use std::ops::ControlFlow;
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tepui_docker::{ContainerReport, ContainerTask, Created, Engine, EngineFault, Inspected};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tracing::warn;

use crate::runner::{self, Perform, Reports};
use machine::{ContainerMachine, Effect, IoEvent, NotCreated, Observed};

/// Between two attempts to reach an engine that is away.
const ENGINE_RETRY: Duration = Duration::from_millis(500);

/// The whole life of a container executor.
pub fn main(_: &[String]) -> ExitCode {
    runner::run(|environment, reports| {
        let machine = ContainerMachine::new(environment.shutdown_grace_period);
        tokio::spawn(pass_on_sigterm(reports.io_events.clone())); // Ends with the executor.
        (machine, EnginePerformer { engine: None, former_end: Arc::default(), reports })
    })
}

/// The container is not a process of this executor: a default SIGTERM would leave it running.
async fn pass_on_sigterm(io_events: mpsc::Sender<IoEvent>) {
    match signal(SignalKind::terminate()) {
        Ok(mut received) => {
            while received.recv().await.is_some() {
                let _ = io_events.send(IoEvent::Terminate).await; // An error means that the executor has ended.
            }
        }
        Err(error) => warn!(%error, "SIGTERM not handled"),
    }
}

struct EnginePerformer {
    /// Known from the task.
    engine: Option<Engine>,
    former_end: FormerEnd,
    reports: Reports<IoEvent>,
}

/// When a container that is adopted terminated last: as long as that is its last end, it was not started since.
type FormerEnd = Arc<OnceLock<String>>;

impl Perform<ContainerMachine> for EnginePerformer {
    async fn perform(&mut self, effect: Effect) -> ControlFlow<ExitCode> {
        match effect {
            Effect::Update(status) => self.reports.update(status).await,
            Effect::Create(task) => {
                let engine = self.engine.insert(Engine::at(&task.socket)).clone();
                let former_end = self.former_end.clone();
                self.reports
                    .later(async move { IoEvent::Created(create(&engine, &task, &former_end).await) });
            }
            Effect::Exit(code) => return ControlFlow::Break(ExitCode::from(code)),
            Effect::Follow(id) => self.with_engine(|engine, reports| {
                let former_end = self.former_end.clone();
                tokio::spawn(follow(engine, id, former_end, reports)); // Ends with the container or the executor.
            }),
            Effect::Inspect(id) => self.with_engine(|engine, reports| {
                let former_end = self.former_end.clone();
                reports.later(async move { IoEvent::Inspected(inspect(&engine, &id, &former_end).await) });
            }),
            Effect::Start(id) => self.with_engine(|engine, reports| {
                reports.later(async move {
                    IoEvent::Started(engine.start(&id).await.map_err(|fault| fault.to_string()))
                });
            }),
            Effect::Stop(id, grace) => self.with_engine(|engine, _| {
                tokio::spawn(stop(engine, id, grace)); // Its termination reports the outcome.
            }),
            Effect::Remove(id) => self.with_engine(|engine, reports| {
                reports.later(async move {
                    if let Err(fault) = engine.remove(&id).await {
                        warn!(%fault, "container not removed");
                    }
                    IoEvent::Observed(Observed::Missing)
                });
            }),
        }
        ControlFlow::Continue(())
    }
}

impl EnginePerformer {
    fn with_engine(&self, operate: impl FnOnce(Engine, Reports<IoEvent>)) {
        match &self.engine {
            Some(engine) => operate(engine.clone(), self.reports.clone()),
            None => warn!("no engine reachable before the task's start"), // The machine asks for nothing before it has a task.
        }
    }
}

/// Creates the container, with its image if the engine does not have that; or finds the one to adopt.
async fn create(
    engine: &Engine,
    task: &ContainerTask,
    former_end: &FormerEnd,
) -> Result<ContainerReport, NotCreated> {
    let failed = |fault: EngineFault| NotCreated::Failed(fault.to_string());
    if let Some(id) = &task.adopt {
        return adopt(engine, id, task.is_orphan, former_end).await.map_err(failed);
    }
    let mut created = engine.create(&task.name, &task.document).await;
    if created.as_ref().is_err_and(EngineFault::is_missing) {
        engine.pull(&task.image, None).await.map_err(|fault| match fault {
            EngineFault::Refused { .. } => {
                NotCreated::NoImage { image: task.image.clone(), message: fault.to_string() }
            }
            fault => failed(fault),
        })?;
        created = engine.create(&task.name, &task.document).await;
    }
    find_created(engine, task, created).await.map_err(failed)
}

async fn adopt(
    engine: &Engine,
    id: &str,
    is_orphan: bool,
    former_end: &FormerEnd,
) -> Result<ContainerReport, EngineFault> {
    if let Some(found) = engine.inspect(id).await?.filter(|found| !found.state.running) {
        if is_orphan && found.state.status != "restarting" {
            let message = "it does not run any more".to_owned();
            return Err(EngineFault::Refused { doing: "adopt the container", status: 409, message });
        }
        former_end.get_or_init(|| finished_at(&found));
    }
    report(engine, id).await
}

/// The container that the engine made, also if its answer was lost.
async fn find_created(
    engine: &Engine,
    task: &ContainerTask,
    created: Result<Created, EngineFault>,
) -> Result<ContainerReport, EngineFault> {
    match created {
        Ok(created) => report(engine, &created.id).await,
        Err(fault) if fault.is_uncertain() => match engine.list_labelled(&task.label).await?.first() {
            Some(found) => report(engine, &found.id).await,
            None => Err(fault),
        },
        Err(fault) => Err(fault),
    }
}

async fn report(engine: &Engine, id: &str) -> Result<ContainerReport, EngineFault> {
    let found = engine.inspect(id).await?;
    let found = found.ok_or_else(|| EngineFault::Refused {
        doing: "inspect the container",
        status: 404,
        message: format!("No such container: {id}"),
    })?;
    let name = found.raw["Name"].as_str().unwrap_or_default().trim_start_matches('/').to_owned();
    Ok(ContainerReport { id: found.id, name })
}

/// Reports what happens to the container until it is removed. An engine that is away may come back, with the container.
async fn follow(engine: Engine, id: String, former_end: FormerEnd, reports: Reports<IoEvent>) {
    while let Err(fault) = follow_once(&engine, &id, &former_end, &reports).await {
        warn!(%fault, "engine lost");
        tokio::time::sleep(ENGINE_RETRY).await;
    }
}

async fn follow_once(
    engine: &Engine,
    id: &str,
    former_end: &FormerEnd,
    reports: &Reports<IoEvent>,
) -> Result<(), EngineFault> {
    // Subscribed before the container is looked at: nothing in between is missed.
    let mut events = engine.events(id).await?;
    let send = async |observed: Observed| {
        let _ = reports.io_events.send(IoEvent::Observed(observed)).await; // An error means that the executor has ended.
    };
    let found = observed(engine.inspect(id).await?, former_end);
    let is_gone = found == Observed::Missing;
    send(found).await;
    if is_gone {
        return Ok(());
    }
    while let Some(event) = events.next().await? {
        match event.action.as_str() {
            "start" | "unpause" => send(Observed::Running).await,
            "oom" => send(Observed::OutOfMemory).await,
            "die" => {
                let code = event.exit_code.unwrap_or(-1);
                send(Observed::Exited { code, oom_killed: false, error: String::new() }).await;
            }
            "destroy" => {
                send(Observed::Missing).await;
                return Ok(());
            }
            _ => (),
        }
    }
    let why = "the engine closed its event stream".to_owned();
    Err(EngineFault::Broken { doing: "follow the container", why })
}

/// The state of the container; retried while the engine is unreachable.
async fn inspect(engine: &Engine, id: &str, former_end: &FormerEnd) -> Observed {
    loop {
        match engine.inspect(id).await {
            Ok(found) => return observed(found, former_end),
            Err(fault) => warn!(%fault, "container not inspected"),
        }
        tokio::time::sleep(ENGINE_RETRY).await;
    }
}

fn observed(found: Option<Inspected>, former_end: &FormerEnd) -> Observed {
    let Some(found) = found else { return Observed::Missing };
    let is_former = former_end.get().is_some_and(|end| *end == finished_at(&found));
    let state = found.state;
    match state.status.as_str() {
        "running" | "paused" => Observed::Running,
        "restarting" => Observed::Restarting,
        "removing" => Observed::Missing,
        // A container that could not be started stays `created`, with an exit code and an error; clients may try again.
        "created" => Observed::Created,
        _ if is_former => Observed::Created,
        _ => Observed::Exited { code: state.exit_code, oom_killed: state.oom_killed, error: state.error },
    }
}

fn finished_at(found: &Inspected) -> String {
    found.raw["State"]["FinishedAt"].as_str().unwrap_or_default().to_owned()
}

/// Retried while the engine is unreachable: the container may run there.
async fn stop(engine: Engine, id: String, grace: Duration) {
    while let Err(fault) = engine.stop(&id, grace).await {
        warn!(%fault, "container not stopped");
        tokio::time::sleep(ENGINE_RETRY).await;
    }
}
