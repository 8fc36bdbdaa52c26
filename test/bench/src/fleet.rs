//! Thousands of simulated agents in this process, each with a link of its own.
//!
//! A lost link is opened again after a random time that doubles with every failed try, as agents do it.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use bytes::{Bytes, BytesMut};
use http_body_util::Full;
use hyper::client::conn::http1;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tepui_fsm::Rng;
use tepui_proto::tepui::agent::v1::{Call, Event, event};
use tepui_proto::{recordio, wire};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::agent::{Agent, Life};

/// What an agent reads at once.
const READ_BYTES: usize = 4096;
/// The longest event.
const EVENT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The shortest wait between two tries, so that a missing master does not keep a core busy.
const BACKOFF_MIN: Duration = Duration::from_millis(10);
/// The longest wait of agents that find a new leader by trying only.
pub const BACKOFF_MAX: Duration = Duration::from_secs(60);
const DOUBLINGS_MAX: u32 = 16;

/// What the agents of a fleet are like.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub agents: usize,
    pub life: Life,
    /// Room for so many tasks on each.
    pub slots: usize,
    /// The random wait before the first try on a lost link is at most this.
    pub backoff: Duration,
    /// What it doubles up to.
    pub backoff_max: Duration,
}

/// Running agents. Dropping it ends them all.
#[derive(Debug)]
pub struct Fleet {
    subscribed: watch::Receiver<usize>,
    _links: JoinSet<()>,
}

#[derive(Debug)]
struct Shared {
    /// Tried in turn until one takes an agent in.
    masters: Vec<String>,
    backoff: Duration,
    backoff_max: Duration,
    /// How often any agent heard SUBSCRIBED.
    subscribed: watch::Sender<usize>,
}

impl Fleet {
    /// Starts agents `from..from + plan.agents` of one master, or several by comma. Must be called inside a tokio
    /// runtime.
    pub fn start(masters: &str, from: usize, plan: Plan) -> Self {
        let agents = (from..from + plan.agents).map(|number| Agent::new(number, plan.life, plan.slots));
        Self::of(masters, agents, plan)
    }

    /// Starts these agents; `plan` says how they reconnect.
    pub fn of(masters: &str, agents: impl IntoIterator<Item = Agent>, plan: Plan) -> Self {
        let (sender, subscribed) = watch::channel(0);
        let masters = masters.split(',').map(str::to_owned).collect();
        let shared = Arc::new(Shared {
            masters,
            backoff: plan.backoff,
            backoff_max: plan.backoff_max,
            subscribed: sender,
        });
        let mut links = JoinSet::new();
        for agent in agents {
            let seed = agent.number() as u64;
            links.spawn(live(agent, seed, shared.clone()));
        }
        Self { subscribed, _links: links }
    }

    /// Waits until agents were subscribed this often in all since the start.
    pub async fn subscribed(&self, times: usize) -> Result<()> {
        self.subscribed.clone().wait_for(|count| *count >= times).await.context("the agents are gone")?;
        Ok(())
    }
}

/// Holds a link as long as the fleet lives.
async fn live(mut agent: Agent, seed: u64, shared: Arc<Shared>) {
    let mut rng = Rng::seeded(seed);
    let (mut tries, mut next) = (0, 0);
    loop {
        let master = &shared.masters[next % shared.masters.len()];
        // Why a link ended does not matter: a new one heals it.
        if let Ok(true) = hold(&mut agent, master, &shared).await {
            tries = 0;
        }
        next += 1;
        let longest =
            shared.backoff.saturating_mul(1 << u32::min(tries, DOUBLINGS_MAX)).min(shared.backoff_max);
        tokio::time::sleep(longest.mul_f64(rng.unit()).max(BACKOFF_MIN)).await;
        tries += 1;
    }
}

/// One link, from its SUBSCRIBE to its end; true if the master took the agent in.
async fn hold(agent: &mut Agent, master: &str, shared: &Shared) -> Result<bool> {
    let stream = TcpStream::connect(master).await?;
    stream.set_nodelay(true)?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // Ends with the answer.
    tokio::spawn(connection.with_upgrades());
    let request = http::Request::post("/api/v1/agent")
        .header(http::header::HOST, master)
        .header(http::header::CONTENT_TYPE, "application/x-protobuf")
        .header(http::header::CONNECTION, "upgrade")
        .header(http::header::UPGRADE, "tepui.agent.v1")
        .body(Full::new(chunk(&[agent.subscribe()])))?;
    let answer = sender.send_request(request).await?;
    if answer.status() != http::StatusCode::SWITCHING_PROTOCOLS {
        bail!("the master answered {}", answer.status());
    }
    let mut taken_in = false;
    // A broken stream ends like a closed one.
    let _ = converse(agent, hyper::upgrade::on(answer).await?, shared, &mut taken_in).await;
    Ok(taken_in)
}

async fn converse(agent: &mut Agent, link: Upgraded, shared: &Shared, taken_in: &mut bool) -> Result<()> {
    let mut decoder = recordio::Decoder::new(EVENT_BYTES_MAX);
    let mut said = Vec::new();
    let mut link = TokioIo::new(link);
    loop {
        let mut data = BytesMut::with_capacity(READ_BYTES);
        if link.read_buf(&mut data).await? == 0 {
            return Ok(());
        }
        decoder.push(&data);
        drop(data);
        for record in decoder.by_ref() {
            // What is measured is the master: its own events are not checked a second time.
            let event: Event = wire::decode_record(&record?)?;
            if event.r#type == Some(event::Type::SUBSCRIBED) {
                *taken_in = true;
                shared.subscribed.send_modify(|count| *count += 1);
            }
            agent.hear(event, &mut said);
        }
        if !said.is_empty() {
            link.write_all(&chunk(&said)).await?;
            said.clear();
        }
    }
}

/// Calls that are sent together.
fn chunk(calls: &[Call]) -> Bytes {
    let mut chunk = Vec::new();
    for call in calls {
        recordio::encode_into(&wire::encode(call), &mut chunk);
    }
    chunk.into()
}
