//! Status updates of one task, and the fields that carry over from one to the next.

use tepui_client::v1::task_status::Reason;
use tepui_client::v1::{
    CheckStatusInfo, ContainerID, ContainerStatus, NetworkInfo, TaskID, TaskState, TaskStatus,
};

/// Makes the updates of one task.
#[derive(Clone, Debug)]
pub struct Statuses {
    task_id: TaskID,
    /// The container of a task that does not run in the executor's own.
    container_id: Option<ContainerID>,
    /// The task's own addresses.
    pub network_infos: Vec<NetworkInfo>,
    last: TaskStatus,
}

impl Statuses {
    pub fn new(task_id: TaskID, container_id: Option<ContainerID>) -> Self {
        Self { task_id, container_id, network_infos: Vec::new(), last: TaskStatus::default() }
    }

    /// An update with a new state.
    pub fn state(
        &mut self,
        uuid: [u8; 16],
        state: TaskState,
        check_status: Option<&CheckStatusInfo>,
    ) -> TaskStatus {
        let is_known = self.container_id.is_some() || !self.network_infos.is_empty();
        let container_status = is_known.then(|| ContainerStatus {
            container_id: self.container_id.clone().into(),
            network_infos: self.network_infos.clone(),
            ..Default::default()
        });
        let status = TaskStatus {
            task_id: self.task_id.clone().into(),
            state,
            uuid: Some(uuid.to_vec()),
            check_status: check_status.cloned().map(Into::into).unwrap_or_default(),
            container_status: container_status.map(Into::into).unwrap_or_default(),
            ..Default::default()
        };
        self.last = status.clone();
        status
    }

    /// The last update again, with the task's health.
    pub fn health(&mut self, uuid: [u8; 16], healthy: bool) -> TaskStatus {
        self.last.healthy = Some(healthy);
        self.again(uuid, Reason::REASON_TASK_HEALTH_CHECK_STATUS_UPDATED)
    }

    /// The last update again, with a new value of the task's check.
    pub fn check(&mut self, uuid: [u8; 16], check_status: Option<&CheckStatusInfo>) -> TaskStatus {
        self.last.check_status = check_status.cloned().map(Into::into).unwrap_or_default();
        self.again(uuid, Reason::REASON_TASK_CHECK_STATUS_UPDATED)
    }

    fn again(&mut self, uuid: [u8; 16], reason: Reason) -> TaskStatus {
        self.last.uuid = Some(uuid.to_vec());
        self.last.reason = Some(reason);
        self.last.clone()
    }
}
