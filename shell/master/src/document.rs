//! The classic documents: `/state`, `/state-summary`, `/slaves`, `/frameworks`, `/tasks`, `/roles`. Rendered from one
//! snapshot, a file for each kind of thing.
//!
//! Never here: the machine, sockets, waiting.

mod agent;
mod framework;
mod master;
mod registry;
mod roles;
mod summary;
mod tasks;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use tepui_core_master::{State, excluded_agents};
use tepui_http::{DocumentWriter, Query, write_json};
use tepui_program::ServerInfo;
use tepui_program::classic::Statuses;
use tepui_proto::json::JsonWriter;
use tepui_types::{AgentId, FrameworkId, TaskId};

use crate::index::Index;
pub(crate) use agent::is_active;
pub(crate) use framework::is_connected;
pub(crate) use registry::registry;

/// What documents contain besides the state.
#[derive(Clone, Debug, Default)]
pub(crate) struct DocumentInfo {
    /// The cluster's name.
    pub cluster: Option<String>,
    pub server: Arc<ServerInfo>,
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Selection {
    part: Part,
    pub page: Page,
}

/// Which part of the state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
enum Part {
    #[default]
    All,
    Agent(AgentId),
    Framework(FrameworkId),
    Tasks(Option<FrameworkId>, Option<TaskId>),
}

/// Which of the tasks, in which order. All of them by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Page {
    pub limit: usize,
    pub offset: usize,
    pub ascending: bool,
    /// Tepui's own: `show_reasons=true` adds the source and the reason of a status.
    pub statuses: Statuses,
}

impl Default for Page {
    fn default() -> Self {
        Self { limit: usize::MAX, offset: 0, ascending: false, statuses: Statuses::Brief }
    }
}

/// Default number of tasks in `/tasks`.
const TASKS_LIMIT_DEFAULT: usize = 100;

impl Document {
    /// Writes the document of a state, or of the part of it that was selected.
    pub fn render(self, state: &State, info: &DocumentInfo, page: Page, writer: DocumentWriter) {
        write_json(writer, |w| {
            w.object(|w| match self {
                Document::State => master::members(w, state, &Index::new(state), info),
                Document::Summary => summary::members(w, state, &Index::new(state), info),
                Document::Agents => agents(w, state, &Index::new(state)),
                Document::Frameworks => frameworks(w, state, &Index::new(state)),
                Document::Tasks => tasks::member(w, state, page),
                Document::Roles => roles::member(w, state, &Index::new(state)),
            });
        });
    }
}

impl Selection {
    /// What the query asks for. Numbers that are none fall back to their default, -1 means all.
    pub fn from_query(document: Document, query: &Query) -> Self {
        let framework = || query.get("framework_id").map(FrameworkId::new);
        let of = |part: Option<Part>| Self { part: part.unwrap_or_default(), ..Self::default() };
        match document {
            Document::State | Document::Summary | Document::Roles => Self::default(),
            Document::Agents => of(query.get("slave_id").map(AgentId::new).map(Part::Agent)),
            Document::Frameworks => of(framework().map(Part::Framework)),
            Document::Tasks => {
                let number = |name, default| match query.get(name).map(str::parse::<i64>) {
                    Some(Ok(number)) => usize::try_from(number).unwrap_or(usize::MAX),
                    Some(Err(_)) | None => default,
                };
                let page = Page {
                    limit: number("limit", TASKS_LIMIT_DEFAULT),
                    offset: number("offset", 0),
                    ascending: query.get("order") == Some("asc"),
                    statuses: match query.get("show_reasons") {
                        Some("true") => Statuses::Explained,
                        Some(_) | None => Statuses::Brief,
                    },
                };
                Self { part: Part::Tasks(framework(), query.get("task_id").map(TaskId::new)), page }
            }
        }
    }

    /// The requested part: the rest is neither rendered nor authorized.
    pub fn of(&self, state: &State) -> State {
        match &self.part {
            Part::All => state.clone(),
            Part::Agent(id) => state.part_of_agent(id),
            Part::Framework(id) => state.part_of_framework(id),
            Part::Tasks(framework, task) => state.part_of_tasks(framework.as_ref(), task.as_ref()),
        }
    }
}

fn agents(w: &mut JsonWriter, state: &State, index: &Index) {
    w.array_field("slaves", |w| {
        state.agents.values().for_each(|one| agent::full_object(w, one, state, index))
    });
    w.array_field("recovered_slaves", |w| {
        state.recovered_agents.iter().for_each(|(id, info)| agent::recovered(w, id, info));
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

/// Of every framework: its suppressed roles, and the agents that its constraints exclude.
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
