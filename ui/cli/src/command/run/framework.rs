//! The framework behind `tepui run`: accepts what fits, declines the rest, acknowledges, counts.
//!
//! Survives a failover of the master: lost calls are compensated by later ones (updates are resent, offers are new, tasks
//! are reconciled). Gives up after `--reconnect_timeout`.

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

/// Time without a fitting offer after which the user is informed.
const NO_OFFER_NOTICE_AFTER: Duration = Duration::from_secs(5);

/// The interval of reconciliation for tasks without updates.
const RECONCILE_INTERVAL: Duration = Duration::from_secs(10);

pub async fn run(run: Run) -> Result<ExitCode> {
    let mut signals = Signals::listen()?;
    // First of all, so that a missing master is reported at once: a framework would wait for it.
    run.cluster.get("/version").await?;
    let options = scheduler::Options { credential: run.cluster.credential()?, ..Default::default() };
    let mut scheduler = scheduler::connect_with(&run.cluster.master, framework(&run), options)?;
    let mut tasks = Tasks::new(&run);
    let outcome = tasks.follow(&mut scheduler, &mut signals).await;
    match (outcome, scheduler.teardown().await) {
        // No task is running: if the teardown failed, the master removes the framework after its failover timeout.
        (Ok(code), _) => Ok(code),
        (Err(error), _) if tasks.running.is_empty() => Err(error),
        (Err(error), Ok(())) => Err(anyhow!("{error:#}; its tasks are killed")),
        (Err(error), Err(fault)) => Err(anyhow!(
            "{error:#}\ncannot kill {} ({fault}); the master does so {} after it is reachable",
            amount::count(tasks.running.len() as u64, "task"),
            duration::display(run.reconnect_timeout)
        )),
    }
}

/// The tasks of this run: pending and running.
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
    /// Deadline for reconnecting; `None` while connected.
    give_up_at: Option<Instant>,
    output: Output,
    progress: ProgressBar,
}

/// A launched task without a terminal update.
struct Running {
    state: TaskState,
    agent: AgentID,
}

impl<'r> Tasks<'r> {
    fn new(run: &'r Run) -> Self {
        let progress =
            if run.count > 1 { ProgressBar::new(u64::from(run.count)) } else { ProgressBar::hidden() };
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} tasks terminated {msg}")
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
        let patience = tokio::time::sleep(NO_OFFER_NOTICE_AFTER);
        tokio::pin!(patience);
        let mut told = false;
        let start = Instant::now() + RECONCILE_INTERVAL;
        let mut reconcile = tokio::time::interval_at(start, RECONCILE_INTERVAL);
        while self.ended < self.run.count {
            let give_up_at = self.give_up_at;
            tokio::select! {
                event = scheduler.next_event() => {
                    self.on_event(scheduler, event.context("the master closed the session")?).await?;
                }
                () = &mut patience, if !told => {
                    told = true;
                    self.print_waiting();
                }
                _ = reconcile.tick(), if give_up_at.is_none() => {
                    self.reconcile(scheduler, |running| running.state == TaskState::TASK_STAGING).await;
                }
                () = tokio::time::sleep_until(give_up_at.unwrap_or(start)), if give_up_at.is_some() => {
                    bail!(
                        "no master at {} for {}; increase --reconnect_timeout to wait longer",
                        self.run.cluster.master,
                        duration::display(self.run.reconnect_timeout)
                    );
                }
                () = signals.next() => bail!("interrupted"),
            }
        }
        self.progress.finish_and_clear();
        if self.run.count > 1 {
            eprintln!("tepui run: {} tasks terminated, {} of them failed", self.ended, self.failed);
        }
        Ok(ExitCode::from(self.worst))
    }

    async fn on_event(&mut self, scheduler: &Scheduler, event: Event) -> Result<()> {
        match event {
            Event::Subscribed(_) => {
                self.give_up_at = None;
                self.reconcile(scheduler, |_| true).await;
            }
            Event::Disconnected => {
                self.give_up_at = Some(Instant::now() + self.run.reconnect_timeout);
                self.print("connection to the master lost, reconnecting");
            }
            Event::Offers(offers) => self.offered(scheduler, offers).await,
            Event::Update(status) => {
                if let Some(call) = calls::acknowledge(&status) {
                    // The answer is not waited for: an update whose acknowledgement is lost is resent.
                    self.log_rejection(scheduler.begin(call).await.map(drop));
                }
                self.updated(&status).await;
            }
            Event::Error(message) => bail!("the master rejected the framework: {message}"),
            _ => {}
        }
        Ok(())
    }

    /// A failed call is not fatal; a rejected one is logged.
    fn log_rejection(&self, outcome: Result<(), Fault>) {
        if let Err(fault) = outcome
            && !fault.is_passing()
        {
            self.print(&format!("the master did not take a call: {fault}"));
        }
    }

    fn print(&self, message: &str) {
        self.progress.suspend(|| eprintln!("tepui run: {message}"));
    }

    /// Informs the user that no offer fits yet.
    fn print_waiting(&self) {
        let missing = self.run.count - self.launched;
        if missing > 0 {
            let wanted = format!("cpus:{} mem:{} disk:{}", self.run.cpus, self.run.mem, self.run.disk);
            self.print(&format!(
                "waiting for room for {} of {wanted} in role {:?}; offers that were too small: {}; \
                 `tepui agents` shows what there is, Ctrl-C ends the wait",
                amount::count(missing.into(), "task"),
                self.run.role,
                self.misfits
            ));
        }
    }

    /// Reconciles tasks; the answers are updates.
    async fn reconcile(&self, scheduler: &Scheduler, filter: impl Fn(&Running) -> bool) {
        let tasks = self.running.iter().filter(|(_, running)| filter(running));
        let tasks: Vec<_> = tasks
            .map(|(id, running)| {
                (TaskID { value: id.clone(), ..Default::default() }, Some(running.agent.clone()))
            })
            .collect();
        // A call without tasks would reconcile all of them.
        if !tasks.is_empty() {
            self.log_rejection(scheduler.reconcile(tasks).await);
        }
    }

    async fn offered(&mut self, scheduler: &Scheduler, offers: Vec<Offer>) {
        for offer in offers {
            let Some(id) = offer.id.as_option().cloned() else { continue };
            let tasks = self.fit(&offer);
            if tasks.is_empty() {
                self.misfits += 1;
                let filters = Filters { refuse_seconds: Some(REFUSE_SECONDS), ..Default::default() };
                self.log_rejection(scheduler.decline([id], Some(filters)).await);
                continue;
            }
            let ids: Vec<String> = tasks.iter().map(|task| task.task_id.value.clone()).collect();
            let outcome = scheduler.accept([id], vec![calls::launch(tasks)], None).await;
            if let Err(Fault::NotSubscribed | Fault::Connect { .. } | Fault::Refused { .. }) = outcome {
                // No master has them: the next offer may. What became of others is found out by asking.
                self.launched -= ids.len() as u32;
                self.running.retain(|id, _| !ids.contains(id));
            }
            self.log_rejection(outcome);
        }
        if self.launched == self.run.count {
            self.log_rejection(scheduler.suppress(Vec::new()).await);
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
        self.output.on_event(id, status.state, code.is_some()).await;
        let Some(code) = code else { return };
        self.running.remove(id);
        self.ended += 1;
        self.worst = self.worst.max(code);
        self.progress.inc(1);
        if code != 0 {
            self.failed += 1;
            self.print(&format!("{id}: {}", reason(status)));
        }
    }
}
