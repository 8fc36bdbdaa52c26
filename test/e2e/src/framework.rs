//! A framework that survives failovers: it resubscribes when its stream closes, acknowledges every update at once, and
//! records all of them.

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
    /// For each crash the wall time in seconds until which it may repeat updates; infinite until settled.
    disturbed_until: Vec<f64>,
}

/// A received update, acknowledged if required.
#[derive(Clone)]
pub struct Delivery {
    pub status: Value,
    /// Wall time of the arrival in seconds.
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

    /// Announces a crash: updates until the next `settled` may be repeated.
    pub fn expect_kill(&mut self) {
        self.disturbed_until.push(f64::INFINITY);
    }

    /// All processes have reconnected, and all updates were delivered.
    pub fn settled(&mut self) {
        let now = wall_clock();
        self.disturbed_until.iter_mut().for_each(|until| *until = until.min(now));
    }

    /// An offer that still stands.
    pub fn offer(&mut self) -> Value {
        self.until("an offer", |framework| !framework.offers.is_empty());
        self.offers.remove(0)
    }

    /// A valid offer, if there is one.
    pub fn try_offer(&mut self) -> Option<Value> {
        (!self.offers.is_empty()).then(|| self.offers.remove(0))
    }

    /// Takes events in until the condition holds.
    pub fn until(&mut self, name: &str, condition: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + patience();
        while !condition(self) {
            assert!(Instant::now() < deadline, "waited {:?} for {name}: {:#?}", patience(), self.diary);
            self.take_in();
        }
    }

    /// Waits for the end of the stream of a killed master, and resubscribes.
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

    /// Ingests all available events.
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

    /// The last state of each task.
    pub fn states(&self) -> BTreeMap<&str, &str> {
        let tasks = self.diary.iter();
        tasks.filter_map(|(task, diary)| Some((task.as_str(), diary.last()?.state()))).collect()
    }

    /// Whether the last state of this task is this one.
    pub fn is(&self, task: &str, state: &str) -> bool {
        self.states().get(task) == Some(&state)
    }

    /// How many tasks are in this state.
    pub fn count(&self, state: &str) -> usize {
        self.states().values().filter(|known| **known == state).count()
    }

    /// Tasks with an update that was delivered more often than explained by crashes. A crash can lose an acknowledgement, and
    /// can make an agent send the update twice: to the new master and for the resubscribed framework. On a slow machine an
    /// acknowledgement may arrive after the agent's retry.
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

    /// The allowed number of deliveries of an update at this delivery.
    fn allowed(&self, delivery: &Delivery) -> usize {
        let made = delivery.status["timestamp"].as_f64().unwrap_or_default();
        let kills = self.disturbed_until.iter().filter(|until| made < **until).count();
        let retries = (delivery.at - made).max(0.0) / UPDATE_RETRY_SECONDS_MIN;
        1 + 2 * kills + retries as usize
    }

    /// Tasks with a new update after their terminal one, or with RUNNING after a later state.
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
