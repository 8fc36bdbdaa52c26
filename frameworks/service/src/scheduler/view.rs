//! The read side: a snapshot that the HTTP API and the command line render from, without waiting for the scheduler.
//!
//! Cheap to clone: tasks, pods and configurations are shared with the scheduler. Rendering happens where it is read.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use rpds::RedBlackTreeMapSync;
use serde::Serialize;
use tepui_proto::mesos::v1 as pb;

use super::obstacle::Wait;
use super::record::{ConfigurationId, Garbage, Pod, Stray};
use super::task::Task;
use super::{TaskKey, WaitKey};
use crate::plan::backoff::{Backoff, Millis};
use crate::plan::{Plan, PodInstance};
use crate::spec::ServiceSpec;

pub(crate) type Map<K, V> = RedBlackTreeMapSync<K, V>;

#[derive(Clone, Debug)]
pub struct View {
    pub service: String,
    pub framework_id: Option<String>,
    pub connected: bool,
    pub suppressed: bool,
    pub uninstalling: bool,
    /// Id of the framework that an uninstallation removed, if the service was not installed again.
    pub uninstalled: Option<String>,
    pub target: Option<ConfigurationId>,
    pub configurations: Map<ConfigurationId, Arc<ServiceSpec>>,
    pub properties: Map<String, Arc<[u8]>>,
    pub counters: Counters,
    pub(super) at: Millis,
    pub(super) plans: Vec<Plan>,
    pub(super) backoff: Backoff,
    pub pods: Map<PodInstance, Arc<Pod>>,
    pub tasks: Map<TaskKey, Arc<Task>>,
    pub garbage: Map<String, Arc<Garbage>>,
    pub strays: Map<String, Arc<Stray>>,
    /// Agents with something of ours that make no offers, as the master said last.
    pub(super) absences: Map<String, Absence>,
    pub(super) waits: Map<WaitKey, Arc<Wait>>,
    /// Pod types that fit no agent of the cluster, and why.
    pub(super) unplaceable: Arc<BTreeMap<String, String>>,
    pub(super) evaluations: Arc<Evaluations>,
    pub service_tld: String,
    pub vip_tld: String,
}

/// Why an agent makes no offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Absence {
    Unreachable,
    /// The master has removed it.
    Unknown,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    pub offers_received: u64,
    pub offers_processed: u64,
    /// Offers declined while there is work, and while there is none.
    pub declines_short: u64,
    pub declines_long: u64,
    pub accepts: u64,
    pub revives: u64,
    pub revives_throttled: u64,
    pub suppresses: u64,
    /// By type: `RESERVE`, `LAUNCH_GROUP`, …
    pub operations: BTreeMap<String, u64>,
    /// By state: `TASK_RUNNING`, …
    pub task_statuses: BTreeMap<String, u64>,
}

/// A plan as `/v1/plans/{plan}` has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlanView {
    #[serde(skip)]
    pub name: String,
    pub phases: Vec<PhaseView>,
    pub errors: Vec<String>,
    pub strategy: String,
    pub status: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PhaseView {
    pub id: String,
    pub name: String,
    pub steps: Vec<StepView>,
    pub strategy: String,
    pub status: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StepView {
    pub id: String,
    /// With PAUSING and PAUSED.
    pub status: String,
    pub name: String,
    /// What the step does, or why it waits, in words.
    pub message: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
}

/// A pod type and its instances, as `/v1/pod/status` has them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PodTypeView {
    pub name: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub instances: Vec<PodView>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PodView {
    pub name: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<TaskView>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TaskView {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
}

/// TaskInfo and the last TaskStatus.
#[derive(Clone, Debug)]
pub struct TaskDescription {
    pub info: pb::TaskInfo,
    pub status: Option<pb::TaskStatus>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EndpointView {
    pub address: Vec<String>,
    pub dns: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vip: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HealthView {
    /// Also the status of the HTTP answer.
    pub value: u16,
    pub reasons: Vec<String>,
}

/// `/v2/debug/offers`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OffersView {
    pub accepted_count: u64,
    pub rejected_count: u64,
    /// By stage of the evaluation.
    pub failure_reasons: BTreeMap<String, u64>,
    /// By agent.
    pub rejected_agents: BTreeMap<String, u64>,
    /// The last ones, oldest first.
    pub offers: Vec<Evaluation>,
}

/// One offer against one step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Evaluation {
    /// Milliseconds since 1970.
    pub timestamp: u64,
    pub pod_instance_name: String,
    /// `pass` or `fail`.
    pub outcome: String,
    /// `PASS(Stage):reason` and `FAIL(Stage):reason`.
    pub explanation: Vec<String>,
    /// Offer, agent and resources as text.
    pub offer: String,
}

/// Evaluations that are kept.
const EVALUATIONS_MAX: usize = 100;
/// Agents that rejected offers are counted for.
const REJECTED_AGENTS_MAX: usize = 1000;

/// The last evaluations, and the sum of all.
#[derive(Clone, Debug, Default)]
pub(super) struct Evaluations {
    last: VecDeque<Arc<Evaluation>>,
    totals: OffersView,
}

impl Evaluations {
    pub fn push(
        &mut self,
        evaluation: Evaluation,
        agent: Option<&str>,
        failed: impl Iterator<Item = &'static str>,
    ) {
        let is_accepted = evaluation.outcome == "pass";
        match is_accepted {
            true => self.totals.accepted_count += 1,
            false => self.totals.rejected_count += 1,
        }
        for stage in failed {
            *self.totals.failure_reasons.entry(stage.to_owned()).or_default() += 1;
        }
        let agents = &mut self.totals.rejected_agents;
        if let Some(agent) = agent.filter(|agent| {
            !is_accepted && (agents.len() < REJECTED_AGENTS_MAX || agents.contains_key(*agent))
        }) {
            *agents.entry(agent.to_owned()).or_default() += 1;
        }
        if self.last.len() >= EVALUATIONS_MAX {
            self.last.pop_front();
        }
        self.last.push_back(Arc::new(evaluation));
    }

    pub fn view(&self) -> OffersView {
        let offers = self.last.iter().map(|own| (**own).clone()).collect();
        OffersView { offers, ..self.totals.clone() }
    }
}

/// `/v1/debug/taskStatuses`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlanTasksView {
    pub name: String,
    pub phases: Vec<PhaseTasksView>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PhaseTasksView {
    pub name: String,
    pub steps: Vec<StepTasksView>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StepTasksView {
    pub name: String,
    pub task_status: Vec<TaskStatusView>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskStatusView {
    pub name: String,
    pub task_status: String,
    pub task_id: String,
}

impl View {
    pub(super) fn new(config: &super::Config) -> View {
        View {
            service: config.service.clone(),
            framework_id: None,
            connected: false,
            suppressed: false,
            uninstalling: false,
            uninstalled: None,
            target: None,
            configurations: Map::new_sync(),
            properties: Map::new_sync(),
            counters: Counters::default(),
            at: 0,
            plans: Vec::new(),
            backoff: Backoff::new(config.backoff),
            pods: Map::new_sync(),
            tasks: Map::new_sync(),
            garbage: Map::new_sync(),
            strays: Map::new_sync(),
            absences: Map::new_sync(),
            waits: Map::new_sync(),
            unplaceable: Arc::default(),
            evaluations: Arc::default(),
            service_tld: config.service_tld.clone(),
            vip_tld: config.vip_tld.clone(),
        }
    }
}
