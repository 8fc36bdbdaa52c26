//! `/api/v1/agent`: the link with an agent, both directions on one request.
//!
//! The request's body is a stream of calls, taken in in their order; the answer is the stream of events. A record that
//! is no call, or the end of either stream, ends the link; the agent comes back with a new SUBSCRIBE.

use std::sync::Arc;

use http::StatusCode;
use http_body_util::BodyExt;
use tepui_core_master::Input;
use tepui_http::{CALL_BYTES_MAX, Encoding, Exchanges, HttpError, Request, RequestBody, Response};
use tepui_proto::tepui::agent::v1 as link;
use tepui_proto::{recordio, wire};
use tepui_runtime::Handle;
use tepui_types::ConnId;

use crate::program::{Kind, Program};

pub(crate) async fn link(program: &Program, request: Request) -> Result<Response, HttpError> {
    if request.header("Content-Type") != Some(Encoding::Protobuf.name()) {
        let message = "Expecting 'Content-Type' of application/x-protobuf";
        return Err(HttpError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
    }
    let exchange = program.exchanges.begin(Kind::Agent, Encoding::Protobuf, &request);
    let reader = Reader {
        conn: exchange.conn,
        principal: request.principal_name().map(Arc::from),
        handle: program.handle.clone(),
        exchanges: program.exchanges.clone(),
        decoder: recordio::Decoder::new(CALL_BYTES_MAX),
    };
    // If it fails, the link is aborted: the task does that as its last act, and nothing in it panics.
    let task = tokio::spawn(reader.run(request.into_body()));
    exchange.tie(task.abort_handle());
    Ok(exchange.answered().await)
}

struct Reader {
    conn: ConnId,
    principal: Option<Arc<str>>,
    handle: Handle<Input>,
    exchanges: Exchanges<Kind>,
    decoder: recordio::Decoder,
}

impl Reader {
    async fn run(mut self, mut body: RequestBody) {
        let why = loop {
            match body.frame().await {
                None => break "it closed the link".to_owned(),
                Some(Err(err)) => break err.to_string(),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data()
                        && let Err(why) = self.take(&data).await
                    {
                        break why;
                    }
                }
            }
        };
        tracing::debug!(conn = self.conn.0, why, "agent link closed");
        self.exchanges.abort(self.conn);
    }

    async fn take(&mut self, data: &[u8]) -> Result<(), String> {
        self.decoder.push(data);
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
