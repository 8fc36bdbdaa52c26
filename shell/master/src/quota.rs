//! `/quota`: what roles must be able to get and must not pass. GET shows it, POST sets it, DELETE takes it away.

use http::Method;
use tepui_core_master::State;
use tepui_http::{Encoding, HttpError, Request, Response, json};
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::master::Call;
use tepui_proto::mesos::v1::master::call::{RemoveQuota, SetQuota, Type};
use tepui_proto::mesos::v1::quota::{QuotaInfo, QuotaRequest, QuotaStatus};

use crate::operator;
use crate::routes::Program;

/// `below`: the components behind `/quota`, which name the role to DELETE.
pub(crate) async fn quota(
    program: &Program,
    mut request: Request,
    below: &[String],
) -> Result<Response, HttpError> {
    request.expect_method("GET, POST, DELETE")?;
    let call = match request.method {
        Method::POST => set(&request.read_body(operator::CALL_BYTES_MAX).await?)?,
        Method::DELETE => remove(below)?,
        _ => {
            return Ok(json(
                &request.query,
                tepui_proto::json::to_vec(&status(&program.documents.seen_by(&request))),
            ));
        }
    };
    operator::ask(program, &request, call, Encoding::Json).await
}

fn set(body: &[u8]) -> Result<Call, HttpError> {
    let quota_request: QuotaRequest = tepui_proto::json::from_slice(body)
        .map_err(|why| HttpError::bad_request(format!("Failed to parse set quota request JSON: {why}")))?;
    let set = SetQuota { quota_request: quota_request.into(), ..Default::default() };
    Ok(Call { r#type: Some(Type::SET_QUOTA), set_quota: set.into(), ..Default::default() })
}

fn remove(below: &[String]) -> Result<Call, HttpError> {
    if below.is_empty() {
        return Err(HttpError::bad_request(
            "Failed to parse request path: name a role, as in DELETE /quota/role",
        ));
    }
    let remove = RemoveQuota { role: below.join("/"), ..Default::default() };
    Ok(Call { r#type: Some(Type::REMOVE_QUOTA), remove_quota: remove.into(), ..Default::default() })
}

/// All quotas, in the new form and in the old one, which knows guarantees only.
pub(crate) fn status(state: &State) -> QuotaStatus {
    QuotaStatus {
        infos: state.quotas.values().map(|config| old_form(config)).collect(),
        configs: state.quotas.values().map(|config| (**config).clone()).collect(),
        ..Default::default()
    }
}

fn old_form(config: &pb::quota::QuotaConfig) -> QuotaInfo {
    let resource = |(name, amount): (&String, &pb::value::Scalar)| pb::Resource {
        name: name.clone(),
        r#type: pb::value::Type::SCALAR,
        scalar: amount.clone().into(),
        ..Default::default()
    };
    let guarantee = config.guarantees.iter().map(resource).collect();
    QuotaInfo { role: Some(config.role.clone()), guarantee, ..Default::default() }
}
