//! BuildKit: sessions, gRPC calls and builds of all clients go to one engine.
//!
//! A session of a client and the gRPC calls that use it are separate requests, and the calls do not name it: they meet only
//! if every such request goes to the same engine.

use std::sync::Mutex;

use http::Response;
use tepui_types::AgentId;

use super::Api;
use super::call::Call;
use super::error::ApiError;
use super::route::with_query;
use super::targets::Target;
use crate::body::Body;

/// The agent of the engine that serves BuildKit, once there was a request for it.
#[derive(Debug, Default)]
pub struct Builder(Mutex<Option<AgentId>>);

impl Api {
    /// The first healthy engine by name, and the same one for as long as it is healthy.
    fn builder(&self) -> Result<Target, ApiError> {
        let mut engines = self.some_engines()?;
        let mut builder = self.shared.builder.0.lock().expect("no code panics while it holds this lock");
        let former = builder.as_ref().and_then(|agent| engines.iter().position(|it| it.agent == *agent));
        let target = engines.swap_remove(former.unwrap_or(0));
        *builder = Some(target.agent.clone());
        Ok(target)
    }

    /// `/session` and `/grpc`: HTTP/2 without TLS after an upgrade, which is passed on as bytes.
    pub async fn build_tunnel(&self, call: Call) -> Result<Response<Body>, ApiError> {
        if !call.is_upgrade() {
            return Err(ApiError::bad(
                "BuildKit calls require the headers Connection: Upgrade and Upgrade: h2c",
            ));
        }
        let target = self.builder()?;
        let path = call.request.uri().path().trim_end_matches('/');
        let name = path.rsplit('/').next().unwrap_or_default(); // `session` or `grpc`.
        let path = with_query(format!("{}/{name}", call.matched.version), call.raw_query());
        // Engines send no event about an image that BuildKit has built.
        let (api, agent) = (self.clone(), target.agent.clone());
        self.tunnel(call, &target, &path, move || api.touch(&agent)).await
    }

    /// Of a build by the `id` that its client gave it.
    pub async fn build_cancel(&self, call: Call) -> Result<Response<Body>, ApiError> {
        let target = self.builder()?;
        let path = with_query(format!("{}/build/cancel", call.matched.version), call.raw_query());
        self.forward(call, &target, &path).await
    }

    /// A build of a session. Constraints choose no engine: the session is on this one already.
    pub async fn buildkit_build(&self, call: Call) -> Result<Response<Body>, ApiError> {
        let (target, query) = (self.builder()?, call.query.clone());
        self.build_on(call, &target, &query).await
    }
}
