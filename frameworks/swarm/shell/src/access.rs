//! How the manager proves who it is: to the master, and to an etcd that asks.

use tepui_client::Credential;
use tepui_http::ClientTls;

#[derive(Clone, Debug, Default)]
pub struct Access {
    /// For a master that authenticates frameworks.
    pub credential: Option<Credential>,
    /// For an etcd at `etcds://…`.
    pub etcd_tls: Option<ClientTls>,
}

impl Access {
    /// The principal of the framework: a master rejects another one than that of the credential.
    pub(crate) fn principal(&self) -> Option<String> {
        match &self.credential {
            Some(Credential::Basic { principal, .. }) => Some(principal.clone()),
            Some(Credential::Bearer(_)) | None => None,
        }
    }
}
