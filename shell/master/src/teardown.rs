//! `/teardown`: an operator ends a framework, by a form.

use tepui_http::{Encoding, HttpError, Request, Response};
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::master::Call;
use tepui_proto::mesos::v1::master::call::{Teardown, Type};

use crate::operator;
use crate::program::Program;

pub(crate) async fn teardown(program: &Program, mut request: Request) -> Result<Response, HttpError> {
    let form = request.read_form().await?;
    let Some(id) = form.get("frameworkId") else {
        return Err(HttpError::bad_request("Missing 'frameworkId' in the body of the request"));
    };
    let framework_id = pb::FrameworkID { value: id.to_owned(), ..Default::default() };
    let teardown = Teardown { framework_id: framework_id.into(), ..Default::default() };
    let call = Call { r#type: Some(Type::TEARDOWN), teardown: teardown.into(), ..Default::default() };
    operator::submit(program, &request, call, Encoding::Json).await
}
