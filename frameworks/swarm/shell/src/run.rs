//! Starting and stopping a manager.

use std::path::Path;
use std::sync::Arc;

use tepui_store::{Headroom, Store, limit_mode, private_directory};
use tepui_swarm::{Host, Manage};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracing::info;

use crate::access::Access;
use crate::election::Election;
use crate::fault::ManagerFault;
use crate::front::Front;
use crate::guard::Guard;
use crate::listen::Listener;
use crate::term::Term;
use crate::tls::Tls;

const RECORDS_FILE: &str = "swarm.redb";
const FILE_MODE: u32 = 0o600;

/// A manager that runs.
#[derive(Debug)]
pub struct RunningManager {
    addresses: Vec<String>,
    serving: Vec<JoinHandle<()>>,
    rule: Rule,
}

/// How it comes to lead.
#[derive(Debug)]
enum Rule {
    /// It is the only one.
    Alone(Box<Term>),
    /// When it is elected.
    Elected { stop: watch::Sender<bool>, election: JoinHandle<Result<(), ManagerFault>> },
}

/// Starts a manager. Must be called inside a tokio runtime.
pub async fn run(manage: Manage, access: Access) -> Result<RunningManager, ManagerFault> {
    for option in &manage.ignored {
        info!(option, "option has no meaning here and is ignored");
    }
    let tls = manage.tls.as_ref().map(Tls::load).transpose()?;
    let mut listeners = Vec::new();
    for host in &manage.hosts {
        listeners.push(Listener::bind(host).await.map_err(|err| listen_fault(host, err))?);
    }
    let guard = Guard::of(&manage).map_err(ManagerFault::AllowedHosts)?;
    let front = Front::standby(tls.clone(), guard);
    let manage = Arc::new(manage);
    let rule = match manage.replication.clone() {
        None => {
            let store = open_store(Path::new(&manage.state))?;
            let term = Term::begin(manage, store, tls.as_ref(), &access).await?;
            front.lead(term.api.clone());
            Rule::Alone(Box::new(term))
        }
        Some(replication) => {
            let (stop, stop_asked) = watch::channel(false);
            let (tls, front) = (tls.clone(), front.clone());
            let election = Election { manage, replication, tls, access, front, stop: stop_asked };
            // Its failure is the manager's: `ended` says why.
            Rule::Elected { stop, election: tokio::spawn(election.run()) }
        }
    };
    let addresses = listeners.iter().map(Listener::address).collect();
    let serving = listeners.into_iter().map(|it| it.serve(front.clone(), tls.clone())).collect();
    Ok(RunningManager { addresses, serving, rule })
}

impl RunningManager {
    /// Where it listens, as `docker -H` takes it.
    pub fn addresses(&self) -> &[String] {
        &self.addresses
    }

    /// Waits until the manager cannot go on; the error says why. Cancel safe.
    pub async fn ended(&mut self) -> ManagerFault {
        let ended = || ManagerFault::Session("the election has ended".to_owned());
        match &mut self.rule {
            Rule::Alone(term) => term.ended().await,
            Rule::Elected { election, .. } => match election.await {
                Ok(Ok(())) => ended(),
                Ok(Err(fault)) => fault,
                Err(err) => ManagerFault::Session(format!("the election failed: {err}")),
            },
        }
    }

    /// Stops it in order: no more requests, then the machine with its records. Containers go on.
    pub async fn stop(self) -> Result<(), ManagerFault> {
        for listener in self.serving {
            listener.abort();
        }
        match self.rule {
            Rule::Alone(term) => term.end().await,
            Rule::Elected { election, .. } if election.is_finished() => Ok(()), // `ended` said why.
            Rule::Elected { stop, election } => {
                stop.send_replace(true);
                election.await.unwrap_or_else(|err| Err(ManagerFault::Session(err.to_string())))
            }
        }
    }
}

fn open_store(directory: &Path) -> Result<Store, ManagerFault> {
    let fault = |err| ManagerFault::StateDirectory { path: directory.to_owned(), err };
    private_directory(directory).map_err(fault)?;
    let file = directory.join(RECORDS_FILE);
    let store = Store::open(&file, Headroom::default())?;
    limit_mode(&file, FILE_MODE).map_err(fault)?;
    Ok(store)
}

fn listen_fault(host: &Host, err: std::io::Error) -> ManagerFault {
    let host = match host {
        Host::Tcp(address) => format!("tcp://{address}"),
        Host::Unix(path) => format!("unix://{path}"),
    };
    let is_busy = err.kind() == std::io::ErrorKind::AddrInUse && host.contains(":2375");
    let hint = match is_busy {
        true => ": is Docker already running on this machine? Try using a different port",
        false => "",
    };
    ManagerFault::Listen { host, err, hint }
}
