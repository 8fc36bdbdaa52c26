//! Starting and ending a master.

use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt;
use std::sync::Arc;

use tepui_http::Listening;
use tepui_program::Process;
use tepui_store::{Headroom, Store, limit_mode, limit_own_directory};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::candidacy::Candidacy;
use crate::fault::MasterFault;
use crate::front::Front;
use crate::options::{Options, RegistryAt};
use crate::term::{REGISTRY_FILE, Term, master_info};

/// Only the master reads its registry and lists the directory of it.
const DIRECTORY_MODE: u32 = 0o711;
const FILE_MODE: u32 = 0o600;

/// Under what name the master's log is shown.
const LOG: &str = "/master/log";

/// A master that runs. Dropping it leaves it running; end it with `stop`.
#[derive(Debug)]
pub struct RunningMaster {
    address: SocketAddr,
    listening: Listening,
    rule: Rule,
    process: Process,
}

/// How it comes to lead.
#[derive(Debug)]
enum Rule {
    /// It is the only one.
    Alone(Term),
    /// When it is elected.
    Elected { stop: watch::Sender<bool>, reign: JoinHandle<Result<(), MasterFault>> },
}

/// Starts a master. Must be called inside a tokio runtime.
pub async fn run(options: Options) -> Result<RunningMaster, MasterFault> {
    let process = Process::open("master", LOG, &options.process)?;
    let front =
        Arc::new(Front::new(process.clone(), options.access.clone(), options.config.authorizer.clone()));
    let process_options = options.process.clone();
    let (server, rule) = match open_store(&options.registry, options.process.headroom)? {
        Some(store) => {
            let server = options.process.bind()?;
            let info = master_info(&options, server.address())?;
            let term = Term::begin(&options, &process, info, store, None).await?;
            front.lead(term.program.clone());
            (server, Rule::Alone(term))
        }
        None => {
            options.config.check().map_err(MasterFault::Config)?;
            let server = options.process.bind()?;
            let bound = server.address();
            (server, elected(options, process.clone(), bound, front.clone()))
        }
    };
    let address = server.address();
    let listening = process_options.serve(server, front);
    tracing::info!(%address, "master listening");
    Ok(RunningMaster { address, listening, rule, process })
}

fn elected(options: Options, process: Process, bound: SocketAddr, front: Arc<Front>) -> Rule {
    let RegistryAt::Etcd(address) = options.registry.clone() else {
        unreachable!("only a registry in etcd is opened by an election");
    };
    let (stop, stop_requested) = watch::channel(false);
    let reign = Candidacy { options, process, bound, front, stop: stop_requested };
    // Its failure is the master's: `ended` resolves, `stop` returns it.
    Rule::Elected { stop, reign: tokio::spawn(reign.run(address)) }
}

impl RunningMaster {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until the master terminates by itself; `stop` then returns the reason. Cancel safe.
    pub async fn ended(&mut self) {
        match &mut self.rule {
            Rule::Alone(term) => term.ended().await,
            // The task holds the receiver until it ends.
            Rule::Elected { stop, .. } => stop.closed().await,
        }
    }

    /// Ends it in order.
    pub async fn stop(self) -> Result<(), MasterFault> {
        let result = match self.rule {
            Rule::Alone(term) => {
                let halted = term.halted();
                let ended = term.end().await.map_err(MasterFault::from);
                halted.map_or(ended, Err)
            }
            Rule::Elected { stop, reign } => {
                stop.send_replace(true);
                reign.await.unwrap_or_else(|err| Err(MasterFault::Candidacy(err.to_string())))
            }
        };
        self.listening.stop().await;
        self.process.flush();
        result
    }
}

/// None if it is opened by an election.
fn open_store(registry: &RegistryAt, headroom: Headroom) -> Result<Option<Store>, MasterFault> {
    match registry {
        RegistryAt::Memory => Ok(Some(Store::memory())),
        RegistryAt::WorkDir(dir) => {
            let fault = |err| MasterFault::WorkDir { path: dir.clone(), err };
            let file = dir.join(REGISTRY_FILE);
            // An agent may have the same directory, and its tasks have to find their sandboxes.
            std::fs::DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(dir).map_err(fault)?;
            limit_own_directory(dir, DIRECTORY_MODE).map_err(fault)?;
            let store = Store::open(&file, headroom)?;
            limit_mode(&file, FILE_MODE).map_err(fault)?;
            Ok(Some(store))
        }
        RegistryAt::Etcd(_) => Ok(None),
    }
}
