//! Authentication, rate limits and authorization of a request before its body is read.

use tepui_authz::Authorizer;
use tepui_http::{HttpError, Realm as Closed, Request};
use tepui_program::{Endpoint, Realm};

use crate::options::Access;

/// Paths of calls that `--rate_limits` counts.
const LIMITED: [&str; 2] = ["/api/v1", "/api/v1/scheduler"];

impl Access {
    /// Lets a request in, or rejects it.
    pub(crate) async fn admit<P, C>(
        &self,
        endpoint: &Endpoint<P, C>,
        authorizer: &Authorizer,
        request: &mut Request,
    ) -> Result<(), HttpError> {
        if let Some(realm) = self.realm(endpoint.realm) {
            self.authentication.admit(realm, request).await?;
        }
        if LIMITED.contains(&endpoint.path) {
            self.throttle.admit(request.principal_name().as_deref()).await?;
        }
        endpoint.authorize(authorizer, request)
    }

    fn realm(&self, realm: Realm) -> Option<Closed> {
        let (name, is_closed) = match realm {
            Realm::Open => return None,
            Realm::Readonly => ("mesos-master-readonly", self.readonly),
            Realm::Readwrite => ("mesos-master-readwrite", self.readwrite),
            Realm::Schedulers => ("mesos-master-scheduler", self.frameworks),
            Realm::Agents => ("mesos-master-agent", self.agents),
            Realm::Executors => unreachable!("a master has no endpoints of executors"),
        };
        Some(Closed { name, is_closed, takes_tokens: false, is_for_agents: realm == Realm::Agents })
    }
}
