//! Sessions with containers over the wire: what is sent, what is heard, and how they end.

mod server;

use server::{Answer, Server};
use tepui_client::operator::Client;
use tepui_client::operator::session::{ContainerInput, ContainerOutput};
use tepui_client::v1::agent::call::LaunchNestedContainerSession;
use tepui_client::v1::agent::call::attach_container_input::Type as Step;
use tepui_client::v1::agent::{Call, ProcessIO, call};
use tepui_client::{Fault, Format, shorthand};

fn client(server: &Server, format: Format) -> Client {
    Client::new(&server.address()).expect("an address").with_format(format)
}

fn launch() -> LaunchNestedContainerSession {
    LaunchNestedContainerSession { container_id: shorthand::container_id("c").into(), ..Default::default() }
}

#[tokio::test]
async fn session_output_is_streamed_to_the_end() {
    for format in [Format::Json, Format::Protobuf] {
        let mut server = Server::start(format).await;
        let client = client(&server, format);
        let launched = tokio::spawn(async move { client.launch_session(launch()).await });
        let asked = server.asked().await;
        assert_eq!(asked.path, "/api/v1");
        assert_eq!(asked.header("accept"), Some("application/recordio"));
        let call: Call = asked.message();
        assert_eq!(call.r#type, Some(call::Type::LAUNCH_NESTED_CONTAINER_SESSION));
        let stream = asked.stream::<ProcessIO>(&[]);
        let mut output = launched.await.expect("no panic").expect("a stream");
        stream.send(r#"{"type":"CONTROL","control":{"type":"HEARTBEAT"}}"#);
        stream.send(r#"{"type":"DATA","data":{"type":"STDERR","data":"aGk="}}"#);
        assert_eq!(output.next().await.expect("heard"), Some(ContainerOutput::Stderr(b"hi".to_vec())));
        drop(stream);
        assert_eq!(output.next().await.expect("heard"), None);
    }
}

#[tokio::test]
async fn launch_of_an_existing_session_is_rejected() {
    let mut server = Server::start(Format::Protobuf).await;
    let client = client(&server, Format::Protobuf);
    let launched = tokio::spawn(async move { client.launch_session(launch()).await });
    server.asked().await.answer(Answer::status(202));
    let fault = launched.await.expect("no panic").expect_err("refused");
    assert!(matches!(fault, Fault::Refused { status: 202, .. }), "{fault}");
}

#[tokio::test]
async fn input_arrives_in_order_after_the_container_id() {
    for format in [Format::Json, Format::Protobuf] {
        let mut server = Server::start(format).await;
        let client = client(&server, format);
        let input = client.attach_input(&shorthand::container_id("c")).await.expect("an address");
        let said = [
            ContainerInput::Window { rows: 2, columns: 3 },
            ContainerInput::Keys(b"a".to_vec()),
            ContainerInput::Keys(b"b".to_vec()),
            ContainerInput::End,
        ];
        for said in said.clone() {
            input.send(said).await;
        }
        let left = tokio::spawn(input.leave());
        let asked = server.asked().await;
        let records: Vec<Call> = asked.records();
        let first = &records[0].attach_container_input;
        assert_eq!((first.r#type, first.container_id.value.as_str()), (Some(Step::CONTAINER_ID), "c"));
        assert_eq!(records[1..], said.map(ContainerInput::call));
        asked.answer(Answer::status(200));
        left.await.expect("no panic").expect("heard");
    }
}

#[tokio::test]
async fn rejected_input_is_reported() {
    let mut server = Server::start(Format::Protobuf).await;
    let client = client(&server, Format::Protobuf);
    let input = client.attach_input(&shorthand::container_id("c")).await.expect("an address");
    let left = tokio::spawn(input.leave());
    server.asked().await.answer(Answer::status(409).with_body("Multiple input connections are not allowed"));
    let fault = left.await.expect("no panic").expect_err("refused");
    assert_eq!(fault.to_string(), "409: Multiple input connections are not allowed");
}
