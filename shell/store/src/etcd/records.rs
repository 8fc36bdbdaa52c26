//! The records of the leader: read after it was elected, written under the fence of its leadership.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tepui_fsm::Write;
use tokio::runtime;

use super::client::{bytes, number, range_end, read_bytes};
use super::{Etcd, EtcdFault, JOURNAL, Leadership, RECORDS, journal};
use crate::{Room, StoreFault};

/// Operations in one transaction; by default etcd rejects more than 128.
const TRANSACTION_WRITES_MAX: usize = 100;

/// Bytes of keys and values in one transaction; etcd refuses requests of more than 1.5 MiB.
const TRANSACTION_BYTES_MAX: usize = 1024 * 1024;

/// Records read at once.
const PAGE_RECORDS: usize = 1000;

/// Below the journal's prefix: written last, after all parts.
const JOURNAL_COMPLETE: &str = "complete";

/// The registry in etcd, for one term of one leader.
#[derive(Debug)]
pub struct EtcdRecords {
    etcd: Etcd,
    leadership: Leadership,
    /// Where requests run; callers block.
    runtime: runtime::Handle,
    /// The last observed state.
    room: Room,
}

/// An etcd without an alarm: how much room it has is not known.
const ENOUGH: Room =
    Room { is_short: false, available_bytes: u64::MAX, reserve_bytes: 0, reserve_used_bytes: 0 };

/// The room according to the status of a member. An alarm is known to all members and blocks all writes.
pub(super) fn room(status: &Value) -> Room {
    let mut alarms = status["errors"].as_array().into_iter().flatten().filter_map(Value::as_str);
    match alarms.any(|alarm| alarm.contains("NOSPACE")) {
        true => Room { is_short: true, available_bytes: 0, ..ENOUGH },
        false => ENOUGH,
    }
}

/// What became of a transaction.
enum Outcome {
    Done,
    /// Another master leads.
    Deposed,
}

impl EtcdRecords {
    /// Must be called inside a tokio runtime.
    pub fn new(etcd: Etcd, leadership: Leadership) -> Self {
        Self { etcd, leadership, runtime: runtime::Handle::current(), room: ENOUGH }
    }

    /// Checks etcd for a NOSPACE alarm; returns the last observed state if no member answers. Blocks.
    pub(crate) fn measure_room(&mut self) -> Room {
        let asked = self.runtime.block_on(self.etcd.call("maintenance/status", &json!({})));
        if let Ok(status) = asked {
            self.room = room(&status);
        }
        self.room
    }

    /// All records. Blocks.
    pub(crate) fn load(&self) -> Result<Vec<(String, Vec<u8>)>, StoreFault> {
        self.runtime.block_on(async {
            self.finish_journal().await?;
            self.range(RECORDS).await
        })
    }

    /// Commits atomically. Blocks.
    pub(crate) fn commit(&self, writes: &[Write]) -> Result<(), StoreFault> {
        // A transaction may name a key only once; the last write of it counts.
        let last: BTreeMap<&str, &Write> = writes.iter().map(|write| (write.key.as_str(), write)).collect();
        let last: Vec<&Write> = last.into_values().collect();
        self.runtime.block_on(async {
            match fits(&last) {
                true => self.apply(&last).await,
                false => self.apply_by_journal(&last).await,
            }
        })
    }

    async fn apply_by_journal(&self, writes: &[&Write]) -> Result<(), StoreFault> {
        let text = journal::encode(writes.iter().copied());
        for (index, part) in text.chunks(TRANSACTION_BYTES_MAX).enumerate() {
            self.transact(vec![self.put(JOURNAL, &format!("part/{index:08}"), part)]).await?;
        }
        self.transact(vec![self.put(JOURNAL, JOURNAL_COMPLETE, b"1")]).await?;
        self.apply(writes).await?;
        self.transact(vec![self.delete_all(JOURNAL)]).await
    }

    /// Completes a journal of an earlier leader, or discards one that was not stored completely.
    async fn finish_journal(&self) -> Result<(), StoreFault> {
        let found = self.range(JOURNAL).await?;
        if found.is_empty() {
            return Ok(());
        }
        if found.iter().any(|(name, _)| name == JOURNAL_COMPLETE) {
            let parts = found.iter().filter(|(name, _)| name.starts_with("part/"));
            let text: Vec<u8> = parts.flat_map(|(_, part)| part.clone()).collect();
            let writes = journal::decode(&text).ok_or_else(|| StoreFault::Etcd {
                what: "its journal of a large commit is invalid".to_owned(),
            })?;
            self.apply(&writes.iter().collect::<Vec<_>>()).await?;
        }
        self.transact(vec![self.delete_all(JOURNAL)]).await
    }

    /// In as few transactions as possible. They may be repeated: only the leader writes.
    async fn apply(&self, writes: &[&Write]) -> Result<(), StoreFault> {
        let mut rest = writes;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(fitting(rest));
            let operations = now.iter().map(|write| match &write.value {
                Some(value) => self.put(RECORDS, &write.key, value),
                None => json!({"request_delete_range": {"key": self.key(RECORDS, &write.key)}}),
            });
            self.transact(operations.collect()).await?;
            rest = later;
        }
        Ok(())
    }

    async fn transact(&self, operations: Vec<Value>) -> Result<(), StoreFault> {
        let body = json!({"compare": [self.leadership.fence()], "success": operations});
        let answer = self.etcd.call("kv/txn", &body).await.map_err(StoreFault::etcd)?;
        let outcome = if answer["succeeded"] == true { Outcome::Done } else { Outcome::Deposed };
        match outcome {
            Outcome::Done => Ok(()),
            Outcome::Deposed => {
                self.leadership.lose();
                Err(StoreFault::Deposed)
            }
        }
    }

    /// Everything below a part of the prefix, as of one moment.
    async fn range(&self, part: &str) -> Result<Vec<(String, Vec<u8>)>, StoreFault> {
        let prefix = self.etcd.address().key(part);
        let end = range_end(&prefix);
        let (mut from, mut revision, mut all) = (prefix.clone(), 0, Vec::new());
        loop {
            let body = json!({
                "key": bytes(&from),
                "range_end": bytes(&end),
                "limit": PAGE_RECORDS.to_string(),
                "revision": revision.to_string(),
            });
            let answer = self.etcd.call("kv/range", &body).await.map_err(StoreFault::etcd)?;
            if revision == 0 {
                revision = number(&answer["header"]["revision"]);
            }
            for found in answer["kvs"].as_array().into_iter().flatten() {
                let key = read_bytes(&found["key"]).map_err(StoreFault::etcd)?;
                let name = String::from_utf8_lossy(key.strip_prefix(&*prefix).unwrap_or(&key)).into_owned();
                all.push((name, read_bytes(&found["value"]).map_err(StoreFault::etcd)?));
                from = [&*key, b"\0"].concat();
            }
            if answer["more"] != true {
                return Ok(all);
            }
        }
    }

    fn key(&self, part: &str, name: &str) -> Value {
        bytes(&self.etcd.address().key(&format!("{part}{name}")))
    }

    fn put(&self, part: &str, name: &str, value: &[u8]) -> Value {
        json!({"request_put": {"key": self.key(part, name), "value": bytes(value)}})
    }

    fn delete_all(&self, part: &str) -> Value {
        let prefix = self.etcd.address().key(part);
        json!({"request_delete_range": {"key": bytes(&prefix), "range_end": bytes(&range_end(&prefix))}})
    }
}

impl StoreFault {
    pub(crate) fn etcd(fault: EtcdFault) -> Self {
        match fault {
            EtcdFault::Unavailable(what) => StoreFault::Unavailable { what },
            EtcdFault::Refused(what) => StoreFault::Etcd { what },
        }
    }
}

fn fits(writes: &[&Write]) -> bool {
    fitting(writes) == writes.len()
}

/// How many of the first writes one transaction takes; at least one.
fn fitting(writes: &[&Write]) -> usize {
    let mut bytes = 0;
    let size = |write: &Write| write.key.len() + write.value.as_ref().map_or(0, Vec::len);
    let within = writes.iter().take(TRANSACTION_WRITES_MAX).take_while(|write| {
        bytes += size(write);
        bytes <= TRANSACTION_BYTES_MAX
    });
    within.count().max(1).min(writes.len())
}
