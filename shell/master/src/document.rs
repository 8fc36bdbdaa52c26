//! The classic documents: `/state`, `/slaves`, `/frameworks`, `/tasks`. Rendered from one snapshot, a file for each kind of thing.
//!
//! Never here: the machine, sockets, waiting.

mod agent;
mod framework;
mod index;
mod master;
mod tasks;

use tepui_core_master::State;
use tepui_http::{Query, classic};
use tepui_proto::json::JsonWriter;

pub(crate) use agent::is_active;
pub(crate) use framework::is_connected;
pub(crate) use index::Index;

/// What documents say besides the state.
#[derive(Debug, Default)]
pub(crate) struct About {
    pub flags: Vec<(String, String)>,
    pub cluster: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Document {
    State,
    Agents,
    Frameworks,
    Tasks,
}

/// Which part of a document is wanted.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Selection {
    pub agent_id: Option<String>,
    pub framework_id: Option<String>,
    pub task_id: Option<String>,
    pub page: Option<Page>,
}

/// A part of the list of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    pub limit: usize,
    pub offset: usize,
    pub ascending: bool,
}

/// How many tasks `/tasks` shows if not asked for more.
const TASKS_LIMIT_DEFAULT: usize = 100;

impl Document {
    pub const ALL: [Document; 4] = [Document::State, Document::Agents, Document::Frameworks, Document::Tasks];

    pub fn render(self, state: &State, about: &About, selection: &Selection) -> Vec<u8> {
        let index = Index::new(state);
        let mut w = JsonWriter::new();
        w.object(|w| match self {
            Document::State => master::members(w, state, &index, about),
            Document::Agents => agents(w, state, &index, selection.agent_id.as_deref()),
            Document::Frameworks => frameworks(w, state, &index, selection.framework_id.as_deref()),
            Document::Tasks => tasks::member(w, state, selection),
        });
        w.into_vec()
    }
}

impl Selection {
    /// What the query asks for. Numbers that are none fall back to their default, -1 means all.
    pub fn from_query(document: Document, query: &Query) -> Self {
        let text = |name| query.get(name).map(str::to_owned);
        match document {
            Document::State => Self::default(),
            Document::Agents => Self { agent_id: text("slave_id"), ..Self::default() },
            Document::Frameworks => Self { framework_id: text("framework_id"), ..Self::default() },
            Document::Tasks => {
                let number = |name, default| match query.get(name).map(str::parse::<i64>) {
                    Some(Ok(number)) => usize::try_from(number).unwrap_or(usize::MAX),
                    Some(Err(_)) | None => default,
                };
                let page = Page {
                    limit: number("limit", TASKS_LIMIT_DEFAULT),
                    offset: number("offset", 0),
                    ascending: query.get("order") == Some("asc"),
                };
                let page = Some(page);
                Self { framework_id: text("framework_id"), task_id: text("task_id"), page, ..Self::default() }
            }
        }
    }

    pub fn is_everything(&self) -> bool {
        *self == Self::default()
    }
}

fn agents(w: &mut JsonWriter, state: &State, index: &Index, id: Option<&str>) {
    w.array_field("slaves", |w| {
        for one in state.agents.values().filter(|one| id.is_none_or(|id| one.id.as_str() == id)) {
            w.object(|w| {
                agent::members(w, one, index);
                agent::full_members(w, one, index);
            });
        }
    });
    agent::recovered(w, state, id);
}

fn frameworks(w: &mut JsonWriter, state: &State, index: &Index, id: Option<&str>) {
    let wanted =
        |one: &&std::sync::Arc<tepui_core_master::Framework>| id.is_none_or(|id| one.id.as_str() == id);
    w.array_field("frameworks", |w| {
        state.frameworks.values().filter(wanted).for_each(|one| framework::object(w, one, index));
    });
    w.array_field("completed_frameworks", |w| {
        state.completed_frameworks.iter().filter(wanted).for_each(|one| framework::object(w, one, index));
    });
    w.array_field("unregistered_frameworks", |_| ());
}

/// Seconds since the epoch.
fn time(w: &mut JsonWriter, name: &str, wall: tepui_fsm::Wall) {
    w.field(name, &wall.as_secs_f64());
}

/// The flags and other members that both `/state` documents have.
fn about_members(w: &mut JsonWriter, about: &About) {
    w.optional_field("cluster", about.cluster.as_ref());
    classic::flags_member(w, &about.flags);
}
