//! `/api/v1/scheduler`: a call becomes an input; the machine answers it, or opens the framework's event stream.

use tepui_core_master::Input;
use tepui_http::{Encoding, HttpError, Request, Response, accepts, read_call};
use tepui_proto::mesos::v1::scheduler::Call;
use tepui_proto::mesos::v1::scheduler::call::Type;

use crate::audit;
use crate::routes::{Kind, Program};

pub(crate) async fn call(program: &Program, mut request: Request) -> Result<Response, HttpError> {
    let call: Call = read_call(&mut request).await?;
    audit::note_scheduler(&request, &call);
    let encoding = match call.r#type {
        Some(Type::SUBSCRIBE | Type::RECONCILE_OPERATIONS) => accepts(&request.headers)?,
        // The others have no body to be accepted.
        _ => Encoding::Json,
    };
    let stream_id = request.header("Mesos-Stream-Id").map(str::to_owned);
    let exchange = program.exchanges.begin(Kind::Scheduler, encoding, &request);
    let principal = request.principal_name();
    let input = Input::Scheduler { conn: exchange.conn, stream_id, principal, call: Box::new(call) };
    program.tell(input).await?;
    Ok(exchange.answered().await)
}
