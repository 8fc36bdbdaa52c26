//! UPDATE: an executor reports what became of a task.

use tepui_fsm::Now;
use tepui_proto::mesos::v1 as pb;
use tepui_types::{ExecutorId, FrameworkId};

use crate::agent::{Agent, Out};
use crate::status;

pub(super) fn update(
    agent: &mut Agent,
    now: Now,
    framework: FrameworkId,
    executor: ExecutorId,
    status: pb::TaskStatus,
    out: &mut Out,
) {
    status::from_executor(agent, now, &framework, &executor, status, out);
}
