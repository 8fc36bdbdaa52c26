//! Plans as scripts: launches, task states, operators' actions, and the statuses that follow.

use std::collections::BTreeMap;

use super::backoff::BackoffPolicy;
use super::*;
use crate::spec::ServiceSpec;

/// A set of plans under test; a launch takes what `candidates` gives.
struct Bench {
    plans: Vec<Plan>,
    backoff: Backoff,
    now: Millis,
}

fn spec(pods: &[(&str, u32)], plans: &str) -> ServiceSpec {
    let pod = |(name, count): &(&str, u32)| {
        format!(
            "  {name}:\n    count: {count}\n    tasks:\n      a: {{goal: RUNNING, cmd: x, cpus: 1}}\n      b: {{goal: ONCE, cmd: x, cpus: 1}}\n"
        )
    };
    let text = format!("name: db\npods:\n{}{plans}\n", pods.iter().map(pod).collect::<String>());
    let template = |_: &str| Err(String::new());
    let env = BTreeMap::new();
    let input = crate::Input { file: "svc.yml", text: &text, env: &env, template: &template };
    crate::parse(input).unwrap_or_else(|report| panic!("{report}")).0
}

fn ids() -> impl FnMut() -> String {
    let mut next = 0;
    move || {
        next += 1;
        format!("id{next}")
    }
}

fn nothing(_: &PodInstance, _: &str) -> Option<TaskRecord> {
    None
}

impl Bench {
    fn new(plans: Vec<Plan>) -> Bench {
        let policy = BackoffPolicy { enabled: true, initial_ms: 100, factor: 2.0, max_ms: 300 };
        Bench { plans, backoff: Backoff::new(policy), now: 0 }
    }

    fn deploy(pods: &[(&str, u32)], plans: &str) -> Bench {
        let spec = spec(pods, plans);
        let mut all = vec![super::deploy(&spec, false, &nothing, &mut ids())];
        all.extend(custom(&spec, &nothing, &mut ids()));
        Bench::new(all)
    }

    /// Names of the candidates.
    fn candidates(&self) -> Vec<String> {
        let name = |it: Candidate| self.plans[it.plan].step(it.phase, it.step).expect("a step").name.clone();
        candidates(&self.plans, self.now, &self.backoff).into_iter().map(name).collect()
    }

    /// Launches all candidates; ids are those of the step with the task's name.
    fn launch(&mut self) {
        for it in candidates(&self.plans, self.now, &self.backoff) {
            self.plans[it.plan].update(it.phase, it.step, |step| {
                if let Work::Launch { pod, tasks } = &step.work {
                    let ids: Vec<(String, String)> =
                        tasks.iter().map(|task| (task.name.clone(), pod.task_name(&task.name))).collect();
                    step.on_launch(&ids);
                } else {
                    step.set(Progress::Complete);
                }
            });
        }
    }

    fn task(&mut self, id: &str, state: TaskState) {
        let mut parts = id.split('-');
        let pod = parts.next().expect("a pod").to_owned();
        let index = parts.next().and_then(|index| index.parse().ok()).expect("an index");
        let pod = PodInstance { pod, index };
        for plan in &mut self.plans {
            plan.on_task(self.now, &pod, id, state, &mut self.backoff);
        }
    }

    /// A pod's tasks reach their goals.
    fn complete(&mut self, pod: &str) {
        self.task(&format!("{pod}-a"), TaskState::Running { ready: true });
        self.task(&format!("{pod}-b"), TaskState::Finished);
    }

    fn apply(&mut self, plan: usize, action: Action) -> Outcome {
        self.plans[plan].apply(self.now, action, &mut self.backoff)
    }

    /// `plan; phase: steps` with statuses.
    fn shown(&self, plan: usize) -> String {
        let plan = &self.plans[plan];
        let phase = |phase: &Phase| {
            let steps: Vec<String> =
                phase.steps().map(|step| step.status(self.now, &self.backoff).to_string()).collect();
            format!("{} {} [{}]", phase.name, phase.status(self.now, &self.backoff), steps.join(" "))
        };
        let phases: Vec<String> = plan.phases.iter().map(phase).collect();
        format!("{}; {}", plan.status(self.now, &self.backoff), phases.join("; "))
    }
}

fn phase(name: &str) -> Option<String> {
    Some(name.to_owned())
}

#[test]
fn a_generated_deploy_plan_launches_pods_one_after_the_other() {
    let mut bench = Bench::deploy(&[("x", 2), ("y", 1)], "");
    assert_eq!(bench.shown(0), "PENDING; x PENDING [PENDING PENDING]; y PENDING [PENDING]");
    assert_eq!(bench.candidates(), ["x-0:[a, b]"]);
    bench.launch();
    assert_eq!(bench.shown(0), "STARTING; x STARTING [STARTING PENDING]; y PENDING [PENDING]");
    bench.complete("x-0");
    assert_eq!(bench.shown(0), "IN_PROGRESS; x IN_PROGRESS [COMPLETE PENDING]; y PENDING [PENDING]");
    bench.launch();
    bench.complete("x-1");
    assert_eq!(bench.candidates(), ["y-0:[a, b]"]);
    bench.launch();
    bench.complete("y-0");
    assert_eq!(bench.shown(0), "COMPLETE; x COMPLETE [COMPLETE COMPLETE]; y COMPLETE [COMPLETE]");
    assert_eq!(bench.candidates(), [""; 0]);
}

#[test]
fn parallel_phases_with_steps_chain_the_steps_of_each_pod() {
    let plans =
        "plans: {deploy: {phases: {p: {pod: x, strategy: parallel, steps: [{default: [[b], [a]]}]}}}}";
    let mut bench = Bench::deploy(&[("x", 2)], plans);
    assert_eq!(bench.plans[0].phases[0].strategy_name(), "dependency");
    assert_eq!(bench.candidates(), ["x-0:[b]", "x-1:[b]"]);
    bench.launch();
    bench.task("x-1-b", TaskState::Finished);
    assert_eq!(bench.candidates(), ["x-0:[b]", "x-1:[a]"]);
}

#[test]
fn canaries_wait_for_a_continue_each() {
    let plans = "plans: {deploy: {phases: {p: {pod: x, strategy: parallel-canary}}}}";
    let mut bench = Bench::deploy(&[("x", 4)], plans);
    assert_eq!(bench.plans[0].phases[0].strategy_name(), "parallel-canary");
    assert_eq!(bench.shown(0), "WAITING; p WAITING [WAITING WAITING PENDING PENDING]");
    assert_eq!(
        bench.apply(0, Action::Continue { phase: None }),
        Outcome::AlreadyDone,
        "a plan releases no canary"
    );
    assert_eq!(bench.candidates(), [""; 0]);
    assert_eq!(bench.apply(0, Action::Continue { phase: phase("p") }), Outcome::Done);
    assert_eq!(bench.candidates(), ["x-0:[a, b]"]);
    bench.launch();
    bench.complete("x-0");
    assert_eq!(bench.shown(0), "WAITING; p WAITING [COMPLETE WAITING PENDING PENDING]");
    assert_eq!(bench.apply(0, Action::Continue { phase: phase("p") }), Outcome::Done);
    assert_eq!(bench.candidates().len(), 3);
    assert_eq!(bench.apply(0, Action::Continue { phase: phase("p") }), Outcome::AlreadyDone);
}

#[test]
fn failed_step_backs_off_and_recovers() {
    let mut bench = Bench::deploy(&[("x", 1), ("y", 1)], "");
    let mut waits = Vec::new();
    for _ in 0..3 {
        bench.launch();
        bench.task("x-0-a", TaskState::Failed);
        assert_eq!(bench.shown(0), "DELAYED; x DELAYED [DELAYED]; y PENDING [PENDING]");
        assert_eq!(bench.candidates(), [""; 0]);
        let until = bench.backoff.deadline(bench.now).expect("a delay");
        waits.push(until - bench.now);
        bench.now = until;
        assert_eq!(bench.candidates(), ["x-0:[a, b]"]);
    }
    assert_eq!(waits, [100, 200, 300]);
    bench.launch();
    bench.complete("x-0");
    assert_eq!(bench.candidates(), ["y-0:[a, b]"]);
}

#[test]
fn operators_interrupt_continue_force_and_restart() {
    let mut bench = Bench::deploy(&[("x", 1), ("y", 1)], "");
    assert_eq!(bench.apply(0, Action::Interrupt { phase: None }), Outcome::Done);
    assert_eq!(bench.apply(0, Action::Interrupt { phase: None }), Outcome::AlreadyDone);
    assert_eq!((bench.candidates().len(), bench.plans[0].status(0, &bench.backoff)), (0, Status::Waiting));
    assert_eq!(bench.apply(0, Action::Continue { phase: None }), Outcome::Done);
    assert_eq!(bench.apply(0, Action::Interrupt { phase: phase("x") }), Outcome::Done);
    assert_eq!(bench.shown(0), "WAITING; x WAITING [PENDING]; y PENDING [PENDING]");
    assert_eq!(bench.apply(0, Action::Continue { phase: phase("x") }), Outcome::Done);
    let force = |phase: Option<&str>, step: Option<&str>| Action::ForceComplete {
        phase: phase.map(str::to_owned),
        step: step.map(str::to_owned),
    };
    assert_eq!(bench.apply(0, force(None, Some("s"))), Outcome::MissingPhase);
    assert_eq!(bench.apply(0, force(Some("z"), None)), Outcome::NotFound("Phase z".into()));
    assert_eq!(bench.apply(0, force(Some("x"), Some("s"))), Outcome::NotFound("Step s".into()));
    assert_eq!(bench.apply(0, force(Some("x"), Some("x-0:[a, b]"))), Outcome::Done);
    assert_eq!(bench.apply(0, force(Some("x"), Some("x-0:[a, b]"))), Outcome::AlreadyDone);
    assert_eq!(bench.apply(0, force(None, None)), Outcome::Done);
    assert_eq!(bench.apply(0, force(None, None)), Outcome::AlreadyDone);
    let restart = |phase: Option<&str>| Action::Restart { phase: phase.map(str::to_owned), step: None };
    assert_eq!(bench.apply(0, restart(Some("x"))), Outcome::Done);
    assert_eq!(bench.apply(0, restart(Some("x"))), Outcome::AlreadyDone);
    assert_eq!(bench.shown(0), "IN_PROGRESS; x PENDING [PENDING]; y COMPLETE [COMPLETE]");
    assert_eq!(bench.apply(0, restart(None)), Outcome::Done);
    assert_eq!(bench.shown(0), "PENDING; x PENDING [PENDING]; y PENDING [PENDING]");
}

#[test]
fn custom_plans_wait_for_start_and_stop_sets_them_back() {
    let plans = "plans: {deploy: {phases: {x: {pod: x}}}, backup: {phases: {p: {pod: x, steps: [{default: [[b]]}]}}}}";
    let mut bench = Bench::deploy(&[("x", 1)], plans);
    assert_eq!(bench.shown(1), "WAITING; p PENDING [PENDING]");
    bench.launch();
    bench.complete("x-0");
    assert_eq!(bench.candidates(), [""; 0]);
    let parameters: BTreeMap<String, String> = [("TO".to_owned(), "s3".to_owned())].into();
    let start = Action::Start { parameters: parameters.clone() };
    assert_eq!(bench.apply(1, start.clone()), Outcome::Done);
    assert_eq!(bench.candidates(), ["x-0:[b]"]);
    assert_eq!(bench.plans[1].step(0, 0).expect("a step").parameters, parameters);
    bench.launch();
    bench.task("x-0-b", TaskState::Finished);
    assert_eq!(bench.shown(1), "COMPLETE; p COMPLETE [COMPLETE]");
    assert_eq!(bench.apply(1, start), Outcome::Done, "a complete plan starts again");
    assert_eq!(bench.candidates(), ["x-0:[b]"]);
    assert_eq!(bench.apply(1, Action::Stop), Outcome::Done);
    assert_eq!(bench.shown(1), "WAITING; p PENDING [PENDING]");
}

#[test]
fn step_with_tasks_of_another_running_plan_is_skipped() {
    let plans = "plans: {deploy: {phases: {x: {pod: x}}}, other: {phases: {p: {pod: x, strategy: parallel, steps: [{default: [[b]]}]}}}}";
    let mut bench = Bench::deploy(&[("x", 2)], plans);
    bench.apply(1, Action::Start { parameters: BTreeMap::new() });
    assert_eq!(bench.candidates(), ["x-0:[a, b]", "x-1:[b]"]);
    bench.launch();
    assert_eq!(bench.candidates(), ["x-0:[a, b]", "x-1:[b]"], "running steps do not block themselves");
}

#[test]
fn steps_of_stored_running_tasks_are_complete_at_the_start() {
    let spec = spec(&[("x", 1)], "");
    let running = TaskState::Running { ready: true };
    let cases = [
        (running, true, false, TaskState::Finished, Status::Complete),
        (running, false, false, TaskState::Finished, Status::Pending),
        (running, false, true, TaskState::Finished, Status::Complete),
        (TaskState::Running { ready: false }, true, false, TaskState::Finished, Status::Started),
        (running, true, false, TaskState::Lost, Status::Pending),
    ];
    for (a, is_current, permanently_failed, b, expected) in cases {
        let records = |_: &PodInstance, task: &str| {
            let state = if task == "a" { a } else { b };
            // A task that runs once is done whatever the configuration.
            Some(TaskRecord {
                task_id: task.into(),
                state,
                is_current: is_current && task == "a",
                permanently_failed: permanently_failed && task == "a",
            })
        };
        let plan = super::deploy(&spec, false, &records, &mut ids());
        assert_eq!(
            plan.status(0, &Backoff::default()),
            expected,
            "{a:?} {is_current} {permanently_failed} {b:?}"
        );
    }
}

#[test]
fn update_plan_replaces_deploy_after_the_first_deployment() {
    let plans = "plans: {deploy: {phases: {first: {pod: x}}}, update: {phases: {second: {pod: x}}}}";
    let spec = spec(&[("x", 1)], plans);
    for (was_deployed, expected) in [(false, "first"), (true, "second")] {
        let plan = super::deploy(&spec, was_deployed, &nothing, &mut ids());
        assert_eq!((plan.name.as_str(), plan.phases[0].name.as_str()), ("deploy", expected));
    }
    assert_eq!(custom(&spec, &nothing, &mut ids()), []);
}

#[test]
fn decommission_removes_unknown_types_first_and_high_indexes_before_low() {
    let spec = spec(&[("x", 1), ("y", 1)], "");
    let gone = |pod: &str, index| DecommissionedPod {
        pod: PodInstance { pod: pod.into(), index },
        tasks: vec![format!("{pod}-{index}-a")],
        resources: vec![format!("r-{pod}-{index}")],
    };
    let pods = vec![gone("x", 1), gone("y", 1), gone("y", 2), gone("z", 0), gone("w", 0)];
    let mut bench = Bench::new(vec![decommission(&spec, pods, &mut ids())]);
    let names: Vec<&str> = bench.plans[0].phases.iter().map(|phase| phase.name.as_str()).collect();
    assert_eq!(names, ["w-0", "z-0", "y-2", "y-1", "x-1"]);
    let mut done = Vec::new();
    for _ in 0..3 {
        done.extend(bench.candidates());
        bench.launch();
    }
    assert_eq!(done, ["kill-w-0-a", "unreserve-r-w-0", "erase-w-0-a"]);
    assert_eq!(bench.candidates(), ["kill-z-0-a"]);
}

#[test]
fn uninstall_deregisters_when_all_else_is_done() {
    let agents = [("h1".to_owned(), vec!["r1".to_owned()]), ("h2".to_owned(), vec!["r2".to_owned()])];
    let mut bench = Bench::new(vec![uninstall(&["t1".into()], &agents, &mut ids())]);
    assert_eq!(bench.candidates(), ["kill-task-t1", "unreserve-r1", "unreserve-r2"]);
    bench.launch();
    assert_eq!(bench.candidates(), ["deregister"]);
    bench.launch();
    assert_eq!(bench.plans[0].status(0, &bench.backoff), Status::Complete);
    let mut nothing_left = Bench::new(vec![uninstall(&[], &[], &mut ids())]);
    nothing_left.launch();
    assert_eq!(nothing_left.plans[0].status(0, &nothing_left.backoff), Status::Complete);
}
