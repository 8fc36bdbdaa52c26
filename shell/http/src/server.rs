//! The listener: our own accept loop, one task per connection, an orderly end.

#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
mod pipelined;
mod rewind;

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::HeaderValue;
use http::header::X_CONTENT_TYPE_OPTIONS;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::{JoinHandle, JoinSet};

use pipelined::Served;
use rewind::Rewind;

use crate::body::Body;
use crate::browser::BrowserPolicy;
use crate::connection::{Disconnect, Ends};
use crate::gzip::compress;
use crate::link::Link;
use crate::pace::{Answer, InExchange, Pace, Paced};
use crate::request::{BodyBudget, Request, RequestBody};
use crate::respond::Response;
use crate::socket::{keep_alive, open_files_max};
use crate::tls::Tls;

/// Connections the kernel holds for us until we accept them.
const BACKLOG_CONNECTIONS_MAX: u32 = 4096;

/// The most headers of a request.
const HEADERS_MAX: usize = 128;

/// What the head of a request, or the trailers of its body, may take in memory; up to twice that if it comes at once.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// How long a peer may take to agree on a key.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// After a failure to accept, for instance because no file descriptors are left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// At the limit of connections: the interval of searches for idle ones, and the minimum idle time. A new connection
/// may have a request on its way.
const PRESSURE_PAUSE: Duration = Duration::from_millis(100);

/// Files that a program needs besides its connections.
const OTHER_FILES: u64 = 256;

/// How long open exchanges may take to end when the program stops.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// Answers requests.
pub trait Handler: Send + Sync + 'static {
    fn handle(self: Arc<Self>, request: Request) -> impl Future<Output = Response> + Send;

    /// Whether requests with this head are calls, which may be handled together and are never answered with a stream.
    fn is_call(&self, _head: &http::request::Parts) -> bool {
        false
    }

    /// Answers calls that came together on one connection, each as if it came after the answer to the one before.
    fn handle_all(self: Arc<Self>, requests: Vec<Request>) -> impl Future<Output = Vec<Response>> + Send {
        async move {
            let mut responses = Vec::with_capacity(requests.len());
            for request in requests {
                responses.push(self.clone().handle(request).await);
            }
            responses
        }
    }
}

/// How much at once.
#[derive(Clone, Copy, Debug)]
pub struct ServerLimits {
    /// With more, idle connections are closed, and new peers wait in the backlog until there is room.
    pub connections_max: usize,
    /// How long a connection without a request is kept: long enough for clients that hold one for their calls.
    pub idle_timeout: Duration,
    /// How long the head of a request may take once it has begun.
    pub head_read_timeout: Duration,
    /// How long a peer may take to send a body that is read as a whole.
    pub body_read_timeout: Duration,
    /// How long a peer may take nothing of what it is sent.
    pub write_timeout: Duration,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            connections_max: 65_536,
            idle_timeout: Duration::from_secs(600),
            head_read_timeout: Duration::from_secs(30),
            body_read_timeout: Duration::from_secs(60),
            write_timeout: Duration::from_secs(60),
        }
    }
}

/// A bound socket that does not answer yet.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
}

/// A server that answers.
#[derive(Debug)]
pub struct Listening {
    stop: watch::Sender<bool>,
    accepting: JoinHandle<()>,
}

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
        Ok(Self { listener, address })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Starts to answer, over TLS if there is a certificate.
    pub fn serve<H: Handler>(
        self,
        handler: Arc<H>,
        limits: ServerLimits,
        browsers: BrowserPolicy,
        tls: Option<Tls>,
    ) -> Listening {
        let (stop, stop_requested) = watch::channel(false);
        let shared = Shared { handler, limits, browsers, budget: BodyBudget::default(), tls };
        let accepting = tokio::spawn(accept(self.listener, shared, stop_requested));
        Listening { stop, accepting }
    }
}

impl Listening {
    /// Accepts no more, lets open exchanges end, then cuts off what is left. Close event streams first.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        if let Err(err) = self.accepting.await {
            tracing::error!(%err, "the accept loop failed");
        }
    }
}

/// What all connections share.
struct Shared<H> {
    handler: Arc<H>,
    limits: ServerLimits,
    browsers: BrowserPolicy,
    budget: BodyBudget,
    tls: Option<Tls>,
}

impl<H> Clone for Shared<H> {
    fn clone(&self) -> Self {
        let (handler, budget, tls) = (self.handler.clone(), self.budget.clone(), self.tls.clone());
        let browsers = self.browsers.clone();
        Self { handler, limits: self.limits, browsers, budget, tls }
    }
}

async fn accept<H: Handler>(listener: TcpListener, shared: Shared<H>, mut stop: watch::Receiver<bool>) {
    let room = Room::new(connections_max(shared.limits.connections_max, open_files_max()));
    let mut connections = JoinSet::new();
    let mut came = None;
    loop {
        let next = async {
            // One may have come while there was no room for it; the others stay in the backlog.
            if came.is_none() {
                came = Some(accept_one(&listener, &room).await);
            }
            room.take().await
        };
        tokio::select! {
            _ = stop.changed() => break,
            place = next => if let Some((stream, peer)) = came.take() {
                let signals = Signals { stop: stop.clone(), pressure: room.pressure.subscribe() };
                connections.spawn(connection(stream, peer, shared.clone(), signals, place));
            },
            Some(ended) = connections.join_next() => log_panic(ended),
        }
    }
    drop(listener);
    let drained = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(DRAIN_TIMEOUT, drained).await.is_err() {
        tracing::info!(open = connections.len(), "closing connections that did not finish");
    }
    connections.shutdown().await;
}

async fn accept_one(listener: &TcpListener, room: &Room) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(err) => {
                tracing::warn!(%err, "cannot accept a connection");
                room.ask_idle_to_leave();
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Room for so many connections.
struct Room {
    places: Arc<Semaphore>,
    /// Changes whenever idle connections have to make room.
    pressure: watch::Sender<()>,
}

impl Room {
    fn new(connections_max: usize) -> Self {
        Self { places: Arc::new(Semaphore::new(connections_max)), pressure: watch::channel(()).0 }
    }

    /// Waits for room. A connection that becomes idle meanwhile makes some.
    async fn take(&self) -> OwnedSemaphorePermit {
        if let Ok(place) = self.places.clone().try_acquire_owned() {
            return place;
        }
        loop {
            self.ask_idle_to_leave();
            let place = self.places.clone().acquire_owned();
            if let Ok(place) = tokio::time::timeout(PRESSURE_PAUSE, place).await {
                return place.expect("the semaphore is never closed");
            }
        }
    }

    fn ask_idle_to_leave(&self) {
        self.pressure.send_replace(());
    }
}

/// What every connection listens to.
struct Signals {
    stop: watch::Receiver<bool>,
    pressure: watch::Receiver<()>,
}

/// As many as wanted, as far as this process may open files.
fn connections_max(wanted: usize, open_files_max: Option<u64>) -> usize {
    let files = open_files_max.map_or(usize::MAX, |files| {
        let left = files.saturating_sub(OTHER_FILES).max(files / 2);
        usize::try_from(left).unwrap_or(usize::MAX)
    });
    wanted.min(files).clamp(1, Semaphore::MAX_PERMITS)
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
    signals: Signals,
    _permit: OwnedSemaphorePermit,
) {
    if let Err(err) = keep_alive(&stream) {
        tracing::debug!(%peer, %err, "cannot set socket options");
    }
    let Ok(local) = stream.local_addr() else { return };
    let ends = Ends { peer, local };
    match shared.tls.clone() {
        None => exchange(stream, ends, shared, signals).await,
        // Boxed: connections without TLS do not keep memory for it.
        Some(tls) => Box::pin(secure(tls, stream, ends, shared, signals)).await,
    }
}

async fn secure<H: Handler>(tls: Tls, stream: TcpStream, ends: Ends, shared: Shared<H>, signals: Signals) {
    match tokio::time::timeout(HANDSHAKE_TIMEOUT, tls.acceptor().accept(stream)).await {
        Ok(Ok(stream)) => exchange(Box::new(stream), ends, shared, signals).await,
        Ok(Err(err)) => tracing::debug!(peer = %ends.peer, %err, "TLS handshake failed"),
        Err(_) => tracing::debug!(peer = %ends.peer, "TLS handshake timed out"),
    }
}

/// Requests and answers on one connection, until it ends. Each stage is boxed, so that the next does not keep the room
/// for it.
async fn exchange<H: Handler>(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    ends: Ends,
    shared: Shared<H>,
    mut signals: Signals,
) {
    let stream = match Box::pin(pipelined::serve(stream, ends, &shared, &mut signals)).await {
        Served::Closed => return,
        Served::HandedOver(stream) => stream,
    };
    let (disconnect, pace) = (Disconnect::default(), Pace::new());
    let limits = shared.limits;
    let stream = Paced::new(stream, pace.clone(), limits.head_read_timeout, limits.write_timeout);
    let control = Control { ends, disconnect, pace };
    if let Some((link, stream)) = Box::pin(ordinary(stream, shared, &control, &mut signals)).await {
        Box::pin(linked(link, stream, &control, &mut signals)).await;
    }
}

/// How a connection is steered from outside.
struct Control {
    ends: Ends,
    disconnect: Disconnect,
    pace: Pace,
}

/// The link that the answer to a request asked for.
type NextLink = Arc<Mutex<Option<Box<Link>>>>;

/// Serves requests until the connection ends or becomes a link.
async fn ordinary<H: Handler, S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: Paced<S>,
    shared: Shared<H>,
    control: &Control,
    signals: &mut Signals,
) -> Option<(Box<Link>, Rewind<Paced<S>>)> {
    let Control { ends, disconnect, pace } = control;
    let (ends, limits, next_link) = (*ends, shared.limits, NextLink::default());
    let (service_disconnect, service_pace) = (disconnect.clone(), pace.clone());
    let service_link = next_link.clone();
    let service = service_fn(move |request| {
        let begun = service_pace.begin();
        respond(shared.clone(), request, ends, service_disconnect.clone(), begun, service_link.clone())
    });
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        // From the end of one request to the end of the head of the next.
        .header_read_timeout(limits.idle_timeout + limits.head_read_timeout)
        .max_headers(HEADERS_MAX)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_header_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service);
    let mut stopping = false;
    loop {
        tokio::select! {
            ended = &mut connection => {
                if let Err(err) = ended {
                    tracing::debug!(peer = %ends.peer, %err, "connection broke");
                    return None;
                }
                let link = next_link.lock().expect("no code panics while it holds this lock").take()?;
                let parts = connection.into_parts();
                return Some((link, Rewind::new(parts.read_buf, parts.io.into_inner())));
            }
            () = disconnect.notified() => return None,
            _ = signals.stop.changed(), if !stopping => {
                stopping = true;
                pace.hurry();
                std::pin::Pin::new(&mut connection).graceful_shutdown();
            }
            Ok(()) = signals.pressure.changed() => if pace.is_idle_for(PRESSURE_PAUSE) {
                pace.hurry();
                std::pin::Pin::new(&mut connection).graceful_shutdown();
            }
        }
    }
}

/// Carries a link until it ends. It counts as one exchange.
async fn linked(
    link: Box<Link>,
    stream: impl AsyncRead + AsyncWrite + Unpin,
    control: &Control,
    signals: &mut Signals,
) {
    let _exchange = control.pace.begin();
    let mut running = std::pin::pin!(link.run(stream));
    let mut stopping = false;
    loop {
        tokio::select! {
            ended = running.as_mut() => {
                let why = ended.err().unwrap_or_default();
                tracing::debug!(peer = %control.ends.peer, why, "link closed");
                return;
            }
            () = control.disconnect.notified() => return,
            _ = signals.stop.changed(), if !stopping => {
                stopping = true;
                control.pace.hurry();
            }
        }
    }
}

async fn respond<H: Handler>(
    shared: Shared<H>,
    request: http::Request<Incoming>,
    ends: Ends,
    disconnect: Disconnect,
    begun: InExchange,
    next_link: NextLink,
) -> Result<http::Response<Answer>, Infallible> {
    let headers = request.headers().clone();
    let request = request.map(RequestBody::Incoming);
    let body_read_timeout = shared.limits.body_read_timeout;
    let checked = shared.browsers.check(&request, ends.local);
    let request =
        checked.and_then(|()| Request::new(request, ends, disconnect, shared.budget, body_read_timeout));
    let response = match request {
        // Boxed: the server keeps memory for this future as long as the connection lives.
        Ok(request) => Box::pin(shared.handler.handle(request)).await,
        Err(error) => error.into(),
    };
    let mut response = compress(response, &headers).await;
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    Ok(response.map(|body| {
        if let Body::Link(link) = body {
            *next_link.lock().expect("no code panics while it holds this lock") = Some(link);
            return begun.with(Body::Empty);
        }
        begun.with(body)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_limit_leaves_file_descriptors_for_other_uses() {
        for (wanted, files, expected) in [
            (65_536, None, 65_536),
            (65_536, Some(1 << 20), 65_536),
            (65_536, Some(1024), 768),
            (65_536, Some(64), 32),
            (10, Some(1024), 10),
        ] {
            assert_eq!(connections_max(wanted, files), expected, "{wanted} {files:?}");
        }
    }
}
