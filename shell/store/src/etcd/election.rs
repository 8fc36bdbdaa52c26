//! Leader election: one key, created by the first candidate that finds it absent, bound to a lease.
//!
//! A leader renews its lease and acts as leader only until the last renewal expires by its own clock: a process that was
//! paused detects at once that it may have been replaced. Leadership that expired once is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::client::{bytes, number, read_bytes, unavailable};
use super::{Etcd, EtcdFault, LEADER};

/// Between tries while etcd is away.
const RETRY_PAUSE: Duration = Duration::from_millis(200);

/// The largest line of a watch that is read.
const WATCH_BYTES_MAX: usize = 1024 * 1024;

/// A master that would lead.
#[derive(Debug)]
pub struct Candidate {
    etcd: Etcd,
    lease_time: Duration,
    /// The value of the leader's key: the description of this master.
    introduction: Vec<u8>,
}

/// What a candidate observes while it waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Observed {
    /// The description of the current leader.
    Leader(Vec<u8>),
    NoLeader,
    /// The leader cannot be determined.
    Unknown(String),
}

/// The leadership of this master. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Leadership {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    etcd: Etcd,
    lease: i64,
    lease_time: Duration,
    /// The revision at which the leader's key was created: the fencing token of writes.
    revision: i64,
    began: Instant,
    /// Milliseconds after `began` until which this master may trust that it leads.
    trusted_ms: AtomicU64,
    lost: AtomicBool,
    loss: watch::Sender<bool>,
}

impl Candidate {
    pub fn new(etcd: Etcd, lease_time: Duration, introduction: Vec<u8>) -> Self {
        Self { etcd, lease_time, introduction }
    }

    /// Waits until this master leads. `observe` receives the changes meanwhile.
    pub async fn campaign(&self, mut observe: impl FnMut(Observed)) -> Leadership {
        loop {
            match self.try_once(&mut observe).await {
                Ok(Some(leadership)) => return leadership,
                Ok(None) => (),
                Err(fault) => {
                    observe(Observed::Unknown(fault.to_string()));
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
            }
        }
    }

    async fn try_once(&self, observe: &mut impl FnMut(Observed)) -> Result<Option<Leadership>, EtcdFault> {
        if let Some(leader) = self.etcd.leader_key().await? {
            observe(Observed::Leader(leader.value));
            let left = self.etcd.key_deleted(LEADER, leader.revision + 1);
            // Looked at anew from time to time, in case the watch died silently.
            let _ = tokio::time::timeout(self.lease_time, left).await;
            return Ok(None);
        }
        observe(Observed::NoLeader);
        self.take_seat().await
    }

    async fn take_seat(&self) -> Result<Option<Leadership>, EtcdFault> {
        let asked = Instant::now();
        let seconds = self.lease_time.as_secs().max(1);
        let granted = self.etcd.call("lease/grant", &json!({"TTL": seconds.to_string()})).await?;
        let lease = number(&granted["ID"]);
        let lease_time = Duration::from_secs(number(&granted["TTL"]).unsigned_abs());
        let key = bytes(&self.etcd.address().key(LEADER));
        let put = json!({"request_put": {"key": key, "value": bytes(&self.introduction), "lease": lease.to_string()}});
        let absent = json!({"key": key, "target": "CREATE", "result": "EQUAL", "create_revision": "0"});
        let answer = self.etcd.call("kv/txn", &json!({"compare": [absent], "success": [put]})).await?;
        if answer["succeeded"] != true {
            self.etcd.revoke(lease).await;
            return Ok(None);
        }
        let revision = number(&answer["header"]["revision"]);
        let leadership = Leadership::new(self.etcd.clone(), lease, lease_time, revision);
        leadership.renewed(asked);
        Ok(Some(leadership))
    }
}

impl Leadership {
    fn new(etcd: Etcd, lease: i64, lease_time: Duration, revision: i64) -> Self {
        let shared = Shared {
            etcd,
            lease,
            lease_time,
            revision,
            began: Instant::now(),
            trusted_ms: AtomicU64::new(0),
            lost: AtomicBool::new(false),
            loss: watch::channel(false).0,
        };
        Self { shared: Arc::new(shared) }
    }

    /// Whether this master may still act as the leader. Never true again after it was false once.
    pub fn holds(&self) -> bool {
        let shared = &self.shared;
        let now_ms = shared.began.elapsed().as_millis() as u64;
        if now_ms > shared.trusted_ms.load(Ordering::Acquire) {
            self.lose();
        }
        !shared.lost.load(Ordering::Acquire)
    }

    fn trusted_for(&self) -> Duration {
        let until = Duration::from_millis(self.shared.trusted_ms.load(Ordering::Acquire) + 1);
        until.saturating_sub(self.shared.began.elapsed())
    }

    /// Renews the lease until the leadership is lost. Cancel safe.
    pub async fn keep(&self) {
        let mut loss = self.shared.loss.subscribe();
        let mut watching = std::pin::pin!(self.replaced());
        let pause = self.shared.lease_time / 3;
        while self.holds() {
            tokio::select! {
                _ = loss.wait_for(|lost| *lost) => return,
                () = watching.as_mut() => return self.lose(),
                // A renewal that hangs must not delay the expiry.
                () = tokio::time::sleep(self.trusted_for()) => (),
                () = async { self.renew().await; tokio::time::sleep(pause).await } => (),
            }
        }
    }

    /// Resigns, so that the next leader need not wait for the lease to expire.
    pub async fn resign(&self) {
        self.lose();
        self.shared.etcd.revoke(self.shared.lease).await;
    }

    /// What transactions must compare so that a deposed master cannot write.
    pub(super) fn fence(&self) -> Value {
        let key = bytes(&self.shared.etcd.address().key(LEADER));
        let revision = self.shared.revision.to_string();
        json!({"key": key, "target": "CREATE", "result": "EQUAL", "create_revision": revision})
    }

    pub(super) fn lose(&self) {
        self.shared.lost.store(true, Ordering::Release);
        self.shared.loss.send_replace(true);
    }

    async fn renew(&self) {
        let asked = Instant::now();
        let body = json!({"ID": self.shared.lease.to_string()});
        match self.shared.etcd.call("lease/keepalive", &body).await {
            Ok(answer) if number(&answer["result"]["TTL"]) > 0 => self.renewed(asked),
            Ok(_) | Err(EtcdFault::Refused(_)) => self.lose(),
            // Perhaps next time; until then the last renewal counts.
            Err(fault @ EtcdFault::Unavailable(_)) => {
                tracing::warn!(%fault, "cannot renew the leader's lease")
            }
        }
    }

    /// The lease counts from the request, less a tenth for clock drift.
    fn renewed(&self, asked: Instant) {
        let until = asked + self.shared.lease_time * 9 / 10;
        let ms = until.saturating_duration_since(self.shared.began).as_millis() as u64;
        self.shared.trusted_ms.fetch_max(ms, Ordering::AcqRel);
    }

    /// Ends when the leader's key is no longer ours.
    async fn replaced(&self) {
        let etcd = &self.shared.etcd;
        loop {
            etcd.key_deleted(LEADER, self.shared.revision + 1).await;
            match etcd.leader_key().await {
                Ok(Some(leader)) if leader.revision == self.shared.revision => (),
                Ok(_) => return,
                Err(_) => tokio::time::sleep(RETRY_PAUSE).await,
            }
        }
    }
}

pub(super) struct LeaderKey {
    revision: i64,
    value: Vec<u8>,
}

impl Etcd {
    /// The description of the leader; `None` without a leader.
    pub async fn leader(&self) -> Result<Option<Vec<u8>>, EtcdFault> {
        Ok(self.leader_key().await?.map(|leader| leader.value))
    }

    /// Returns once the leader is not the described one. Cancel safe.
    pub async fn leader_replaced(&self, said: &[u8]) {
        loop {
            match self.leader_key().await {
                Ok(Some(leader)) if leader.value == said => {
                    self.key_deleted(LEADER, leader.revision + 1).await
                }
                Ok(Some(_)) => return,
                // No leader, or etcd is unavailable: the old leader may still return.
                Ok(None) | Err(_) => tokio::time::sleep(RETRY_PAUSE).await,
            }
        }
    }

    pub(super) async fn leader_key(&self) -> Result<Option<LeaderKey>, EtcdFault> {
        let answer = self.call("kv/range", &json!({"key": bytes(&self.address().key(LEADER))})).await?;
        match answer["kvs"].get(0) {
            Some(found) => {
                let (revision, value) = (number(&found["create_revision"]), read_bytes(&found["value"])?);
                Ok(Some(LeaderKey { revision, value }))
            }
            None => Ok(None),
        }
    }

    /// Ends when the key is deleted at or after a revision, or when the watch breaks.
    async fn key_deleted(&self, name: &str, revision: i64) {
        let request = json!({"create_request": {
            "key": bytes(&self.address().key(name)),
            "start_revision": revision.to_string(),
            "filters": ["NOPUT"],
        }});
        if let Err(fault) = self.watch(&request).await {
            tracing::debug!(%fault, "watch on etcd closed");
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    }

    async fn watch(&self, request: &Value) -> Result<(), EtcdFault> {
        let mut body = self.open("watch", request).await?.into_body();
        let mut unread = Vec::new();
        while let Some(frame) = body.frame().await {
            unread.extend_from_slice(frame.map_err(unavailable)?.data_ref().unwrap_or(&bytes::Bytes::new()));
            while let Some(end) = unread.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = unread.drain(..=end).collect();
                let said: Value = serde_json::from_slice(&line).map_err(unavailable)?;
                let result = &said["result"];
                if result["events"].is_array() || result["canceled"] == true || said["error"].is_object() {
                    return Ok(());
                }
            }
            if unread.len() > WATCH_BYTES_MAX {
                return Err(unavailable("a watch message is too large"));
            }
        }
        Ok(())
    }

    /// Revokes a lease; without quorum it expires instead.
    async fn revoke(&self, lease: i64) {
        if let Err(fault) = self.call("lease/revoke", &json!({"ID": lease.to_string()})).await {
            tracing::debug!(%fault, "cannot revoke a lease; it expires by itself");
        }
    }
}
