//! Requests to a manager that stands by.

use http::{Request, StatusCode};
use http_body_util::BodyExt;
use hyper_util::rt::TokioIo;
use tepui_swarm::{EngineAddress, Host};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::kit::Kit;
use crate::body;
use crate::engine::EngineClient;
use crate::front::Front;
use crate::guard::Guard;
use crate::listen::Listener;

/// Serves a manager on a free port: `host:port`.
async fn listen(front: Front) -> String {
    let listener = Listener::bind(&Host::Tcp("127.0.0.1:0".to_owned())).await.expect("a port");
    let address = listener.address().trim_start_matches("tcp://").to_owned();
    listener.serve(front, None);
    address
}

fn standby() -> Front {
    Front::standby(None, Guard::default())
}

fn client(address: &str) -> EngineClient {
    let (host, port) = address.rsplit_once(':').expect("host and port");
    EngineClient::new(EngineAddress::Tcp { host: host.to_owned(), port: port.parse().expect("a port") }, None)
}

#[tokio::test(flavor = "multi_thread")]
async fn standbys_that_take_each_other_for_the_leader_reject_requests() {
    let (first, second) = (standby(), standby());
    let (one, two) = (listen(first.clone()).await, listen(second.clone()).await);
    first.stand_by(Some(two.clone().into_bytes()));
    second.stand_by(Some(one.clone().into_bytes()));
    let request = Request::get("/info").header("host", &one).body(body::empty()).expect("a request");
    let answer = client(&one).call(request).await.expect("an answer");
    assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(String::from_utf8_lossy(answer.body()).contains("no manager leads at present"), "{answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_through_a_standby_support_half_close() {
    let kit = Kit::start(1).await;
    let id = kit.create("echo").await;
    let standby = standby();
    standby.stand_by(Some(listen(kit.front.clone()).await.into_bytes()));
    let address = listen(standby).await;
    let request = Request::post(format!("/containers/{id}/attach?stream=1&stdin=1&stdout=1"))
        .header("host", &address)
        .header("connection", "Upgrade")
        .header("upgrade", "tcp")
        .body(body::empty())
        .expect("a request");
    let answer = client(&address).send(request).await.expect("an answer");
    assert_eq!(answer.status(), StatusCode::SWITCHING_PROTOCOLS);
    let mut stream = TokioIo::new(hyper::upgrade::on(answer).await.expect("an upgrade"));
    stream.write_all(b"hello ").await.expect("a write");
    stream.shutdown().await.expect("a shutdown");
    let mut all = Vec::new();
    stream.read_to_end(&mut all).await.expect("all of it");
    assert_eq!(all, b"HELLO bye");
}

#[tokio::test(flavor = "multi_thread")]
async fn standby_without_a_leader_rejects_requests() {
    let address = listen(standby()).await;
    let request = Request::get("/info").header("host", &address).body(body::empty()).expect("a request");
    let answer = client(&address).send(request).await.expect("an answer");
    assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(answer.into_body().collect().await.is_ok());
}
