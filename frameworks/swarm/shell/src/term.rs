//! One term: the machine with its records, the session with the master and the engines, from election to end.
//!
//! A manager without replication has one term, which lasts as long as the process.

use std::sync::Arc;

use tepui_client::scheduler;
use tepui_fsm::Rng;
use tepui_runtime::{Clock, Limits, Running};
use tepui_store::Store;
use tepui_swarm::{Config, Input, Manage, Manager};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::access::Access;
use crate::api::Api;
use crate::convert::{self, Place};
use crate::driver::{self, CALLS_QUEUE_MAX, Sink};
use crate::engine::Engines;
use crate::fault::ManagerFault;
use crate::handle::{Handle, Waiting};
use crate::tls::Tls;

/// Inputs that wait for the machine.
const INPUTS_MAX: usize = 16_384;

#[derive(Debug)]
pub(crate) struct Term {
    pub api: Api,
    running: Running,
    engines: Engines,
    session: JoinHandle<String>,
}

impl Term {
    pub async fn begin(
        manage: Arc<Manage>,
        store: Store,
        tls: Option<&Tls>,
        access: &Access,
    ) -> Result<Term, ManagerFault> {
        let seed = tepui_runtime::entropy().map_err(ManagerFault::Entropy)?;
        // Records in etcd are read by a thread that may block.
        let loaded = tokio::task::spawn_blocking(move || store.load().map(|records| (store, records))).await;
        let (store, records) = loaded.map_err(|err| ManagerFault::Session(err.to_string()))??;
        let manager = Manager::recover(config(&manage), records, Rng::seeded(seed))?;
        let framework_id = manager.framework_id().map(str::to_owned);
        let (inputs, mailbox) = tepui_runtime::mailbox::<Input>(INPUTS_MAX);
        let (views, published) = watch::channel(Arc::new(manager.view()));
        let waiting = Waiting::default();
        let engines = Engines::new(inputs.clone(), tls.cloned());
        let (calls, queue) = mpsc::channel(CALLS_QUEUE_MAX);
        let runtime = tokio::runtime::Handle::current();
        let sink = Sink { views, waiting: waiting.clone(), engines: engines.clone(), calls, runtime };
        let (clock, limits) = (Clock::start(), Limits::default());
        let release = move |effects| sink.release(effects);
        let running = tepui_runtime::start("swarm", manager, mailbox, store, clock, limits, release)?;
        let hostname = hostname();
        let user = manage.cluster.user.clone().unwrap_or_else(own_user);
        let mut framework = convert::framework(&manage, framework_id.as_deref(), &hostname, user.clone());
        framework.principal = access.principal();
        let options = scheduler::Options { credential: access.credential.clone(), ..Default::default() };
        let scheduler = scheduler::connect_with(&manage.master, framework, options)
            .map_err(|error| ManagerFault::Master(error.to_string()))?;
        let binary = manage.executor.clone().unwrap_or_else(own_binary);
        // Ends with the machine.
        tokio::spawn(driver::send_calls(queue, scheduler.caller(), inputs.clone(), binary, user));
        let place = Place { hostname, tls: tls.is_some(), socket: manage.engine_socket.clone() };
        let session = tokio::spawn(driver::take_events(scheduler, inputs.clone(), place));
        let api = Api::new(Handle::new(manage, inputs, published, engines.clone(), waiting));
        Ok(Term { api, running, engines, session })
    }

    /// Waits until the term cannot go on; says why. Cancel safe.
    pub async fn ended(&mut self) -> ManagerFault {
        tokio::select! {
            () = self.running.ended() => ManagerFault::Session("the manager's machine has ended".to_owned()),
            session = &mut self.session => match session {
                Ok(why) => ManagerFault::Session(format!("the master ended the session: {why}")),
                Err(err) => ManagerFault::Session(format!("the session with the master failed: {err}")),
            },
        }
    }

    /// Ends the session and the machine; what it decided is made durable. Containers go on.
    pub async fn end(self) -> Result<(), ManagerFault> {
        self.session.abort();
        let stopped = self.running.stop().await;
        self.engines.disconnect_all();
        Ok(stopped?)
    }
}

fn config(manage: &Manage) -> Config {
    let cluster = &manage.cluster;
    Config {
        scheduler: manage.scheduler.clone(),
        task_timeout: cluster.task_timeout,
        offer_timeout: cluster.offer_timeout,
        refuse_timeout: cluster.refuse_timeout,
        idle_refuse_timeout: cluster.idle_refuse_timeout(),
        revocable: cluster.revocable,
    }
}

fn hostname() -> String {
    nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok()).unwrap_or_default()
}

/// The user of this process by name, as classic Swarm names it to the master.
fn own_user() -> String {
    let uid = nix::unistd::geteuid();
    match nix::unistd::User::from_uid(uid) {
        Ok(Some(user)) => user.name,
        Ok(None) | Err(_) => uid.to_string(),
    }
}

fn own_binary() -> String {
    let own = std::env::current_exe();
    own.map_or_else(|_| "tepui".to_owned(), |path| path.display().to_string())
}
