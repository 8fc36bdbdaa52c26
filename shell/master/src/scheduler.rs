//! `/api/v1/scheduler`: a call becomes an input; the machine answers it, or opens the framework's event stream.

use tepui_core_master::Input;
use tepui_http::{Encoding, Exchange, HttpError, Request, Response, accepts, read_call};
use tepui_proto::mesos::v1::scheduler::Call;
use tepui_proto::mesos::v1::scheduler::call::Type;

use crate::audit;
use crate::program::{Kind, Program};

pub(crate) async fn call(program: &Program, mut request: Request) -> Result<Response, HttpError> {
    let (exchange, input) = begin(program, &mut request).await?;
    program.send(input).await?;
    Ok(exchange.answered().await)
}

/// The input that a call becomes, and the exchange that its answer ends.
pub(crate) async fn begin(
    program: &Program,
    request: &mut Request,
) -> Result<(Exchange<Kind>, Input), HttpError> {
    let call: Call = read_call(request).await?;
    audit::note_scheduler(request, &call);
    let encoding = match call.r#type {
        Some(Type::SUBSCRIBE | Type::RECONCILE_OPERATIONS) => accepts(&request.headers)?,
        // The others have no body to be accepted.
        _ => Encoding::Json,
    };
    let stream_id = request.header("Mesos-Stream-Id").map(str::to_owned);
    let exchange = program.exchanges.begin(Kind::Scheduler, encoding, request);
    let principal = request.principal_name();
    let input = Input::Scheduler { conn: exchange.conn, stream_id, principal, call: Box::new(call) };
    Ok((exchange, input))
}

/// Answers calls that came together: their inputs are one batch.
pub(crate) async fn answer_all(
    program: &Program,
    begun: Vec<Result<(Exchange<Kind>, Input), HttpError>>,
) -> Vec<Response> {
    let (mut inputs, mut exchanges) = (Vec::with_capacity(begun.len()), Vec::with_capacity(begun.len()));
    for begun in begun {
        exchanges.push(begun.map(|(exchange, input)| {
            inputs.push(input);
            exchange
        }));
    }
    if let Err(error) = program.send_all(inputs).await {
        let rejected = exchanges.into_iter().map(|begun| begun.err().unwrap_or_else(|| error.clone()).into());
        return rejected.collect();
    }
    // Answers come in the order of the calls: waiting for the last one first wakes this once.
    let mut responses = Vec::with_capacity(exchanges.len());
    for exchange in exchanges.into_iter().rev() {
        responses.push(match exchange {
            Ok(exchange) => exchange.answered().await,
            Err(error) => error.into(),
        });
    }
    responses.reverse();
    responses
}
