//! A server whose answers are given by the test, request by request. Shared by several test programs.
#![allow(dead_code)] // Each of them uses only a part of it.

use std::convert::Infallible;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tepui_client::Format;
use tepui_proto::{Wire, json, recordio};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};

type Body = BoxBody<Bytes, Infallible>;

pub struct Server {
    address: String,
    asked: mpsc::UnboundedReceiver<Asked>,
}

impl Server {
    pub async fn start(format: Format) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound").to_string();
        let (sender, asked) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let sender = sender.clone();
                let service = service_fn(move |request| serve(request, sender.clone(), format));
                let connection = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service);
                tokio::spawn(connection);
            }
        });
        Self { address, asked }
    }

    pub fn address(&self) -> String {
        self.address.clone()
    }

    /// The next request, on whichever connection.
    pub async fn asked(&mut self) -> Asked {
        self.asked.recv().await.expect("the server runs as long as the test")
    }
}

/// An address without a listener.
pub async fn unused_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    listener.local_addr().expect("bound").to_string()
}

async fn serve(
    request: Request<Incoming>,
    asked: mpsc::UnboundedSender<Asked>,
    format: Format,
) -> Result<Response<Body>, Infallible> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.expect("a whole request").to_bytes();
    let path = head.uri.path_and_query().expect("a path").to_string();
    let (reply, answer) = oneshot::channel();
    asked.send(Asked { path, headers: head.headers, body, format, reply }).expect("the test goes on");
    Ok(answer.await.unwrap_or_else(|_| Response::builder().status(500).body(full("")).expect("valid")))
}

fn full(body: &str) -> Body {
    Full::new(Bytes::copy_from_slice(body.as_bytes())).boxed()
}

pub struct Asked {
    pub path: String,
    headers: http::HeaderMap,
    body: Bytes,
    format: Format,
    reply: oneshot::Sender<Response<Body>>,
}

impl Asked {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("text"))
    }

    pub fn message<M: Wire + Default>(&self) -> M {
        assert_eq!(self.header("content-type"), Some(self.format.media_type()));
        self.format.decode(&self.body).expect("a message")
    }

    /// The messages of a body that is a stream of records.
    pub fn records<M: Wire + Default>(&self) -> Vec<M> {
        assert_eq!(self.header("content-type"), Some("application/recordio"));
        assert_eq!(self.header("message-content-type"), Some(self.format.media_type()));
        let mut decoder = recordio::Decoder::new(self.body.len());
        decoder.push(&self.body);
        let records = std::iter::from_fn(|| decoder.next());
        records.map(|record| self.format.decode(&record.expect("a record")).expect("a message")).collect()
    }

    pub fn answer(self, answer: Answer) {
        self.reply.send(answer.0).expect("the client waits");
    }

    /// Answers with a message, given as JSON.
    pub fn answer_message<M: Wire + Default>(self, text: &str) {
        let message: M = json::from_slice(text.as_bytes()).expect("valid");
        let body = Full::new(Bytes::from(self.format.encode(&message))).boxed();
        self.reply.send(Response::new(body)).expect("the client waits");
    }

    /// Answers with a stream of events of type `E`.
    pub fn stream<E: Wire + Default>(self, headers: &[(&str, &str)]) -> Stream {
        let named = self.header("message-accept").or(self.header("accept"));
        assert_eq!(named, Some(self.format.media_type()));
        let (frames, receiver) = mpsc::unbounded_channel::<Bytes>();
        let frames_out = futures_util::stream::unfold(receiver, |mut receiver| async {
            receiver.recv().await.map(|bytes| (Ok::<_, Infallible>(Frame::data(bytes)), receiver))
        });
        let mut response = Response::builder().header("content-type", self.format.media_type());
        for (name, value) in headers {
            response = response.header(*name, *value);
        }
        let body = BoxBody::new(StreamBody::new(frames_out));
        self.reply.send(response.body(body).expect("valid")).expect("the client waits");
        let format = self.format;
        let encode = move |text: &str| {
            let event: E = json::from_slice(text.as_bytes()).expect("a valid event");
            format.encode(&event)
        };
        Stream { frames, encode: Box::new(encode) }
    }
}

pub struct Stream {
    frames: mpsc::UnboundedSender<Bytes>,
    encode: Box<dyn Fn(&str) -> Vec<u8> + Send>,
}

impl Stream {
    /// Sends an event, given as JSON.
    pub fn send(&self, text: &str) {
        let record = recordio::encode(&(self.encode)(text));
        self.frames.send(record.into()).expect("the connection is open");
    }
}

pub struct Answer(Response<Body>);

impl Answer {
    pub fn status(status: u16) -> Self {
        Self(Response::builder().status(status).body(full("")).expect("valid"))
    }

    pub fn with_body(self, body: &str) -> Self {
        Self(self.0.map(|_| full(body)))
    }

    pub fn with_header(mut self, name: &'static str, value: &str) -> Self {
        self.0.headers_mut().insert(name, value.parse().expect("valid"));
        self
    }
}
