//! Whether this master leads, and what it serves requests with.

use std::sync::{Arc, Mutex, MutexGuard};

use tepui_authz::Authorizer;
use tepui_http::{HttpError, Response, redirect};
use tepui_program::{Process, leader_authority};
use tepui_store::etcd::Observed;

use crate::options::Access;
use crate::program::Program;

pub(crate) struct Front {
    pub process: Process,
    pub access: Access,
    pub authorizer: Authorizer,
    leader_state: Mutex<LeaderState>,
    /// The last logged error of the election.
    blind: Mutex<Option<String>>,
}

/// Whether this master leads.
#[derive(Clone)]
pub(crate) enum LeaderState {
    Leading(Arc<Program>),
    Standby {
        /// `host:port`.
        leader: Option<String>,
        /// The last term's; its machine has ended.
        last: Option<Arc<Program>>,
    },
}

impl Front {
    pub fn new(process: Process, access: Access, authorizer: Authorizer) -> Self {
        let leader_state = Mutex::new(LeaderState::Standby { leader: None, last: None });
        Self { process, access, authorizer, leader_state, blind: Mutex::default() }
    }

    pub fn lead(&self, program: Arc<Program>) {
        *self.lock() = LeaderState::Leading(program);
    }

    /// The term is over; no leader is known.
    pub fn step_down(&self) {
        let mut leader_state = self.lock();
        if let LeaderState::Leading(program) = &*leader_state {
            *leader_state = LeaderState::Standby { leader: None, last: Some(program.clone()) };
        }
    }

    /// What the election showed.
    pub fn observe(&self, observed: Observed) {
        let seen = match observed {
            Observed::Leader(introduction) => leader_authority(&introduction),
            Observed::NoLeader => None,
            Observed::Unknown(why) => return self.cannot_see(why),
        };
        *self.blind.lock().expect("no code panics while it holds this lock") = None;
        if let LeaderState::Standby { leader, last } = &mut *self.lock()
            && *leader != seen
        {
            tracing::info!(leader = seen.as_deref(), "leading master changed");
            if seen.is_some() {
                // The leader has newer information.
                *last = None;
            }
            *leader = seen;
        }
    }

    /// Logged once, and not at every attempt.
    fn cannot_see(&self, why: String) {
        let mut blind = self.blind.lock().expect("no code panics while it holds this lock");
        if blind.as_ref() != Some(&why) {
            tracing::warn!(why, "cannot determine the leader");
            *blind = Some(why);
        }
    }

    pub fn leader_state(&self) -> LeaderState {
        self.lock().clone()
    }

    /// `/redirect`: to the leading master.
    pub fn redirect(&self, rest: &[String]) -> Result<Response, HttpError> {
        match self.leader_state() {
            LeaderState::Leading(program) if rest.is_empty() => Ok(program.redirect()),
            LeaderState::Leading(_) => Err(HttpError::not_found()),
            LeaderState::Standby { leader: Some(leader), .. } => Ok(redirect(&format!("//{leader}"))),
            LeaderState::Standby { leader: None, .. } => Err(no_leader()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, LeaderState> {
        self.leader_state.lock().expect("no code panics while it holds this lock")
    }
}

/// No leader is known.
pub(crate) fn no_leader() -> HttpError {
    HttpError::unavailable("No leader elected")
}
