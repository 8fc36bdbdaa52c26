//! One task's status updates, from the moment they are taken in until the scheduler acknowledged them.
//!
//! Only the head is ever on its way to the master. Acknowledged updates are remembered for a while, so that an
//! executor which repeats them is recognised.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::Range;
use core::time::Duration;

use tepui_proto::mesos::v1 as pb;

/// How long an acknowledgement is waited for at first, and at most.
pub(crate) const RETRY_MIN: Duration = Duration::from_secs(10);
pub(crate) const RETRY_MAX: Duration = Duration::from_secs(600);

/// Beyond this many waiting updates a newer one takes the place of the newest that is not terminal: an executor that
/// reports without end while no master is there costs no more than this.
const PENDING_UPDATES_MAX: usize = 1000;

/// How many acknowledged updates are remembered.
const ACKNOWLEDGED_UPDATES_MAX: usize = 256;

#[derive(Clone, Debug)]
pub(crate) struct Stream {
    /// Numbers and uuids of what was acknowledged, oldest first.
    acknowledged: VecDeque<(u64, Vec<u8>)>,
    /// The head first.
    pending: VecDeque<(u64, pb::TaskStatus)>,
    next: u64,
    pub(crate) retry: Duration,
}

/// What a stream made of an acknowledgement.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Acknowledged {
    pub(crate) seq: u64,
    pub(crate) status: pb::TaskStatus,
    /// Numbers that need not be kept any longer.
    pub(crate) forgotten: Range<u64>,
}

impl Stream {
    pub(crate) fn new() -> Self {
        Self { acknowledged: VecDeque::new(), pending: VecDeque::new(), next: 0, retry: RETRY_MIN }
    }

    /// Whether this update was taken in before.
    pub(crate) fn contains(&self, uuid: &[u8]) -> bool {
        self.acknowledged.iter().any(|(_, known)| known == uuid)
            || self.pending.iter().any(|(_, status)| status.uuid.as_deref() == Some(uuid))
    }

    /// Takes an update in; its number.
    pub(crate) fn push(&mut self, status: pb::TaskStatus) -> u64 {
        if self.pending.len() >= PENDING_UPDATES_MAX
            && let Some((seq, newest)) = self.pending.back_mut()
        {
            *newest = status;
            return *seq;
        }
        let seq = self.next;
        self.next += 1;
        self.pending.push_back((seq, status));
        seq
    }

    /// Puts an update back that was recorded before a restart; numbers come in order.
    pub(crate) fn restore(&mut self, seq: u64, status: pb::TaskStatus, acknowledged: bool) {
        if acknowledged {
            self.acknowledged.push_back((seq, status.uuid.unwrap_or_default()));
        } else {
            self.pending.push_back((seq, status));
        }
        self.next = seq + 1;
    }

    pub(crate) fn head(&self) -> Option<&pb::TaskStatus> {
        self.pending.front().map(|(_, status)| status)
    }

    pub(crate) fn newest(&self) -> Option<&pb::TaskStatus> {
        self.pending.back().map(|(_, status)| status)
    }

    /// Takes the head off if it is the one that is acknowledged.
    pub(crate) fn acknowledge(&mut self, uuid: &[u8]) -> Option<Acknowledged> {
        if self.head()?.uuid.as_deref() != Some(uuid) {
            return None;
        }
        let (seq, status) = self.pending.pop_front()?;
        self.acknowledged.push_back((seq, uuid.into()));
        let first = self.first();
        while self.acknowledged.len() > ACKNOWLEDGED_UPDATES_MAX {
            self.acknowledged.pop_front();
        }
        self.retry = RETRY_MIN;
        Some(Acknowledged { seq, status, forgotten: first..self.first() })
    }

    /// All numbers that are still kept.
    pub(crate) fn kept(&self) -> Range<u64> {
        self.first()..self.next
    }

    fn first(&self) -> u64 {
        let oldest = self.acknowledged.front().map(|(seq, _)| *seq);
        oldest.or_else(|| self.pending.front().map(|(seq, _)| *seq)).unwrap_or(self.next)
    }

    pub(crate) fn back_off(&mut self) {
        self.retry = (self.retry * 2).min(RETRY_MAX);
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    fn status(uuid: u64) -> pb::TaskStatus {
        pb::TaskStatus { uuid: Some(uuid.to_be_bytes().into()), ..Default::default() }
    }

    #[test]
    fn only_the_head_is_acknowledged_and_once() {
        let mut stream = Stream::new();
        assert_eq!(vec![stream.push(status(1)), stream.push(status(2))], vec![0, 1]);
        assert_eq!(stream.acknowledge(&2u64.to_be_bytes()), None);
        assert_eq!(stream.acknowledge(&1u64.to_be_bytes()).map(|done| done.seq), Some(0));
        assert_eq!(stream.acknowledge(&1u64.to_be_bytes()), None);
        assert!(stream.contains(&1u64.to_be_bytes()) && stream.contains(&2u64.to_be_bytes()));
        assert!(!stream.contains(&3u64.to_be_bytes()));
        assert_eq!(stream.kept(), 0..2);
    }

    #[test]
    fn pending_updates_are_bounded_and_the_newest_is_kept() {
        let mut stream = Stream::new();
        for uuid in 0..5000 {
            stream.push(status(uuid));
        }
        assert_eq!(stream.kept(), 0..PENDING_UPDATES_MAX as u64);
        assert_eq!(stream.newest(), Some(&status(4999)));
        assert_eq!(stream.head(), Some(&status(0)));
    }

    #[test]
    fn old_acknowledgements_are_removed() {
        let mut stream = Stream::new();
        let mut forgotten = 0;
        for uuid in 0..1000u64 {
            stream.push(status(uuid));
            let done = stream.acknowledge(&uuid.to_be_bytes()).expect("it is the head");
            assert_eq!(done.forgotten.start, forgotten);
            forgotten = done.forgotten.end;
        }
        assert_eq!(stream.kept(), 1000 - ACKNOWLEDGED_UPDATES_MAX as u64..1000);
    }

    #[test]
    fn retry_delay_doubles_to_its_limit() {
        let mut stream = Stream::new();
        let mut seen = vec![];
        for _ in 0..8 {
            seen.push(stream.retry.as_secs());
            stream.back_off();
        }
        assert_eq!(seen, [10, 20, 40, 80, 160, 320, 600, 600]);
    }
}
