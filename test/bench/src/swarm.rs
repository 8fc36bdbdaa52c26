//! `swarm`: the manager of the Docker front end in a large cluster, alone: agents and engines are data.
//!
//! Containers are created one after the other through the real machine, each until its ACCEPT and until its answer; then
//! readers render from what it published. No socket, no disk: those are in `docker run` itself.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::json;
use tepui_client::v1::TaskState;
use tepui_fsm::{Budget, Fsm, Item, Mono, Now, Outbox, Rng, unlimited};
use tepui_resources::{Resources, Revocable, Role, parse};
use tepui_swarm::{
    Config, ContainerSpec, Created, Effect, Engine, EngineAddress, EngineEvent, Input, Launch, Manager,
    Occupant, Offer, RequestId, Scheduler, Update, status_rows,
};
use tepui_types::{AgentId, OfferId};

use crate::program::own_rss_mib;
use crate::report::{Report, Row};
use crate::spread::Spread;

const REGULAR: &str = "cpus:64;mem:262144;disk:100000;ports:[31000-32000]";
const REVOCABLE: &str = "cpus:32;mem:65536";
/// Creates that are measured behind others.
const CREATES_BEHIND: usize = 10;
/// The time for attempts in one turn of the real driver.
const TURN: Duration = Duration::from_micros(100);
/// The constraints of use cases 2 to 6, in turn.
const CHOICES: [&str; 5] = ["==regular", "==~regular", "==revocable", "==~revocable", "==*"];

#[derive(Args, Clone, Debug)]
pub struct Options {
    #[arg(long, default_value_t = 1_000)]
    pub engines: usize,
    #[arg(long, default_value_t = 30_000)]
    pub containers: usize,
    /// Creates that are measured, the last ones.
    #[arg(long, default_value_t = 2_000)]
    pub creates: usize,
    /// Reads of each kind.
    #[arg(long, default_value_t = 200)]
    pub reads: usize,
    /// Creates that fit nowhere and wait before another one.
    #[arg(long, default_value_t = 1_000)]
    pub waiting: usize,
}

pub fn run(options: &Options) -> Result<Report> {
    let mut report =
        Report::new("swarm").setting("engines", options.engines).setting("containers", options.containers);
    let mut cluster = Cluster::new(options.engines)?;
    let empty = own_rss_mib()?;
    let (mut accepts, mut answers) = (Spread::default(), Spread::default());
    for number in 0..options.containers {
        if number + options.creates == options.containers {
            (accepts, answers) = (Spread::default(), Spread::default());
        }
        cluster.create(number, &mut accepts, &mut answers)?;
    }
    let full = own_rss_mib()?;
    report.push(accepts.percentiles(Row::new().with("what", "create_to_accept")));
    report.push(answers.percentiles(Row::new().with("what", "update_to_answer")));
    report.push(
        cluster.rejected(options.reads)?.percentiles(Row::new().with("what", "create_that_fits_nowhere")),
    );
    report
        .push(cluster.behind(options.waiting)?.percentiles(Row::new().with("what", "create_behind_others")));
    report.push(cluster.listed(options.reads)?.percentiles(Row::new().with("what", "engine_list_to_view")));
    report.push(cluster.info(options.reads)?.percentiles(Row::new().with("what", "info")));
    report.push(cluster.found(options.reads)?.percentiles(Row::new().with("what", "find_by_name")));
    let per_thousand = (full - empty) * 1000.0 / options.containers as f64;
    report.push(Row::new().with("what", "memory").measured("mib_per_1000_containers", per_thousand));
    let requests = cluster.idle(Duration::from_secs(60))?;
    report.push(Row::new().with("what", "idle_minute").with("requests_to_engines", requests));
    Ok(report)
}

struct Cluster {
    manager: Manager,
    now: Now,
    /// What each agent has left.
    free: Vec<Resources>,
    occupants: Vec<Vec<Occupant>>,
    next_offer: u64,
}

impl Cluster {
    fn new(engines: usize) -> Result<Cluster> {
        let config = Config {
            scheduler: Scheduler::default(),
            task_timeout: Duration::from_secs(5),
            offer_timeout: Duration::from_secs(3600),
            refuse_timeout: Duration::from_secs(5),
            idle_refuse_timeout: Duration::from_secs(3600),
            revocable: true,
        };
        let manager = Manager::recover(config, [], Rng::seeded(1)).context("there are no records")?;
        let read =
            |text: &str| -> Result<Resources> { Ok(parse::resources(text, "*")?.into_iter().collect()) };
        let all = read(REGULAR)? + &read(REVOCABLE)?.flatten(Revocable::UsageSlack);
        let all = all.allocate(&Role::from("*"));
        let mut cluster = Cluster {
            manager,
            now: Now::default(),
            free: vec![all; engines],
            occupants: vec![Vec::new(); engines],
            next_offer: 0,
        };
        cluster.turn(Input::Subscribed { framework_id: "F".to_owned() });
        for agent in 0..engines {
            cluster.offer(agent);
            cluster.list(agent);
        }
        Ok(cluster)
    }

    fn turn(&mut self, input: Input) -> Vec<Effect> {
        self.turn_within(input, &mut unlimited)
    }

    fn turn_within(&mut self, input: Input, budget: &mut Budget<'_>) -> Vec<Effect> {
        self.now.mono = Mono(self.now.mono.0 + 1_000);
        let mut out = Outbox::new();
        self.manager.step(self.now, input, &mut out);
        self.settle(out, budget)
    }

    fn settle(&mut self, mut out: Outbox<Manager>, budget: &mut Budget<'_>) -> Vec<Effect> {
        self.manager.settle(self.now, budget, &mut out);
        let effects = out.take().into_iter();
        effects.filter_map(|item| if let Item::Effect(effect) = item { Some(effect) } else { None }).collect()
    }

    fn offer(&mut self, agent: usize) {
        self.next_offer += 1;
        let offer = Offer {
            id: OfferId::new(format!("O{:08}", self.next_offer)),
            agent: agent_id(agent),
            hostname: format!("node-{agent}"),
            engine: EngineAddress::Tcp { host: format!("node-{agent}"), port: 2375 },
            socket: "/run/docker.sock".to_owned(),
            resources: self.free[agent].clone(),
        };
        self.turn(Input::Offers(vec![offer]));
    }

    /// The shell lists an engine after every change on it.
    fn list(&mut self, agent: usize) {
        let input = self.list_of(agent);
        self.turn(input);
    }

    fn list_of(&self, agent: usize) -> Input {
        let engine = Engine {
            id: format!("engine-{agent}"),
            name: format!("node-{agent}"),
            occupants: self.occupants[agent].clone(),
            ..Engine::default()
        };
        Input::Engine { agent: agent_id(agent), event: EngineEvent::Up(Arc::new(engine)) }
    }

    fn create(&mut self, number: usize, accepts: &mut Spread, answers: &mut Spread) -> Result<()> {
        let spec = spec(CHOICES[number % CHOICES.len()], 1)?;
        let name = Some(format!("container-{number}"));
        let input = Input::Create { request: RequestId(number as u64), name, spec: Box::new(spec) };
        let began = Instant::now();
        let effects = self.turn(input);
        accepts.push(began.elapsed());
        let launch = accepted(&effects).context("every create finds a node")?;
        let agent: usize = launch.agent.as_str()[1..].parse()?;
        let update = started(launch, number);
        let began = Instant::now();
        let answered = self.turn(Input::Update(update));
        answers.push(began.elapsed());
        let is_answered = |it: &Effect| matches!(it, Effect::Reply { answer: Ok(Created { .. }), .. });
        if !answered.iter().any(is_answered) {
            bail!("create {number} is not answered");
        }
        self.free[agent] -= &launch.resources;
        self.occupants[agent].push(occupant(launch, number)?);
        self.offer(agent);
        self.list(agent);
        Ok(())
    }

    /// The whole cluster is looked at and nothing is found.
    fn rejected(&mut self, count: usize) -> Result<Spread> {
        let mut spread = Spread::default();
        for number in 0..count {
            let spec = spec(CHOICES[number % CHOICES.len()], 1_000)?;
            let request = RequestId(1 << 40 | number as u64);
            let input = Input::Create { request, name: None, spec: Box::new(spec) };
            let began = Instant::now();
            self.turn(input);
            spread.push(began.elapsed());
            self.turn(Input::Abandoned(request));
        }
        Ok(spread)
    }

    /// A create that fits, behind others that fit nowhere; the list of an engine arrives in every turn.
    fn behind(&mut self, waiting: usize) -> Result<Spread> {
        let request = |number: usize| RequestId(2 << 40 | number as u64);
        let create = |number: usize, cpus: i64| -> Result<Input> {
            let spec = Box::new(spec(CHOICES[number % CHOICES.len()], cpus)?);
            Ok(Input::Create { request: request(number), name: None, spec })
        };
        for number in 0..waiting {
            self.turn(create(number, 1_000)?);
        }
        let mut spread = Spread::default();
        for number in waiting..waiting + CREATES_BEHIND {
            let (input, began) = (create(number, 1)?, Instant::now());
            let mut effects = self.turn_within(input, &mut || false);
            for _ in 0..2 * (waiting + CREATES_BEHIND) {
                if accepted(&effects).is_some() {
                    break;
                }
                let (input, turn) = (self.list_of(number % self.free.len()), Instant::now());
                effects = self.turn_within(input, &mut || turn.elapsed() < TURN);
            }
            spread.push(began.elapsed());
            let launch = accepted(&effects).context("every create is tried within two rounds")?;
            self.offer(launch.agent.as_str()[1..].parse()?);
        }
        (0..waiting + CREATES_BEHIND).for_each(|number| drop(self.turn(Input::Abandoned(request(number)))));
        Ok(spread)
    }

    fn listed(&mut self, count: usize) -> Result<Spread> {
        let mut spread = Spread::default();
        for number in 0..count {
            let began = Instant::now();
            self.list(number % self.free.len());
            spread.push(began.elapsed());
        }
        Ok(spread)
    }

    fn info(&self, count: usize) -> Result<Spread> {
        let (view, scheduler, mut spread) = (self.manager.view(), Scheduler::default(), Spread::default());
        for _ in 0..count {
            let began = Instant::now();
            let rows = status_rows(&view, &scheduler, "primary", &view.by_agent(), &BTreeMap::new());
            let bytes = serde_json::to_vec(&json!({ "SystemStatus": rows }))?;
            spread.push(began.elapsed());
            std::hint::black_box(bytes);
        }
        Ok(spread)
    }

    fn found(&self, count: usize) -> Result<Spread> {
        let (view, mut spread) = (self.manager.view(), Spread::default());
        for number in 0..count {
            let name = format!("container-{number}");
            let began = Instant::now();
            let found = view.find(&name);
            spread.push(began.elapsed());
            found.context("it was created")?;
        }
        Ok(spread)
    }

    /// Effects for engines while nothing happens.
    fn idle(&mut self, time: Duration) -> Result<usize> {
        let until = self.now.mono + time;
        let mut requests = 0;
        while self.now.mono < until {
            self.now.mono = self.manager.deadline().unwrap_or(until).max(self.now.mono).min(until);
            let is_request = |it: &Effect| matches!(it, Effect::Engine { .. } | Effect::Connect { .. });
            requests += self.settle(Outbox::new(), &mut unlimited).iter().filter(|it| is_request(it)).count();
        }
        Ok(requests)
    }
}

fn accepted(effects: &[Effect]) -> Option<&Launch> {
    effects.iter().find_map(|it| if let Effect::Accept(launch) = it { Some(&**launch) } else { None })
}

fn agent_id(agent: usize) -> AgentId {
    AgentId::new(format!("A{agent:06}"))
}

fn spec(choice: &str, cpus: i64) -> Result<ContainerSpec> {
    let body = json!({
        "Image": "busybox",
        "Cmd": ["sleep", "1000"],
        "Env": ["PATH=/bin", format!("constraint:res-type{choice}")],
        "Labels": {"com.example.team": "a"},
        "HostConfig": {"CpuShares": cpus, "Memory": 512 << 20, "NetworkMode": "default"},
    });
    let spec = ContainerSpec::parse(body.to_string().as_bytes(), true);
    spec.map_err(|rejection| anyhow::anyhow!("{rejection}"))
}

fn started(launch: &Launch, number: usize) -> Update {
    Update {
        task: launch.task.clone(),
        agent: Some(launch.agent.clone()),
        state: TaskState::TASK_STARTING,
        reason: None,
        message: String::new(),
        uuid: Some(number.to_be_bytes().to_vec()),
        container: Some((format!("{number:064x}"), launch.name.clone().unwrap_or_default())),
        missing_image: None,
        by_executor: true,
        has_executor: true,
    }
}

fn occupant(launch: &Launch, number: usize) -> Result<Occupant> {
    let document: serde_json::Value = serde_json::from_str(&launch.document)?;
    let listed = json!({
        "Id": format!("{number:064x}"),
        "Names": [format!("/{}", launch.name.as_deref().unwrap_or_default())],
        "Labels": document["Labels"],
    });
    Occupant::from_listed(&listed).context("it has an id")
}
