//! A connection as its requests and exchanges see it: its addresses, and the means to cut it off.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::sync::Notify;

/// The two addresses of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    pub peer: SocketAddr,
    pub local: SocketAddr,
}

/// Cuts one connection off, whatever it is doing. A cheap clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disconnect(Arc<Notify>);

impl Disconnect {
    pub fn now(&self) {
        self.0.notify_one();
    }

    pub async fn notified(&self) {
        self.0.notified().await;
    }
}
