//! The framework behind `tepui run`: accepts what fits, declines the rest, acknowledges, counts.
//!
//! A master may go away and come back: calls that got lost are made good by what comes after (updates are told again,
//! offers are new, tasks are asked about). One that stays away is waited for no longer than the user said.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use indicatif::{ProgressBar, ProgressStyle};
use tepui_client::scheduler::{self, Event, Scheduler, calls};
use tepui_client::v1::{AgentID, Filters, Offer, TaskID, TaskInfo, TaskState, TaskStatus};
use tepui_client::{Fault, duration};
use tokio::time::Instant;

use super::Run;
use super::output::Output;
use super::task::{exit_code, fits, framework, reason, task};
use crate::amount;
use crate::command::Signals;

/// How long agents that do not fit are not offered again.
const REFUSE_SECONDS: f64 = 5.0;

/// After so long without a place for its tasks a person is told what is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often the master is asked about tasks of which nothing was heard.
const RECONCILE_INTERVAL: Duration = Duration::from_secs(10);

pub async fn run(run: Run) -> Result<ExitCode> {
    let mut signals = Signals::listen()?;
    // Asked first: a framework waits for a master, a person should hear at once that there is none.
    run.cluster.get("/version").await?;
    let options = scheduler::Options { credential: run.cluster.credential()?, ..Default::default() };
    let mut scheduler = scheduler::connect_with(&run.cluster.master, framework(&run), options)?;
    let mut tasks = Tasks::new(&run);
    let outcome = tasks.follow(&mut scheduler, &mut signals).await;
    match (outcome, scheduler.teardown().await) {
        // Nothing runs any more: a master that could not be told forgets the framework in time.
        (Ok(code), _) => Ok(code),
        (Err(error), _) if tasks.running.is_empty() => Err(error),
        (Err(error), Ok(())) => Err(anyhow!("{error:#}; its tasks are ended with it")),
        (Err(error), Err(fault)) => Err(anyhow!(
            "{error:#}\nthe master could not be told to end {} ({fault}); it does so {} after it is back",
            amount::count(tasks.running.len() as u64, "task"),
            duration::display(run.reconnect_timeout)
        )),
    }
}

/// The tasks of this run: those to launch and those under way.
struct Tasks<'r> {
    run: &'r Run,
    prefix: String,
    launched: u32,
    running: BTreeMap<String, Running>,
    ended: u32,
    failed: u32,
    worst: u8,
    /// Offers that held none of the tasks.
    misfits: u32,
    /// When to give up on the master; none while it is there.
    give_up_at: Option<Instant>,
    output: Output,
    progress: ProgressBar,
}

/// A task that was launched and has not ended as far as we know.
struct Running {
    state: TaskState,
    agent: AgentID,
}

impl<'r> Tasks<'r> {
    fn new(run: &'r Run) -> Self {
        let progress =
            if run.count > 1 { ProgressBar::new(u64::from(run.count)) } else { ProgressBar::hidden() };
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} tasks ended {msg}")
            .expect("the template is right");
        progress.set_style(style);
        let prefix = format!("{}-{:08x}", run.name, tepui_client::random::number() as u32);
        let output = Output::new(run.cluster.clone(), run.count == 1);
        Self {
            run,
            prefix,
            launched: 0,
            running: BTreeMap::new(),
            ended: 0,
            failed: 0,
            worst: 0,
            misfits: 0,
            give_up_at: Some(Instant::now() + run.reconnect_timeout),
            output,
            progress,
        }
    }

    async fn follow(&mut self, scheduler: &mut Scheduler, signals: &mut Signals) -> Result<ExitCode> {
        let patience = tokio::time::sleep(PATIENCE);
        tokio::pin!(patience);
        let mut told = false;
        let start = Instant::now() + RECONCILE_INTERVAL;
        let mut reconcile = tokio::time::interval_at(start, RECONCILE_INTERVAL);
        while self.ended < self.run.count {
            let give_up_at = self.give_up_at;
            tokio::select! {
                event = scheduler.next_event() => {
                    self.hear(scheduler, event.context("the master ended the session")?).await?;
                }
                () = &mut patience, if !told => {
                    told = true;
                    self.tell_waiting();
                }
                _ = reconcile.tick(), if give_up_at.is_none() => {
                    self.reconcile(scheduler, |running| running.state == TaskState::TASK_STAGING).await;
                }
                () = tokio::time::sleep_until(give_up_at.unwrap_or(start)), if give_up_at.is_some() => {
                    bail!(
                        "no master at {} for {}; --reconnect_timeout makes it wait longer",
                        self.run.cluster.master,
                        duration::display(self.run.reconnect_timeout)
                    );
                }
                () = signals.next() => bail!("interrupted"),
            }
        }
        self.progress.finish_and_clear();
        if self.run.count > 1 {
            eprintln!("tepui run: {} tasks ended, {} of them failed", self.ended, self.failed);
        }
        Ok(ExitCode::from(self.worst))
    }

    async fn hear(&mut self, scheduler: &Scheduler, event: Event) -> Result<()> {
        match event {
            Event::Subscribed(_) => {
                self.give_up_at = None;
                self.reconcile(scheduler, |_| true).await;
            }
            Event::Disconnected => {
                self.give_up_at = Some(Instant::now() + self.run.reconnect_timeout);
                self.say("the master went away; looking for it");
            }
            Event::Offers(offers) => self.offered(scheduler, offers).await,
            Event::Update(status) => {
                self.forgive(scheduler.acknowledge(&status).await);
                self.updated(&status).await;
            }
            Event::Error(message) => bail!("the master refused: {message}"),
            _ => {}
        }
        Ok(())
    }

    /// A call that did not get through is no reason to give up; one that the master did not like is worth a word.
    fn forgive(&self, outcome: Result<(), Fault>) {
        if let Err(fault) = outcome
            && !fault.is_passing()
        {
            self.say(&format!("the master did not take a call: {fault}"));
        }
    }

    fn say(&self, what: &str) {
        self.progress.suspend(|| eprintln!("tepui run: {what}"));
    }

    /// Nothing may be wrong, but a person would like to know.
    fn tell_waiting(&self) {
        let missing = self.run.count - self.launched;
        if missing > 0 {
            let wanted = format!("cpus:{} mem:{} disk:{}", self.run.cpus, self.run.mem, self.run.disk);
            self.say(&format!(
                "waiting for room for {} of {wanted} in role {:?}; offers that were too small: {}; \
                 `tepui agents` shows what there is, Ctrl-C ends the wait",
                amount::count(missing.into(), "task"),
                self.run.role,
                self.misfits
            ));
        }
    }

    /// Asks what became of tasks; their updates are the answer.
    async fn reconcile(&self, scheduler: &Scheduler, which: impl Fn(&Running) -> bool) {
        let about = self.running.iter().filter(|(_, running)| which(running));
        let about: Vec<_> = about
            .map(|(id, running)| {
                (TaskID { value: id.clone(), ..Default::default() }, Some(running.agent.clone()))
            })
            .collect();
        // Without any task the master would tell about all.
        if !about.is_empty() {
            self.forgive(scheduler.reconcile(about).await);
        }
    }

    async fn offered(&mut self, scheduler: &Scheduler, offers: Vec<Offer>) {
        for offer in offers {
            let Some(id) = offer.id.as_option().cloned() else { continue };
            let tasks = self.fit(&offer);
            if tasks.is_empty() {
                self.misfits += 1;
                let filters = Filters { refuse_seconds: Some(REFUSE_SECONDS), ..Default::default() };
                self.forgive(scheduler.decline([id], Some(filters)).await);
                continue;
            }
            let ids: Vec<String> = tasks.iter().map(|task| task.task_id.value.clone()).collect();
            let outcome = scheduler.accept([id], vec![calls::launch(tasks)], None).await;
            if let Err(Fault::NotSubscribed | Fault::Connect { .. } | Fault::Refused { .. }) = outcome {
                // No master has them: the next offer may. What became of others is found out by asking.
                self.launched -= ids.len() as u32;
                self.running.retain(|id, _| !ids.contains(id));
            }
            self.forgive(outcome);
        }
        if self.launched == self.run.count {
            self.forgive(scheduler.suppress(Vec::new()).await);
        }
    }

    /// As many of the missing tasks as the offer holds.
    fn fit(&mut self, offer: &Offer) -> Vec<TaskInfo> {
        let mut tasks = Vec::new();
        while self.launched < self.run.count && fits(self.run, offer, tasks.len() + 1) {
            let (id, name) = self.next_names();
            let agent = offer.agent_id.as_option().cloned().unwrap_or_default();
            self.running.insert(id.clone(), Running { state: TaskState::TASK_STAGING, agent });
            tasks.push(task(self.run, offer, id, name));
            self.launched += 1;
        }
        tasks
    }

    /// The id and the name of the next task.
    fn next_names(&self) -> (String, String) {
        match self.run.count {
            1 => (self.prefix.clone(), self.run.name.clone()),
            _ => {
                (format!("{}-{}", self.prefix, self.launched), format!("{}-{}", self.run.name, self.launched))
            }
        }
    }

    async fn updated(&mut self, status: &TaskStatus) {
        let id = &status.task_id.value;
        let Some(known) = self.running.get_mut(id) else { return };
        known.state = status.state;
        let code = exit_code(status);
        self.output.hear(id, status.state, code.is_some()).await;
        let Some(code) = code else { return };
        self.running.remove(id);
        self.ended += 1;
        self.worst = self.worst.max(code);
        self.progress.inc(1);
        if code != 0 {
            self.failed += 1;
            self.say(&format!("{id}: {}", reason(status)));
        }
    }
}
