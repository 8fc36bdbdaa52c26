//! Operators: read the state of a master or an agent, change it by `/api/v1` calls, follow events and files.
//!
//! Each request goes out on a connection of its own, so that a long answer never holds up another request.

pub mod attach;
pub mod files;
pub mod session;

use bytes::Bytes;
use hyper::body::Incoming;
use serde_json::Value;
use tepui_proto::Wire;
use tepui_proto::mesos::v1::{agent, master};
use tracing::debug;

use crate::connection::{self, Connection, Request};
use crate::credential::Credential;
use crate::discovery;
use crate::endpoint::{AddressError, Endpoint, Masters};
use crate::fault::Fault;
use crate::format::Format;
use crate::stream::EventStream;

const PATH: &str = "/api/v1";

/// A client of one cluster's masters, or of one agent. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Client {
    masters: Masters,
    format: Format,
    credential: Option<Credential>,
}

impl Client {
    /// A client of the masters at `addresses` (`host:port`, several separated by commas).
    pub fn new(addresses: &str) -> Result<Self, AddressError> {
        Ok(Self { masters: addresses.parse()?, format: Format::default(), credential: None })
    }

    /// A client of one master or agent.
    pub fn at(endpoint: Endpoint) -> Self {
        Self { masters: endpoint.into(), format: Format::default(), credential: None }
    }

    pub fn with_format(mut self, format: Format) -> Self {
        self.format = format;
        self
    }

    pub fn with_credential(mut self, credential: Option<Credential>) -> Self {
        self.credential = credential;
        self
    }

    /// Gets a JSON document, such as `/state` or `/tasks?limit=10`.
    pub async fn get(&self, path: &str) -> Result<Value, Fault> {
        let (peer, body) = self.get_bytes(path).await?;
        serde_json::from_slice(&body)
            .map_err(|err| Fault::Unreadable { peer: peer.to_string(), why: err.to_string() })
    }

    /// Gets a JSON document with a query, whose values may hold any character.
    pub async fn query(&self, path: &str, query: &[(&str, &str)]) -> Result<Value, Fault> {
        let pairs: Vec<String> =
            query.iter().map(|(key, value)| format!("{key}={}", files::escape(value))).collect();
        self.get(&format!("{path}?{}", pairs.join("&"))).await
    }

    /// Gets a body as it is.
    pub async fn get_bytes(&self, path: &str) -> Result<(Endpoint, Bytes), Fault> {
        let (peer, answer) = self.open(Request::get(path)).await?;
        let body = connection::body_of(&peer, answer).await?;
        Ok((peer, body))
    }

    /// Sends any request to a program that speaks HTTP: the status and the body of its answer, whatever the status is.
    pub async fn request(
        &self,
        method: http::Method,
        path: &str,
        body: Option<(&str, Vec<u8>)>,
    ) -> Result<(u16, Bytes), Fault> {
        let mut request = Request { method, ..Request::get(path) };
        if let Some((media_type, bytes)) = body {
            request.headers.push((http::header::CONTENT_TYPE, media_type.to_owned()));
            request.body = bytes.into();
        }
        let (peer, answer) = self.open(request).await?;
        let status = answer.status().as_u16();
        connection::whole_body(&peer, answer).await.map(|body| (status, body))
    }

    /// A call of the master's operator API. Calls without a response body give an empty response.
    pub async fn master(&self, call: &master::Call) -> Result<master::Response, Fault> {
        Ok(self.exchange(call).await?.1)
    }

    /// [`Client::master`] with the status of the answer (204: a call that there was nothing to do for).
    pub async fn master_with_status(&self, call: &master::Call) -> Result<(u16, master::Response), Fault> {
        self.exchange(call).await
    }

    /// A call of the agent's operator API.
    pub async fn agent(&self, call: &agent::Call) -> Result<agent::Response, Fault> {
        Ok(self.exchange(call).await?.1)
    }

    /// [`Client::agent`] with the status of the answer (200 or 202 distinguish "launched" from "was already there").
    pub async fn agent_with_status(&self, call: &agent::Call) -> Result<(u16, agent::Response), Fault> {
        self.exchange(call).await
    }

    /// The master's event stream, which begins with a snapshot of its state.
    pub async fn subscribe(&self) -> Result<EventStream<master::Event>, Fault> {
        let call = master::Call { r#type: Some(master::call::Type::SUBSCRIBE), ..Default::default() };
        let (peer, answer) = self.open(Request::post(PATH, self.format, self.format.encode(&call))).await?;
        if !answer.status().is_success() {
            return Err(connection::refusal(answer).await);
        }
        Ok(EventStream::new(&peer, self.format, answer.into_body()))
    }

    async fn exchange<C: Wire, R: Wire + Default>(&self, call: &C) -> Result<(u16, R), Fault> {
        let mut request = Request::post(PATH, self.format, self.format.encode(call));
        request.patience = None; // WAIT_* calls answer when a container terminates; the connection detects a lost peer.
        let (peer, answer) = self.open(request).await?;
        let status = answer.status().as_u16();
        let body = connection::body_of(&peer, answer).await?;
        if body.is_empty() {
            return Ok((status, R::default()));
        }
        let response = self.format.decode(&body);
        response
            .map(|response| (status, response))
            .map_err(|why| Fault::Unreadable { peer: peer.to_string(), why })
    }

    /// Sends to the leader: follows redirects, continues with the next master if one is unreachable or does not lead.
    async fn open(&self, request: Request) -> Result<(Endpoint, http::Response<Incoming>), Fault> {
        let request = request.with_credential(self.credential.as_ref());
        let mut masters = self.masters.clone();
        let mut tries = self.masters.count();
        loop {
            let peer = match discovery::target(&mut masters).await {
                Ok(peer) => peer,
                Err(fault) if tries > 1 => {
                    debug!(%fault, "cannot find the leading master");
                    tries -= 1;
                    masters.failed();
                    continue;
                }
                Err(fault) => return Err(fault),
            };
            let fault = match Connection::new(peer.clone()).send(&request).await {
                Ok(answer) => match connection::location(&answer) {
                    Some(location) if masters.redirected(&location, &request.path) => continue,
                    Some(_) => connection::refusal(answer).await,
                    None if answer.status() == http::StatusCode::SERVICE_UNAVAILABLE && tries > 1 => {
                        connection::refusal(answer).await
                    }
                    None => return Ok((peer, answer)),
                },
                // A request that may have been seen is not repeated elsewhere.
                Err(fault @ Fault::Connect { .. }) => fault,
                Err(fault) => return Err(fault),
            };
            tries -= 1;
            if tries == 0 {
                return Err(fault);
            }
            masters.failed();
        }
    }
}
