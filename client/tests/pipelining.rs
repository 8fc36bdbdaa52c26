//! Calls in flight on one connection, against a master that reads them as bytes and answers when the test says.

use tepui_client::scheduler::{self, Event, Pending, Scheduler, calls};
use tepui_client::v1::{self, FrameworkInfo};
use tepui_client::{CALLS_IN_FLIGHT_MAX, Fault, Format};
use tepui_proto::{json, recordio};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const SUBSCRIBED: &str = r#"{"type":"SUBSCRIBED","subscribed":{"framework_id":{"value":"F"}}}"#;
const ACCEPTED: &str = "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n";

struct Master {
    listener: TcpListener,
    /// Holds the subscription.
    _events: Connection,
}

struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
}

impl Connection {
    async fn accept(listener: &TcpListener) -> Self {
        Self { stream: listener.accept().await.expect("a connection").0, received: Vec::new() }
    }

    /// The role of the next REVIVE, or the type of another call.
    async fn call(&mut self) -> String {
        loop {
            if let Some(call) = self.take() {
                return call;
            }
            let read = self.stream.read_buf(&mut self.received).await.expect("readable");
            assert!(read > 0, "the client closed the connection");
        }
    }

    fn take(&mut self) -> Option<String> {
        let head = self.received.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
        let text = std::str::from_utf8(&self.received[..head]).expect("text");
        let length = text.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
        let whole = head + length.expect("every call has a length").parse::<usize>().expect("a number");
        let body = self.received.get(head..whole)?;
        let call: v1::scheduler::Call = Format::Json.decode(body).expect("a call");
        self.received.drain(..whole);
        Some(call.revive.roles.first().cloned().unwrap_or_else(|| format!("{:?}", call.r#type)))
    }

    async fn write(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).await.expect("written");
    }
}

async fn subscribed() -> (Master, Scheduler) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound").to_string();
    let framework = FrameworkInfo { name: "test".into(), user: "nobody".into(), ..Default::default() };
    let options = scheduler::Options { format: Format::Json, ..Default::default() };
    let mut scheduler = scheduler::connect_with(&address, framework, options).expect("an address");
    let mut events = Connection::accept(&listener).await;
    assert_eq!(events.call().await, "Some(SUBSCRIBE)");
    let event: v1::scheduler::Event = json::from_slice(SUBSCRIBED.as_bytes()).expect("an event");
    let record = recordio::encode(&json::to_vec(&event));
    let record = String::from_utf8(record).expect("JSON is text");
    let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nmesos-stream-id: s-1\r\n\r\n";
    events.write(&format!("{head}{:x}\r\n{record}\r\n", record.len())).await;
    assert!(matches!(scheduler.next_event().await, Some(Event::Subscribed(_))));
    (Master { listener, _events: events }, scheduler)
}

async fn revive(scheduler: &Scheduler, role: impl ToString) -> Pending {
    scheduler.begin(calls::revive(vec![role.to_string()])).await.expect("queued")
}

#[tokio::test]
async fn calls_are_sent_before_earlier_ones_are_answered() {
    let (master, scheduler) = subscribed().await;
    let [first, second, third] =
        [revive(&scheduler, 1).await, revive(&scheduler, 2).await, revive(&scheduler, 3).await];
    let mut connection = Connection::accept(&master.listener).await;
    for role in ["1", "2", "3"] {
        assert_eq!(connection.call().await, role);
    }
    connection
        .write(&format!("{ACCEPTED}HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n\r\nno{ACCEPTED}"))
        .await;
    first.await.expect("accepted");
    assert_eq!(second.await.expect_err("refused").to_string(), "403: no");
    third.await.expect("accepted");
}

#[tokio::test]
async fn calls_in_flight_on_a_lost_connection_fail_and_later_ones_use_another() {
    let (master, scheduler) = subscribed().await;
    let pending = [revive(&scheduler, 1).await, revive(&scheduler, 2).await, revive(&scheduler, 3).await];
    let mut connection = Connection::accept(&master.listener).await;
    for role in ["1", "2", "3"] {
        assert_eq!(connection.call().await, role);
    }
    connection.write(ACCEPTED).await;
    drop(connection);
    let mut outcomes = Vec::new();
    for pending in pending {
        outcomes.push(pending.await);
    }
    assert!(
        matches!(&outcomes[..], [Ok(()), Err(Fault::Lost { .. }), Err(Fault::Lost { .. })]),
        "{outcomes:?}"
    );

    let later = revive(&scheduler, 4).await;
    let mut connection = Connection::accept(&master.listener).await;
    assert_eq!(connection.call().await, "4");
    connection.write("HTTP/1.1 202 Accepted\r\nconnection: close\r\ncontent-length: 0\r\n\r\n").await;
    later.await.expect("accepted");

    // Closed while nothing was in flight: no call is lost.
    drop(connection);
    let last = revive(&scheduler, 5).await;
    let mut connection = Connection::accept(&master.listener).await;
    assert_eq!(connection.call().await, "5");
    connection.write(ACCEPTED).await;
    last.await.expect("accepted");
}

#[tokio::test]
async fn calls_in_flight_are_limited() {
    let (master, scheduler) = subscribed().await;
    let mut pending = Vec::new();
    for number in 0..=CALLS_IN_FLIGHT_MAX {
        pending.push(revive(&scheduler, number).await);
    }
    let mut connection = Connection::accept(&master.listener).await;
    for number in 0..CALLS_IN_FLIGHT_MAX {
        assert_eq!(connection.call().await, number.to_string());
    }
    assert!(connection.received.is_empty());
    let mut more = [0];
    assert!(connection.stream.try_read(&mut more).is_err(), "nothing more is sent");
    connection.write(ACCEPTED).await;
    assert_eq!(connection.call().await, CALLS_IN_FLIGHT_MAX.to_string());
}
