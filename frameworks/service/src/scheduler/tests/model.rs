//! Random faults: the scheduler is killed between any two items of its outbox, agents come, go and are drained, launches fail,
//! specs and options change, operators act on pods and plans.
//!
//! Checked always: a task instance runs once (the cluster rejects a second one); an external volume is mounted on agents that can,
//! and one that is not shared by one pod instance; automatic replacements have their least distance. Checked when faults end: plans are complete, the target is the last spec of an
//! operator, its pods run, paused or not as recorded, and no reservation or volume is left that no pod owns; after an
//! uninstallation nothing is left.

use std::collections::BTreeSet;
use std::time::Duration;

use tepui_fsm::Rng;
use tepui_proto::mesos::v1::TaskState as State;

use super::script::{World, config};
use crate::options::Options;
use crate::plan::Action;
use crate::scheduler::task::{Life, life};
use crate::scheduler::{Command, Input, Origin, PhaseView};
use crate::spec::ServiceSpec;

const SEEDS: u64 = 60;
const STEPS: u64 = 100;
const SETTLE_ROUNDS: usize = 200;
/// Rounds of an uninstallation in which the scheduler may be killed.
const CRASHING_ROUNDS: usize = 20;
/// Least time between two automatic replacements.
const REPLACE_DELAY_SECS: u64 = 20;
/// Rounds in which nothing is left to do, before the end.
const CALM_ROUNDS: usize = 3;

/// Pods with persistent volumes, external volumes, counted placement, a pod that may be missing, and a plan for operators.
const SPEC: &str = "
name: svc
pods:
  a:
    count: {{A}}
    allow-decommission: true
    resource-sets:
      shared: {cpus: 0.5, memory: 64, volume: {path: data, type: ROOT, size: 16}}
    tasks:
      init: {goal: ONCE, cmd: init, resource-set: shared}
      main: {goal: RUNNING, cmd: 'main-{{CMD}}', resource-set: shared}
      side: {goal: RUNNING, cmd: side, cpus: {{CPUS}}, memory: 32, essential: false, ports: {p: {port: 0}}}
  b:
    count: {{B}}
    allow-decommission: true
    placement: 'hostname:MAX_PER:2'
    tasks:
      main: {goal: RUNNING, cmd: main, cpus: 0.5, memory: 64}
      job: {goal: FINISH, cmd: 'job-{{CMD}}', cpus: 0.1, memory: 32}
      save: {goal: FINISH, cmd: save, cpus: 0.1, memory: 32}
  {{#HAS_STORE}}
  store:
    count: {{STORE}}
    allow-decommission: true
    {{#USE_EXTERNAL_VOLUMES}}
    external-volumes:
      data:
        type: DOCKER
        driver: PWX
        size: 1024
        container-path: data
        volume-name: '{{{EXTERNAL_VOLUME_NAME}}}'
        volume-sharing: {{EXTERNAL_VOLUME_SHARING}}
    {{/USE_EXTERNAL_VOLUMES}}
    tasks:
      main: {goal: RUNNING, cmd: main, cpus: 0.2, memory: 64}
  {{/HAS_STORE}}
plans:
  deploy:
    strategy: parallel
    phases:
      a: {pod: a, strategy: parallel, steps: [{default: [[init], [main, side]]}]}
      b: {pod: b, strategy: serial, steps: [{default: [[main, job]]}]}
      {{#HAS_STORE}}
      store: {pod: store, strategy: {{STORE_STRATEGY}}}
      {{/HAS_STORE}}
  backup:
    phases:
      b: {pod: b, strategy: serial, steps: [{default: [[save]]}]}
";
const ISOLATOR: &str = "docker/volume";

/// A spec with options at random, as `tepui service run --options` reads them.
fn spec(rng: &mut Rng) -> ServiceSpec {
    let mut pick = |of: &[&str]| of[rng.below(of.len() as u64) as usize].to_owned();
    let options = format!(
        r#"{{"external-volumes": {{
            "use-external-volumes": {},
            "volume_name": "{}",
            "volume_sharing": "{}",
            "pod-replacement-failure-policy": {{
                "enable-automatic-pod-replacement": {},
                "permanent-failure-timeout": 60,
                "min-replace-delay": {REPLACE_DELAY_SECS}
            }}
        }}}}"#,
        pick(&["true", "true", "false"]),
        pick(&["disk", "other"]),
        pick(&["POD_EXCLUSIVE", "POD_SHARED"]),
        pick(&["true", "false"]),
    );
    let given = [
        ("A", pick(&["0", "1", "2", "3"])),
        ("B", pick(&["1", "2", "3"])),
        ("STORE", pick(&["0", "1", "2"])),
        ("HAS_STORE", pick(&["true", "true", "false"])),
        ("STORE_STRATEGY", pick(&["serial", "parallel", "serial-canary"])),
        ("CMD", pick(&["0", "1", "2"])),
        ("CPUS", pick(&["0.1", "0.2", "0.4"])),
    ];
    let env = given.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let env = Options::parse(&options).expect("options").environment(env);
    let template = |name: &str| Ok(format!("content of {name}"));
    let input = crate::Input { file: "svc.yml", text: SPEC, env: &env, template: &template };
    crate::parse(input).unwrap_or_else(|report| panic!("{report}")).0
}

struct Model {
    world: World,
    rng: Rng,
    next_agent: u64,
    /// The files of the scheduler, and a spec that was uploaded since they were read.
    files: ServiceSpec,
    uploaded: Option<ServiceSpec>,
}

impl Model {
    fn new(seed: u64) -> Model {
        let mut world = World::new(config(), seed);
        world.is_quiet = true;
        world.cluster.lists_isolators = true;
        let mut rng = Rng::seeded(seed);
        let files = spec(&mut rng);
        let mut model = Model { world, rng, next_agent: 0, files, uploaded: None };
        (0..5).for_each(|_| model.add_agent());
        model.start();
        model.subscribe();
        model
    }

    fn add_agent(&mut self) {
        self.next_agent += 1;
        let id = format!("A{}", self.next_agent);
        // Some agents cannot mount external volumes.
        let isolator = ("isolation".to_owned(), ISOLATOR.to_owned());
        let attributes = if self.next_agent.is_multiple_of(3) { Vec::new() } else { vec![isolator] };
        self.world.cluster.add_agent(&id, "cpus:6;mem:2048;disk:4096;ports:[1000-1100]", attributes);
    }

    /// What a scheduler gets before it subscribes: the spec of its files; the client of an upload that got no answer repeats it.
    fn start(&mut self) {
        self.put_target(self.files.clone(), Origin::Start);
        if let Some(spec) = self.uploaded.clone() {
            self.put_target(spec, Origin::Upload);
        }
        self.list_agents();
    }

    /// The shell reads the list of agents from time to time.
    fn list_agents(&mut self) {
        self.world.input(Input::Agents(self.world.cluster.facts()));
    }

    fn put_target(&mut self, spec: ServiceSpec, origin: Origin) {
        self.command(Command::SetTarget { spec: Box::new(spec), origin });
    }

    fn target(&self) -> &ServiceSpec {
        self.uploaded.as_ref().unwrap_or(&self.files)
    }

    fn set_target(&mut self) {
        let spec = spec(&mut self.rng);
        match self.rng.chance(0.5) {
            true => {
                self.uploaded = Some(spec.clone());
                self.put_target(spec, Origin::Upload);
            }
            false => {
                (self.files, self.uploaded) = (spec.clone(), None);
                self.put_target(spec, Origin::Files);
            }
        }
    }

    fn subscribe(&mut self) {
        self.world.is_suppressed = false;
        self.world.filters.clear();
        self.world.input(Input::Subscribed { framework_id: "F1".to_owned() });
        self.world.cluster.resend();
    }

    fn command(&mut self, command: Command) {
        self.world.command(command);
    }

    /// The scheduler died: what it had not written is lost, and another one starts.
    fn restart_if_crashed(&mut self) {
        if self.world.crash_after == Some(0) {
            self.world.restart();
            self.start();
            self.subscribe();
        }
    }

    /// Delivers events; a crash may happen in the middle of any of them.
    fn pump(&mut self) {
        while let Some(event) = self.world.cluster.events.pop_front() {
            self.world.input(event);
            self.restart_if_crashed();
        }
    }

    fn pick<T: Clone>(&mut self, all: &[T]) -> Option<T> {
        let at = self.rng.below(all.len() as u64) as usize;
        all.get(at).cloned()
    }

    fn offer(&mut self) {
        if self.world.is_suppressed {
            return;
        }
        let agents: Vec<String> = self.world.cluster.agents.keys().cloned().collect();
        for agent in agents {
            let is_filtered =
                self.world.filters.get(&agent).is_some_and(|until| *until > self.world.now.mono);
            if !is_filtered && self.rng.chance(0.7) {
                self.world.cluster.offer(&agent);
            }
        }
    }

    fn set_state(&mut self, id: &str, state: State) {
        if let Some((agent, _)) = self.world.cluster.find(id) {
            if !self.world.cluster.agents[&agent].is_reachable {
                return;
            }
            if life(state) == Life::Dead {
                self.world.filters.remove(&agent);
            }
        }
        self.world.cluster.set_state(id, state, "", state == State::TASK_RUNNING);
    }

    /// Tasks start, finish, and fail as often as asked for.
    fn progress(&mut self, failures: f64) {
        for (name, id, _, state) in self.world.cluster.tasks() {
            let is_once = ["-init", "-job", "-save"].iter().any(|end| name.ends_with(end));
            if self.rng.chance(failures) {
                self.set_state(&id, State::TASK_FAILED);
            } else if state == State::TASK_STAGING && self.rng.chance(0.8) {
                self.set_state(&id, if is_once { State::TASK_FINISHED } else { State::TASK_RUNNING });
            }
        }
        for id in core::mem::take(&mut self.world.kills) {
            match self.rng.chance(0.8) {
                true => self.set_state(&id, State::TASK_KILLED),
                false => self.world.kills.push(id),
            }
        }
    }

    fn fault(&mut self) {
        let agents: Vec<String> = self.world.cluster.agents.keys().cloned().collect();
        let pods = self.world.scheduler.view().pod_names();
        match self.rng.below(20) {
            0 => self.set_target(),
            1 if agents.len() > 4 => {
                let agent = self.pick(&agents).unwrap_or_default();
                self.world.cluster.remove_agent(&agent);
                self.add_agent();
                // The shell learns of an agent before it passes on its first offer.
                self.list_agents();
            }
            2 => {
                let agent = self.pick(&agents).unwrap_or_default();
                self.world.cluster.lose_agent(&agent, State::TASK_UNREACHABLE);
            }
            3 | 4 => {
                let agent = self.pick(&agents).unwrap_or_default();
                self.world.cluster.return_agent(&agent);
            }
            5 => {
                let pod = self.pick(&pods).unwrap_or_default();
                self.command(Command::ReplacePod { pod });
            }
            6 => {
                let pod = self.pick(&pods).unwrap_or_default();
                self.command(Command::RestartPod { pod });
            }
            7 => {
                // The offers are gone before the scheduler learns of it.
                let offers: Vec<String> = self.world.cluster.offers.keys().cloned().collect();
                let offer = self.pick(&offers).unwrap_or_default();
                self.world.cluster.offers.remove(&offer);
            }
            8 => {
                self.world.cluster.offers.clear();
                self.world.cluster.events.clear();
                self.world.input(Input::Disconnected);
                self.subscribe();
            }
            9 => {
                let pod = self.pick(&pods).unwrap_or_default();
                self.command(Command::PausePod { pod, tasks: Vec::new() });
            }
            10 => {
                let pod = self.pick(&pods).unwrap_or_default();
                self.command(Command::ResumePod { pod, tasks: Vec::new() });
            }
            11 => {
                let agent = self.pick(&agents).unwrap_or_default();
                self.world.cluster.drain(&agent);
            }
            12 => self.operate_plan(),
            _ if self.world.crash_after.is_none() => {
                self.world.crash_after = Some(self.rng.below(6) as usize);
            }
            _ => (),
        }
    }

    fn operate_plan(&mut self) {
        let plans = self.world.scheduler.view().plan_names();
        let plan = self.pick(&plans).unwrap_or_default();
        let phase = self.pick(&[None, Some("a".to_owned()), Some("b".to_owned())]).flatten();
        let action = match self.rng.below(5) {
            0 => Action::Interrupt { phase },
            1 => Action::Continue { phase },
            2 => Action::Restart { phase, step: None },
            3 => Action::Stop,
            _ => Action::Start { parameters: Default::default() },
        };
        self.command(Command::Plan { plan, action });
    }

    /// Operators let everything go on that waits for them.
    fn release_plans(&mut self) {
        let view = self.world.scheduler.view();
        for name in view.plan_names() {
            let Some(plan) = view.plan(&name) else { continue };
            if plan.status != "COMPLETE" {
                let action = Action::Continue { phase: None };
                self.command(Command::Plan { plan: name.clone(), action });
            }
            for phase in plan.phases.iter().filter(|phase| phase.status != "COMPLETE") {
                let action = Action::Continue { phase: Some(phase.name.clone()) };
                self.command(Command::Plan { plan: name.clone(), action });
                self.move_pods(phase);
            }
        }
    }

    /// Operators replace pods that an update gave external volumes on an agent that cannot mount them.
    fn move_pods(&mut self, phase: &PhaseView) {
        for step in phase.steps.iter().filter(|step| step.message.contains("1 lack the isolator")) {
            if let Some((pod, _)) = step.name.split_once(':') {
                self.command(Command::ReplacePod { pod: pod.to_owned() });
            }
        }
    }

    fn step(&mut self) {
        if self.rng.chance(0.3) {
            self.fault();
            self.restart_if_crashed();
        }
        if self.rng.chance(0.3) {
            self.list_agents();
            self.restart_if_crashed();
        }
        self.offer();
        self.pump();
        let failures = if self.rng.chance(0.2) { 0.2 } else { 0.0 };
        self.progress(failures);
        self.pump();
        let secs = [0, 1, 6, 40][self.rng.below(4) as usize];
        self.world.wait(Duration::from_secs(secs));
        self.restart_if_crashed();
        self.pump();
    }

    /// No more faults: everything that can happen happens, for long enough.
    fn settle(&mut self) {
        self.world.crash_after = None;
        let agents: Vec<String> = self.world.cluster.agents.keys().cloned().collect();
        for agent in agents {
            self.world.cluster.return_agent(&agent);
            self.world.cluster.reactivate(&agent);
        }
        self.pump();
        let mut calm = 0;
        for _ in 0..SETTLE_ROUNDS {
            self.release_plans();
            self.list_agents();
            self.offer();
            self.pump();
            self.progress(0.0);
            self.pump();
            self.world.wait(Duration::from_secs(20));
            self.pump();
            calm = if self.is_calm() { calm + 1 } else { 0 };
            if calm > CALM_ROUNDS {
                return;
            }
        }
    }

    fn is_calm(&self) -> bool {
        let view = self.world.scheduler.view();
        let plans = view.plan_names();
        let is_complete = |name: &String| view.plan(name).is_some_and(|plan| plan.status == "COMPLETE");
        view.garbage.is_empty() && self.world.kills.is_empty() && plans.iter().all(is_complete)
    }

    fn check(&mut self, seed: u64) {
        for pair in self.world.replacements.windows(2) {
            let distance = Duration::from_nanos(pair[1].0 - pair[0].0);
            assert!(distance.as_secs() >= REPLACE_DELAY_SECS, "seed {seed}: replaced after {distance:?}");
        }
        let view = self.world.scheduler.view();
        for name in view.plan_names() {
            let plan = view.plan(&name).expect("a plan");
            assert_eq!(plan.status, "COMPLETE", "seed {seed}: {plan:#?}");
        }
        let garbage: Vec<String> =
            view.garbage.values().map(|own| format!("{}: {}", own.agent, own.id)).collect();
        let agents: Vec<&String> = self.world.cluster.agents.keys().collect();
        assert!(garbage.is_empty(), "seed {seed}: {garbage:?}, agents {agents:?}");
        let owned: BTreeSet<String> = view.reservations().into_values().flatten().collect();
        for reservation in self.world.cluster.reservations() {
            let is_owned = owned.iter().any(|id| reservation.contains(id));
            assert!(is_owned, "seed {seed}: {reservation} leaked");
        }
        let spec = self.target();
        let target = view.target.as_deref().and_then(|id| view.configurations.get(id));
        assert_eq!(target.map(|own| &**own), Some(spec), "seed {seed}: the target");
        let mut expected = BTreeSet::new();
        for pod in &spec.pods {
            for index in 0..pod.count {
                let running = pod.tasks.iter().filter(|task| task.goal == crate::spec::Goal::Running);
                expected.extend(running.map(|task| format!("{}-{index}-{}", pod.name, task.name)));
            }
        }
        for (name, id, ..) in self.world.cluster.tasks() {
            let task = view.tasks.values().find(|task| task.launch.task_id == id).expect("a known task");
            let own = self.world.cluster.command(&id).unwrap_or_default();
            let is_paused_command = own == config().pause_command;
            assert_eq!(is_paused_command, task.is_paused(), "seed {seed}: {name} runs {own:?}");
        }
        let running: Vec<String> = self.world.cluster.tasks().into_iter().map(|(name, ..)| name).collect();
        assert_eq!(running.len(), expected.len(), "seed {seed}: {running:?}");
        assert_eq!(running.into_iter().collect::<BTreeSet<_>>(), expected, "seed {seed}");
    }

    /// A scheduler that is to uninstall the service gets the command at every start.
    fn restart_uninstall(&mut self) {
        if self.world.crash_after == Some(0) {
            self.world.restart();
            self.command(Command::Uninstall);
            if !self.world.is_finished {
                self.subscribe();
            }
        }
    }

    fn uninstall(&mut self, seed: u64) {
        self.command(Command::Uninstall);
        for round in 0..SETTLE_ROUNDS {
            if self.world.is_finished {
                break;
            }
            self.restart_uninstall();
            // Faults end after a while.
            if round < CRASHING_ROUNDS && self.rng.chance(0.4) {
                self.world.crash_after = Some(self.rng.below(12) as usize);
            }
            self.offer();
            while let Some(event) = self.world.cluster.events.pop_front() {
                self.world.input(event);
                self.restart_uninstall();
            }
            self.progress(0.0);
            self.world.wait(Duration::from_secs(20));
        }
        assert!(self.world.is_finished, "seed {seed}: {:#?}", self.world.scheduler.view().plan("deploy"));
        assert_eq!(self.world.cluster.reservations(), Vec::<String>::new(), "seed {seed}");
        let left: Vec<&String> = self.world.store.keys().collect();
        assert_eq!(left, ["service", "uninstalled"], "seed {seed}");
        self.world.restart();
        assert!(self.world.scheduler.finished().is_some(), "seed {seed}: nothing is deployed again");
    }
}

fn run(seed: u64) {
    let mut model = Model::new(seed);
    for _ in 0..STEPS {
        model.step();
    }
    model.settle();
    model.check(seed);
    if seed.is_multiple_of(2) {
        model.uninstall(seed);
    }
}

/// More for a search by hand.
fn seeds() -> u64 {
    std::env::var("SERVICE_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(SEEDS)
}

#[test]
fn faults_at_random_leave_no_double_launch_and_no_leak() {
    let first = std::env::var("SERVICE_SEED").ok().and_then(|seed| seed.parse().ok());
    match first {
        Some(seed) => run(seed),
        None => (0..seeds()).for_each(run),
    }
}
