//! `service`: the scheduler of a service alone, with offers as data.
//!
//! Pods are deployed through the real machine, each until its ACCEPT and until its step is complete; then the cost of one more pod is
//! measured beside those that run, and a restart from the records. No socket, no disk.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use tepui_client::v1 as pb;
use tepui_fsm::{Durable, Fsm, Item, Mono, Now, Outbox, Rng, Wall, unlimited};
use tepui_resources::{Format, Resources, Role, parse};
use tepui_service::scheduler::{Accept, Command, Config, Effect, Input, Origin, RequestId, Scheduler};
use tepui_service::spec::ServiceSpec;

use crate::program::{own_cpu_seconds, own_rss_mib};
use crate::report::{Report, Row};
use crate::spread::Spread;

const OFFER: &str = "cpus:64;mem:262144;disk:1000000;ports:[31000-32000]";

#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Pods of the deployment.
    #[arg(long, default_value_t = 1_000)]
    pub pods: u32,
    /// Agents that make offers.
    #[arg(long, default_value_t = 100)]
    pub agents: usize,
    /// Sizes of the service at which one more pod is measured.
    #[arg(long, value_delimiter = ',', default_values_t = [0, 1_000, 10_000])]
    pub running: Vec<u32>,
    /// Launches measured at each size.
    #[arg(long, default_value_t = 200)]
    pub launches: u32,
}

pub fn run(options: &Options) -> Result<Report> {
    let mut report = Report::new("service").setting("pods", options.pods).setting("agents", options.agents);
    let empty = own_rss_mib()?;
    let mut world = World::new(options.agents, options.pods, "parallel")?;
    let (began, cpu) = (Instant::now(), own_cpu_seconds()?);
    world.deploy(options.pods)?;
    let rate = f64::from(options.pods) / began.elapsed().as_secs_f64();
    let cpu = own_cpu_seconds()? - cpu;
    report.push(Row::new().with("what", "deploy").measured("pods_per_s", rate).measured("cpu_s", cpu));
    // The records belong to a disk: their bytes are not the scheduler's memory.
    let bytes: usize = world.store.iter().map(|(key, value)| key.len() + value.len()).sum();
    let records = bytes as f64 / f64::from(1 << 20);
    let thousand = |mib: f64| mib * 1000.0 / f64::from(options.pods);
    let memory = Row::new().with("what", "memory");
    let memory = memory.measured("mib_per_1000_pods", thousand(own_rss_mib()? - empty - records));
    report.push(memory.measured("record_mib_per_1000_pods", thousand(records)));
    let restart = world.restart()?;
    report.push(Row::new().with("what", "restart").measured("ms", restart.as_secs_f64() * 1e3));
    drop(world);
    for running in &options.running {
        let mut world = World::new(options.agents, running + options.launches, "serial")?;
        world.deploy(*running)?;
        let (mut launches, mut updates) = (Spread::default(), Spread::default());
        for _ in 0..options.launches {
            world.launch_one(&mut launches, &mut updates)?;
        }
        let row = |what: &'static str| Row::new().with("what", what).with("running_pods", *running);
        report.push(launches.percentiles(row("offer_to_accept")));
        report.push(updates.percentiles(row("status_to_complete")));
    }
    Ok(report)
}

struct World {
    scheduler: Scheduler,
    config: Config,
    now: Now,
    store: BTreeMap<String, Vec<u8>>,
    agents: usize,
    offered: Vec<pb::Resource>,
    next_offer: u64,
    next_uuid: u64,
}

impl World {
    fn new(agents: usize, pods: u32, strategy: &str) -> Result<World> {
        let mut config = Config::new("bench");
        config.timing.hold_offers = Duration::from_secs(3600);
        let scheduler =
            Scheduler::recover(config.clone(), [], Rng::seeded(1)).context("there are no records")?;
        let all: Resources = parse::resources(OFFER, "*")?.into_iter().collect();
        let offered = all.allocate(&Role::from(config.role.as_str())).to_proto(Format::Post);
        let mut world = World {
            scheduler,
            config,
            now: Now { mono: Mono(1), wall: Wall(1) },
            store: BTreeMap::new(),
            agents,
            offered,
            next_offer: 0,
            next_uuid: 0,
        };
        let command = Command::SetTarget { spec: Box::new(spec(pods, strategy)?), origin: Origin::Start };
        world.turn(Input::Command { request: RequestId(1), command });
        world.turn(Input::Subscribed { framework_id: "F".to_owned() });
        Ok(world)
    }

    /// One turn; records are kept, ACCEPTs are returned.
    fn turn(&mut self, input: Input) -> Vec<Accept> {
        self.now = Now { mono: Mono(self.now.mono.0 + 1_000), wall: Wall(self.now.wall.0 + 1_000) };
        let mut out = Outbox::new();
        self.scheduler.step(self.now, input, &mut out);
        self.scheduler.settle(self.now, &mut unlimited, &mut out);
        let mut accepts = Vec::new();
        for item in out.take() {
            match item {
                Item::Record(record) => {
                    let mut writes = Vec::new();
                    record.writes(&mut writes);
                    for write in writes {
                        match write.value {
                            Some(value) => drop(self.store.insert(write.key, value)),
                            None => drop(self.store.remove(&write.key)),
                        }
                    }
                }
                Item::Effect(Effect::Accept(accept)) => accepts.push(*accept),
                Item::Effect(_) => (),
            }
        }
        accepts
    }

    fn offer(&mut self) -> Vec<Accept> {
        let agent = self.next_offer as usize % self.agents;
        self.next_offer += 1;
        let offer = pb::Offer {
            id: pb::OfferID { value: format!("O{}", self.next_offer), ..Default::default() }.into(),
            agent_id: pb::AgentID { value: format!("A{agent}"), ..Default::default() }.into(),
            hostname: format!("host-{agent}"),
            resources: self.offered.clone(),
            ..Default::default()
        };
        self.turn(Input::Offers(vec![offer]))
    }

    /// The agent confirms the reservations.
    fn confirm(&mut self, accept: &Accept) {
        for operation in &accept.operations {
            let Some(id) = operation.id.as_option() else { continue };
            let status = pb::OperationStatus {
                operation_id: id.clone().into(),
                state: pb::OperationState::OPERATION_FINISHED,
                ..Default::default()
            };
            self.turn(Input::OperationUpdate(Box::new(status)));
        }
    }

    fn task_ids(accept: &Accept) -> Vec<String> {
        let groups = accept.operations.iter().filter_map(|operation| operation.launch_group.as_option());
        groups.flat_map(|group| &group.task_group.tasks).map(|task| task.task_id.value.clone()).collect()
    }

    fn running(&mut self, task: &str, agent: &str) -> Input {
        self.next_uuid += 1;
        let status = pb::TaskStatus {
            task_id: pb::TaskID { value: task.to_owned(), ..Default::default() }.into(),
            state: pb::TaskState::TASK_RUNNING,
            agent_id: pb::AgentID { value: agent.to_owned(), ..Default::default() }.into(),
            uuid: Some(self.next_uuid.to_be_bytes().to_vec()),
            ..Default::default()
        };
        Input::Update(Box::new(status))
    }

    /// Offers until so many pods run.
    fn deploy(&mut self, pods: u32) -> Result<()> {
        let mut running = 0;
        while running < pods {
            let accepts = self.offer();
            if accepts.is_empty() {
                bail!(
                    "an offer was not used: {:?}",
                    self.scheduler.view().plan("deploy").map(|plan| plan.status)
                );
            }
            for accept in accepts {
                self.confirm(&accept);
                for task in World::task_ids(&accept) {
                    let input = self.running(&task, accept.agent.as_str());
                    self.turn(input);
                    running += 1;
                }
            }
        }
        Ok(())
    }

    fn launch_one(&mut self, launches: &mut Spread, updates: &mut Spread) -> Result<()> {
        let began = Instant::now();
        let accepts = self.offer();
        launches.push(began.elapsed());
        let accept = accepts.first().context("an offer was not used")?;
        self.confirm(accept);
        for task in World::task_ids(accept) {
            let input = self.running(&task, accept.agent.as_str());
            let began = Instant::now();
            self.turn(input);
            updates.push(began.elapsed());
        }
        Ok(())
    }

    /// From the records to the end of reconciliation.
    fn restart(&mut self) -> Result<Duration> {
        let began = Instant::now();
        let records: Vec<(String, Vec<u8>)> =
            self.store.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        self.scheduler = Scheduler::recover(self.config.clone(), records, Rng::seeded(2))
            .map_err(|error| anyhow!("{error}"))?;
        self.turn(Input::Subscribed { framework_id: "F".to_owned() });
        let view = self.scheduler.view();
        let tasks = view.tasks.values().map(|task| (task.launch.task_id.clone(), task.launch.agent.clone()));
        for (task, agent) in tasks.collect::<Vec<_>>() {
            let input = self.running(&task, &agent);
            self.turn(input);
        }
        let status = self.scheduler.view().plan("deploy").map(|plan| plan.status);
        if status.as_deref() != Some("COMPLETE") {
            bail!("the plan is {status:?} after a restart");
        }
        Ok(began.elapsed())
    }
}

fn spec(pods: u32, strategy: &str) -> Result<ServiceSpec> {
    let text = format!(
        "
name: bench
pods:
  node:
    count: {pods}
    placement: \"hostname:MAX_PER:1000000\"
    tasks:
      main:
        goal: RUNNING
        cmd: ./main
        cpus: 0.1
        memory: 64
        env: {{A: b, C: d}}
        ports: {{p: {{port: 0, env-key: PORT}}}}
        volume: {{path: data, type: ROOT, size: 16}}
plans:
  deploy:
    phases:
      node: {{pod: node, strategy: {strategy}}}
"
    );
    let template = |_: &str| Err(String::new());
    let env = BTreeMap::new();
    let input = tepui_service::Input { file: "bench.yml", text: &text, env: &env, template: &template };
    let (spec, _) = tepui_service::parse(input).map_err(|problems| anyhow!("{problems}"))?;
    Ok(spec)
}
