//! Drives an executor machine: passes it events, happenings and deadlines, and performs its effects until it exits.

use std::ops::ControlFlow;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use tepui_client::executor::{Environment, Event, Executor, Reporter};
use tepui_client::v1::TaskStatus;
use tepui_client::{Format, executor, random};
use tokio::sync::mpsc;
use tracing::{info, warn};

use crate::machine::{Machine, Moment};

/// Happenings queued for the machine. Senders block when it is full.
const HAPPENINGS_QUEUE_MAX: usize = 1024;
/// Time for log lines and sockets to drain after the last update.
const BLOCKING_SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(100);

/// Carries out effects.
pub trait Hands<M: Machine> {
    /// Performs one effect; `Break` exits the executor. Long operations run in the background and report through `happenings`.
    fn perform(&mut self, effect: M::Effect) -> impl Future<Output = ControlFlow<ExitCode>>;
}

/// What hands need to report: updates to the agent, happenings to their machine.
#[derive(Clone, Debug)]
pub struct Reports<H> {
    reporter: Reporter,
    pub happenings: mpsc::Sender<H>,
}

impl<H: Send + 'static> Reports<H> {
    pub async fn update(&self, status: TaskStatus) {
        info!(task = status.task_id.value, state = ?status.state, message = status.message, "update");
        // An error means that the session has terminated, which the machine receives as an event.
        let _ = self.reporter.update(status).await;
    }

    /// Reports the result of a future.
    pub fn later(&self, happening: impl Future<Output = H> + Send + 'static) {
        let happenings = self.happenings.clone();
        tokio::spawn(async move {
            // An error means that the executor has exited.
            let _ = happenings.send(happening.await).await;
        });
    }
}

/// Runs an executor in the environment set by its agent, until it exits.
pub fn run<M, H>(start: impl FnOnce(&Environment, Reports<M::Happening>) -> (M, H)) -> ExitCode
where
    M: Machine,
    M::Happening: Send + 'static,
    H: Hands<M>,
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
        let (happenings, happened) = mpsc::channel(HAPPENINGS_QUEUE_MAX);
        let (machine, hands) = start(&environment, Reports { reporter: executor.reporter(), happenings });
        drive(executor, happened, machine, hands).await
    });
    runtime.shutdown_timeout(BLOCKING_SHUTDOWN_TIMEOUT);
    code
}

async fn drive<M: Machine, H: Hands<M>>(
    mut executor: Executor,
    mut happened: mpsc::Receiver<M::Happening>,
    mut machine: M,
    mut hands: H,
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
            Some(happening) = happened.recv() => machine.happened(&mut moment(&mut uuid), happening, &mut effects),
            () = sleep, if deadline.is_some() => machine.due(&mut moment(&mut uuid), &mut effects),
        }
        for effect in effects.drain(..) {
            if let ControlFlow::Break(code) = hands.perform(effect).await {
                return code;
            }
        }
    }
}
