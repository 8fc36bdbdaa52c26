//! A service: a framework whose decisions are those of the real scheduler of `frameworks/service`.
//!
//! The session, its calls and its faults are those of any framework here. Its records are on a disk of its own: only what was synced
//! survives its process, which is killed between any two items of its outbox. Its operators are in `operators`.
//! Absent: facts about agents beyond their offers, which the scheduler may lack.

mod operators;
mod spec;

pub(super) use operators::{act, repair};

use std::collections::VecDeque;

use tepui_client::scheduler::{Event as SchedulerEvent, Session, calls};
use tepui_fsm::{Item, Mono, Now, Wall, unlimited};
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::scheduler::{Call, call};
use tepui_service::scheduler::{
    Accept, Answer, Command, Config, Effect, Input, Origin, Record, RequestId, Scheduler, framework_info,
};
use tepui_service::spec::ServiceSpec;
use tepui_types::{AgentId, OfferId, TaskId};

use super::{Framework, call as send, plan, stop};
use crate::chance::{MS, Rng, SECOND, Source, mostly};
use crate::check::Fact;
use crate::plan::Plan;
use crate::process::Process;
use crate::users;
use crate::world::{Phase, World};

/// Makes another seed of a seed.
const SERVICE: u64 = 0x7365_7276_6963_6535;
/// Inputs of one turn.
const TURN_INPUTS_MAX: usize = 8;
/// How likely the scheduler is killed after any effect, and while it writes.
const KILLED: f64 = 0.01;
/// Wall time at the start; its clock is right.
const EPOCH: u64 = 1_700_000_000 * SECOND;
pub(crate) const NAME: &str = "service";

pub(crate) struct Service {
    process: Process<Scheduler>,
    rng: Rng,
    config: Config,
    /// The file that it starts with.
    spec: ServiceSpec,
    requests: u64,
    goal: Goal,
    /// When its operators repaired it, after the end of faults.
    repaired_at: Option<u64>,
    /// Records and effects that became visible since its start.
    visible: u64,
    /// Statuses that turns have processed, and how many records and effects had been decided before.
    processed: VecDeque<(u64, pb::TaskStatus)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Goal {
    Run,
    Uninstall,
    /// The scheduler has finished; its last call may not be answered yet.
    Finished,
    /// It does not start any more.
    Gone,
}

#[derive(Clone, Debug)]
pub(crate) enum Step {
    Turn { at: u64 },
    Synced,
}

impl Step {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Step::Turn { .. } => "service-turn",
            Step::Synced => "service-synced",
        }
    }
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "service {:?}", self.goal)
    }
}

impl Service {
    /// Whether seeds of this source have one.
    pub(crate) fn is_drawn(source: &Source) -> bool {
        source.rng(NAME, SERVICE).part("plan.service").chance(0.3)
    }

    pub(crate) fn new(plan: &Plan, source: &Source) -> Self {
        let mut rng = source.rng(NAME, SERVICE);
        source.enter(|| "service".into());
        let spec = spec::draw(&mut rng);
        let mut config = Config::new(NAME);
        config.principal = plan.authorization.then(|| users::TRUSTED.to_owned());
        config.executor.disk_mb = 8.0;
        (config.backoff.initial_ms, config.backoff.max_ms) = (1000, 10_000);
        config.pause_command = spec::STAY.to_owned();
        config.timing.reconcile_implicit = std::time::Duration::from_secs(60);
        Service {
            process: Process::new(),
            rng,
            config,
            spec,
            requests: 0,
            goal: Goal::Run,
            repaired_at: None,
            visible: 0,
            processed: VecDeque::new(),
        }
    }

    /// Why it is not settled yet.
    pub(crate) fn open(&self) -> Option<String> {
        let plan = self.process.machine.as_ref().and_then(|machine| machine.view().plan("deploy"));
        (self.goal != Goal::Gone).then(|| format!("the service is to {:?}: {plan:?}", self.goal))
    }

    fn now(now: u64) -> Now {
        Now { mono: Mono(now), wall: Wall(EPOCH + now) }
    }

    fn turn(&mut self, now: Now) {
        let decided = self.visible + self.process.pending() as u64;
        let statuses = self.process.mail().take(TURN_INPUTS_MAX).filter_map(|input| match input {
            Input::Update(status) => Some((decided, (**status).clone())),
            _ => None,
        });
        self.processed.extend(statuses);
        self.process.turn(now, TURN_INPUTS_MAX, &mut unlimited);
    }

    /// Counts one record or effect; returns the statuses that were processed before it was decided.
    fn count_visible(&mut self) -> Vec<pb::TaskStatus> {
        let known = self.processed.iter().take_while(|(decided, _)| *decided <= self.visible).count();
        self.visible += 1;
        self.processed.drain(..known).map(|(_, status)| status).collect()
    }

    fn command(&mut self, command: Command) -> Input {
        self.requests += 1;
        Input::Command { request: RequestId(self.requests), command }
    }
}

fn service(world: &mut World, index: usize) -> Option<&mut Service> {
    world.frameworks[index].service.as_deref_mut()
}

/// The process starts with its file, or with the order to uninstall; then it subscribes. False if nothing is left to do.
pub(super) fn begin(world: &mut World, index: usize) -> bool {
    let now = Service::now(world.queue.now());
    let Some(own) = service(world, index) else { return true };
    if matches!(own.goal, Goal::Finished | Goal::Gone) {
        own.goal = Goal::Gone;
        return false;
    }
    let seed = tepui_fsm::Rng::seeded(own.rng.next_u64());
    let machine = Scheduler::recover(own.config.clone(), own.process.disk.clone(), seed);
    own.process.start(machine.expect("the scheduler wrote its records"));
    let first = match own.goal {
        Goal::Run => Command::SetTarget { spec: Box::new(own.spec.clone()), origin: Origin::Start },
        Goal::Uninstall | Goal::Finished | Goal::Gone => Command::Uninstall,
    };
    let first = own.command(first);
    own.process.on_event(first);
    own.turn(now);
    // As its shell: it subscribes once the target is durable and answered.
    own.process.begin_sync();
    let items = own.process.synced(|_| false);
    let info = own.process.machine.as_ref().and_then(|own| framework_info(own.config(), &own.view()));
    perform_items(world, index, items);
    match info.filter(|_| world.frameworks[index].up) {
        Some(info) => {
            let framework = &mut world.frameworks[index];
            framework.session = Session::new(info.clone());
            framework.memory.info = info;
            plan_turn(world, index);
            true
        }
        None => {
            gone(world, index);
            false
        }
    }
}

/// The process dies; of the records that it was writing some are on its disk.
pub(super) fn stopped(framework: &mut Framework) {
    if let Some(own) = framework.service.as_deref_mut() {
        let lucky = own.rng.below(4) as usize;
        own.process.crash(lucky);
        own.visible = 0;
        own.processed.clear();
    }
}

/// The session is over.
pub(super) fn session_ended(world: &mut World, index: usize) -> bool {
    match service(world, index).map(|own| own.goal) {
        Some(Goal::Finished) => gone(world, index),
        Some(Goal::Run | Goal::Uninstall | Goal::Gone) => (),
        None => return false,
    }
    true
}

pub(super) fn disconnected(world: &mut World, index: usize) {
    match service(world, index).map(|own| own.goal) {
        Some(Goal::Finished) => gone(world, index),
        Some(_) => feed(world, index, Input::Disconnected),
        None => (),
    }
}

/// Its framework is torn down, or has nothing left that an operator could not tear down.
fn gone(world: &mut World, index: usize) {
    if let Some(own) = service(world, index) {
        own.goal = Goal::Gone;
    }
    world.counts.services_uninstalled += 1;
    if let Some(id) = world.frameworks[index].id().map(str::to_owned) {
        world.checks.observe(&Fact::FrameworkEnds { id: &id });
    }
    stop(world, index);
    world.frameworks[index].memory.info.id = Default::default();
}

fn feed(world: &mut World, index: usize, input: Input) {
    if let Some(own) = service(world, index) {
        own.process.on_event(input);
    }
    plan_turn(world, index);
}

fn command(world: &mut World, index: usize, command: Command) {
    if let Some(own) = service(world, index) {
        let input = own.command(command);
        feed(world, index, input);
    }
}

fn plan_turn(world: &mut World, index: usize) {
    let now = world.queue.now();
    let Some(own) = service(world, index).filter(|own| own.process.is_up()) else { return };
    let schedule = own.process.schedule();
    let at = match (schedule.has_mail, schedule.deadline) {
        (true, _) => now + mostly(&mut own.rng, 1000, MS, 0.01, 300 * MS),
        (false, Some(deadline)) => deadline.0.max(now + MS),
        (false, None) => return,
    };
    if schedule.wake.is_none_or(|wake| wake > at) {
        own.process.wake = Some(at);
        plan(world, index, at - now, super::Step::Service(Step::Turn { at }));
    }
}

pub(super) fn step(world: &mut World, index: usize, step: Step) {
    let now = Service::now(world.queue.now());
    let Some(own) = service(world, index) else { return };
    match step {
        Step::Turn { at } if own.process.wake == Some(at) => {
            own.process.wake = None;
            own.turn(now);
        }
        Step::Turn { .. } => return,
        Step::Synced => {
            let items = own.process.synced(|_| false);
            if !perform_items(world, index, items) {
                return;
            }
        }
    }
    release(world, index);
    plan_turn(world, index);
}

/// Effects that may become visible; then the records that are waiting are written.
fn release(world: &mut World, index: usize) {
    let Some(own) = service(world, index) else { return };
    let effects = own.process.ready(|_| false);
    if !perform_items(world, index, effects.into_iter().map(Item::Effect).collect()) {
        return;
    }
    let slow = world.plan.slow_disk;
    let Some(own) = service(world, index) else { return };
    if own.process.begin_sync() {
        let wait = mostly(&mut own.rng, MS / 10, 5 * MS, slow, 3 * SECOND);
        if is_killed(world, index) {
            return super::crash(world, index);
        }
        plan(world, index, wait, super::Step::Service(Step::Synced));
    }
}

fn is_killed(world: &mut World, index: usize) -> bool {
    let is_possible = world.phase == Phase::Faults;
    service(world, index).is_some_and(|own| own.rng.chance(KILLED)) && is_possible
}

/// False if the process died in between.
fn perform_items(world: &mut World, index: usize, items: Vec<Item<Record, Effect>>) -> bool {
    let id = world.frameworks[index].id().unwrap_or_default().to_owned();
    for item in items {
        let known = service(world, index).map(Service::count_visible).unwrap_or_default();
        for status in &known {
            world.checks.observe(&Fact::ServiceKnows { id: &id, status });
        }
        let Item::Effect(effect) = item else { continue };
        let life = world.frameworks[index].life;
        if is_killed(world, index) {
            world.counts.services_killed += 1;
            super::crash(world, index);
            return false;
        }
        perform(world, index, effect);
        if world.frameworks[index].life != life {
            return false;
        }
    }
    true
}

fn perform(world: &mut World, index: usize, effect: Effect) {
    match effect {
        Effect::Publish(_) => (),
        Effect::Accept(accept) => perform_accept(world, index, &accept),
        Effect::Decline { offers, refuse } => {
            let filters = filters(refuse);
            deliver(world, index, calls::decline(offers.iter().map(OfferId::to_proto), Some(filters)));
        }
        Effect::Kill { task, agent } => {
            deliver(world, index, calls::kill(task.to_proto(), agent.map(|agent| agent.to_proto()), None));
        }
        Effect::Acknowledge { agent, task, uuid } => acknowledge(world, index, &agent, &task, uuid),
        Effect::AcknowledgeOperation { agent, operation, uuid } => {
            let acknowledge = call::AcknowledgeOperationStatus {
                agent_id: agent.map(|agent| agent.to_proto()).into(),
                operation_id: pb::OperationID { value: operation, ..Default::default() }.into(),
                uuid,
                ..Default::default()
            };
            let acknowledge = Call {
                acknowledge_operation_status: acknowledge.into(),
                ..of(call::Type::ACKNOWLEDGE_OPERATION_STATUS)
            };
            deliver(world, index, acknowledge);
        }
        Effect::Reconcile(tasks) => {
            let agent = |agent: Option<AgentId>| agent.as_ref().map(AgentId::to_proto);
            let tasks = tasks.into_iter().map(|(task, at)| (task.to_proto(), agent(at)));
            deliver(world, index, calls::reconcile(tasks));
        }
        Effect::ReconcileOperations(operations) => {
            let operation = |(id, agent): (String, AgentId)| call::reconcile_operations::Operation {
                operation_id: pb::OperationID { value: id, ..Default::default() }.into(),
                agent_id: agent.to_proto().into(),
                ..Default::default()
            };
            let operations = operations.into_iter().map(operation).collect();
            deliver(world, index, calls::reconcile_operations(operations));
        }
        Effect::UpdateFramework(info) => {
            deliver(world, index, calls::update_framework(*info, Vec::new(), None));
        }
        Effect::Suppress => drop(deliver(world, index, calls::suppress(Vec::new()))),
        Effect::Revive => drop(deliver(world, index, calls::revive(Vec::new()))),
        Effect::Reply { answer: Answer::Rejected(errors), .. } => {
            world.checks.fail("services_hold", format!("the spec is rejected: {}", errors.join("; ")));
        }
        Effect::Reply { .. } => (),
        Effect::Teardown => drop(deliver(world, index, calls::teardown())),
        Effect::Finished(_) => {
            world.trace_line(|| format!("F{index} has uninstalled its service"));
            if let Some(own) = service(world, index) {
                own.goal = Goal::Finished;
            }
            if !world.frameworks[index].is_subscribed() {
                gone(world, index);
            }
        }
        Effect::Stop(why) => world.checks.fail("services_hold", format!("the scheduler stops: {why}")),
    }
}

/// As its shell: the scheduler learns of calls that do not get through.
fn deliver(world: &mut World, index: usize, call: Call) -> bool {
    let offers = offers(&call);
    let is_sent = send(world, index, call);
    if !is_sent && world.frameworks[index].session.link().is_some() {
        feed(world, index, Input::CallsLost { offers });
    }
    is_sent
}

/// The master carried out a call.
pub(super) fn answered(world: &mut World, index: usize, call: &Call) {
    if call.r#type == Some(call::Type::TEARDOWN) {
        feed(world, index, Input::Deregistered);
    }
}

/// The connection broke before the calls were answered.
pub(super) fn calls_lost(world: &mut World, index: usize, calls: &[Call]) {
    if !calls.is_empty() {
        feed(world, index, Input::CallsLost { offers: calls.iter().flat_map(offers).collect() });
    }
}

/// The offers that a call uses or declines.
fn offers(call: &Call) -> Vec<OfferId> {
    call.accept.offer_ids.iter().chain(&call.decline.offer_ids).map(OfferId::from).collect()
}

fn acknowledge(world: &mut World, index: usize, agent: &AgentId, task: &TaskId, uuid: Vec<u8>) {
    let acknowledge = call::Acknowledge {
        agent_id: agent.to_proto().into(),
        task_id: task.to_proto().into(),
        uuid: uuid.clone(),
        ..Default::default()
    };
    if deliver(world, index, Call { acknowledge: acknowledge.into(), ..of(call::Type::ACKNOWLEDGE) }) {
        world.counts.acknowledgements += 1;
        world.checks.observe(&Fact::FrameworkAcknowledges { uuid: &uuid });
    }
}

fn of(r#type: call::Type) -> Call {
    Call { r#type: Some(r#type), ..Default::default() }
}

fn filters(refuse: std::time::Duration) -> pb::Filters {
    pb::Filters { refuse_seconds: Some(refuse.as_secs_f64()), ..Default::default() }
}

/// As its shell: of an ACCEPT that was not sent the scheduler learns at once.
fn perform_accept(world: &mut World, index: usize, accept: &Accept) {
    let id = world.frameworks[index].id().unwrap_or_default().to_owned();
    let groups = accept.operations.iter().flat_map(|own| &own.launch_group.task_group.tasks);
    let tasks: Vec<String> = groups.map(|task| task.task_id.value.clone()).collect();
    for volume in accept.operations.iter().flat_map(|own| &own.destroy.volumes) {
        world.checks.observe(&Fact::VolumeUnwanted { volume: &volume.disk.persistence.id });
    }
    let offers = accept.offers.iter().map(OfferId::to_proto);
    let call = calls::accept(offers, accept.operations.clone(), Some(filters(accept.refuse)));
    if deliver(world, index, call) {
        world.counts.tasks += tasks.len() as u64;
        for task in &tasks {
            world.checks.observe(&Fact::FrameworkLaunches { id: &id, task });
        }
        return;
    }
    for task in tasks {
        let status = pb::TaskStatus {
            task_id: pb::TaskID { value: task, ..Default::default() }.into(),
            agent_id: accept.agent.to_proto().into(),
            state: pb::TaskState::TASK_DROPPED,
            ..Default::default()
        };
        feed(world, index, Input::Update(Box::new(status)));
    }
}

/// An event of the session, as its shell passes it on.
pub(super) fn on_event(world: &mut World, index: usize, event: SchedulerEvent) {
    let input = match event {
        SchedulerEvent::Subscribed(subscribed) => {
            let framework_id = subscribed.framework_id.value.clone();
            world.trace_line(|| format!("F{index} is {framework_id}"));
            let framework = &mut world.frameworks[index];
            framework.memory.info = framework.session.framework().clone();
            let id = framework_id.as_str();
            world.checks.observe(&Fact::FrameworkIs { id, checkpoint: true, untrusted: false });
            world.checks.observe(&Fact::ServiceIs { id });
            super::plan_wake(world, index);
            Input::Subscribed { framework_id }
        }
        SchedulerEvent::Offers(offers) => {
            world.counts.offers += offers.len() as u64;
            Input::Offers(offers)
        }
        SchedulerEvent::Rescind(offer) => Input::Rescinded(OfferId::new(offer.value)),
        SchedulerEvent::Update(status) => {
            world.counts.updates += 1;
            let id = world.frameworks[index].id().unwrap_or_default().to_owned();
            world.checks.observe(&Fact::FrameworkSees { id: &id, status: &status });
            Input::Update(Box::new(status))
        }
        SchedulerEvent::UpdateOperation(status) => Input::OperationUpdate(Box::new(status)),
        SchedulerEvent::Failure(failure) => {
            match (failure.agent_id.into_option(), failure.executor_id.is_set()) {
                (Some(agent), false) => Input::AgentFailed(AgentId::new(agent.value)),
                (Some(_) | None, _) => return,
            }
        }
        SchedulerEvent::Error(message) => {
            world.trace_line(|| format!("F{index} is told: {message}"));
            Input::Failed(message)
        }
        SchedulerEvent::Disconnected => Input::Disconnected,
        SchedulerEvent::InverseOffers(_)
        | SchedulerEvent::RescindInverseOffer(_)
        | SchedulerEvent::Message(_) => return,
    };
    feed(world, index, input);
}
