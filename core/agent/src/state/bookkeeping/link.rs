//! The link to the master.

use core::time::Duration;

/// One attempt to connect to a master. Never reused, so that late messages of an old link are recognized.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkId(pub u64);

#[derive(Debug, Default)]
pub(crate) struct Link {
    /// The number of the newest link.
    pub(crate) newest: u64,
    /// Tries since the agent was last subscribed.
    pub(crate) tries: u32,
    pub(crate) stage: LinkStage,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum LinkStage {
    /// There is no link; a timer may be set to open one.
    #[default]
    Down,
    Opening,
    Subscribing,
    Subscribed {
        silence: Duration,
    },
}

impl Link {
    pub(crate) fn subscribed(&self) -> Option<LinkId> {
        matches!(self.stage, LinkStage::Subscribed { .. }).then_some(LinkId(self.newest))
    }

    /// The link on which SUBSCRIBE was sent, whether it is answered already or not.
    pub(crate) fn subscribing(&self) -> Option<LinkId> {
        let sent = matches!(self.stage, LinkStage::Subscribing | LinkStage::Subscribed { .. });
        sent.then_some(LinkId(self.newest))
    }

    pub(crate) fn is_current(&self, link: LinkId) -> bool {
        link.0 == self.newest && self.stage != LinkStage::Down
    }
}
