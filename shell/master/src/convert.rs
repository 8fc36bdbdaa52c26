//! `/reserve`, `/unreserve`, `/create-volumes`, `/destroy-volumes`: operators change resources, by a form.

use tepui_http::{Encoding, HttpError, Query, Request, Response};
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::master::Call;
use tepui_proto::mesos::v1::master::call::{
    CreateVolumes, DestroyVolumes, ReserveResources, Type, UnreserveResources,
};

use crate::operator;
use crate::program::Program;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Conversion {
    Reserve,
    Unreserve,
    CreateVolumes,
    DestroyVolumes,
}

pub(crate) async fn convert(
    program: &Program,
    mut request: Request,
    conversion: Conversion,
) -> Result<Response, HttpError> {
    let form = request.read_form().await?;
    let call = conversion.call(&form)?;
    operator::submit(program, &request, call, Encoding::Json).await
}

impl Conversion {
    fn call(self, form: &Query) -> Result<Call, HttpError> {
        let of = |r#type| Call { r#type: Some(r#type), ..Default::default() };
        let value = form.get("slaveId").ok_or_else(|| missing("slaveId"))?.to_owned();
        let agent_id = pb::AgentID { value, ..Default::default() }.into();
        Ok(match self {
            Conversion::Reserve => {
                let (source, resources) = (optional(form, "source")?, list(form, "resources")?);
                let reserve = ReserveResources { agent_id, source, resources, ..Default::default() };
                Call { reserve_resources: reserve.into(), ..of(Type::RESERVE_RESOURCES) }
            }
            Conversion::Unreserve => {
                let resources = list(form, "resources")?;
                let unreserve = UnreserveResources { agent_id, resources, ..Default::default() };
                Call { unreserve_resources: unreserve.into(), ..of(Type::UNRESERVE_RESOURCES) }
            }
            Conversion::CreateVolumes => {
                let volumes = list(form, "volumes")?;
                let create = CreateVolumes { agent_id, volumes, ..Default::default() };
                Call { create_volumes: create.into(), ..of(Type::CREATE_VOLUMES) }
            }
            Conversion::DestroyVolumes => {
                let volumes = list(form, "volumes")?;
                let destroy = DestroyVolumes { agent_id, volumes, ..Default::default() };
                Call { destroy_volumes: destroy.into(), ..of(Type::DESTROY_VOLUMES) }
            }
        })
    }
}

fn missing(name: &str) -> HttpError {
    HttpError::bad_request(format!("Missing '{name}' in the body of the request"))
}

fn list(form: &Query, name: &str) -> Result<Vec<pb::Resource>, HttpError> {
    let text = form.get(name).ok_or_else(|| missing(name))?;
    tepui_proto::json::list_from_slice(text.as_bytes()).map_err(|why| {
        HttpError::bad_request(format!("Failed to parse '{name}' in the body of the request: {why}"))
    })
}

fn optional(form: &Query, name: &str) -> Result<Vec<pb::Resource>, HttpError> {
    if form.get(name).is_some() { list(form, name) } else { Ok(Vec::new()) }
}
