//! Nested containers through the agent's API. Calls are retried while the agent is disconnected: it may be restarting,
//! and the executor exits if the agent does not return in time.

use std::convert::Infallible;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use tepui_client::operator::Client;
use tepui_client::operator::attach::Output;
use tepui_client::operator::session::ContainerOutput;
use tepui_client::v1::agent::{Call, Response};
use tepui_client::v1::{CommandInfo, ContainerID};
use tepui_client::{Fault, random};

use super::calls;
use super::machine::Waited;
use crate::checks::Outcome;

/// The pause before a call is repeated.
const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// How long a check that ran out of time may take to die before its container is left to the agent.
const CHECK_CLEANUP_TIMEOUT: Duration = Duration::from_secs(10);

/// Retries a call until the agent answers it.
async fn send(client: &Client, call: &Call) -> Result<Response, Fault> {
    loop {
        match client.agent(call).await {
            Err(
                Fault::Connect { .. }
                | Fault::Timeout { .. }
                | Fault::Broken { .. }
                | Fault::Refused { status: 503, .. },
            ) => tokio::time::sleep(RETRY_PAUSE).await,
            outcome => return outcome,
        }
    }
}

fn text(fault: Fault) -> String {
    match fault {
        Fault::Refused { message, .. } => message,
        other => other.to_string(),
    }
}

pub async fn launch(client: &Client, call: &Call) -> Result<(), String> {
    send(client, call).await.map(|_| ()).map_err(text)
}

pub async fn wait(client: &Client, container: &ContainerID) -> Waited {
    match send(client, &calls::wait(container)).await {
        Ok(response) => Waited::Ended(Box::new((*response.wait_nested_container).clone())),
        Err(Fault::Refused { status: 404, .. }) => Waited::Unknown,
        Err(fault) => Waited::Failed(text(fault)),
    }
}

/// Repeats the signal until the agent has delivered it, or the container is gone.
pub async fn kill(client: &Client, call: &Call) {
    loop {
        match send(client, call).await {
            Ok(_) | Err(Fault::Refused { status: 400..500, .. }) => return,
            Err(_) => tokio::time::sleep(RETRY_PAUSE).await,
        }
    }
}

/// Runs the command of a check in a session beneath the task's container, and removes that container again.
pub async fn run_check(
    client: &Client,
    task: &ContainerID,
    command: &CommandInfo,
    timeout: Option<Duration>,
) -> Outcome {
    let container = ContainerID {
        value: format!("check-{}", random::uuid_text(&random::uuid())),
        parent: task.clone().into(),
        ..Default::default()
    };
    // Infrastructure errors are no verdict about the task.
    let Ok(output) = client.launch_session(calls::check_session(&container, command)).await else {
        return Outcome::Skipped;
    };
    let wait = calls::wait(&container);
    let attempt = async {
        let ended = client.agent(&wait);
        tokio::select! {
            answer = ended => answer,
            never = pass_on(output) => match never {},
        }
    };
    let outcome = match timeout {
        Some(timeout) => tokio::time::timeout(timeout, attempt).await.map_err(|_| timeout),
        None => Ok(attempt.await),
    };
    match outcome {
        Ok(answer) => {
            remove(client, &container).await;
            verdict(answer)
        }
        Err(timeout) => {
            let (client, container) = (client.clone(), container);
            // The agent kills the session because its stream is closed. The next attempt does not wait for that; leftovers
            // are removed with the task's container.
            tokio::spawn(async move {
                let _ = tokio::time::timeout(CHECK_CLEANUP_TIMEOUT, client.agent(&wait)).await;
                remove(&client, &container).await;
            });
            Outcome::Failed(format!("timed out after {timeout:?}"))
        }
    }
}

/// Writes the output of a check to the executor's stderr. Its exit is returned by the wait.
async fn pass_on(mut output: Output) -> Infallible {
    while let Ok(Some(ContainerOutput::Stdout(bytes) | ContainerOutput::Stderr(bytes))) = output.next().await
    {
        let _ = std::io::stderr().write_all(&bytes); // A full disk is no verdict either.
    }
    // Kept open: the agent kills a session when its stream closes.
    std::future::pending().await
}

async fn remove(client: &Client, container: &ContainerID) {
    // On failure it is removed with the task's container.
    let _ = client.agent(&calls::remove(container)).await;
}

fn verdict(answer: Result<Response, Fault>) -> Outcome {
    let Ok(response) = answer else { return Outcome::Skipped };
    let Some(raw) = response.wait_nested_container.exit_status else { return Outcome::Skipped };
    let status = ExitStatus::from_raw(raw);
    match (status.code(), status.signal()) {
        (Some(code), _) => Outcome::Exited(code),
        // Only the agent kills checks: it was shutting the container down.
        (None, Some(9)) => Outcome::Skipped,
        (None, _) => Outcome::Failed("the check was killed".into()),
    }
}
