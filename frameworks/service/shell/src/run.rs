//! Starting and ending the scheduler of a service.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use tepui_http::{Listening, Server, ServerLimits, advertised_ip};
use tepui_service::scheduler::View;
use tepui_store::{Headroom, Store, StoreFault, limit_mode, private_directory};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracing::info;

use crate::driver::Halt;
use crate::fault::{End, ServiceFault};
use crate::front::{Access, Front};
use crate::options::{Options, StoreAt};
use crate::standby::Standby;
use crate::term::{ApiAddress, Published, Term};

const RECORDS_FILE: &str = "service.redb";
const FILE_MODE: u32 = 0o600;

/// A scheduler that runs.
#[derive(Debug)]
pub struct RunningService {
    api: ApiAddress,
    listening: Listening,
    role: Role,
    published: Published,
}

#[derive(Debug)]
enum Role {
    /// The only scheduler.
    Alone(Box<Term>),
    /// Active when it is elected.
    Elected { stop: watch::Sender<bool>, task: JoinHandle<Result<End, ServiceFault>> },
}

/// Starts a scheduler. Must be called inside a tokio runtime.
pub async fn run(options: Options) -> Result<RunningService, ServiceFault> {
    let store = match &options.store {
        StoreAt::WorkDir(directory) => Some(open_store(directory)?),
        StoreAt::Etcd(_) => None,
    };
    let listen = SocketAddr::new(options.ip, options.port);
    let server = Server::bind(listen).map_err(|err| ServiceFault::Listen { address: listen, err })?;
    let host = options.hostname.clone().unwrap_or_else(|| advertised_ip(options.ip).to_string());
    let scheme = if options.tls.is_some() { "https" } else { "http" };
    let api = ApiAddress { scheme, host, port: server.address().port() };
    let may_upload = options.authentication.is_some() || options.allow_insecure;
    let access = Access { authentication: options.authentication.clone(), may_upload };
    let front = Arc::new(Front::new(access, options.reload.clone()));
    let published = watch::channel(None).0;
    let browsers = options.browsers.clone().with_own_names(options.hostname.as_deref(), None, options.ip);
    let tls = options.tls.clone();
    let role = match (store, options.store.clone()) {
        (Some(store), _) => {
            let term = Term::begin(&options, &api, store, None).await?;
            front.activate(term.handle.clone());
            published.send_replace(Some(term.views()));
            Role::Alone(Box::new(term))
        }
        (None, StoreAt::Etcd(address)) => {
            let (stop, stop_asked) = watch::channel(false);
            let (front, published) = (front.clone(), published.clone());
            let standby = Standby { options, api: api.clone(), front, published, stop: stop_asked };
            Role::Elected { stop, task: tokio::spawn(standby.run(address)) }
        }
        (None, StoreAt::WorkDir(_)) => unreachable!("a store in a directory is open"),
    };
    let listening = server.serve(front, ServerLimits::default(), browsers, tls);
    info!(address = api.url(), "API listening");
    Ok(RunningService { api, listening, role, published })
}

impl RunningService {
    /// URL of the API.
    pub fn url(&self) -> String {
        self.api.url()
    }

    /// The views of the active scheduler; none while this one stands by.
    pub fn published(&self) -> watch::Receiver<Option<watch::Receiver<Arc<View>>>> {
        self.published.subscribe()
    }

    /// Waits until the scheduler ends by itself; `stop` then gives the reason. Cancel safe.
    pub async fn ended(&mut self) {
        match &mut self.role {
            Role::Alone(term) => drop(term.ended().await),
            // The task holds the receiver until it ends.
            Role::Elected { stop, .. } => stop.closed().await,
        }
    }

    /// Ends it in order, or gives the reason why it ended by itself.
    pub async fn stop(self) -> Result<End, ServiceFault> {
        let result = match self.role {
            Role::Alone(mut term) => {
                // Ready at once if the scheduler has ended by itself.
                let halt = tokio::select! {
                    biased;
                    halt = term.ended() => halt,
                    () = std::future::ready(()) => None,
                };
                let ended = term.end().await;
                match halt {
                    Some(Halt::Finished(framework)) => Ok(End::Uninstalled(framework)),
                    Some(Halt::Failed(why)) => Err(ServiceFault::Stopped(why)),
                    None => ended.map(|()| End::Stopped).map_err(ServiceFault::from),
                }
            }
            Role::Elected { stop, task } => {
                stop.send_replace(true);
                task.await.unwrap_or_else(|err| Err(ServiceFault::Stopped(err.to_string())))
            }
        };
        self.listening.stop().await;
        result
    }
}

fn open_store(directory: &Path) -> Result<Store, ServiceFault> {
    let fault = |err| ServiceFault::WorkDir { path: directory.to_owned(), err };
    private_directory(directory).map_err(fault)?;
    let file = directory.join(RECORDS_FILE);
    let store = Store::open(&file, Headroom::default()).map_err(|fault| match fault {
        StoreFault::Locked { path } => ServiceFault::Locked { path },
        other => ServiceFault::Store(other),
    })?;
    limit_mode(&file, FILE_MODE).map_err(fault)?;
    Ok(store)
}
