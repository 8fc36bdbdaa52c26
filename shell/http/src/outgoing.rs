//! A stream of messages to a peer: our direction of a link.

use std::sync::Arc;
use std::time::Instant;

use tepui_proto::{Wire, recordio};

use crate::queue::{Queue, StreamBody, StreamLimits};

/// The sending end. Dropping it ends the stream after the queued records.
#[derive(Debug)]
pub struct Outgoing {
    queue: Arc<Queue>,
}

impl Outgoing {
    pub fn new(limits: StreamLimits) -> (Self, StreamBody) {
        let queue = Arc::new(Queue::new(limits, false));
        let stream = StreamBody::new(queue.clone(), Box::new(()));
        (Self { queue }, stream)
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
