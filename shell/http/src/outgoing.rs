//! The body of a request that is a stream of messages: how we speak to a peer that answers on the same exchange.

use std::sync::Arc;
use std::time::Instant;

use tepui_proto::{Wire, recordio};

use crate::body::Body;
use crate::queue::{Queue, StreamBody, StreamLimits};

/// The speaking end. Dropping it ends the stream after what was said.
#[derive(Debug)]
pub struct Outgoing {
    queue: Arc<Queue>,
}

impl Outgoing {
    pub fn new(limits: StreamLimits) -> (Self, Body) {
        let queue = Arc::new(Queue::new(limits, false));
        let body = Body::Stream(StreamBody::new(queue.clone(), Box::new(())));
        (Self { queue }, body)
    }

    /// Appends a message in binary form; false if the peer reads too slowly, which ends the stream.
    pub fn push<M: Wire>(&self, message: &M) -> bool {
        let record = recordio::encode(&tepui_proto::wire::encode(message));
        self.queue.push(record.into(), Instant::now()).is_ok()
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        self.queue.finish();
    }
}
