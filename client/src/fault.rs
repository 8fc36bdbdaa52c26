//! What can go wrong between a client and its peer.

use std::time::Duration;

/// A failed exchange with a master or an agent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    #[error("cannot connect to {peer}")]
    Connect {
        peer: String,
        #[source]
        err: std::io::Error,
    },
    #[error("{peer} did not answer within {}", crate::duration::display(*.after))]
    Timeout { peer: String, after: Duration },
    #[error("the connection to {peer} broke")]
    Broken {
        peer: String,
        #[source]
        err: hyper::Error,
    },
    /// The call was sent and its answer did not come: it may have been carried out.
    #[error("the connection to {peer} was lost before the call was answered: {why}")]
    Lost { peer: String, why: String },
    /// The peer rejected the request: its status and text.
    #[error("{status}: {message}")]
    Refused { status: u16, message: String },
    /// A call while there is no subscription; it was not sent.
    #[error("not subscribed")]
    NotSubscribed,
    /// The session is over: torn down, failed over, or refused for good.
    #[error("the session has terminated")]
    Ended,
    #[error("cannot read what {peer} sent: {why}")]
    Unreadable { peer: String, why: String },
    #[error("{peer} sent more than {max} bytes")]
    TooLong { peer: String, max: usize },
    #[error("cannot build the request: {0}")]
    Request(#[from] http::Error),
}

impl Fault {
    /// Whether asking another master, or the same one later, may help.
    pub fn is_passing(&self) -> bool {
        match self {
            Fault::Connect { .. }
            | Fault::Timeout { .. }
            | Fault::Broken { .. }
            | Fault::Lost { .. }
            | Fault::NotSubscribed => true,
            Fault::Refused { status, .. } => matches!(status, 307 | 500..),
            Fault::Ended | Fault::Unreadable { .. } | Fault::TooLong { .. } | Fault::Request(_) => false,
        }
    }
}
