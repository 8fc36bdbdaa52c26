//! A framework that goes on: it subscribes again when its stream ends, acknowledges every update at once, and keeps a
//! diary of them.

use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::{Http, Polled, Scheduler, patience};

const POLL: Duration = Duration::from_millis(50);

/// How long an agent waits for an acknowledgement, at the least.
const UPDATE_RETRY_SECONDS_MIN: f64 = 10.0;

pub struct Framework {
    http: Http,
    info: Value,
    pub scheduler: Scheduler,
    offers: Vec<Value>,
    /// Every update of every task, in the order of its coming.
    pub diary: BTreeMap<String, Vec<Delivery>>,
    /// For each kill until when it disturbs what is told, in seconds of the wall clock; infinite while it still does.
    disturbed_until: Vec<f64>,
}

/// An update that came in, and was acknowledged if it wanted to be.
#[derive(Clone)]
pub struct Delivery {
    pub status: Value,
    /// When it came, in seconds of the wall clock.
    at: f64,
}

impl Framework {
    pub fn subscribe(http: &Http, info: Value) -> Self {
        let scheduler = Scheduler::subscribe(http, info.clone());
        let mut info = info;
        info["id"] = json!({"value": scheduler.framework_id});
        Self {
            http: http.clone(),
            info,
            scheduler,
            offers: Vec::new(),
            diary: BTreeMap::new(),
            disturbed_until: Vec::new(),
        }
    }

    /// Something is about to be killed: what was told so far, and what happens until all have found each other again,
    /// may be told again.
    pub fn expect_kill(&mut self) {
        self.disturbed_until.push(f64::INFINITY);
    }

    /// All have found each other again, and everything was told.
    pub fn settled(&mut self) {
        let now = wall_clock();
        self.disturbed_until.iter_mut().for_each(|until| *until = until.min(now));
    }

    /// An offer that still stands.
    pub fn offer(&mut self) -> Value {
        self.until("an offer", |framework| !framework.offers.is_empty());
        self.offers.remove(0)
    }

    /// An offer that still stands, if there is one.
    pub fn try_offer(&mut self) -> Option<Value> {
        (!self.offers.is_empty()).then(|| self.offers.remove(0))
    }

    /// Takes events in until the condition holds.
    pub fn until(&mut self, what: &str, condition: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + patience();
        while !condition(self) {
            assert!(Instant::now() < deadline, "waited {:?} for {what}: {:#?}", patience(), self.diary);
            self.take_in();
        }
    }

    /// Waits for the end of a stream whose master was killed, and subscribes again.
    pub fn reconnect(&mut self) {
        let stream = self.scheduler.stream_id().to_string();
        self.until("a new stream", |framework| framework.scheduler.stream_id() != stream);
    }

    /// Takes in one event, or waits a moment.
    pub fn take_in(&mut self) {
        match self.scheduler.poll(POLL) {
            Polled::Event(event) => self.handle(&event),
            Polled::Nothing => {}
            Polled::Ended => {
                self.offers.clear();
                self.scheduler = Scheduler::subscribe(&self.http, self.info.clone());
            }
        }
    }

    /// Takes in everything that comes without a pause.
    pub fn take_in_all(&mut self) {
        while let Polled::Event(event) = self.scheduler.poll(POLL) {
            self.handle(&event);
        }
    }

    fn handle(&mut self, event: &Value) {
        match event["type"].as_str() {
            Some("OFFERS") => {
                self.offers.extend(event["offers"]["offers"].as_array().into_iter().flatten().cloned())
            }
            Some("RESCIND") => self.offers.retain(|offer| offer["id"] != event["rescind"]["offer_id"]),
            Some("UPDATE") => {
                let status = event["update"]["status"].clone();
                self.scheduler.acknowledge(&status);
                let task = status["task_id"]["value"].as_str().expect("a task id").to_string();
                self.diary.entry(task).or_default().push(Delivery { status, at: wall_clock() });
            }
            Some("ERROR") => panic!("{event}"),
            _ => {}
        }
    }

    /// The last state that was told of each task.
    pub fn states(&self) -> BTreeMap<&str, &str> {
        let tasks = self.diary.iter();
        tasks.filter_map(|(task, diary)| Some((task.as_str(), diary.last()?.state()))).collect()
    }

    /// Whether the last state told of this task is this one.
    pub fn is(&self, task: &str, state: &str) -> bool {
        self.states().get(task) == Some(&state)
    }

    /// How many tasks are in this state.
    pub fn count(&self, state: &str) -> usize {
        self.states().values().filter(|known| **known == state).count()
    }

    /// Tasks with an update that came more often than can be explained. A kill can lose an acknowledgement, and can
    /// make an agent tell the update twice: once to the new master and once for the framework that is back. And on a
    /// slow machine an acknowledgement may come later than the agent waits for it.
    pub fn repeated(&self) -> Vec<String> {
        let is_repeated = |diary: &[Delivery], at: usize| {
            let uuid = |delivery: &Delivery| delivery.status.get("uuid").cloned();
            let same = diary[..=at].iter().filter(|delivery| uuid(delivery) == uuid(&diary[at]));
            uuid(&diary[at]).is_some() && same.count() > self.allowed(&diary[at])
        };
        let tasks = self.diary.values();
        tasks
            .filter(|diary| (0..diary.len()).any(|at| is_repeated(diary, at)))
            .map(|diary| format!("{diary:?}"))
            .collect()
    }

    /// How often an update may have come when this delivery of it came.
    fn allowed(&self, delivery: &Delivery) -> usize {
        let made = delivery.status["timestamp"].as_f64().unwrap_or_default();
        let kills = self.disturbed_until.iter().filter(|until| made < **until).count();
        let retries = (delivery.at - made).max(0.0) / UPDATE_RETRY_SECONDS_MIN;
        1 + 2 * kills + retries as usize
    }

    /// Tasks of which something new was told after their end, or RUNNING after a later state.
    pub fn disordered(&self) -> Vec<String> {
        const ORDER: &[&str] = &["TASK_STAGING", "TASK_STARTING", "TASK_RUNNING", "TASK_KILLING"];
        let rank =
            |delivery: &Delivery| ORDER.iter().position(|state| *state == delivery.state()).unwrap_or(9);
        let is_news = |diary: &[Delivery], at: usize| {
            let uuid = |at: usize| diary[at].status.get("uuid");
            uuid(at).is_some() && !(0..at).any(|before| uuid(before) == uuid(at))
        };
        let is_disordered = |diary: &&Vec<Delivery>| {
            let news: Vec<usize> =
                (0..diary.len()).filter(|at| is_news(diary, *at)).map(|at| rank(&diary[at])).collect();
            !news.is_sorted() || news.iter().filter(|rank| **rank == 9).count() > 1
        };
        self.diary.values().filter(is_disordered).map(|diary| format!("{diary:?}")).collect()
    }
}

impl Delivery {
    pub fn state(&self) -> &str {
        self.status["state"].as_str().expect("a state")
    }
}

impl std::fmt::Debug for Delivery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.state())?;
        ["timestamp", "uuid", "reason", "message"]
            .iter()
            .filter_map(|key| self.status.get(key))
            .try_for_each(|value| write!(f, ", {value}"))
    }
}

fn wall_clock() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970").as_secs_f64()
}
