//! Requested containers are measured, and no others.

use std::cell::RefCell;
use std::time::Duration;

use tepui_core_agent::{Agent, Config, Input, LinkId};
use tepui_fsm::{Fsm, Mono, Now, Outbox, Wall, unlimited};
use tepui_proto::tepui::agent::v1::{Event, event};
use tepui_types::ContainerEvent;

use super::*;

#[test]
fn statistics_queries_are_validated() {
    for (query, fine) in [
        ("", true),
        ("container_id=c", true),
        ("framework_id=F", true),
        ("framework_id=F&executor_id=E", true),
        ("executor_id=E", false),
        ("container_id=c&framework_id=F", false),
        ("container_id=c&framework_id=F&executor_id=E", false),
    ] {
        assert_eq!(Selection::from_query(&Query::parse(query)).is_ok(), fine, "{query}");
    }
}

/// Finds nothing, and remembers where it looked.
#[derive(Default)]
struct Looked(RefCell<BTreeSet<ContainerId>>);

impl Look for Looked {
    fn measure(&self, wanted: &BTreeSet<&ContainerId>) -> io::Result<BTreeMap<ContainerId, Usage>> {
        self.0.borrow_mut().extend(wanted.iter().map(|id| (*id).clone()));
        Ok(BTreeMap::new())
    }
}

#[test]
fn only_selected_containers_are_measured() {
    let state = state_with(&[("F", "a"), ("F", "b"), ("G", "c")], &["alone", "apart"]);
    let container = |executor: &str| {
        let found = live(&state).find(|one| one.id.as_str() == executor);
        found.map_or(executor, |one| one.container_id.value()).to_owned()
    };
    for (query, looked_at) in [
        ("", &["a", "b", "c"][..]),
        ("container_id=CONTAINER", &["b"]),
        ("framework_id=F", &["a", "b"]),
        ("framework_id=F&executor_id=a", &["a"]),
        ("container_id=nope", &[]),
        ("framework_id=nope", &[]),
        ("show_standalone=true", &["a", "b", "c", "alone", "apart"]),
        ("container_id=alone&show_standalone=true", &["alone"]),
        ("container_id=alone", &[]),
        ("show_nested=true", &["a", "b", "c"]),
        ("show_nested=true&container_id=CONTAINER", &["b"]),
    ] {
        let selection = Selection::from_query(&Query::parse(query.replace("CONTAINER", &container("b"))));
        let measuring = Measuring { meter: Looked::default(), work_dir: "/w".into() };
        document(View::Containers, &measuring, &selection.expect("a fine query").of(&state));
        let expected: BTreeSet<ContainerId> =
            looked_at.iter().map(|name| ContainerId::root(container(name))).collect();
        assert_eq!(measuring.meter.0.into_inner(), expected, "{query}");
    }
}

/// Of an agent with these launched tasks of these frameworks, and standalone containers. The first executor has a
/// container nested in its own.
fn state_with(tasks: &[(&str, &str)], alone: &[&str]) -> State {
    let now = Now { mono: Mono(0), wall: Wall(0) };
    let config =
        Config { registration_backoff_factor: Duration::ZERO, best_effort_tasks: true, ..Config::default() };
    let mut agent = Agent::new(config, BTreeMap::new(), now).expect("a new agent");
    let mut tell = |input: Input| {
        agent.step(now, input, &mut Outbox::new());
        agent.settle(now, &mut unlimited, &mut Outbox::new());
    };
    tell(Input::Start);
    tell(Input::Container(ContainerEvent::Recovered { containers: Vec::new() }));
    let link = LinkId(1);
    tell(Input::LinkUp { link });
    let agent_id = pb::AgentID { value: "S0".into(), ..Default::default() };
    let subscribed = event::Subscribed { agent_id: agent_id.into(), ..Default::default() };
    let subscribed =
        Event { r#type: Some(event::Type::SUBSCRIBED), subscribed: subscribed.into(), ..Default::default() };
    tell(Input::LinkEvent { link, event: subscribed.into() });
    for (framework, task) in tasks {
        let launch = Event {
            r#type: Some(event::Type::LAUNCH),
            launch: launch(framework, task).into(),
            ..Default::default()
        };
        tell(Input::LinkEvent { link, event: launch.into() });
    }
    let mut state = agent.state().clone();
    let nested = live(&state).next().map(|executor| executor.container_id.child("nested"));
    for id in alone.iter().map(|name| ContainerId::root(*name)).chain(nested) {
        let stage = ContainerStage::Running { pid: None };
        let container = Container { id: id.clone(), sandbox: "/w".into(), stage, is_session: false };
        state.containers.insert_mut(id, container.into());
    }
    state
}

fn launch(framework: &str, task: &str) -> event::Launch {
    let framework_id = pb::FrameworkID { value: framework.into(), ..Default::default() };
    let framework_info =
        pb::FrameworkInfo { id: framework_id.into(), name: framework.into(), ..Default::default() };
    let task = pb::TaskInfo {
        name: task.into(),
        task_id: pb::TaskID { value: task.into(), ..Default::default() }.into(),
        command: pb::CommandInfo { value: Some("true".into()), ..Default::default() }.into(),
        ..Default::default()
    };
    event::Launch { framework_info: framework_info.into(), task: task.into(), ..Default::default() }
}
