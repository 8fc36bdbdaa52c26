//! `/api/v1/executor`: a call becomes an input; the machine answers it, or opens the executor's event stream.

use tepui_core_agent::Input;
use tepui_http::{Encoding, HttpError, Request, Response, accepts, read_call};
use tepui_proto::mesos::v1::executor::Call;
use tepui_proto::mesos::v1::executor::call::Type;

use crate::access::sender;
use crate::audit;
use crate::program::{Kind, Program, stopping};

pub(crate) async fn call(program: &Program, mut request: Request) -> Result<Response, HttpError> {
    let call: Call = read_call(&mut request).await?;
    audit::note_executor(&request, &call);
    let encoding = match call.r#type {
        Some(Type::SUBSCRIBE) => accepts(&request.headers)?,
        // The others have no body to be accepted.
        _ => Encoding::Json,
    };
    let exchange = program.exchanges.begin(Kind::Executor, encoding, &request);
    let input = Input::Executor { conn: exchange.conn, sender: sender(&request), call: Box::new(call) };
    program.handle.send(input).await.map_err(stopping)?;
    Ok(exchange.answered().await)
}
