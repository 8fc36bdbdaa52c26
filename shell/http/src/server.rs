//! The listener: our own accept loop, one task per connection, an orderly end.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use http::header::X_CONTENT_TYPE_OPTIONS;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::{JoinHandle, JoinSet};

use crate::aside::{Aside, Place, serve};
use crate::gzip::compress;
use crate::request::{BodyBudget, Request};
use crate::respond::Response;
use crate::socket::keep_alive;
use crate::tls::Tls;

/// Connections the kernel holds for us until we accept them.
const BACKLOG_CONNECTIONS_MAX: u32 = 4096;

/// The most headers of a request.
const HEADERS_MAX: usize = 128;

/// What the head of a request may take in memory.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// How long a peer may take to agree on a key.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// After a failure to accept, for instance because no file descriptors are left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How long open exchanges may take to end when the program stops.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// Answers requests.
pub trait Handler: Send + Sync + 'static {
    fn handle(self: Arc<Self>, request: Request) -> impl Future<Output = Response> + Send;
}

/// How much at once.
#[derive(Clone, Copy, Debug)]
pub struct ServerLimits {
    /// With more, new peers wait in the backlog.
    pub connections_max: usize,
    /// How long the head of a request may take, and so how long an idle connection is kept: long enough for clients
    /// that hold one for their calls.
    pub head_read_timeout: Duration,
    /// How long a peer may take to send a body that is read as a whole.
    pub body_read_timeout: Duration,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            connections_max: 65_536,
            head_read_timeout: Duration::from_secs(600),
            body_read_timeout: Duration::from_secs(60),
        }
    }
}

/// A bound socket that does not answer yet.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    aside: Aside,
}

/// A server that answers.
#[derive(Debug)]
pub struct Listening {
    stop: watch::Sender<bool>,
    accepting: JoinHandle<()>,
    aside: Aside,
}

/// Cuts one connection off, whatever it is doing. A cheap clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disconnect(Arc<Notify>);

impl Server {
    /// Binds; port 0 takes a free one.
    pub fn bind(address: SocketAddr) -> std::io::Result<Self> {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        let listener = socket.listen(BACKLOG_CONNECTIONS_MAX)?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address, aside: Aside::start()? })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Starts to answer, over TLS if there is a certificate.
    pub fn serve<H: Handler>(self, handler: Arc<H>, limits: ServerLimits, tls: Option<Tls>) -> Listening {
        let (stop, stop_asked) = watch::channel(false);
        let shared =
            Shared { handler, limits, budget: BodyBudget::default(), tls, aside: self.aside.handle() };
        let accepting = tokio::spawn(accept(self.listener, shared, stop_asked));
        Listening { stop, accepting, aside: self.aside }
    }
}

impl Listening {
    /// Accepts no more, lets open exchanges end, then cuts off what is left. Close event streams first.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        if let Err(err) = self.accepting.await {
            tracing::error!(%err, "the accept loop failed");
        }
        // Nobody is served there any more.
        drop(self.aside);
    }
}

impl Disconnect {
    pub fn now(&self) {
        self.0.notify_one();
    }
}

/// What all connections share.
struct Shared<H> {
    handler: Arc<H>,
    limits: ServerLimits,
    budget: BodyBudget,
    tls: Option<Tls>,
    aside: Handle,
}

impl<H> Clone for Shared<H> {
    fn clone(&self) -> Self {
        let (handler, budget, tls) = (self.handler.clone(), self.budget.clone(), self.tls.clone());
        Self { handler, limits: self.limits, budget, tls, aside: self.aside.clone() }
    }
}

async fn accept<H: Handler>(listener: TcpListener, shared: Shared<H>, mut stop: watch::Receiver<bool>) {
    let room = Arc::new(Semaphore::new(shared.limits.connections_max));
    let mut connections = JoinSet::new();
    loop {
        let next = async {
            let permit = room.clone().acquire_owned().await.expect("the semaphore is never closed");
            (listener.accept().await, permit)
        };
        tokio::select! {
            _ = stop.changed() => break,
            (accepted, permit) = next => match accepted {
                Ok((stream, peer)) => {
                    connections.spawn(connection(stream, peer, shared.clone(), stop.clone(), permit));
                }
                Err(err) => {
                    tracing::warn!(%err, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
            Some(ended) = connections.join_next() => log_panic(ended),
        }
    }
    drop(listener);
    let drained = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(DRAIN_TIMEOUT, drained).await.is_err() {
        tracing::info!(open = connections.len(), "cutting off connections that do not end");
    }
    connections.shutdown().await;
}

/// A handler that panics takes its connection with it and nothing else.
fn log_panic(ended: Result<(), tokio::task::JoinError>) {
    if let Err(err) = ended {
        tracing::error!(%err, "a connection's task failed");
    }
}

async fn connection<H: Handler>(
    stream: TcpStream,
    peer: SocketAddr,
    shared: Shared<H>,
    stop: watch::Receiver<bool>,
    _permit: OwnedSemaphorePermit,
) {
    if let Err(err) = keep_alive(&stream) {
        tracing::debug!(%peer, %err, "cannot set socket options");
    }
    let (place, aside) = (Place::default(), shared.aside.clone());
    let Some(tls) = shared.tls.clone() else {
        let talk = Box::pin(exchange(stream, peer, shared, place.clone(), stop));
        return serve(talk, place, aside).await;
    };
    match tokio::time::timeout(HANDSHAKE_TIMEOUT, tls.acceptor().accept(stream)).await {
        Ok(Ok(stream)) => {
            let talk = Box::pin(exchange(stream, peer, shared, place.clone(), stop));
            serve(talk, place, aside).await;
        }
        Ok(Err(err)) => tracing::debug!(%peer, %err, "no TLS could be agreed on"),
        Err(_) => tracing::debug!(%peer, "no TLS was agreed on in time"),
    }
}

/// Requests and answers on one connection, until it ends.
async fn exchange<H: Handler>(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: SocketAddr,
    shared: Shared<H>,
    place: Place,
    mut stop: watch::Receiver<bool>,
) {
    let head_read_timeout = shared.limits.head_read_timeout;
    let disconnect = Disconnect::default();
    let service_disconnect = disconnect.clone();
    let service = service_fn(move |request| {
        respond(shared.clone(), request, peer, place.clone(), service_disconnect.clone())
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(head_read_timeout)
        .max_headers(HEADERS_MAX)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let mut stopping = false;
    loop {
        tokio::select! {
            ended = connection.as_mut() => {
                if let Err(err) = ended {
                    tracing::debug!(%peer, %err, "connection broke");
                }
                return;
            }
            () = disconnect.0.notified() => return,
            _ = stop.changed(), if !stopping => {
                stopping = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}

async fn respond<H: Handler>(
    shared: Shared<H>,
    request: http::Request<Incoming>,
    peer: SocketAddr,
    place: Place,
    disconnect: Disconnect,
) -> Result<Response, Infallible> {
    // What a request makes happen, happens in the front, whatever was answered before it.
    place.choose(false).await;
    let headers = request.headers().clone();
    let body_read_timeout = shared.limits.body_read_timeout;
    let response = match Request::new(request, peer, disconnect, shared.budget, body_read_timeout) {
        Ok(request) => shared.handler.handle(request).await,
        Err(error) => error.into(),
    };
    let mut response = compress(response, &headers).await;
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    place.choose(response.body().is_for_readers()).await;
    Ok(response)
}
