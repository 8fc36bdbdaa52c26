//! `/maintenance/schedule`, `/maintenance/status`, `/machine/down`, `/machine/up`: machines that will not be there.

use http::Method;
use tepui_core_master::cluster_status;
use tepui_http::{Encoding, HttpError, Request, Response, json};
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::maintenance::Schedule;
use tepui_proto::mesos::v1::master::Call;
use tepui_proto::mesos::v1::master::call::{
    StartMaintenance, StopMaintenance, Type, UpdateMaintenanceSchedule,
};

use crate::operator;
use crate::program::Program;

/// Which way a machine goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Machine {
    Down,
    Up,
}

pub(crate) async fn schedule(program: &Program, mut request: Request) -> Result<Response, HttpError> {
    if request.method == Method::GET {
        return Ok(json(&request.query, tepui_proto::json::to_vec(&*program.state().schedule)));
    }
    let body = request.read_body(operator::CALL_BYTES_MAX).await?;
    let schedule: Schedule =
        tepui_proto::json::from_slice(&body).map_err(|why| HttpError::bad_request(why.to_string()))?;
    let update = UpdateMaintenanceSchedule { schedule: schedule.into(), ..Default::default() };
    let call = Call {
        r#type: Some(Type::UPDATE_MAINTENANCE_SCHEDULE),
        update_maintenance_schedule: update.into(),
        ..Default::default()
    };
    operator::submit(program, &request, call, Encoding::Json).await
}

pub(crate) fn status(program: &Program, request: &Request) -> Response {
    json(&request.query, tepui_proto::json::to_vec(&cluster_status(&program.state())))
}

pub(crate) async fn machine(
    program: &Program,
    mut request: Request,
    way: Machine,
) -> Result<Response, HttpError> {
    let body = request.read_body(operator::CALL_BYTES_MAX).await?;
    let machines: Vec<pb::MachineID> =
        tepui_proto::json::list_from_slice(&body).map_err(|why| HttpError::bad_request(why.to_string()))?;
    let call = match way {
        Machine::Down => {
            let start = StartMaintenance { machines, ..Default::default() };
            Call {
                r#type: Some(Type::START_MAINTENANCE),
                start_maintenance: start.into(),
                ..Default::default()
            }
        }
        Machine::Up => {
            let stop = StopMaintenance { machines, ..Default::default() };
            Call { r#type: Some(Type::STOP_MAINTENANCE), stop_maintenance: stop.into(), ..Default::default() }
        }
    };
    operator::submit(program, &request, call, Encoding::Json).await
}
