//! Only entities selected by the query are visited.

use serde_json::{Value, json};
use tepui_core_master::{Config, Framework, Input, Map, Master, State};
use tepui_fsm::{Fsm, Mono, Now, Outbox, Wall};
use tepui_http::{Query, Rendition};
use tepui_proto::mesos::v1 as pb;
use tepui_proto::tepui::agent::v1 as link;
use tepui_registry::Registry;
use tepui_types::ConnId;

use super::{Document, DocumentInfo, Page, Selection};

const AGENTS: usize = 4;
const FRAMEWORKS: usize = 3;
/// Of each framework on each agent.
const TASKS: usize = 5;

fn task(framework: usize, agent: usize, number: usize) -> pb::Task {
    let timestamp = (number * 100 + framework * 10 + agent) as f64;
    let status = pb::TaskStatus {
        task_id: task_id(framework, agent, number).into(),
        state: pb::TaskState::TASK_RUNNING,
        timestamp: Some(timestamp),
        message: Some("why".to_owned()),
        ..Default::default()
    };
    pb::Task {
        name: "t".to_owned(),
        task_id: task_id(framework, agent, number).into(),
        framework_id: framework_id(framework).into(),
        agent_id: agent_id(agent).into(),
        state: pb::TaskState::TASK_RUNNING,
        statuses: vec![status],
        ..Default::default()
    }
}

fn task_id(framework: usize, agent: usize, number: usize) -> pb::TaskID {
    pb::TaskID { value: format!("t{framework}{agent}{number}"), ..Default::default() }
}

fn framework_id(number: usize) -> pb::FrameworkID {
    pb::FrameworkID { value: format!("F{number}"), ..Default::default() }
}

fn agent_id(number: usize) -> pb::AgentID {
    pb::AgentID { value: format!("A{number}"), ..Default::default() }
}

/// An agent that re-registers with a new master with tasks of all frameworks, and an executor of the first framework
/// on the first.
fn subscribe(agent: usize) -> link::Call {
    let agent_info =
        pb::AgentInfo { hostname: format!("host{agent}"), id: agent_id(agent).into(), ..Default::default() };
    let framework = |number| pb::FrameworkInfo {
        user: "u".to_owned(),
        name: "f".to_owned(),
        id: framework_id(number).into(),
        ..Default::default()
    };
    let tasks =
        (0..FRAMEWORKS).flat_map(|framework| (0..TASKS).map(move |number| task(framework, agent, number)));
    let executor = pb::ExecutorInfo {
        executor_id: pb::ExecutorID { value: "e".to_owned(), ..Default::default() }.into(),
        framework_id: framework_id(0).into(),
        ..Default::default()
    };
    let subscribe = link::call::Subscribe {
        agent_info: agent_info.into(),
        version: "1.12.0".to_owned(),
        pid: format!("slave(1)@10.0.0.{agent}:5051"),
        tasks: tasks.collect(),
        executors: (agent == 0).then_some(executor).into_iter().collect(),
        frameworks: (0..FRAMEWORKS).map(framework).collect(),
        ..Default::default()
    };
    link::Call {
        r#type: Some(link::call::Type::SUBSCRIBE),
        subscribe: subscribe.into(),
        ..Default::default()
    }
}

fn cluster() -> State {
    let now = Now { mono: Mono(1), wall: Wall(1) };
    let mut master = Master::new(Config::default(), Registry::default(), now);
    for agent in 0..AGENTS {
        let (conn, call) = (ConnId(agent as u64), Box::new(subscribe(agent)));
        master.step(now, Input::Agent { conn, principal: None, call }, &mut Outbox::new());
    }
    master.state().clone()
}

/// How many agents, frameworks and tasks a renderer meets, and how many tasks it writes.
async fn rendered(document: Document, query: &str) -> (usize, usize, usize, usize) {
    let query = Query::parse(query);
    let selection = Selection::from_query(document, &query);
    let part = selection.of(&cluster());
    let tasks = part.frameworks.values().map(|framework| framework.tasks.size()).sum();
    let (rendition, writer) = Rendition::begin(false);
    document.render(&part, &DocumentInfo::default(), selection.page, writer);
    let text = rendition.whole().await.unwrap();
    let written = std::str::from_utf8(&text).unwrap().matches(r#""slave_id":"A"#).count();
    (part.agents.size(), part.frameworks.size(), tasks, written)
}

#[tokio::test]
async fn show_reasons_adds_status_messages() {
    for (query, expected) in [
        ("task_id=t213", 0),
        ("task_id=t213&show_reasons=false", 0),
        ("task_id=t213&show_reasons=true", 1),
        ("framework_id=F2&limit=3&show_reasons=true", 3),
    ] {
        let selection = Selection::from_query(Document::Tasks, &Query::parse(query));
        let (rendition, writer) = Rendition::begin(false);
        Document::Tasks.render(&selection.of(&cluster()), &DocumentInfo::default(), selection.page, writer);
        let text = rendition.whole().await.unwrap();
        let said = std::str::from_utf8(&text).unwrap().matches(r#""message":"why""#).count();
        assert_eq!(said, expected, "{query}");
    }
}

/// `/state-summary` has the numbers of tasks also of a state from which all tasks were taken.
#[tokio::test]
async fn state_summary_counts_tasks_without_iterating_them() {
    let whole = cluster();
    let without = |framework: &std::sync::Arc<Framework>| {
        let mut framework = Framework::clone(framework);
        framework.tasks = Map::default();
        framework.into()
    };
    let frameworks =
        whole.frameworks.iter().map(|(id, framework)| (id.clone(), without(framework))).collect();
    let (rendition, writer) = Rendition::begin(false);
    Document::Summary.render(
        &State { frameworks, ..whole },
        &DocumentInfo::default(),
        Page::default(),
        writer,
    );
    let summary: Value = serde_json::from_slice(&rendition.whole().await.unwrap()).unwrap();
    let agents: Vec<String> = (0..AGENTS).map(|number| format!("A{number}")).collect();
    for framework in summary["frameworks"].as_array().unwrap() {
        assert_eq!(framework["TASK_RUNNING"], AGENTS * TASKS, "{framework}");
        assert_eq!(framework["slave_ids"], json!(agents));
    }
    for agent in summary["slaves"].as_array().unwrap() {
        assert_eq!(agent["TASK_RUNNING"], FRAMEWORKS * TASKS, "{agent}");
        assert_eq!(agent["framework_ids"], json!(["F0", "F1", "F2"]));
    }
}

#[tokio::test]
async fn queries_limit_the_rendered_entities() {
    const ALL: usize = AGENTS * FRAMEWORKS * TASKS;
    for (document, query, expected) in [
        (Document::State, "", (AGENTS, FRAMEWORKS, ALL, ALL + 1)),
        (Document::Agents, "slave_id=A1", (1, FRAMEWORKS, FRAMEWORKS * TASKS, 0)),
        (Document::Agents, "slave_id=nobody", (0, 0, 0, 0)),
        // Its tasks, and its executor on the one agent that has it.
        (Document::Frameworks, "framework_id=F0", (1, 1, AGENTS * TASKS, AGENTS * TASKS + 1)),
        (Document::Frameworks, "framework_id=F1", (0, 1, AGENTS * TASKS, AGENTS * TASKS)),
        (Document::Frameworks, "framework_id=nobody", (0, 0, 0, 0)),
        (Document::Tasks, "limit=-1", (0, FRAMEWORKS, ALL, ALL)),
        (Document::Tasks, "limit=7&offset=3", (0, FRAMEWORKS, ALL, 7)),
        (Document::Tasks, "limit=7&offset=1000", (0, FRAMEWORKS, ALL, 0)),
        (Document::Tasks, "framework_id=F2", (0, 1, AGENTS * TASKS, AGENTS * TASKS)),
        (Document::Tasks, "task_id=t213", (0, 1, 1, 1)),
        (Document::Tasks, "framework_id=F2&task_id=t213", (0, 1, 1, 1)),
        (Document::Tasks, "framework_id=F1&task_id=t213", (0, 0, 0, 0)),
    ] {
        assert_eq!(rendered(document, query).await, expected, "{document:?}?{query}");
    }
}
