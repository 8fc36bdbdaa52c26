//! Frameworks that load a master: ordinary users of the client library.
//!
//! They subscribe first and keep every offer until they are started, so that agents are shared out evenly and the
//! clock starts with the first ACCEPT. Then each launches on its offers as many tasks as fit, acknowledges every
//! update, and counts tasks in their expected state. A framework has one connection for its calls; the number of
//! unanswered calls is part of the plan.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tepui_client::scheduler::{self, Event, Pending, Scheduler, calls};
use tepui_client::shorthand::{is_terminal, scalar, shell, task_id};
use tepui_client::v1::scheduler::Call;
use tepui_client::v1::{Filters, FrameworkInfo, Offer, TaskInfo, TaskState, TaskStatus};
use tepui_client::{CALLS_IN_FLIGHT_MAX, Fault, Format};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::agent::{TASK_CPUS, TASK_MEM};
use crate::spread::Spread;

/// How long frameworks outlive their link, in seconds.
const FAILOVER_TIMEOUT_SECS: f64 = 3600.0;
/// For offers that are not needed any more, in seconds.
const REFUSE_SECS: f64 = 3600.0;

/// Unanswered calls of a framework unless a benchmark says otherwise: as many as one connection takes.
pub const CALLS: usize = CALLS_IN_FLIGHT_MAX;

#[derive(Clone, Debug)]
pub struct Plan {
    pub frameworks: usize,
    pub tasks: usize,
    /// Tasks per framework that may be on their way at once; one offer's worth in any case.
    pub window: usize,
    pub format: Format,
    pub command: String,
    /// A task counts when the update to this state is acknowledged. Its time is over when that arrives.
    pub until: TaskState,
    /// Calls of a framework that may be unanswered at once.
    pub calls: usize,
}

/// Subscribed frameworks. Dropping it ends them.
#[derive(Debug)]
pub struct Frameworks {
    shared: Arc<Shared>,
    members: JoinSet<Result<()>>,
    spread: watch::Receiver<Progress>,
}

#[derive(Debug)]
struct Shared {
    plan: Plan,
    /// Launch evenly, at most so many.
    tasks_per_s: Option<usize>,
    /// The number of the next task.
    next: AtomicUsize,
    /// How many tasks there are to be.
    tasks: AtomicUsize,
    go: watch::Sender<bool>,
    progress: watch::Sender<Progress>,
}

#[derive(Clone, Debug, Default)]
struct Progress {
    subscribed: usize,
    offers: usize,
    /// When the ACCEPT of a task was sent, and how long after that the update came that counts.
    done: Vec<(Instant, Duration)>,
}

impl Frameworks {
    /// Subscribes them all. Must be called inside a tokio runtime.
    pub async fn subscribe(master: &str, plan: Plan) -> Result<Self> {
        Self::subscribe_with(master, plan, None).await
    }

    /// The same, for frameworks that together launch no more than so many tasks a second.
    pub async fn subscribe_paced(master: &str, plan: Plan, tasks_per_s: usize) -> Result<Self> {
        Self::subscribe_with(master, plan, Some(tasks_per_s)).await
    }

    async fn subscribe_with(master: &str, plan: Plan, tasks_per_s: Option<usize>) -> Result<Self> {
        let (progress, spread) = watch::channel(Progress::default());
        let (count, tasks) = (plan.frameworks, AtomicUsize::new(plan.tasks));
        let shared = Arc::new(Shared {
            plan,
            tasks,
            tasks_per_s,
            next: AtomicUsize::new(0),
            go: watch::channel(false).0,
            progress,
        });
        let mut members = JoinSet::new();
        for number in 0..count {
            let options = scheduler::Options { format: shared.plan.format, ..Default::default() };
            let scheduler = scheduler::connect_with(master, info(number), options)?;
            members.spawn(Member::new(scheduler, shared.clone()).run());
        }
        let mut frameworks = Self { shared, members, spread };
        frameworks.wait(|progress| progress.subscribed == count).await?;
        Ok(frameworks)
    }

    /// Waits until so many offers are in their hands.
    pub async fn offered(&mut self, offers: usize) -> Result<()> {
        self.wait(|progress| progress.offers >= offers).await
    }

    /// Launches everything; the time it took and that of each task.
    pub async fn launch(&mut self) -> Result<(Duration, Spread)> {
        let began = Instant::now();
        self.shared.go.send_replace(true);
        let shared = self.shared.clone();
        self.wait(|progress| progress.done.len() >= shared.tasks()).await?;
        Ok((began.elapsed(), self.launched_between(began, Instant::now())))
    }

    /// A handle that ends a launch early.
    pub fn brake(&self) -> Brake {
        Brake(self.shared.clone())
    }

    /// The times of the tasks whose ACCEPT was sent between two moments and that are where they should be.
    pub fn launched_between(&self, from: Instant, to: Instant) -> Spread {
        let mut spread = Spread::default();
        for (began, took) in &self.spread.borrow().done {
            if (from..to).contains(began) {
                spread.push(*took);
            }
        }
        spread
    }

    /// Waits for progress, or for the failure of a framework.
    async fn wait(&mut self, mut there: impl FnMut(&Progress) -> bool) -> Result<()> {
        tokio::select! {
            progress = self.spread.wait_for(|progress| there(progress)) => {
                progress.context("the frameworks are gone")?;
                Ok(())
            }
            Some(ended) = self.members.join_next() => match ended? {
                Ok(()) => bail!("a framework ended too early"),
                Err(err) => Err(err),
            },
        }
    }
}

/// Ends a launch before all tasks are launched.
#[derive(Clone, Debug)]
pub struct Brake(Arc<Shared>);

impl Brake {
    /// No more tasks than were launched until now.
    pub fn pull(&self) {
        self.0.tasks.fetch_min(self.0.next.load(Ordering::Relaxed), Ordering::Relaxed);
        // Waiters check again.
        self.0.progress.send_modify(|_| ());
    }
}

impl Shared {
    fn tasks(&self) -> usize {
        self.tasks.load(Ordering::Relaxed)
    }

    /// How long after the start the next task is due.
    fn pause(&self) -> Duration {
        let next = self.next.load(Ordering::Relaxed) as f64;
        self.tasks_per_s.map_or(Duration::ZERO, |rate| Duration::from_secs_f64(next / rate as f64))
    }

    /// A task is in its expected state. Only the last one wakes the waiter.
    fn done(&self, began: Instant, took: Duration) {
        self.progress.send_if_modified(|progress| {
            progress.done.push((began, took));
            progress.done.len() >= self.tasks()
        });
    }
}

/// One framework.
struct Member {
    scheduler: Scheduler,
    shared: Arc<Shared>,
    offers: VecDeque<Offer>,
    /// When the ACCEPT of a task was sent.
    launched: BTreeMap<String, Instant>,
    suppressed: bool,
    /// Unanswered calls, oldest first; with the times of the task whose last update the call acknowledges.
    calls: VecDeque<(Pending, Option<(Instant, Duration)>)>,
}

impl Member {
    fn new(scheduler: Scheduler, shared: Arc<Shared>) -> Self {
        let (offers, launched, calls) = (VecDeque::new(), BTreeMap::new(), VecDeque::new());
        Self { scheduler, shared, offers, launched, suppressed: false, calls }
    }

    async fn run(mut self) -> Result<()> {
        let mut go = self.shared.go.subscribe();
        let mut began = None;
        loop {
            let going = *go.borrow();
            if going && began.is_none() {
                began = Some(Instant::now());
            }
            let due = began.map(|began| began + self.shared.pause());
            let is_due = due.is_some_and(|due| due <= Instant::now());
            let more = is_due && self.launch().await?;
            tokio::select! {
                // Updates come before further launches, so that as little as possible waits.
                biased;
                answer = next_answer(&mut self.calls) => self.answered(answer)?,
                event = self.scheduler.next_event() => self.hear(event.context("the session has terminated")?).await?,
                Ok(()) = go.changed() => (),
                () = std::future::ready(()), if more => (),
                () = tokio::time::sleep_until(due.unwrap_or_else(Instant::now).into()), if due.is_some() && !is_due => (),
            }
        }
    }

    async fn hear(&mut self, event: Event) -> Result<()> {
        match event {
            Event::Subscribed(_) => self.shared.progress.send_modify(|progress| progress.subscribed += 1),
            Event::Offers(offers) => {
                self.shared.progress.send_modify(|progress| progress.offers += offers.len());
                self.offers.extend(offers);
            }
            Event::Rescind(id) => self.offers.retain(|offer| offer.id.value != id.value),
            Event::Disconnected => self.offers.clear(),
            Event::Update(status) => self.update(&status).await?,
            Event::Error(message) => bail!("the master closed the session: {message}"),
            _ => (), // Nothing else concerns the load.
        }
        Ok(())
    }

    async fn update(&mut self, status: &TaskStatus) -> Result<()> {
        let mut done = None;
        if status.state == self.shared.plan.until {
            done = self.launched.remove(&status.task_id.value).map(|began| (began, began.elapsed()));
        } else if is_terminal(status.state) && self.launched.contains_key(&status.task_id.value) {
            let (id, state) = (&status.task_id.value, status.state);
            bail!("task {id} is {state:?}: {}", status.message.as_deref().unwrap_or_default());
        }
        match calls::acknowledge(status) {
            Some(call) => self.call(call, done).await,
            None => Ok(()),
        }
    }

    /// Sends a call; waits for the answers to earlier ones if there are too many.
    async fn call(&mut self, call: Call, done: Option<(Instant, Duration)>) -> Result<()> {
        self.calls.push_back((self.scheduler.begin(call).await?, done));
        while self.calls.len() >= self.shared.plan.calls {
            let answer = next_answer(&mut self.calls).await;
            self.answered(answer)?;
        }
        Ok(())
    }

    /// The oldest call was answered.
    fn answered(&mut self, (answer, done): Answered) -> Result<()> {
        answer?;
        if let Some((began, took)) = done {
            self.shared.done(began, took);
        }
        Ok(())
    }

    /// Uses one offer, if the window allows; true if another can be used at once. Wants no more offers when nothing is
    /// left to launch.
    async fn launch(&mut self) -> Result<bool> {
        let Some(offer) = self.offers.front() else { return Ok(false) };
        // An offer is used whole: what is left of it would wait for the next batch.
        let room = self.shared.plan.window.saturating_sub(self.launched.len());
        if fits(offer) > room && !self.launched.is_empty() {
            return Ok(false);
        }
        let Some(offer) = self.offers.pop_front() else { return Ok(false) };
        let tasks = self.take(&offer);
        match tasks.is_empty() {
            true => self.give_back(offer).await?,
            false => self.accept(offer, tasks).await?,
        }
        let is_last = self.shared.next.load(Ordering::Relaxed) >= self.shared.tasks();
        if is_last && !self.suppressed {
            self.suppressed = true;
            self.call(calls::suppress(Vec::new()), None).await?;
        }
        Ok(true)
    }

    async fn accept(&mut self, offer: Offer, tasks: Vec<TaskInfo>) -> Result<()> {
        let now = Instant::now();
        self.launched.extend(tasks.iter().map(|task| (task.task_id.value.clone(), now)));
        let filters = Filters { refuse_seconds: Some(0.0), ..Default::default() };
        let call = calls::accept(offer.id.into_option(), vec![calls::launch(tasks)], Some(filters));
        self.call(call, None).await
    }

    /// The next tasks, as many as fit into the offer.
    fn take(&self, offer: &Offer) -> Vec<TaskInfo> {
        let (count, tasks) = (fits(offer), self.shared.tasks());
        let first = self.shared.next.fetch_add(count, Ordering::Relaxed);
        let numbers = first.min(tasks)..(first + count).min(tasks);
        numbers.map(|number| task(number, &self.shared.plan.command, offer)).collect()
    }

    async fn give_back(&mut self, offer: Offer) -> Result<()> {
        let filters = Filters { refuse_seconds: Some(REFUSE_SECS), ..Default::default() };
        self.call(calls::decline(offer.id.into_option(), Some(filters)), None).await
    }
}

type Answered = (Result<(), Fault>, Option<(Instant, Duration)>);

/// The answer to the oldest call. Cancel safe.
async fn next_answer(calls: &mut VecDeque<(Pending, Option<(Instant, Duration)>)>) -> Answered {
    let answer = match calls.front_mut() {
        Some((pending, _)) => pending.await,
        None => std::future::pending().await,
    };
    (answer, calls.pop_front().and_then(|(_, done)| done))
}

fn info(number: usize) -> FrameworkInfo {
    #[allow(deprecated)] // The role of a framework without MULTI_ROLE.
    FrameworkInfo {
        name: format!("bench {number}"),
        user: std::env::var("USER").unwrap_or_else(|_| "root".to_owned()),
        role: Some("bench".to_owned()),
        failover_timeout: Some(FAILOVER_TIMEOUT_SECS),
        ..Default::default()
    }
}

fn fits(offer: &Offer) -> usize {
    let of =
        |name| -> f64 { offer.resources.iter().filter(|r| r.name == name).map(|r| r.scalar.value).sum() };
    // A thousandth more, because sums of tenths are not exact.
    ((of("cpus") + 0.001) / TASK_CPUS).min((of("mem") + 0.001) / TASK_MEM) as usize
}

fn task(number: usize, command: &str, offer: &Offer) -> TaskInfo {
    TaskInfo {
        name: format!("task {number}"),
        task_id: task_id(format!("task-{number}")).into(),
        agent_id: offer.agent_id.clone(),
        resources: vec![scalar("cpus", TASK_CPUS), scalar("mem", TASK_MEM)],
        command: shell(command).into(),
        ..Default::default()
    }
}
