//! Exchanges: requests that a machine answers, and the event streams that some of them become.
//!
//! A handler begins an exchange, which gives it a `ConnId`, sends an input to the machine, and waits. The machine's
//! effects come back by `ConnId`: an answer, or the opening of a stream and then its records. When the peer
//! disconnects first, or is too slow, or its connection breaks, the end is reported exactly once through [`Ended`];
//! the end of an exchange by the machine itself is not reported.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Debug;
use std::hash::Hash;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Instant;

use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use tepui_proto::{Wire, recordio};
use tepui_types::{Answer, ConnId};
use tokio::sync::{mpsc, oneshot};

use crate::body::Body;
use crate::connection::Disconnect;
use crate::principal::Principal;
use crate::queue::{Batch, Lag, Queue, StreamBody, StreamLimits};
use crate::rendition::Rendition;
use crate::respond::{Response, accepted, empty, message};
use crate::{Encoding, HttpError, Request};

/// An exchange that ended from the outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended<K> {
    pub conn: ConnId,
    pub kind: K,
}

/// All exchanges of one program. A cheap clone. `K` is the purpose of an exchange.
#[derive(Debug)]
pub struct Exchanges<K> {
    shared: Arc<Shared<K>>,
}

#[derive(Debug)]
struct Shared<K> {
    limits: StreamLimits,
    next_conn: AtomicU64,
    entries: Mutex<Entries<K>>,
    /// Unbounded, because a destructor cannot wait; at most one message per open exchange.
    ended: mpsc::UnboundedSender<Ended<K>>,
}

#[derive(Debug)]
struct Entries<K> {
    by_conn: HashMap<ConnId, Entry<K>>,
    streams: HashMap<K, BTreeSet<ConnId>>,
}

#[derive(Debug)]
struct Entry<K> {
    kind: K,
    encoding: Encoding,
    stage: Stage,
    disconnect: Disconnect,
    principal: Option<Principal>,
    peer: SocketAddr,
}

#[derive(Debug)]
enum Stage {
    Waiting(oneshot::Sender<Response>),
    Streaming(Arc<Queue>),
}

/// Events that many streams get: encoded once for each encoding that one of these has.
#[derive(Debug, Default)]
pub struct EncodedOnce {
    json: OnceLock<Batch>,
    protobuf: OnceLock<Batch>,
}

impl EncodedOnce {
    fn get<M: Wire>(&self, encoding: Encoding, events: &[&M]) -> Batch {
        let encoded = match encoding {
            Encoding::Json => &self.json,
            Encoding::Protobuf => &self.protobuf,
        };
        encoded.get_or_init(|| batch(encoding, events)).clone()
    }
}

/// Events of one turn for many streams: each stream gets all of its own with one wake.
#[derive(Debug, Default)]
pub struct Pushes(HashMap<ConnId, Option<Pushed>>);

#[derive(Debug)]
struct Pushed {
    encoding: Encoding,
    queue: Arc<Queue>,
    /// Events with chunks of their own.
    batches: Vec<Batch>,
    /// Events that share a chunk.
    joined: Vec<u8>,
    joined_events: usize,
}

/// One exchange as its handler sees it. Dropping it without an answer means that the peer went away.
#[derive(Debug)]
pub struct Exchange<K: Kind> {
    pub conn: ConnId,
    answer: oneshot::Receiver<Response>,
    guard: Guard<K>,
}

/// What an exchange can be for.
pub trait Kind: Copy + Debug + Eq + Hash + Send + Sync + 'static {}
impl<K: Copy + Debug + Eq + Hash + Send + Sync + 'static> Kind for K {}

impl<K: Kind> Exchanges<K> {
    /// The receiver gets every exchange that ended from the outside.
    pub fn new(limits: StreamLimits) -> (Self, mpsc::UnboundedReceiver<Ended<K>>) {
        let (ended, receiver) = mpsc::unbounded_channel();
        let entries = Entries { by_conn: HashMap::new(), streams: HashMap::new() };
        let shared = Shared { limits, next_conn: AtomicU64::new(1), entries: Mutex::new(entries), ended };
        (Self { shared: Arc::new(shared) }, receiver)
    }

    /// Begins an exchange for a request; its answer or stream will be in `encoding`.
    pub fn begin(&self, kind: K, encoding: Encoding, request: &Request) -> Exchange<K> {
        let conn = ConnId(self.shared.next_conn.fetch_add(1, Ordering::Relaxed));
        let (sender, answer) = oneshot::channel();
        let stage = Stage::Waiting(sender);
        let (disconnect, principal) = (request.disconnect.clone(), request.principal.clone());
        let entry = Entry { kind, encoding, stage, disconnect, principal, peer: request.peer };
        self.shared.lock().by_conn.insert(conn, entry);
        let guard = Guard { armed: true, conn, shared: self.shared.clone() };
        Exchange { conn, answer, guard }
    }

    /// Answers and ends an exchange. Nothing happens if the peer is gone.
    pub fn answer(&self, conn: ConnId, response: impl FnOnce(Encoding) -> Response) {
        let Some(entry) = self.shared.remove(conn) else { return };
        if let Stage::Waiting(sender) = entry.stage {
            // The peer disconnected at this very moment: no reader is left.
            let _ = sender.send(response(entry.encoding));
        }
    }

    /// As `answer`, with what a machine decided.
    pub fn reply<M: Wire>(&self, conn: ConnId, answer: Answer<M>) {
        self.answer(conn, |encoding| match answer {
            Answer::Accepted => accepted(),
            Answer::Ok => empty(StatusCode::OK),
            Answer::NoContent => empty(StatusCode::NO_CONTENT),
            Answer::Body(body) => message(encoding, &*body),
            Answer::Refused(rejection) => HttpError::from(&rejection).into(),
        });
    }

    /// Answers an exchange with 200 and a stream.
    pub fn open(&self, conn: ConnId, headers: &[(HeaderName, HeaderValue)]) {
        self.open_stream(conn, headers, false);
    }

    /// As `open`, but nothing is sent before the first record; what is pushed meanwhile comes after it.
    pub fn open_held(&self, conn: ConnId) -> Option<Held> {
        let (encoding, queue) = self.open_stream(conn, &[], true)?;
        Some(Held { conn, encoding, queue })
    }

    /// Appends an event to a stream. A subscriber that is too far behind is disconnected.
    pub fn push<M: Wire>(&self, conn: ConnId, event: &M) {
        self.push_all(&[conn], &[event], |_| None);
    }

    /// Appends an event to a stream when the others are there too ([`flush`](Self::flush)), in a chunk of its own.
    pub fn collect<M: Wire>(&self, pushes: &mut Pushes, conn: ConnId, event: &M) {
        if let Some(pushed) = self.pushed(pushes, conn) {
            pushed.batches.push(batch(pushed.encoding, &[event]));
        }
    }

    /// As [`collect`](Self::collect), in one chunk with the other events.
    pub fn collect_joined<M: Wire>(&self, pushes: &mut Pushes, conn: ConnId, event: &M) {
        if let Some(pushed) = self.pushed(pushes, conn) {
            recordio::encode_into(&pushed.encoding.encode(event), &mut pushed.joined);
            pushed.joined_events += 1;
        }
    }

    fn pushed<'p>(&self, pushes: &'p mut Pushes, conn: ConnId) -> Option<&'p mut Pushed> {
        let pushed = pushes.0.entry(conn).or_insert_with(|| {
            let (encoding, queue) = self.shared.stream(conn)?;
            Some(Pushed { encoding, queue, batches: Vec::new(), joined: Vec::new(), joined_events: 0 })
        });
        pushed.as_mut()
    }

    /// Appends what was collected. A subscriber that is too far behind is disconnected.
    pub fn flush(&self, pushes: &mut Pushes) {
        let now = Instant::now();
        for (conn, pushed) in pushes.0.drain() {
            let Some(Pushed { queue, batches, joined, joined_events: events, .. }) = pushed else { continue };
            let joined = (events > 0).then(|| Batch { bytes: joined.into(), events });
            if let Err(lag) = queue.push_batches(batches.into_iter().chain(joined), now, |_| None) {
                self.shared.drop_slow(conn, lag);
            }
        }
    }

    /// Appends events to streams. A subscriber that is too far behind is dropped; the event that `farewell` makes is the last
    /// it gets.
    pub fn push_all<M: Wire>(&self, conns: &[ConnId], events: &[&M], farewell: impl Fn(Lag) -> Option<M>) {
        self.push_encoded(conns, &EncodedOnce::default(), events, farewell);
    }

    /// As `push_all`, for streams that get the same events in several calls: `encoded` belongs to these events.
    pub fn push_encoded<M: Wire>(
        &self,
        conns: &[ConnId],
        encoded: &EncodedOnce,
        events: &[&M],
        farewell: impl Fn(Lag) -> Option<M>,
    ) {
        for conn in conns {
            let Some((encoding, queue)) = self.shared.stream(*conn) else { continue };
            let batch = encoded.get(encoding, events);
            let last = |lag| farewell(lag).map(|event| self::batch(encoding, &[&event]).bytes);
            if let Err(lag) = queue.push_batch(batch, Instant::now(), last) {
                self.shared.drop_slow(*conn, lag);
            }
        }
    }

    /// Drops streams whatever they have been sent: each gets the event that `farewell` makes, and ends.
    pub fn drop_all<M: Wire>(&self, conns: &[ConnId], farewell: impl Fn(Lag) -> M) {
        for conn in conns {
            let Some((encoding, queue)) = self.shared.stream(*conn) else { continue };
            let lag = queue.end_with(|lag| Some(batch(encoding, &[&farewell(lag)]).bytes));
            self.shared.drop_slow(*conn, lag);
        }
    }

    /// Every stream of a kind, with the principal that reads it.
    pub fn subscribers(&self, kind: K) -> Vec<(ConnId, Option<Principal>)> {
        let entries = self.shared.lock();
        let conns = entries.streams.get(&kind).into_iter().flatten();
        let subscriber = |conn: &ConnId| Some((*conn, entries.by_conn.get(conn)?.principal.clone()));
        conns.filter_map(subscriber).collect()
    }

    /// The principal of an exchange.
    pub fn principal(&self, conn: ConnId) -> Option<Principal> {
        self.shared.lock().by_conn.get(&conn).and_then(|entry| entry.principal.clone())
    }

    /// The address and the principal of an exchange.
    pub fn origin(&self, conn: ConnId) -> Option<(SocketAddr, Option<Principal>)> {
        self.shared.lock().by_conn.get(&conn).map(|entry| (entry.peer, entry.principal.clone()))
    }

    /// How many streams of a kind there are.
    pub fn streams(&self, kind: K) -> usize {
        self.shared.lock().streams.get(&kind).map_or(0, BTreeSet::len)
    }

    /// How many requests wait for an answer.
    pub fn waiting(&self) -> usize {
        let entries = self.shared.lock();
        entries.by_conn.len() - entries.streams.values().map(BTreeSet::len).sum::<usize>()
    }

    /// Ends a stream after everything pushed to it.
    pub fn close(&self, conn: ConnId) {
        if let Some(entry) = self.shared.remove(conn) {
            match entry.stage {
                Stage::Streaming(queue) => queue.finish(),
                Stage::Waiting(_) => (),
            }
        }
    }

    /// Ends an exchange now, because its connection is of no use any more, and reports it.
    pub fn abort(&self, conn: ConnId) {
        self.shared.end_from_outside(conn);
    }

    /// Ends every stream after its queued records and leaves every waiting request without an answer. For the end of
    /// the program; not reported.
    pub fn close_all(&self) {
        let conns: Vec<ConnId> = self.shared.lock().by_conn.keys().copied().collect();
        conns.into_iter().for_each(|conn| self.close(conn));
    }

    fn open_stream(
        &self,
        conn: ConnId,
        headers: &[(HeaderName, HeaderValue)],
        held: bool,
    ) -> Option<(Encoding, Arc<Queue>)> {
        let queue = Arc::new(Queue::new(self.shared.limits, held));
        let (sender, encoding) = self.shared.begin_stream(conn, &queue)?;
        let guard = Guard { armed: true, conn, shared: self.shared.clone() };
        let mut response = Response::new(Body::Stream(StreamBody::new(queue.clone(), Box::new(guard))));
        *response.status_mut() = StatusCode::OK;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(encoding.name()));
        response.headers_mut().extend(headers.iter().cloned());
        // If the handler is gone, the body is dropped here and reports the end.
        let _ = sender.send(response);
        Some((encoding, queue))
    }
}

impl<K> Clone for Exchanges<K> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<K: Kind> Exchange<K> {
    /// Waits for what the machine answers.
    pub async fn answered(mut self) -> Response {
        match (&mut self.answer).await {
            Ok(response) => {
                // An answer has ended the exchange already; a stream has a guard of its own.
                self.guard.armed = false;
                response
            }
            Err(_) => HttpError::unavailable("This process is stopping, or leads no longer").into(),
        }
    }
}

/// A stream that waits for its first record. Dropping it without one breaks the stream off.
#[derive(Debug)]
pub struct Held {
    pub conn: ConnId,
    pub encoding: Encoding,
    queue: Arc<Queue>,
}

impl Held {
    /// Lets the stream go, also if it was closed meanwhile: then it ends after what was pushed before that.
    pub fn start_with(self, first: &Arc<Rendition>) {
        if !first.is_broken() {
            self.queue.start_with(first);
        }
    }

    /// Forgets what was pushed: the first record will be newer than that.
    pub fn restart(&self) {
        self.queue.restart();
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.queue.give_up();
    }
}

/// Reports the end when it is dropped.
#[derive(Debug)]
struct Guard<K: Kind> {
    armed: bool,
    conn: ConnId,
    shared: Arc<Shared<K>>,
}

impl<K: Kind> Drop for Guard<K> {
    fn drop(&mut self) {
        if self.armed {
            self.shared.end_from_outside(self.conn);
        }
    }
}

impl<K: Kind> Shared<K> {
    /// Turns a waiting exchange into a stream.
    fn begin_stream(
        &self,
        conn: ConnId,
        queue: &Arc<Queue>,
    ) -> Option<(oneshot::Sender<Response>, Encoding)> {
        let mut entries = self.lock();
        let entry = entries.by_conn.get_mut(&conn)?;
        let (kind, encoding) = (entry.kind, entry.encoding);
        match std::mem::replace(&mut entry.stage, Stage::Streaming(queue.clone())) {
            Stage::Waiting(sender) => {
                entries.streams.entry(kind).or_default().insert(conn);
                Some((sender, encoding))
            }
            Stage::Streaming(open) => {
                entry.stage = Stage::Streaming(open);
                None
            }
        }
    }

    fn stream(&self, conn: ConnId) -> Option<(Encoding, Arc<Queue>)> {
        let entries = self.lock();
        let entry = entries.by_conn.get(&conn)?;
        match &entry.stage {
            Stage::Streaming(queue) => Some((entry.encoding, queue.clone())),
            Stage::Waiting(_) => None,
        }
    }

    /// Ends the exchange of a subscriber that fell behind. Its connection may still take the last record.
    fn drop_slow(&self, conn: ConnId, lag: Lag) {
        let Some(entry) = self.remove(conn) else { return };
        let Lag { events, bytes } = lag;
        tracing::warn!(conn = conn.0, kind = ?entry.kind, events, bytes, "subscriber dropped: too far behind");
        self.finish(conn, &entry);
    }

    /// Ends an exchange that the machine did not end, and reports it.
    fn end_from_outside(&self, conn: ConnId) {
        let Some(entry) = self.remove(conn) else { return };
        if let Stage::Streaming(queue) = &entry.stage {
            queue.break_off();
        }
        self.finish(conn, &entry);
    }

    fn finish(&self, conn: ConnId, entry: &Entry<K>) {
        // Not if its queue still has a last record for it: then the connection ends after that, or by its write timeout.
        if !matches!(&entry.stage, Stage::Streaming(queue) if queue.is_finished()) {
            entry.disconnect.now();
        }
        // The receiver is dropped when the program stops; then no report is needed.
        let _ = self.ended.send(Ended { conn, kind: entry.kind });
    }

    /// Takes an exchange out; nothing else can end it after that.
    fn remove(&self, conn: ConnId) -> Option<Entry<K>> {
        let mut entries = self.lock();
        let entry = entries.by_conn.remove(&conn)?;
        if let Some(streams) = entries.streams.get_mut(&entry.kind) {
            streams.remove(&conn);
        }
        Some(entry)
    }

    fn lock(&self) -> MutexGuard<'_, Entries<K>> {
        self.entries.lock().expect("no code panics while it holds this lock")
    }
}

fn batch<M: Wire>(encoding: Encoding, events: &[&M]) -> Batch {
    let mut bytes = Vec::new();
    for event in events {
        recordio::encode_into(&encoding.encode(*event), &mut bytes);
    }
    Batch { bytes: bytes.into(), events: events.len() }
}
