//! The Docker API for the whole cluster.
//!
//! Each call is found in one table (`route`) and answered from the manager's view, by one engine, or by all of them. A client
//! that leaves drops the future of its call, which closes what the call had open towards engines.
//! Never here: a decision about placement, a request to an engine that no client has asked for.

mod build;
mod buildkit;
mod call;
mod containers;
mod error;
mod events;
mod exec;
mod forward;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
mod glob;
mod images;
mod info;
mod inspect;
mod merge;
mod networks;
mod prune;
mod ps;
mod pull;
mod query;
mod reply;
mod route;
mod row;
mod rows;
mod status;
mod targets;
mod tunnel;
mod volumes;

use std::sync::Arc;

use http::{Request, Response};
use hyper::body::Incoming;
use tokio::sync::Semaphore;

use self::call::Call;
use self::error::ApiError;
use self::route::Endpoint as E;
pub use self::tunnel::{TUNNELS_MAX, connect};
use crate::body::Body;
use crate::handle::Handle;

/// Answers requests. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Api {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    handle: Handle,
    rows: rows::Rows,
    execs: exec::Execs,
    tunnels: Arc<Semaphore>,
    builder: buildkit::Builder,
}

impl Api {
    pub fn new(handle: Handle) -> Self {
        let (rows, execs) = (rows::Rows::default(), exec::Execs::default());
        let tunnels = Arc::new(Semaphore::new(TUNNELS_MAX));
        let builder = buildkit::Builder::default();
        Self { shared: Arc::new(Shared { handle, rows, execs, tunnels, builder }) }
    }

    fn handle(&self) -> &Handle {
        &self.shared.handle
    }

    /// Never fails: what cannot be served is an error answer. Upgrades (`hyper::upgrade::on`) are possible.
    pub async fn respond(&self, request: Request<Incoming>) -> Response<Body> {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let answer = self.answer(request).await;
        let mut response = answer.unwrap_or_else(|error| error.response());
        tracing::debug!(%method, path, status = response.status().as_u16(), "request answered");
        reply::add_common_headers(&mut response);
        response
    }

    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Body>, ApiError> {
        let matched = route::find(request.method().as_str(), request.uri().path())?;
        self.dispatch(Call::new(matched, request)).await
    }

    async fn dispatch(&self, call: Call) -> Result<Response<Body>, ApiError> {
        match call.matched.endpoint {
            E::Ping => Ok(info::ping(&call)),
            E::Version => Ok(self.version()),
            E::Info => self.info().await,
            E::Events => self.events(call).await,
            E::DiskUsage => self.disk_usage(call).await,
            E::AnyEngine => self.any_engine(call).await,
            E::ContainerList => self.container_list(call).await,
            E::ContainerCreate => self.container_create(call).await,
            E::ContainerInspect => self.container_inspect(call).await,
            E::ContainerStart | E::ContainerRestart => self.container_start(call).await,
            E::ContainerRemove => self.container_remove(call).await,
            E::ContainerRename => self.container_rename(call).await,
            E::ContainerUpdate => self.container_update(call).await,
            E::ContainerExec => self.container_exec(call).await,
            E::ContainersPrune => self.containers_prune(call).await,
            E::ContainerRead => self.container_read(call).await,
            E::ContainerChange => self.container_change(call).await,
            E::ContainerTunnel => self.container_tunnel(call).await,
            E::Commit => self.commit(call).await,
            E::ExecStart => self.exec_start(call).await,
            E::ExecRead => self.exec_read(call).await,
            E::ImageList => self.image_list(call).await,
            E::ImageCreate => self.image_create(call).await,
            E::ImageLoad => self.image_load(call).await,
            E::ImageRead => self.image_read(call).await,
            E::ImagesSave => self.images_save(call).await,
            E::ImageTag => self.image_tag(call).await,
            E::ImageRemove => self.image_remove(call).await,
            E::ImagesPrune => self.prune(call, "images").await,
            E::Build => self.build(call).await,
            E::BuildCancel => self.build_cancel(call).await,
            E::BuildTunnel => self.build_tunnel(call).await,
            E::BuildPrune => self.prune(call, "build").await,
            E::VolumeList => self.volume_list(call).await,
            E::VolumeCreate => self.volume_create(call).await,
            E::VolumeInspect => self.volume_inspect(call).await,
            E::VolumeRemove => self.volume_remove(call).await,
            E::VolumesPrune => self.prune(call, "volumes").await,
            E::NetworkList => self.network_list(call).await,
            E::NetworkCreate => self.network_create(call).await,
            E::NetworkInspect => self.network_inspect(call).await,
            E::NetworkConnect | E::NetworkDisconnect => self.network_membership(call).await,
            E::NetworkRemove => self.network_remove(call).await,
            E::NetworksPrune => self.prune(call, "networks").await,
            E::PluginInspect => Err(ApiError::not_found(format!("No such plugin: {}", call.matched.name))),
            E::Unsupported(reason) => Err(ApiError::unsupported(reason)),
        }
    }
}

#[cfg(test)]
mod tests;
