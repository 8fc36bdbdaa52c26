//! Drives an executor machine: passes it events of the agent and of the I/O part, and deadlines, and performs its effects until it exits.

use std::ops::ControlFlow;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use tepui_client::executor::{Environment, Event, Executor, Reporter};
use tepui_client::v1::TaskStatus;
use tepui_client::{Format, executor, random};
use tokio::sync::mpsc;
use tracing::{info, warn};

use crate::machine::{Machine, Moment};

/// I/O events queued for the machine. Senders block when it is full.
const IO_EVENTS_QUEUE_MAX: usize = 1024;
/// Time for log lines and sockets to drain after the last update.
const BLOCKING_SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(100);

/// Carries out effects.
pub trait Perform<M: Machine> {
    /// Performs one effect; `Break` exits the executor. Long operations run in the background and report through `io_events`.
    fn perform(&mut self, effect: M::Effect) -> impl Future<Output = ControlFlow<ExitCode>>;
}

/// Reports of the I/O part: updates to the agent, events to its machine.
#[derive(Clone, Debug)]
pub struct Reports<H> {
    reporter: Reporter,
    pub io_events: mpsc::Sender<H>,
}

impl<H: Send + 'static> Reports<H> {
    pub async fn update(&self, status: TaskStatus) {
        info!(task = status.task_id.value, state = ?status.state, message = status.message, "update");
        // An error means that the session has terminated, which the machine receives as an event.
        let _ = self.reporter.update(status).await;
    }

    /// Reports the result of a future.
    pub fn later(&self, io_event: impl Future<Output = H> + Send + 'static) {
        let io_events = self.io_events.clone();
        tokio::spawn(async move {
            // An error means that the executor has exited.
            let _ = io_events.send(io_event.await).await;
        });
    }
}

/// Runs an executor in the environment set by its agent, until it exits.
pub fn run<M, H>(start: impl FnOnce(&Environment, Reports<M::IoEvent>) -> (M, H)) -> ExitCode
where
    M: Machine,
    M::IoEvent: Send + 'static,
    H: Perform<M>,
{
    crate::process::hide();
    let environment = match Environment::from_env() {
        Ok(environment) => environment,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("cannot start: {error}");
            return ExitCode::FAILURE;
        }
    };
    let code = runtime.block_on(async {
        let executor = executor::connect(&environment, Format::Protobuf);
        let (io_events, received) = mpsc::channel(IO_EVENTS_QUEUE_MAX);
        let (machine, performer) = start(&environment, Reports { reporter: executor.reporter(), io_events });
        drive(executor, received, machine, performer).await
    });
    runtime.shutdown_timeout(BLOCKING_SHUTDOWN_TIMEOUT);
    code
}

async fn drive<M: Machine, H: Perform<M>>(
    mut executor: Executor,
    mut received: mpsc::Receiver<M::IoEvent>,
    mut machine: M,
    mut performer: H,
) -> ExitCode {
    let started = Instant::now();
    let mut connected = true;
    let mut effects = Vec::new();
    loop {
        let deadline = machine.deadline();
        let sleep = tokio::time::sleep_until((started + deadline.unwrap_or_default()).into());
        let mut uuid = random::uuid;
        let moment = |uuid| Moment { now: started.elapsed(), uuid };
        tokio::select! {
            event = executor.next_event(), if connected => match event {
                Some(event) => {
                    if let Event::Error(message) = &event {
                        warn!(message, "error from the agent");
                    }
                    machine.on_event(&mut moment(&mut uuid), event, &mut effects);
                }
                None => {
                    connected = false;
                    machine.abandoned(&mut moment(&mut uuid), &mut effects);
                }
            },
            Some(io_event) = received.recv() => machine.on_io_event(&mut moment(&mut uuid), io_event, &mut effects),
            () = sleep, if deadline.is_some() => machine.due(&mut moment(&mut uuid), &mut effects),
        }
        for effect in effects.drain(..) {
            if let ControlFlow::Break(code) = performer.perform(effect).await {
                return code;
            }
        }
    }
}
