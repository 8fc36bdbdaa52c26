//! The framework behind `tepui run`: accepts what fits, declines the rest, acknowledges, counts.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use tepui_client::scheduler::{self, Event, Scheduler, calls};
use tepui_client::v1::{
    CommandInfo, Environment, Filters, FrameworkInfo, Offer, Resource, TaskID, TaskInfo, TaskState,
    TaskStatus, command_info, environment, framework_info, value,
};

use super::Run;
use super::output::Output;
use crate::command::Signals;

/// How long agents that do not fit are not offered again.
const REFUSE_SECONDS: f64 = 5.0;

/// After so long without a place for its tasks a person is told what is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// Exit code of a task that ended otherwise than by exiting.
const LOST_CODE: u8 = 125;

pub async fn run(run: Run) -> Result<ExitCode> {
    let mut signals = Signals::listen()?;
    // Asked first: a framework would wait for a master for ever, a person should not.
    run.cluster.get("/version").await?;
    let mut scheduler = scheduler::connect(&run.cluster.master, info(&run))?;
    let mut tasks = Tasks::new(&run);
    let code = tasks.follow(&mut scheduler, &mut signals).await;
    scheduler.teardown().await.context("cannot tear the framework down")?;
    code
}

/// The tasks of this run: those to launch and those under way.
struct Tasks<'r> {
    run: &'r Run,
    prefix: String,
    launched: u32,
    running: BTreeMap<String, TaskState>,
    ended: u32,
    failed: u32,
    worst: u8,
    /// Offers that held none of the tasks.
    misfits: u32,
    output: Output,
    progress: ProgressBar,
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
            output,
            progress,
        }
    }

    async fn follow(&mut self, scheduler: &mut Scheduler, signals: &mut Signals) -> Result<ExitCode> {
        let patience = tokio::time::sleep(PATIENCE);
        tokio::pin!(patience);
        let mut told = false;
        while self.ended < self.run.count {
            let event = tokio::select! {
                event = scheduler.next_event() => event.context("the master ended the session")?,
                () = &mut patience, if !told => {
                    told = true;
                    self.tell_waiting();
                    continue;
                }
                () = signals.next() => bail!("interrupted; its tasks are ended with it"),
            };
            match event {
                Event::Offers(offers) => self.offered(scheduler, offers).await?,
                Event::Update(status) => {
                    scheduler.acknowledge(&status).await?;
                    self.updated(&status).await?;
                }
                Event::Error(message) => bail!("the master refused: {message}"),
                _ => {}
            }
        }
        self.progress.finish_and_clear();
        if self.run.count > 1 {
            eprintln!("tepui run: {} tasks ended, {} of them failed", self.ended, self.failed);
        }
        Ok(ExitCode::from(self.worst))
    }

    /// Nothing may be wrong, but a person would like to know.
    fn tell_waiting(&self) {
        let missing = self.run.count - self.launched;
        if missing > 0 {
            let wanted = format!("cpus:{} mem:{} disk:{}", self.run.cpus, self.run.mem, self.run.disk);
            self.progress.suspend(|| {
                eprintln!(
                    "tepui run: waiting for room for {missing} task(s) of {wanted} in role {:?}; {} offer(s) were too \
                     small; `tepui agents` shows what there is, Ctrl-C ends the wait",
                    self.run.role, self.misfits
                );
            });
        }
    }

    async fn offered(&mut self, scheduler: &Scheduler, offers: Vec<Offer>) -> Result<()> {
        for offer in offers {
            let Some(id) = offer.id.as_option().cloned() else { continue };
            let tasks = self.fit(&offer);
            if tasks.is_empty() {
                self.misfits += 1;
                let filters = Filters { refuse_seconds: Some(REFUSE_SECONDS), ..Default::default() };
                scheduler.decline([id], Some(filters)).await?;
            } else {
                scheduler.accept([id], vec![calls::launch(tasks)], None).await?;
            }
        }
        if self.launched == self.run.count {
            scheduler.suppress(Vec::new()).await?;
        }
        Ok(())
    }

    /// As many of the missing tasks as the offer holds.
    fn fit(&mut self, offer: &Offer) -> Vec<TaskInfo> {
        let mut tasks = Vec::new();
        let wanted = [("cpus", self.run.cpus), ("mem", self.run.mem), ("disk", self.run.disk)];
        while self.launched < self.run.count {
            let count = tasks.len() as f64 + 1.0;
            if wanted.iter().any(|(name, each)| scalar(offer, name) + 1e-9 < each * count) {
                break;
            }
            tasks.push(self.task(offer));
            self.launched += 1;
        }
        tasks
    }

    fn task(&mut self, offer: &Offer) -> TaskInfo {
        let run = self.run;
        let id =
            if run.count == 1 { self.prefix.clone() } else { format!("{}-{}", self.prefix, self.launched) };
        let name = if run.count == 1 { run.name.clone() } else { format!("{}-{}", run.name, self.launched) };
        self.running.insert(id.clone(), TaskState::TASK_STAGING);
        let wanted = [("cpus", run.cpus), ("mem", run.mem), ("disk", run.disk)];
        TaskInfo {
            name,
            task_id: TaskID { value: id, ..Default::default() }.into(),
            agent_id: offer.agent_id.clone(),
            resources: wanted.into_iter().filter(|(_, amount)| *amount > 0.0).map(resource).collect(),
            command: command(run).into(),
            ..Default::default()
        }
    }

    async fn updated(&mut self, status: &TaskStatus) -> Result<()> {
        let id = &status.task_id.value;
        let Some(known) = self.running.get_mut(id) else { return Ok(()) };
        *known = status.state;
        self.output.read(id, status.state).await?;
        let Some(code) = exit_code(status) else { return Ok(()) };
        self.running.remove(id);
        self.ended += 1;
        self.worst = self.worst.max(code);
        self.progress.inc(1);
        if code != 0 {
            self.failed += 1;
            self.progress.suspend(|| eprintln!("tepui run: {id}: {}", reason(status)));
        }
        Ok(())
    }
}

/// What a terminal status makes the command exit with; none if the task goes on.
fn exit_code(status: &TaskStatus) -> Option<u8> {
    match status.state {
        TaskState::TASK_FINISHED => Some(0),
        TaskState::TASK_STAGING
        | TaskState::TASK_STARTING
        | TaskState::TASK_RUNNING
        | TaskState::TASK_KILLING
        | TaskState::TASK_UNREACHABLE
        | TaskState::TASK_UNKNOWN => None,
        TaskState::TASK_FAILED => {
            let message = status.message.as_deref().unwrap_or_default();
            let code = message.strip_prefix("Command exited with status ").and_then(|code| code.parse().ok());
            Some(code.unwrap_or(LOST_CODE))
        }
        TaskState::TASK_KILLED
        | TaskState::TASK_ERROR
        | TaskState::TASK_LOST
        | TaskState::TASK_DROPPED
        | TaskState::TASK_GONE
        | TaskState::TASK_GONE_BY_OPERATOR => Some(LOST_CODE),
    }
}

fn reason(status: &TaskStatus) -> String {
    let message = status.message.as_deref().unwrap_or("no message");
    let reason = status.reason.map(|reason| format!(" ({reason:?})")).unwrap_or_default();
    crate::output::printable(&format!("{:?}: {message}{reason}", status.state))
}

fn info(run: &Run) -> FrameworkInfo {
    use framework_info::capability::Type;
    let capability = |r#type| framework_info::Capability { r#type: Some(r#type), ..Default::default() };
    FrameworkInfo {
        name: format!("tepui run {}", run.name),
        user: run.user.clone().unwrap_or_else(whoami),
        roles: vec![run.role.clone()],
        checkpoint: Some(true),
        failover_timeout: Some(60.0),
        capabilities: vec![
            capability(Type::MULTI_ROLE),
            capability(Type::PARTITION_AWARE),
            capability(Type::RESERVATION_REFINEMENT),
        ],
        ..Default::default()
    }
}

fn whoami() -> String {
    std::env::var("USER").unwrap_or_else(|_| "root".to_string())
}

fn command(run: &Run) -> CommandInfo {
    let variables = run.environment.iter().filter_map(|variable| variable.split_once('='));
    let variables: Vec<_> = variables
        .map(|(name, value)| environment::Variable {
            name: name.to_string(),
            value: Some(value.to_string()),
            ..Default::default()
        })
        .collect();
    let uris =
        run.uris.iter().map(|uri| command_info::URI { value: uri.clone(), ..Default::default() }).collect();
    let shell = run.command.len() == 1;
    CommandInfo {
        value: Some(run.command[0].clone()),
        arguments: if shell { Vec::new() } else { run.command.clone() },
        shell: Some(shell),
        environment: (!variables.is_empty()).then(|| Environment { variables, ..Default::default() }).into(),
        user: run.user.clone(),
        uris,
        ..Default::default()
    }
}

fn resource((name, amount): (&str, f64)) -> Resource {
    Resource {
        name: name.to_string(),
        r#type: value::Type::SCALAR,
        scalar: value::Scalar { value: amount, ..Default::default() }.into(),
        ..Default::default()
    }
}

fn scalar(offer: &Offer, name: &str) -> f64 {
    let fits = |resource: &&Resource| resource.name == name && !resource.revocable.is_set();
    offer.resources.iter().filter(fits).map(|resource| resource.scalar.value).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_follow_the_task() {
        let table = [
            (TaskState::TASK_RUNNING, "", None),
            (TaskState::TASK_FINISHED, "Command exited with status 0", Some(0)),
            (TaskState::TASK_FAILED, "Command exited with status 3", Some(3)),
            (TaskState::TASK_FAILED, "Command terminated with signal Killed", Some(LOST_CODE)),
            (TaskState::TASK_ERROR, "", Some(LOST_CODE)),
        ];
        for (state, message, expected) in table {
            let status = TaskStatus { state, message: Some(message.to_string()), ..Default::default() };
            assert_eq!(exit_code(&status), expected, "{state:?} {message}");
        }
    }
}
