//! Subscribers of the operator event stream: each gets the state of one moment, then every event after it.
//!
//! The machine's thread appends to a bounded feed and never waits. One task takes all that is there, encodes it once and
//! appends it to the queue of each subscriber; the queues have limits of their own (`StreamLimits`). Subscribers are woken
//! one by one, and many of them in groups over the time of a delivery, so that other connections never wait behind several.
//! Order is kept: a subscriber's state is that of its place in the feed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tepui_authz::Authorizer;
use tepui_core_master::{State, event_seen};
use tepui_http::subject;
use tepui_http::{EncodedOnce, Encoding, Exchanges, Held, Lag, Principal, Renderings, Rendition, Viewers};
use tepui_proto::mesos::v1::master::{Event, event};
use tepui_types::ConnId;
use tokio::sync::Notify;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep_until};

use crate::documents::Key;
use crate::program::Kind;
use crate::read;

/// Events that wait to be delivered. With more, every subscriber is so far behind that all are dropped.
const FEED_EVENTS_MAX: usize = 64 * 1024;

/// Events of this time are delivered together: each delivery costs a system call for each subscriber.
const DELIVERY_INTERVAL: Duration = Duration::from_millis(50);

/// Events encoded at a time, so that the task does not hold its thread for long.
const BATCH_EVENTS_MAX: usize = 256;

/// Subscribers woken at once: at least so many, and so many groups over the time of a delivery.
const GROUP_SUBSCRIBERS_MIN: usize = 8;
const GROUPS_MAX: usize = 16;

/// What the machine has for subscribers.
#[derive(Debug)]
pub(crate) enum Item {
    /// A new subscriber, the state it starts with, and its first event.
    Subscribe {
        conn: ConnId,
        state: Box<State>,
        next: Arc<Event>,
    },
    /// For all subscribers that may view it, by the state; unset if there are no rules.
    Event {
        event: Arc<Event>,
        state: Option<Arc<State>>,
    },
    Unsubscribe {
        conn: ConnId,
    },
    /// These events will not be delivered: existing subscribers must subscribe again.
    Overflow {
        discarded: Vec<Item>,
    },
}

/// The machine's end. Dropping it ends the task after everything is delivered.
#[derive(Debug)]
pub(crate) struct Feed(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    pending: Mutex<Pending>,
    wake: Notify,
}

#[derive(Debug, Default)]
struct Pending {
    items: Vec<Item>,
    events: usize,
    is_closed: bool,
}

impl Feed {
    /// Appends an item. Never waits.
    pub fn push(&self, item: Item) {
        self.0.lock().push(item, FEED_EVENTS_MAX);
        self.0.wake.notify_one();
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.0.lock().is_closed = true;
        self.0.wake.notify_one();
    }
}

impl Pending {
    fn push(&mut self, item: Item, events_max: usize) {
        if matches!(item, Item::Event { .. }) {
            self.events += 1;
        }
        self.items.push(item);
        if self.events > events_max {
            let is_event = |item: &Item| matches!(item, Item::Event { .. });
            let (discarded, others) = std::mem::take(&mut self.items).into_iter().partition(is_event);
            (self.items, self.events) = (others, 0);
            self.items.push(Item::Overflow { discarded });
        }
    }
}

impl Shared {
    /// Everything that is there, as soon as there is something; none when there will be nothing more.
    async fn take(&self, not_before: Instant) -> Option<Vec<Item>> {
        sleep_until(not_before).await;
        loop {
            {
                let mut pending = self.lock();
                if !pending.items.is_empty() {
                    pending.events = 0;
                    return Some(std::mem::take(&mut pending.items));
                }
                if pending.is_closed {
                    return None;
                }
            }
            self.wake.notified().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().expect("no code panics while it holds this lock")
    }
}

/// Starts the task that delivers. Must be called inside a tokio runtime.
pub(crate) fn start(
    exchanges: Exchanges<Kind>,
    authorizer: Authorizer,
    renderings: Renderings<Key>,
) -> (Feed, JoinHandle<()>) {
    let shared = Arc::new(Shared::default());
    let (views, rendering) = (HashMap::new(), JoinSet::new());
    let delivery = Delivery { exchanges, authorizer, renderings, views, rendering };
    (Feed(shared.clone()), tokio::spawn(delivery.run(shared)))
}

struct Delivery {
    exchanges: Exchanges<Kind>,
    authorizer: Authorizer,
    renderings: Renderings<Key>,
    /// Views of the state that are being rendered, and the subscribers of their next rendering.
    views: HashMap<View, Option<Newcomers>>,
    rendering: JoinSet<(View, Vec<Held>, Arc<Rendition>)>,
}

/// Subscribers with the same view share the rendering of their first event.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct View {
    encoding: Encoding,
    viewers: Viewers,
}

struct Newcomers {
    streams: Vec<Held>,
    state: Box<State>,
}

impl Delivery {
    async fn run(mut self, feed: Arc<Shared>) {
        let mut not_before = Instant::now();
        loop {
            tokio::select! {
                items = feed.take(not_before) => match items {
                    Some(items) => {
                        not_before = Instant::now() + DELIVERY_INTERVAL;
                        self.deliver(items).await;
                    }
                    None => return,
                },
                Some(rendered) = self.rendering.join_next() => {
                    self.rendered(rendered.expect("it only waits for a rendering"));
                }
            }
        }
    }

    async fn deliver(&mut self, items: Vec<Item>) {
        let (began, mut events) = (Instant::now(), Vec::new());
        for item in items {
            match item {
                Item::Event { event, state } => {
                    events.push((event, state));
                    continue;
                }
                Item::Subscribe { .. } | Item::Unsubscribe { .. } | Item::Overflow { .. } => (),
            }
            self.events(std::mem::take(&mut events), began).await;
            match item {
                Item::Event { .. } => (),
                Item::Subscribe { conn, state, next } => self.subscribe(conn, state, &next),
                Item::Unsubscribe { conn } => self.exchanges.close(conn),
                Item::Overflow { discarded } => self.drop_all(discarded.len()),
            }
        }
        self.events(events, began).await;
    }

    /// Appends events to the queue of each subscriber that may see them, group after group in the time of a delivery.
    async fn events(&self, events: Vec<(Arc<Event>, Option<Arc<State>>)>, began: Instant) {
        if events.is_empty() {
            return;
        }
        let mut views: HashMap<Option<Principal>, Vec<ConnId>> = HashMap::new();
        for (conn, principal) in self.exchanges.subscribers(Kind::Operator) {
            let viewer = principal.filter(|_| self.authorizer.is_set());
            views.entry(viewer).or_default().push(conn);
        }
        let subscribers = views.values().map(Vec::len).sum();
        let mut batches = Vec::new();
        for (viewer, conns) in views {
            let mut seen = Vec::new();
            for events in events.chunks(BATCH_EVENTS_MAX) {
                seen.push((EncodedOnce::default(), self.visible_to(viewer.as_ref(), events)));
                tokio::task::yield_now().await;
            }
            batches.push((conns, seen));
        }
        let mut groups = Groups::new(subscribers, began);
        for (conns, seen) in &batches {
            let seen: Vec<(&EncodedOnce, Vec<&Event>)> = seen
                .iter()
                .map(|(encoded, events)| (encoded, events.iter().map(|event| &**event).collect()))
                .collect();
            for conns in conns.chunks(groups.size) {
                sleep_until(groups.next(conns.len())).await;
                for conn in conns {
                    self.deliver_to(*conn, &seen).await;
                }
            }
        }
    }

    /// Wakes one subscriber, and lets everything that is ready run before the next one is woken.
    async fn deliver_to(&self, conn: ConnId, seen: &[(&EncodedOnce, Vec<&Event>)]) {
        for (encoded, events) in seen {
            self.exchanges.push_encoded(&[conn], encoded, events, |lag| Some(dropped(lag)));
            tokio::task::yield_now().await;
        }
    }

    /// The events, or the parts of them, that a principal may see.
    fn visible_to(
        &self,
        viewer: Option<&Principal>,
        events: &[(Arc<Event>, Option<Arc<State>>)],
    ) -> Vec<Arc<Event>> {
        if !self.authorizer.is_set() {
            return events.iter().map(|(event, _)| event.clone()).collect();
        }
        let seen = |(event, state): &(Arc<Event>, Option<Arc<State>>)| {
            event_seen(state.as_ref()?, event, &self.authorizer, subject(viewer)).map(Arc::new)
        };
        events.iter().filter_map(seen).collect()
    }

    /// What happens while the state is rendered waits in the subscriber's queue. If the same view is being rendered already,
    /// all that wait for the next rendering start from the newest state of theirs.
    fn subscribe(&mut self, conn: ConnId, state: Box<State>, next: &Event) {
        let Some(stream) = self.exchanges.open_held(conn) else { return };
        let viewers = Viewers::new(self.authorizer.is_set(), self.exchanges.principal(conn));
        let view = View { encoding: stream.encoding, viewers };
        match self.views.get_mut(&view) {
            None => self.render(view, Newcomers { streams: vec![stream], state }),
            Some(waiting) => {
                let mut streams = waiting.take().map_or_else(Vec::new, |waiting| waiting.streams);
                for stream in &streams {
                    stream.restart();
                    self.exchanges.push(stream.conn, next);
                }
                streams.push(stream);
                *waiting = Some(Newcomers { streams, state });
            }
        }
        self.exchanges.push(conn, next);
    }

    fn render(&mut self, view: View, newcomers: Newcomers) {
        self.views.insert(view.clone(), None);
        let Newcomers { streams, state } = newcomers;
        let (authorizer, View { encoding, viewers }) = (self.authorizer.clone(), view.clone());
        let rendition = self.renderings.alone(false, move |writer| {
            read::subscribed(&state.visible_to(&authorizer, viewers.subject()), encoding, writer);
        });
        self.rendering.spawn(async move {
            rendition.over().await;
            (view, streams, rendition)
        });
    }

    fn rendered(&mut self, (view, streams, rendition): (View, Vec<Held>, Arc<Rendition>)) {
        streams.into_iter().for_each(|stream| stream.start_with(&rendition));
        if let Some(newcomers) = self.views.remove(&view).flatten() {
            self.render(view, newcomers);
        }
    }

    fn drop_all(&self, discarded: usize) {
        tracing::warn!(
            discarded,
            limit = FEED_EVENTS_MAX,
            "operator events discarded: delivery is too far behind"
        );
        let conns: Vec<ConnId> =
            self.exchanges.subscribers(Kind::Operator).into_iter().map(|(conn, _)| conn).collect();
        self.exchanges.drop_all(&conns, |lag| dropped(Lag { events: lag.events + discarded, ..lag }));
    }
}

/// How many subscribers are woken at once, and when the next of them are.
struct Groups {
    size: usize,
    count: usize,
    woken: usize,
    began: Instant,
}

impl Groups {
    fn new(subscribers: usize, began: Instant) -> Self {
        let size = subscribers.div_ceil(GROUPS_MAX).max(GROUP_SUBSCRIBERS_MIN);
        Self { size, count: subscribers.div_ceil(size).max(1), woken: 0, began }
    }

    /// When the next subscribers are woken, so many: in the past if the delivery is late.
    fn next(&mut self, subscribers: usize) -> Instant {
        let group = (self.woken / self.size) as u32;
        self.woken += subscribers;
        self.began + DELIVERY_INTERVAL * group / self.count as u32
    }
}

/// The last event of a subscriber that fell behind.
fn dropped(lag: Lag) -> Event {
    let message = format!("subscriber dropped: {lag}; subscribe again");
    let error = event::Error { message, ..Default::default() };
    Event { r#type: Some(event::Type::ERROR), error: error.into(), ..Default::default() }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Waker};

    use super::*;

    fn event() -> Item {
        Item::Event { event: Arc::default(), state: None }
    }

    /// The feed without its events, and how many those are.
    fn shown(pending: &Pending) -> (Vec<String>, usize) {
        let (events, others): (Vec<_>, Vec<_>) =
            pending.items.iter().partition(|item| matches!(item, Item::Event { .. }));
        let show = |item: &&Item| match item {
            Item::Unsubscribe { conn } => format!("unsubscribe {}", conn.0),
            Item::Overflow { discarded } => format!("overflow {}", discarded.len()),
            Item::Event { .. } | Item::Subscribe { .. } => "other".to_owned(),
        };
        (others.iter().map(show).collect(), events.len())
    }

    #[test]
    fn full_feed_discards_only_events() {
        let mut pending = Pending::default();
        let mut push = |item: Item| {
            pending.push(item, 2);
            shown(&pending)
        };
        push(event());
        push(Item::Unsubscribe { conn: ConnId(7) });
        assert_eq!(push(event()), (vec!["unsubscribe 7".to_owned()], 2));
        let full = ["unsubscribe 7", "overflow 3"].map(str::to_owned);
        assert_eq!(push(event()), (full.to_vec(), 0));
        assert_eq!(push(event()), (full.to_vec(), 1));
    }

    /// The machine's thread never waits, independent of the number of events and their delivery.
    #[test]
    fn feed_push_never_blocks() {
        let feed = Feed(Arc::default());
        (0..FEED_EVENTS_MAX * 2 + 1).for_each(|_| feed.push(event()));
        let shared = feed.0.clone();
        assert_eq!(shown(&shared.lock()).0, ["overflow 65537"]);
        drop(feed);
        assert!(shared.lock().is_closed);
    }

    #[test]
    fn many_subscribers_are_woken_in_groups_over_the_interval() {
        let began = Instant::now();
        // With one view of the state, or with one for each subscriber.
        for views in [1, usize::MAX] {
            for (subscribers, size, last_ms) in [(8, 8, 0), (9, 8, 25), (100, 8, 46), (1000, 63, 46)] {
                let mut groups = Groups::new(subscribers, began);
                assert_eq!(groups.size, size, "{subscribers}");
                let step = if views == 1 { size } else { 1 };
                let starts = (0..subscribers.div_ceil(step)).map(|_| groups.next(step));
                let starts: Vec<Duration> = starts.map(|at| at - began).collect();
                assert_eq!((starts[0].as_millis(), starts[starts.len() - 1].as_millis()), (0, last_ms));
                assert!(starts.is_sorted());
            }
        }
    }

    #[tokio::test]
    async fn pending_items_are_delivered_before_the_feed_closes() {
        let shared = Arc::new(Shared::default());
        let feed = Feed(shared.clone());
        let mut waiting = Box::pin(shared.take(Instant::now()));
        assert!(waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        feed.push(event());
        drop(feed);
        assert_eq!(waiting.await.map(|items| items.len()), Some(1));
        assert!(shared.take(Instant::now()).await.is_none());
    }
}
