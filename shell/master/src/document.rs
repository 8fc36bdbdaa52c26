//! The classic documents: `/state`, `/state-summary`, `/slaves`, `/frameworks`, `/tasks`, `/roles`. Rendered from one
//! snapshot, a file for each kind of thing.
//!
//! Never here: the machine, sockets, waiting.

mod agent;
mod framework;
mod index;
mod master;
mod registry;
mod roles;
mod summary;
mod tasks;

use tepui_core_master::{State, excluded_agents};
use tepui_http::{Pen, Query, classic, write_json};
use tepui_proto::json::JsonWriter;
use tepui_types::{AgentId, FrameworkId};

pub(crate) use agent::is_active;
pub(crate) use framework::is_connected;
pub(crate) use index::Index;
pub(crate) use registry::registry;

/// What documents say besides the state.
#[derive(Debug, Default)]
pub(crate) struct About {
    pub flags: Vec<(String, String)>,
    pub cluster: Option<String>,
    /// Shown as `/master/log`.
    pub external_log_file: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Document {
    State,
    Summary,
    Agents,
    Frameworks,
    Tasks,
    Roles,
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
    /// Writes the document, or the part of it that is selected, without looking at the rest.
    pub fn render(self, state: &State, about: &About, selection: &Selection, pen: Pen) {
        let agent = selection.agent_id.as_deref().map(AgentId::new);
        let framework = selection.framework_id.as_deref().map(FrameworkId::new);
        write_json(pen, |w| {
            w.object(|w| match (self, agent, framework) {
                (Document::State, _, _) => master::members(w, state, &Index::new(state), about),
                (Document::Summary, _, _) => summary::members(w, state, &Index::new(state), about),
                (Document::Agents, None, _) => agents(w, state, &Index::new(state)),
                (Document::Agents, Some(id), _) => one_agent(w, state, &id),
                (Document::Frameworks, _, None) => frameworks(w, state, &Index::new(state)),
                (Document::Frameworks, _, Some(id)) => one_framework(w, state, &id),
                (Document::Tasks, _, _) => tasks::member(w, state, selection),
                (Document::Roles, _, _) => roles::member(w, state, &Index::new(state)),
            });
        });
    }
}

impl Selection {
    /// What the query asks for. Numbers that are none fall back to their default, -1 means all.
    pub fn from_query(document: Document, query: &Query) -> Self {
        let text = |name| query.get(name).map(str::to_owned);
        match document {
            Document::State | Document::Summary | Document::Roles => Self::default(),
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

fn agents(w: &mut JsonWriter, state: &State, index: &Index) {
    w.array_field("slaves", |w| state.agents.values().for_each(|one| agent::full_object(w, one, index)));
    w.array_field("recovered_slaves", |w| {
        state.recovered_agents.iter().for_each(|(id, info)| agent::recovered(w, id, info));
    });
}

fn one_agent(w: &mut JsonWriter, state: &State, id: &AgentId) {
    let index = Index::of_agent(state, id);
    w.array_field("slaves", |w| {
        state.agents.get(id).into_iter().for_each(|one| agent::full_object(w, one, &index));
    });
    w.array_field("recovered_slaves", |w| {
        state.recovered_agents.get(id).into_iter().for_each(|info| agent::recovered(w, id, info));
    });
}

fn frameworks(w: &mut JsonWriter, state: &State, index: &Index) {
    w.array_field("frameworks", |w| {
        state.frameworks.values().for_each(|one| framework::object(w, one, index));
    });
    w.array_field("completed_frameworks", |w| {
        state.completed_frameworks.iter().for_each(|one| framework::object(w, one, index));
    });
    w.array_field("unregistered_frameworks", |_| ());
}

fn one_framework(w: &mut JsonWriter, state: &State, id: &FrameworkId) {
    let index = Index::of_framework(state, id);
    w.array_field("frameworks", |w| {
        state.frameworks.get(id).into_iter().for_each(|one| framework::object(w, one, &index));
    });
    w.array_field("completed_frameworks", |w| {
        state.completed_frameworks.get(id).into_iter().for_each(|one| framework::object(w, one, &index));
    });
    w.array_field("unregistered_frameworks", |_| ());
}

/// Of every framework: where it wants nothing, and which agents its constraints leave out.
pub(crate) fn excluded(w: &mut JsonWriter, state: &State) {
    w.object(|w| {
        w.object_field("frameworks", |w| {
            for framework in state.frameworks.values() {
                w.object_field(framework.id.as_str(), |w| {
                    w.array_field("suppressed_roles", |w| {
                        framework.suppressed_roles.iter().for_each(|role| w.string(role));
                    });
                    w.object_field("excluded_by_attribute_constraints", |w| {
                        for (role, agents) in excluded_agents(state, framework) {
                            w.array_field(&role, |w| agents.iter().for_each(|id| w.string(id.as_str())));
                        }
                    });
                });
            }
        });
    });
}

/// Seconds since the epoch.
fn time(w: &mut JsonWriter, name: &str, wall: tepui_fsm::Wall) {
    w.field(name, &wall.as_secs_f64());
}

/// The flags and other members that both `/state` documents have.
fn about_members(w: &mut JsonWriter, about: &About) {
    w.optional_field("cluster", about.cluster.as_ref());
    w.optional_field("external_log_file", about.external_log_file.as_ref());
    classic::flags_member(w, &about.flags);
}
