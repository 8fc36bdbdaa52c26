//! One HTTP/1.1 connection to a peer, opened when first needed and again after it broke.
//!
//! Requests on it go out one after the other, each after the answer to the one before; calls that need not wait for each
//! other have [`Pipeline`](crate::pipeline::Pipeline). Absent: sessions, retries that could repeat a call.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{Method, Response, header};
use http_body_util::channel::Channel;
use http_body_util::{BodyExt, Either, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::credential::Credential;
use crate::endpoint::Endpoint;
use crate::fault::Fault;
use crate::format::{Format, MESSAGE_BYTES_MAX};
use crate::tls;

/// A peer that does not complete the TCP handshake in this time counts as absent.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A peer that does not send the head of its answer in this time counts as broken.
pub const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);
/// The text of a refusal is cut here.
const REFUSAL_BYTES_MAX: usize = 64 * 1024;

/// A request without its peer.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: Method,
    /// Path and query, without the peer's prefix.
    pub path: String,
    pub headers: Vec<(header::HeaderName, String)>,
    pub body: Bytes,
    /// How long to wait for the head of the answer; None for calls that answer when something has happened.
    pub patience: Option<Duration>,
}

impl Request {
    pub fn get(path: impl Into<String>) -> Self {
        Self {
            method: Method::GET,
            path: path.into(),
            headers: Vec::new(),
            body: Bytes::new(),
            patience: Some(RESPONSE_TIMEOUT),
        }
    }

    pub fn post(path: impl Into<String>, format: Format, body: Vec<u8>) -> Self {
        let media_type = format.media_type().to_owned();
        Self {
            method: Method::POST,
            headers: vec![(header::CONTENT_TYPE, media_type.clone()), (header::ACCEPT, media_type)],
            body: body.into(),
            ..Self::get(path)
        }
    }

    pub fn with_credential(mut self, credential: Option<&Credential>) -> Self {
        self.headers.extend(credential.map(|credential| (header::AUTHORIZATION, credential.header())));
        self
    }

    /// What all requests like this one begin with, whatever their bodies.
    pub fn head(&self, peer: &Endpoint) -> Result<Head, http::Error> {
        let request = self.to(peer)?;
        let mut head = format!("{} {} HTTP/1.1\r\n", request.method(), request.uri()).into_bytes();
        for (name, value) in request.headers() {
            head.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
        }
        Ok(Head(head))
    }

    fn to(&self, peer: &Endpoint) -> Result<http::Request<Body>, http::Error> {
        self.carrying(Either::Left(Full::new(self.body.clone())), peer)
    }

    fn carrying(&self, body: Body, peer: &Endpoint) -> Result<http::Request<Body>, http::Error> {
        let mut request = http::Request::builder()
            .method(&self.method)
            .uri(format!("{}{}", peer.prefix, self.path))
            .header(header::HOST, peer.authority());
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        request.body(body)
    }
}

/// The head of a request, up to the size of its body.
#[derive(Debug)]
pub struct Head(Vec<u8>);

impl Head {
    /// Appends the request with this body.
    pub fn write(&self, body: &[u8], out: &mut BytesMut) {
        out.extend_from_slice(&self.0);
        out.extend_from_slice(format!("content-length: {}\r\n\r\n", body.len()).as_bytes());
        out.extend_from_slice(body);
    }
}

/// A connection before HTTP, encrypted or not.
pub trait Transport: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Transport for S {}

/// Opens a connection, over TLS if the address requires it or, unless it is a member of etcd, the process uses TLS.
pub async fn connect(peer: &Endpoint, is_etcd: bool) -> Result<Box<dyn Transport>, Fault> {
    let within = |after| Fault::Timeout { peer: peer.to_string(), after };
    let failed = |err| Fault::Connect { peer: peer.to_string(), err };
    let stream = timeout(CONNECT_TIMEOUT, TcpStream::connect((peer.host.as_str(), peer.port)));
    let stream = stream.await.map_err(|_| within(CONNECT_TIMEOUT))?.map_err(failed)?;
    stream.set_nodelay(true).map_err(failed)?;
    if !peer.secure && (is_etcd || !tls::is_on()) {
        return Ok(Box::new(stream));
    }
    let secured = timeout(CONNECT_TIMEOUT, tls::connect(&peer.host, stream)).await;
    Ok(Box::new(secured.map_err(|_| within(CONNECT_TIMEOUT))?.map_err(failed)?))
}

/// What a request carries: all of it at once, or piece by piece while its answer is awaited.
type Body = Either<Full<Bytes>, Channel<Bytes>>;

/// A connection that can be used again for the next request.
#[derive(Debug)]
pub struct Connection {
    peer: Endpoint,
    sender: Option<SendRequest<Body>>,
    /// A member of etcd: over TLS only if its address requires it, independent of masters and agents.
    is_etcd: bool,
}

impl Connection {
    pub fn new(peer: Endpoint) -> Self {
        Self { peer, sender: None, is_etcd: false }
    }

    pub fn to_etcd(member: Endpoint) -> Self {
        Self { is_etcd: true, ..Self::new(member) }
    }

    /// Sends one request and waits for the head of the answer.
    ///
    /// A request that the peer cannot have seen (the connection was closed while idle) is sent once more on a new
    /// connection; one that it may have seen is not.
    pub async fn send(&mut self, request: &Request) -> Result<Response<Incoming>, Fault> {
        if let Some(mut sender) = self.sender.take()
            && sender.ready().await.is_ok()
        {
            match self.exchange(sender, request.to(&self.peer)?, request.patience).await {
                Err(Fault::Broken { err, .. }) if err.is_canceled() => (), // Closed while idle: nothing was sent.
                outcome => return outcome,
            }
        }
        let sender = self.open().await?;
        self.exchange(sender, request.to(&self.peer)?, request.patience).await
    }

    /// Sends a request with a streamed body, on a connection of its own. It may be answered before its end.
    pub async fn send_pieces(
        &mut self,
        request: &Request,
        pieces: Channel<Bytes>,
    ) -> Result<Response<Incoming>, Fault> {
        let sender = self.open().await?;
        self.exchange(sender, request.carrying(Either::Right(pieces), &self.peer)?, request.patience).await
    }

    async fn exchange(
        &mut self,
        mut sender: SendRequest<Body>,
        request: http::Request<Body>,
        patience: Option<Duration>,
    ) -> Result<Response<Incoming>, Fault> {
        let answer = sender.send_request(request);
        let answer = match patience {
            Some(after) => timeout(after, answer)
                .await
                .map_err(|_| Fault::Timeout { peer: self.peer.to_string(), after })?,
            None => answer.await,
        };
        let answer = answer.map_err(|err| self.broken(err))?;
        self.sender = Some(sender);
        Ok(answer)
    }

    async fn open(&self) -> Result<SendRequest<Body>, Fault> {
        let stream = connect(&self.peer, self.is_etcd).await?;
        let (sender, driver) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|err| self.broken(err))?;
        // Ends with the connection; its error is returned by the pending requests.
        tokio::spawn(driver);
        Ok(sender)
    }

    fn broken(&self, err: hyper::Error) -> Fault {
        Fault::Broken { peer: self.peer.to_string(), err }
    }
}

/// The whole body of a 2xx answer, or the refusal that the answer is.
pub async fn body_of(peer: &Endpoint, answer: Response<Incoming>) -> Result<Bytes, Fault> {
    if !answer.status().is_success() {
        return Err(refusal(answer).await);
    }
    whole_body(peer, answer).await
}

/// The whole body of an answer, whatever its status.
pub async fn whole_body(peer: &Endpoint, answer: Response<Incoming>) -> Result<Bytes, Fault> {
    match Limited::new(answer.into_body(), MESSAGE_BYTES_MAX).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(err) => match err.downcast::<hyper::Error>() {
            Ok(err) => Err(Fault::Broken { peer: peer.to_string(), err: *err }),
            Err(_) => Err(Fault::TooLong { peer: peer.to_string(), max: MESSAGE_BYTES_MAX }),
        },
    }
}

/// The refusal with its text, as far as it can be read.
pub async fn refusal(answer: Response<Incoming>) -> Fault {
    let status = answer.status().as_u16();
    let message = match Limited::new(answer.into_body(), REFUSAL_BYTES_MAX).collect().await {
        Ok(body) => String::from_utf8_lossy(&body.to_bytes()).trim().to_owned(),
        Err(_) => String::new(), // The status is sufficient.
    };
    Fault::Refused { status, message }
}

/// Where a 307 points to.
pub fn location(answer: &Response<Incoming>) -> Option<String> {
    if answer.status() != http::StatusCode::TEMPORARY_REDIRECT {
        return None;
    }
    answer.headers().get(header::LOCATION)?.to_str().ok().map(str::to_owned)
}
