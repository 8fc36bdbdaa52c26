//! `/api/v1/agent`: the link with an agent.
//!
//! The request's body is the first calls, SUBSCRIBE before all others. An agent that is accepted is answered with `101`; then
//! the connection is a stream of calls and one of events. A record that is no call, or the end of either stream, ends
//! the link; the agent comes back with a new SUBSCRIBE.

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use tepui_core_master::Input;
use tepui_http::{
    CALL_BYTES_MAX, Encoding, HttpError, Receive, Receiving, Request, Response, switch_protocol,
};
use tepui_program::AGENT_LINK_PROTOCOL;
use tepui_proto::tepui::agent::v1 as link;
use tepui_proto::{recordio, wire};
use tepui_runtime::Handle;
use tepui_types::ConnId;

use crate::program::{Kind, Program};

pub(crate) async fn link(program: &Program, mut request: Request) -> Result<Response, HttpError> {
    if request.header("Content-Type") != Some(Encoding::Protobuf.name()) {
        let message = "Expecting 'Content-Type' of application/x-protobuf";
        return Err(HttpError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
    }
    if request.header("Upgrade") != Some(AGENT_LINK_PROTOCOL) {
        return Err(HttpError::bad_request(format!("Expecting 'Upgrade' of {AGENT_LINK_PROTOCOL}")));
    }
    let first = request.read_body(CALL_BYTES_MAX).await?;
    let exchange = program.exchanges.begin(Kind::Agent, Encoding::Protobuf, &request);
    let mut calls = Box::new(Calls {
        conn: exchange.conn,
        principal: request.principal_name().map(Arc::from),
        handle: program.handle.clone(),
        decoder: recordio::Decoder::new(CALL_BYTES_MAX),
    });
    calls.receive(first).await.map_err(HttpError::bad_request)?;
    Ok(switch_protocol(exchange.answered().await, AGENT_LINK_PROTOCOL, calls))
}

#[derive(Debug)]
struct Calls {
    conn: ConnId,
    principal: Option<Arc<str>>,
    handle: Handle<Input>,
    decoder: recordio::Decoder,
}

impl Receive for Calls {
    fn receive(&mut self, chunk: Bytes) -> Receiving<'_> {
        Box::pin(self.take(chunk))
    }
}

impl Calls {
    async fn take(&mut self, chunk: Bytes) -> Result<(), String> {
        self.decoder.push(&chunk);
        let mut inputs = Vec::new();
        let outcome = self.decode(&mut inputs);
        // Also those before a record that is no call.
        self.handle.send_all(inputs).await.map_err(|err| err.to_string())?;
        if self.decoder.finish().is_ok() {
            // Between records a link holds no buffer.
            self.decoder = recordio::Decoder::new(CALL_BYTES_MAX);
        }
        outcome
    }

    fn decode(&mut self, inputs: &mut Vec<Input>) -> Result<(), String> {
        for record in self.decoder.by_ref() {
            let record = record.map_err(|err| err.to_string())?;
            let call: link::Call = wire::decode(&record, CALL_BYTES_MAX).map_err(|err| err.to_string())?;
            let principal = self.principal.clone();
            inputs.push(Input::Agent { conn: self.conn, principal, call: Box::new(call) });
        }
        Ok(())
    }
}
