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
    standing: Mutex<Standing>,
    /// Why the election cannot be seen, as it was told of last.
    blind: Mutex<Option<String>>,
}

/// Whether this master leads.
#[derive(Clone)]
pub(crate) enum Standing {
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
        let standing = Mutex::new(Standing::Standby { leader: None, last: None });
        Self { process, access, authorizer, standing, blind: Mutex::default() }
    }

    pub fn lead(&self, program: Arc<Program>) {
        *self.lock() = Standing::Leading(program);
    }

    /// The term is over; nobody is known to lead.
    pub fn step_down(&self) {
        let mut standing = self.lock();
        if let Standing::Leading(program) = &*standing {
            *standing = Standing::Standby { leader: None, last: Some(program.clone()) };
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
        if let Standing::Standby { leader, last } = &mut *self.lock()
            && *leader != seen
        {
            tracing::info!(leader = seen.as_deref(), "leading master changed");
            if seen.is_some() {
                // The leader knows better.
                *last = None;
            }
            *leader = seen;
        }
    }

    /// Told once, and not at every try.
    fn cannot_see(&self, why: String) {
        let mut blind = self.blind.lock().expect("no code panics while it holds this lock");
        if blind.as_ref() != Some(&why) {
            tracing::warn!(why, "cannot determine the leader");
            *blind = Some(why);
        }
    }

    pub fn standing(&self) -> Standing {
        self.lock().clone()
    }

    /// `/redirect`: to the leading master.
    pub fn redirect(&self, rest: &[String]) -> Result<Response, HttpError> {
        match self.standing() {
            Standing::Leading(program) if rest.is_empty() => Ok(program.redirect()),
            Standing::Leading(_) => Err(HttpError::not_found()),
            Standing::Standby { leader: Some(leader), .. } => Ok(redirect(&format!("//{leader}"))),
            Standing::Standby { leader: None, .. } => Err(no_leader()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Standing> {
        self.standing.lock().expect("no code panics while it holds this lock")
    }
}

/// Nobody is known to lead.
pub(crate) fn no_leader() -> HttpError {
    HttpError::unavailable("No leader elected")
}
