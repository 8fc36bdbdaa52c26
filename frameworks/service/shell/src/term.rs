//! An active scheduler: the machine on its records, its session with the master, and what requests need of it.
//!
//! A term ends with the process, with the leadership, or because the scheduler cannot go on.

use std::sync::Arc;

use tepui_client::Credential;
use tepui_client::operator::Client;
use tepui_client::scheduler;
use tepui_fsm::Rng;
use tepui_runtime::{Clock, Limits, Running, RuntimeFault};
use tepui_service::scheduler::{Answer, Command, Config, Input, Origin, Scheduler, View, framework_info};
use tepui_store::etcd::Leadership;
use tepui_store::{Store, StoreFault};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tracing::{info, warn};

use crate::agents::{Agents, Timeouts};
use crate::convert::Announced;
use crate::driver::{self, CALLS_QUEUE_MAX, Entry, Halt, Sink};
use crate::fault::ServiceFault;
use crate::handle::{Handle, Waiting};
use crate::options::Options;
use crate::rivals::Rivals;

/// Inputs that wait for the machine.
const INPUTS_MAX: usize = 16_384;

#[derive(Debug)]
pub(crate) struct Term {
    pub handle: Handle,
    running: Running,
    halt: watch::Receiver<Option<Halt>>,
    /// Session, calls, facts about agents: they end with the machine.
    tasks: Vec<JoinHandle<()>>,
}

/// The views of the active scheduler; none while this one stands by.
pub(crate) type Published = watch::Sender<Option<watch::Receiver<Arc<View>>>>;

/// Where the API is.
#[derive(Clone, Debug)]
pub(crate) struct ApiAddress {
    pub scheme: &'static str,
    pub host: String,
    pub port: u16,
}

impl ApiAddress {
    pub fn authority(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }

    pub fn url(&self) -> String {
        format!("{}://{}", self.scheme, self.authority())
    }
}

impl Term {
    /// Starts a scheduler with the content of the store. Without a leadership there are no other candidates.
    pub async fn begin(
        options: &Options,
        api: &ApiAddress,
        store: Store,
        leadership: Option<Leadership>,
    ) -> Result<Self, ServiceFault> {
        let (store, records) = load(store).await?;
        let seed = tepui_runtime::entropy().map_err(ServiceFault::Entropy)?;
        // Reservations carry the principal of the framework, which is that of its credential.
        let principal = match &options.credential {
            Some(Credential::Basic { principal, .. }) => Some(principal.clone()),
            _ => options.config.principal.clone(),
        };
        let (api_scheme, api_host, api_port) = (api.scheme, api.host.clone(), api.port);
        let config = Config { api_scheme, api_host, api_port, principal, ..options.config.clone() };
        let machine = Scheduler::recover(config.clone(), records, Rng::seeded(seed))?;
        let framework_id = machine.framework_id().map(str::to_owned);
        let finished = machine.finished().map(|framework| Halt::Finished(framework.to_owned()));
        let client = Client::new(&options.masters)
            .map_err(|error| ServiceFault::Master(error.to_string()))?
            .with_credential(options.credential.clone());
        let rivals = Rivals { client: client.clone(), service: options.spec.name.clone() };
        if finished.is_none()
            && let Some(rival) = rivals.find(framework_id.as_deref()).await
        {
            return Err(ServiceFault::Rival(rival));
        }
        let announced = Announced::new(options.credential.as_ref(), api.url());
        let (inputs, mailbox) = tepui_runtime::mailbox::<Input>(INPUTS_MAX);
        let (views, published) = watch::channel(machine.view());
        let (calls, queue) = mpsc::channel(CALLS_QUEUE_MAX);
        let (halting, halt) = watch::channel(finished.clone());
        let waiting = Waiting::default();
        let halt_sink = halting.clone();
        let sink =
            Sink { views, waiting: waiting.clone(), calls, halt: halt_sink, announced: announced.clone() };
        let running = tepui_runtime::start(
            "service",
            machine,
            mailbox,
            store,
            Clock::start(),
            Limits::default(),
            // What a scheduler decides that may have been replaced does not become visible.
            move |effects| {
                if leadership.as_ref().is_none_or(Leadership::holds) {
                    sink.release(effects);
                }
            },
        )?;
        let handle = Handle { inputs: inputs.clone(), views: published.clone(), waiting };
        if finished.is_some() {
            // The scheduler before this one ended before or after its exit was seen: it exits again.
            return Ok(Self { handle, running, halt, tasks: Vec::new() });
        }
        set_target(&handle, options).await?;
        let session = subscribe(options, &config, &handle, &announced)?;
        let caller = session.caller();
        let credential = options.credential.clone();
        let (known, timeouts) = (Arc::default(), Timeouts::default());
        let agents = Agents { client, credential, inputs: inputs.clone(), views: published, known, timeouts };
        let entry = Entry { rivals, is_new: framework_id.is_none(), halt: halting.clone() };
        let tasks = vec![
            tokio::spawn(driver::send_calls(queue, caller, inputs.clone(), halting)),
            tokio::spawn(driver::receive_events(session, inputs, agents.clone(), entry)),
            tokio::spawn(agents.watch()),
        ];
        Ok(Self { handle, running, halt, tasks })
    }

    pub fn views(&self) -> watch::Receiver<Arc<View>> {
        self.handle.views.clone()
    }

    /// Waits until the scheduler ends by itself. Cancel safe.
    pub async fn ended(&mut self) -> Option<Halt> {
        let mut halt = self.halt.clone();
        tokio::select! {
            () = self.running.ended() => self.halt.borrow().clone(),
            Ok(halt) = halt.wait_for(Option::is_some) => halt.clone(),
        }
    }

    /// Ends it in order; tasks of the service keep running.
    pub async fn end(self) -> Result<(), RuntimeFault> {
        self.tasks.iter().for_each(JoinHandle::abort);
        let ended = self.running.stop().await;
        self.handle.waiting.close();
        ended
    }
}

/// The spec of the command line is the target. One that is not allowed leaves the old target, and the plan shows why.
fn subscribe(
    options: &Options,
    config: &Config,
    handle: &Handle,
    announced: &Announced,
) -> Result<scheduler::Scheduler, ServiceFault> {
    let info = framework_info(config, &handle.view());
    let info = info.ok_or_else(|| ServiceFault::Stopped("the service has no target".to_owned()))?;
    let session = scheduler::Options { credential: options.credential.clone(), ..Default::default() };
    scheduler::connect_with(&options.masters, announced.complete(info), session)
        .map_err(|error| ServiceFault::Master(error.to_string()))
}

async fn set_target(handle: &Handle, options: &Options) -> Result<(), ServiceFault> {
    let command = Command::SetTarget { spec: Box::new(options.spec.clone()), origin: Origin::Start };
    match handle.command(command).await {
        Ok(Answer::Rejected(errors)) if handle.view().target.is_none() => {
            Err(ServiceFault::Rejected(errors.join("\n")))
        }
        Ok(Answer::Rejected(errors)) => {
            errors.iter().for_each(|error| warn!(error, "spec rejected; the old configuration stays"));
            Ok(())
        }
        Ok(Answer::Target { configuration, changed }) => {
            info!(configuration, changed, "target configuration set");
            Ok(())
        }
        Ok(other) => {
            info!(answer = %other, "target configuration not set");
            Ok(())
        }
        Err(_) => Err(ServiceFault::Stopped("the scheduler ended while it started".to_owned())),
    }
}

/// Reading may wait for the network.
async fn load(store: Store) -> Result<(Store, Vec<(String, Vec<u8>)>), StoreFault> {
    let loading = tokio::task::spawn_blocking(move || store.load().map(|records| (store, records)));
    loading.await.expect("loading does not panic: stores guard themselves")
}
