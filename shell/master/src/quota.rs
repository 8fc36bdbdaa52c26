//! `/quota`: what roles must be able to get and must not pass. GET shows it, POST sets it, DELETE takes it away.

use http::Method;
use tepui_http::{Encoding, HttpError, Request, Response, json};
use tepui_proto::mesos::v1::master::Call;
use tepui_proto::mesos::v1::master::call::{RemoveQuota, SetQuota, Type};
use tepui_proto::mesos::v1::quota::QuotaRequest;

use crate::program::Program;
use crate::{operator, read};

/// `below`: the components behind `/quota`, which name the role to DELETE.
pub(crate) async fn quota(
    program: &Program,
    mut request: Request,
    below: Vec<String>,
) -> Result<Response, HttpError> {
    let call = match request.method {
        Method::POST => set(&request.read_body(operator::CALL_BYTES_MAX).await?)?,
        Method::DELETE => remove(&below)?,
        _ => {
            return Ok(json(
                &request.query,
                tepui_proto::json::to_vec(&read::quota::status(&program.documents.visible_to(&request))),
            ));
        }
    };
    operator::submit(program, &request, call, Encoding::Json).await
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
