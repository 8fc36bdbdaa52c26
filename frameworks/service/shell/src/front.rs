//! The handler of the API's listener: authentication, and whether this scheduler is active.
//!
//! A scheduler that stands by redirects to the active one.

use std::sync::{Arc, Mutex, MutexGuard};

use http::StatusCode;
use tepui_http::{Authentication, Handler, HttpError, Realm, Request, Response, redirect};

use crate::api::{self, Route, update};
use crate::handle::Handle;
use crate::options::Reload;

const REALM: Realm =
    Realm { name: "tepui-service", is_closed: true, takes_tokens: false, is_for_agents: false };

/// Access to the API.
pub(crate) struct Access {
    /// None: without authentication.
    pub authentication: Option<Authentication>,
    /// A spec runs commands in the cluster: its sender must be authenticated.
    pub may_upload: bool,
}

pub(crate) struct Front {
    access: Access,
    reload: Reload,
    scheduler_state: Mutex<SchedulerState>,
}

#[derive(Clone)]
enum SchedulerState {
    Active(Handle),
    /// With `host:port` of the active one.
    Standby(Option<String>),
}

impl Front {
    pub fn new(access: Access, reload: Reload) -> Self {
        Self { access, reload, scheduler_state: Mutex::new(SchedulerState::Standby(None)) }
    }

    pub fn activate(&self, handle: Handle) {
        *self.lock() = SchedulerState::Active(handle);
    }

    pub fn stand_by(&self) {
        *self.lock() = SchedulerState::Standby(None);
    }

    pub fn observe_leader(&self, leader: Option<String>) {
        *self.lock() = SchedulerState::Standby(leader);
    }

    async fn respond(&self, mut request: Request) -> Result<Response, HttpError> {
        let (route, names) = api::find(request.method.as_str(), &request.components)?;
        self.admit(route, &mut request).await?;
        let scheduler_state = self.lock().clone();
        match scheduler_state {
            SchedulerState::Active(handle) => match route {
                Route::Update => update::update(&handle, &self.reload, self.access.may_upload, request).await,
                route => api::respond(&handle, route, names, request).await,
            },
            SchedulerState::Standby(Some(leader)) => Ok(redirect(&format!("//{leader}{}", request.target))),
            SchedulerState::Standby(None) => {
                Err(HttpError::new(StatusCode::SERVICE_UNAVAILABLE, "No scheduler is active"))
            }
        }
    }

    /// Tasks fetch artifacts without a credential: the id of a configuration cannot be guessed, and the bootstrap is no
    /// secret.
    async fn admit(&self, route: Route, request: &mut Request) -> Result<(), HttpError> {
        match &self.access.authentication {
            Some(authentication) if !matches!(route, Route::Template | Route::Bootstrap) => {
                authentication.admit(REALM, request).await
            }
            Some(_) | None => Ok(()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, SchedulerState> {
        self.scheduler_state.lock().expect("no code panics while it holds this lock")
    }
}

impl Handler for Front {
    async fn handle(self: Arc<Self>, request: Request) -> Response {
        self.respond(request).await.unwrap_or_else(Response::from)
    }
}
