//! The process that represents a container other than a command task's: it passes on output and signals, and exits as
//! the container does.
//!
//! Started by a supervisor from our own program; the container is a parameter.

use std::io;
use std::process::ExitCode;

use tepui_docker::{EndWatch, Engine, OutOfMemory, Output, Setup};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// Those that are passed on.
const SIGNALS: [(i32, &str); 6] = [
    (libc::SIGHUP, "SIGHUP"),
    (libc::SIGINT, "SIGINT"),
    (libc::SIGQUIT, "SIGQUIT"),
    (libc::SIGUSR1, "SIGUSR1"),
    (libc::SIGUSR2, "SIGUSR2"),
    (libc::SIGTERM, "SIGTERM"),
];
/// Signals on their way; more at once are the same ones again.
const SIGNALS_WAITING_MAX: usize = 16;

/// Ends with the container's exit code, or 1 and a word on stderr if there is none.
pub(crate) fn work() -> io::Result<ExitCode> {
    let setup = Setup::from_env().map_err(io::Error::other)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let code = runtime.block_on(run(&setup));
    runtime.shutdown_background();
    code.map(|code| ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX)))
}

async fn run(setup: &Setup) -> io::Result<i64> {
    let engine = Engine::at(&setup.socket);
    let mut signals = listen()?;
    let mut document = setup.document.clone();
    let mut watch = EndWatch::begin(&engine, setup, &mut document).await;
    let running = tepui_docker::start(&engine, &setup.name, &document).await.map_err(io::Error::other)?;
    // One that ended at once may be gone already.
    if let Ok(Some(found)) = engine.inspect(&setup.name).await {
        watch.follow(found.state.pid);
    }
    let following = running.follow(Output::own()?);
    let mut following = std::pin::pin!(following);
    loop {
        tokio::select! {
            code = &mut following => {
                let code = code.map_err(io::Error::other)?;
                write_outcome(setup, watch.explain(&engine, &setup.name, &setup.document["HostConfig"], code).await)?;
                return Ok(code);
            }
            Some(name) = signals.recv() => {
                if let Err(fault) = engine.kill(&setup.name, name).await {
                    eprintln!("{fault}");
                }
            }
        }
    }
}

/// The supervisor sees the exit code of this process only; further details are in a file for the agent.
fn write_outcome(setup: &Setup, why: Option<OutOfMemory>) -> io::Result<()> {
    match (&setup.end, why) {
        (Some(file), Some(why)) => std::fs::write(file, serde_json::to_vec(&why)?),
        (_, None) | (None, _) => Ok(()),
    }
}

fn listen() -> io::Result<mpsc::Receiver<&'static str>> {
    let (heard, signals) = mpsc::channel(SIGNALS_WAITING_MAX);
    for (number, name) in SIGNALS {
        let (mut next, heard) = (signal(SignalKind::from_raw(number))?, heard.clone());
        tokio::spawn(async move { while next.recv().await.is_some() && heard.send(name).await.is_ok() {} });
    }
    Ok(signals)
}
