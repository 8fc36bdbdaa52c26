//! An endpoint of a program: one row of its table, with everything that is decided before its handler runs.

use std::pin::Pin;

use http::Method;
use tepui_authz::{Action, Authorizer};
use tepui_http::{HttpError, Request, Response};

/// Path, methods, realm, action, locality with handler, and a sentence for `/help`.
pub type Row<P, C> = (&'static str, Methods, Realm, Needs, Locality<P, C>, &'static str);

/// As in `Allow`: `GET, PUT`. None if the handler answers every method, or decides by more than the endpoint.
pub type Methods = Option<&'static str>;

pub const ANY: Methods = None;
pub const GET: Methods = Some("GET");
pub const POST: Methods = Some("POST");

/// The authentication realm of an endpoint. Each program names its realms and decides which ones are closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Realm {
    /// Without authentication.
    Open,
    Readonly,
    Readwrite,
    Schedulers,
    Agents,
    Executors,
}

/// The action that the use of an endpoint needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// None, or one that depends on more than the endpoint: decided by the core or the handler.
    Nothing,
    Action(Action),
    /// As `Action`, for GET only; the core decides about other methods.
    Read(Action),
    /// GET_ENDPOINT_WITH_PATH of this path.
    Path(&'static str),
}

/// Where an endpoint is answered, and its handler there.
pub enum Locality<P, C> {
    /// By every process, at any time.
    Process(Handler<P>),
    /// By the leading master; by an agent that has recovered.
    Cluster(Handler<C>),
}

/// Answers a request; the last argument holds the components of the path behind the endpoint's own.
pub type Handler<P> = for<'p> fn(&'p P, Request, Vec<String>) -> Answering<'p>;

pub type Answering<'p> = Pin<Box<dyn Future<Output = Result<Response, HttpError>> + Send + 'p>>;

/// A row of the table.
#[derive(Debug)]
pub struct Endpoint<P, C> {
    pub path: &'static str,
    methods: Methods,
    pub realm: Realm,
    needs: Needs,
    pub locality: Locality<P, C>,
    pub help: &'static str,
}

impl<P, C> Endpoint<P, C> {
    pub(crate) fn new((path, methods, realm, needs, locality, help): Row<P, C>) -> Self {
        Self { path, methods, realm, needs, locality, help }
    }

    /// 403 unless the sender of the request may use the endpoint.
    pub fn authorize(&self, authorizer: &Authorizer, request: &Request) -> Result<(), HttpError> {
        match self.needs {
            Needs::Action(action) => allowed(authorizer, request, action, None),
            Needs::Read(action) if request.method == Method::GET => {
                allowed(authorizer, request, action, None)
            }
            Needs::Path(path) => allowed(authorizer, request, Action::GetEndpoint, Some(path)),
            Needs::Read(_) | Needs::Nothing => Ok(()),
        }
    }

    /// Calls the handler of the endpoint, unless the method is wrong.
    pub async fn call<T>(
        &self,
        handler: Handler<T>,
        context: &T,
        request: Request,
        rest: Vec<String>,
    ) -> Result<Response, HttpError> {
        if let Some(methods) = self.methods {
            request.expect_method(methods)?;
        }
        handler(context, request, rest).await
    }
}

/// 403 unless the sender of the request may do this.
pub fn allowed(
    authorizer: &Authorizer,
    request: &Request,
    action: Action,
    object: Option<&str>,
) -> Result<(), HttpError> {
    match authorizer.allows(request.subject(), action, object) {
        true => Ok(()),
        false => Err(HttpError::forbidden()),
    }
}

impl<P, C> std::fmt::Debug for Locality<P, C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Locality::Process(_) => "Process",
            Locality::Cluster(_) => "Cluster",
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// An endpoint whose name is its sentence.
    pub fn row(path: &'static str, name: &'static str) -> Row<(), ()> {
        (path, ANY, Realm::Open, Needs::Nothing, Locality::Process(|(), _, _| unreachable!()), name)
    }
}
