//! A stream of events: RecordIO on the body of one long answer, each record a message.

use std::marker::PhantomData;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use tepui_proto::Wire;
use tepui_proto::recordio::Decoder;

use crate::endpoint::Endpoint;
use crate::fault::Fault;
use crate::format::{Format, MESSAGE_BYTES_MAX};

/// Events of type `E`. Dropping it closes its connection.
#[derive(Debug)]
pub struct EventStream<E> {
    peer: String,
    format: Format,
    body: Incoming,
    decoder: Decoder,
    event: PhantomData<fn() -> E>,
}

impl<E: Wire + Default> EventStream<E> {
    pub(crate) fn new(peer: &Endpoint, format: Format, body: Incoming) -> Self {
        let decoder = Decoder::new(MESSAGE_BYTES_MAX);
        Self { peer: peer.to_string(), format, body, decoder, event: PhantomData }
    }

    /// The next event; `None` when the peer has closed the stream. Safe to abandon between events.
    pub async fn next(&mut self) -> Result<Option<E>, Fault> {
        loop {
            if let Some(record) = self.decoder.next() {
                let record = record.map_err(|err| self.unreadable(err.to_string()))?;
                return self.format.decode(&record).map(Some).map_err(|why| self.unreadable(why));
            }
            match self.body.frame().await {
                Some(Ok(frame)) => {
                    if let Some(chunk) = frame.data_ref() {
                        self.decoder.push(chunk);
                    }
                }
                Some(Err(err)) => return Err(Fault::Broken { peer: self.peer.clone(), err }),
                None => return Ok(None),
            }
        }
    }

    fn unreadable(&self, why: String) -> Fault {
        Fault::Unreadable { peer: self.peer.clone(), why }
    }
}
