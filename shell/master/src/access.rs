//! Which realm an endpoint belongs to, and what its mere use needs.

use tepui_authz::{Action, Authorizer};
use tepui_http::files::Verb;
use tepui_http::{HttpError, Realm, Request};

use crate::options::Access;
use crate::routes::Endpoint;

impl Access {
    /// Lets a request in, or refuses it before its body is read.
    pub(crate) async fn admit(&self, endpoint: Endpoint, request: &mut Request) -> Result<(), HttpError> {
        let Some(realm) = self.realm(endpoint) else { return Ok(()) };
        self.authentication.admit(realm, request).await?;
        match endpoint {
            Endpoint::Scheduler | Endpoint::Operator => {
                self.throttle.admit(request.principal_name().as_deref()).await
            }
            _ => Ok(()),
        }
    }

    /// None for what everybody may ask.
    fn realm(&self, endpoint: Endpoint) -> Option<Realm> {
        let realm = |name, is_closed| {
            let is_for_agents = endpoint == Endpoint::Agent;
            Some(Realm { name, is_closed, takes_tokens: false, is_for_agents })
        };
        let readonly = realm("mesos-master-readonly", self.readonly);
        let readwrite = realm("mesos-master-readwrite", self.readwrite);
        match endpoint {
            Endpoint::Scheduler => realm("mesos-master-scheduler", self.frameworks),
            Endpoint::Agent => realm("mesos-master-agent", self.agents),
            Endpoint::Operator
            | Endpoint::Teardown
            | Endpoint::LoggingToggle
            | Endpoint::Profiler
            | Endpoint::Convert(_)
            | Endpoint::Quota
            | Endpoint::Weights
            | Endpoint::MaintenanceSchedule
            | Endpoint::Machine(_) => readwrite,
            Endpoint::Document(_)
            | Endpoint::MaintenanceStatus
            | Endpoint::Metrics(_)
            | Endpoint::Flags
            | Endpoint::Registry
            | Endpoint::OfferConstraintsDebug
            | Endpoint::Explain(_)
            | Endpoint::Files(_) => readonly,
            Endpoint::SystemStats
            | Endpoint::Health
            | Endpoint::Help
            | Endpoint::Version
            | Endpoint::Redirect
            | Endpoint::Pages => None,
        }
    }
}

/// Whether who sent the request may use an endpoint at all.
pub(crate) fn check(authorizer: &Authorizer, endpoint: Endpoint, request: &Request) -> Result<(), HttpError> {
    let wish = match endpoint {
        Endpoint::Flags => Some((Action::ViewFlags, None)),
        Endpoint::LoggingToggle => Some((Action::GetEndpoint, Some("/logging/toggle"))),
        Endpoint::Metrics(_) => Some((Action::GetEndpoint, Some("/metrics/snapshot"))),
        Endpoint::Files(Verb::Debug) => Some((Action::GetEndpoint, Some("/files/debug"))),
        Endpoint::Files(_) => Some((Action::AccessMesosLog, None)),
        Endpoint::MaintenanceStatus => Some((Action::GetMaintenanceStatus, None)),
        Endpoint::MaintenanceSchedule if request.method == http::Method::GET => {
            Some((Action::GetMaintenanceSchedule, None))
        }
        // What these want depends on more than the endpoint.
        Endpoint::Scheduler
        | Endpoint::Agent
        | Endpoint::Operator
        | Endpoint::Teardown
        | Endpoint::Document(_)
        | Endpoint::Convert(_)
        | Endpoint::Quota
        | Endpoint::Weights
        | Endpoint::MaintenanceSchedule
        | Endpoint::Machine(_)
        | Endpoint::SystemStats
        | Endpoint::Health
        | Endpoint::Help
        | Endpoint::Version
        | Endpoint::Profiler
        | Endpoint::Redirect
        | Endpoint::Registry
        | Endpoint::OfferConstraintsDebug
        | Endpoint::Explain(_)
        | Endpoint::Pages => None,
    };
    match wish {
        Some((action, object)) if !authorizer.allows(request.subject(), action, object) => {
            Err(HttpError::forbidden())
        }
        Some(_) | None => Ok(()),
    }
}
