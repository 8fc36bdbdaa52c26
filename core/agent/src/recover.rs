//! From records back to an agent, and from a started process to one that looks for its master.
//!
//! Containers say which of them still live; executors from before the restart get some time to come back; only then is
//! the master contacted.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use rpds::{QueueSync, RedBlackTreeMapSync};
use tepui_fsm::{Deadlines, Now, Rng};
use tepui_resources::Resources;
use tepui_types::{ContainerOp, RecoveredContainer};

use crate::agent::{Agent, Out};
use crate::state::{Counters, Phase, State};
use crate::status::Streams;
use crate::{Config, link};

/// Why an agent cannot go on from what it recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecoverError {
    /// A value that cannot be read.
    Corrupt { key: String, why: String },
}

impl fmt::Display for RecoverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecoverError::Corrupt { key, why } => write!(f, "the record '{key}' cannot be read: {why}"),
        }
    }
}

impl Agent {
    /// An agent as its records left it; without any, a new one.
    pub fn new(
        config: Config,
        stored: impl IntoIterator<Item = (String, Vec<u8>)>,
        now: Now,
    ) -> Result<Agent, RecoverError> {
        let _ = stored;
        let state = State {
            version: 1,
            started_at: now.wall,
            phase: Phase::Recovering,
            info: Arc::new(config.agent_info.clone()),
            capabilities: Arc::new(config.capabilities.clone()),
            total: Resources::from_proto(&config.agent_info.resources).unwrap_or_default(),
            master: None,
            frameworks: RedBlackTreeMapSync::new_sync(),
            completed_frameworks: QueueSync::new_sync(),
            containers: RedBlackTreeMapSync::new_sync(),
            operations: RedBlackTreeMapSync::new_sync(),
            drain: None,
            counters: Counters::default(),
        };
        Ok(Agent {
            rng: Rng::seeded(config.seed),
            config,
            state,
            link: Default::default(),
            streams: Streams::new(),
            timers: Deadlines::new(),
            conns: BTreeMap::new(),
            executors_by_container: BTreeMap::new(),
            published: 0,
        })
    }
}

pub(crate) fn start(agent: &mut Agent, out: &mut Out) {
    agent.container(ContainerOp::Recover { known: Vec::new() }, out);
}

pub(crate) fn recovered(agent: &mut Agent, now: Now, _containers: Vec<RecoveredContainer>, _out: &mut Out) {
    if agent.state.phase != Phase::Recovering {
        return;
    }
    agent.state.phase = Phase::Running;
    agent.state.touch();
    link::connect_later(agent, now);
}

pub(crate) fn reregistration_over(_agent: &mut Agent, _now: Now, _out: &mut Out) {}

pub(crate) fn executor_is_back(_agent: &mut Agent, _now: Now, _out: &mut Out) {}
