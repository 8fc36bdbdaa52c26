//! The v1 reads that show the cluster: GET_STATE and its four parts, and GET_ROLES, rendered from one snapshot.
//!
//! In JSON the lists are written also when they are empty, as v1 clients expect of exactly these answers.

mod agents;
mod executors;
mod frameworks;
pub(crate) mod quota;
mod tasks;

use tepui_core_master::State;
use tepui_fsm::Wall;
use tepui_http::{DocumentWriter, Encoding, write_json};
use tepui_proto::json::JsonWriter;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::master::response::{self, GetState};
use tepui_proto::mesos::v1::master::{Event, Response, event};
use tepui_proto::{Enumeration, wire};

use crate::index::Index;
use crate::roles::Roles;

/// Sent to operators when they subscribe, and kept by the machine.
const HEARTBEAT_INTERVAL_SECONDS: f64 = 15.0;

/// Which part of the state is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Part {
    State,
    Agents,
    Frameworks,
    Executors,
    Tasks,
    Roles,
}

/// The answer to a read, as JSON.
pub(crate) fn write(part: Part, state: &State, writer: DocumentWriter) {
    let index = Index::new(state);
    write_json(writer, |w| {
        w.object(|w| {
            w.field("type", part.kind().proto_name());
            part.json_member(w, state, &index);
        });
    });
}

/// The same in binary form.
pub(crate) fn encode(part: Part, state: &State, mut writer: DocumentWriter) {
    writer.write(wire::encode(&part.message(state, &Index::new(state))));
    writer.finish();
}

/// The first event of an operator's stream.
pub(crate) fn subscribed(state: &State, encoding: Encoding, mut writer: DocumentWriter) {
    let index = Index::new(state);
    match encoding {
        Encoding::Json => write_json(writer, |w| {
            w.object(|w| {
                w.field("type", "SUBSCRIBED");
                w.object_field("subscribed", |w| {
                    Part::State.json_member(w, state, &index);
                    w.field("heartbeat_interval_seconds", &HEARTBEAT_INTERVAL_SECONDS);
                });
            });
        }),
        Encoding::Protobuf => {
            let subscribed = event::Subscribed {
                get_state: get_state(state, &index).into(),
                heartbeat_interval_seconds: Some(HEARTBEAT_INTERVAL_SECONDS),
                ..Default::default()
            };
            let kind = Some(event::Type::SUBSCRIBED);
            let event = Event { r#type: kind, subscribed: subscribed.into(), ..Default::default() };
            writer.write(wire::encode(&event));
            writer.finish();
        }
    }
}

impl Part {
    fn kind(self) -> response::Type {
        match self {
            Part::State => response::Type::GET_STATE,
            Part::Agents => response::Type::GET_AGENTS,
            Part::Frameworks => response::Type::GET_FRAMEWORKS,
            Part::Executors => response::Type::GET_EXECUTORS,
            Part::Tasks => response::Type::GET_TASKS,
            Part::Roles => response::Type::GET_ROLES,
        }
    }

    fn json_member(self, w: &mut JsonWriter, state: &State, index: &Index) {
        match self {
            Part::State => w.object_field("get_state", |w| {
                for part in [Part::Tasks, Part::Executors, Part::Frameworks, Part::Agents] {
                    part.json_member(w, state, index);
                }
            }),
            Part::Agents => w.object_field("get_agents", |w| agents::json(w, state, index)),
            Part::Frameworks => w.object_field("get_frameworks", |w| frameworks::json(w, state, index)),
            Part::Executors => w.object_field("get_executors", |w| executors::json(w, state)),
            Part::Tasks => w.object_field("get_tasks", |w| tasks::json(w, state)),
            Part::Roles => w.field("get_roles", &Roles::new(state, index).message()),
        }
    }

    fn message(self, state: &State, index: &Index) -> Response {
        let mut response = Response { r#type: Some(self.kind()), ..Default::default() };
        match self {
            Part::State => response.get_state = get_state(state, index).into(),
            Part::Agents => response.get_agents = agents::message(state, index).into(),
            Part::Frameworks => response.get_frameworks = frameworks::message(state, index).into(),
            Part::Executors => response.get_executors = executors::message(state).into(),
            Part::Tasks => response.get_tasks = tasks::message(state).into(),
            Part::Roles => response.get_roles = Roles::new(state, index).message().into(),
        }
        response
    }
}

fn get_state(state: &State, index: &Index) -> GetState {
    GetState {
        get_tasks: tasks::message(state).into(),
        get_executors: executors::message(state).into(),
        get_frameworks: frameworks::message(state, index).into(),
        get_agents: agents::message(state, index).into(),
        ..Default::default()
    }
}

fn time(wall: Wall) -> pb::TimeInfo {
    pb::TimeInfo { nanoseconds: wall.as_nanos_i64(), ..Default::default() }
}
