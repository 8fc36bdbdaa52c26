//! The server over real sockets: what a peer sends byte by byte, and what it gets.

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use http::StatusCode;
use tepui_proto::mesos::v1::scheduler;
use tepui_types::ConnId;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use super::*;

mod limits;
mod pipelined;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Kind;

/// Answers `/call` with the call's type, `/big` with a large document, `/thread` with the name of its thread. `/flood` never
/// ends; `records` gets a message when its peer is gone. Leaves `/subscribe` and `/link` to the test, through `begun`.
struct Program {
    exchanges: Exchanges<Kind>,
    begun: mpsc::UnboundedSender<ConnId>,
    records: mpsc::UnboundedSender<Vec<u8>>,
}

struct Bench {
    address: std::net::SocketAddr,
    exchanges: Exchanges<Kind>,
    ended: mpsc::UnboundedReceiver<Ended<Kind>>,
    begun: mpsc::UnboundedReceiver<ConnId>,
    records: mpsc::UnboundedReceiver<Vec<u8>>,
    listening: Listening,
}

impl Handler for Program {
    fn is_call(&self, head: &http::request::Parts) -> bool {
        head.uri.path() == "/echo" && head.headers.contains_key("x-call")
    }

    /// Prints how many calls came together.
    async fn handle_all(self: Arc<Self>, requests: Vec<Request>) -> Vec<Response> {
        self.records.send(requests.len().to_string().into_bytes()).unwrap();
        let mut responses = Vec::new();
        for request in requests {
            responses.push(echo(request).await);
        }
        responses
    }

    async fn handle(self: Arc<Self>, mut request: Request) -> Response {
        match request.components.first().map(String::as_str) {
            Some("call") => match read_call::<scheduler::Call>(&mut request).await {
                Ok(call) => text(StatusCode::OK, format!("{:?}", call.r#type)),
                Err(error) => error.into(),
            },
            Some("echo") => {
                self.records.send(b"alone".to_vec()).unwrap();
                echo(request).await
            }
            Some("big") => json(&request.query, format!("\"{}\"", "x".repeat(5000)).into_bytes()),
            Some("thread") => text(StatusCode::OK, thread()),
            Some("flood") => {
                let (sender, body) = Body::chunks();
                tokio::spawn(async move {
                    let chunk = bytes::Bytes::from(vec![b'x'; 64 * 1024]);
                    while sender.send(Ok(chunk.clone())).await {}
                    self.records.send(b"gone".to_vec()).unwrap();
                });
                Response::new(body)
            }
            Some("subscribe") => {
                let exchange = self.exchanges.begin(Kind, Encoding::Json, &request);
                self.begun.send(exchange.conn).unwrap();
                exchange.answered().await
            }
            Some("link") => {
                let exchange = self.exchanges.begin(Kind, Encoding::Protobuf, &request);
                self.begun.send(exchange.conn).unwrap();
                let receiver = Box::new(Chunks(self.records.clone()));
                switch_protocol(exchange.answered().await, "t", receiver)
            }
            _ => HttpError::not_found().into(),
        }
    }
}

/// The body of a request, repeated if it says how often.
async fn echo(mut request: Request) -> Response {
    let times = request.header("x-times").map_or(1, |times| times.parse().unwrap());
    match request.read_body(CALL_BYTES_MAX).await {
        Ok(body) => text(StatusCode::OK, body.repeat(times)),
        Err(error) => error.into(),
    }
}

fn thread() -> String {
    std::thread::current().name().unwrap_or_default().to_owned()
}

/// Accepts every chunk but `wrong`.
#[derive(Debug)]
struct Chunks(mpsc::UnboundedSender<Vec<u8>>);

impl Receive for Chunks {
    fn receive(&mut self, chunk: bytes::Bytes) -> Receiving<'_> {
        self.0.send(chunk.to_vec()).unwrap();
        Box::pin(async move { if chunk == "wrong" { Err("wrong".to_owned()) } else { Ok(()) } })
    }
}

fn bench_with(limits: StreamLimits) -> Bench {
    bench_of(limits, ServerLimits::default())
}

/// The tests call the server `t`.
fn browsers() -> BrowserPolicy {
    BrowserPolicy::new(&["t".to_string()], true).unwrap()
}

fn bench_of(limits: StreamLimits, server_limits: ServerLimits) -> Bench {
    let (exchanges, ended) = Exchanges::new(limits);
    let (begun_sender, begun) = mpsc::unbounded_channel();
    let (records_sender, records) = mpsc::unbounded_channel();
    let server = Server::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = server.address();
    let program = Program { exchanges: exchanges.clone(), begun: begun_sender, records: records_sender };
    let listening = server.serve(Arc::new(program), server_limits, browsers(), None);
    Bench { address, exchanges, ended, begun, records, listening }
}

fn bench() -> Bench {
    bench_with(StreamLimits::default())
}

impl Bench {
    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends bytes on a new connection and reads until the server closes it.
    async fn raw(&self, request: &[u8]) -> String {
        let mut stream = self.connect().await;
        stream.write_all(request).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }

    async fn post(&self, headers: &str, body: &[u8]) -> String {
        let head = format!(
            "POST /call HTTP/1.1\r\nHost: t\r\nConnection: close\r\n{headers}Content-Length: {}\r\n\r\n",
            body.len()
        );
        self.raw(&[head.as_bytes(), body].concat()).await
    }

    async fn get(&self, path: &str, headers: &str) -> String {
        self.raw(format!("GET {path} HTTP/1.1\r\nHost: t\r\nConnection: close\r\n{headers}\r\n").as_bytes())
            .await
    }
}

/// Reads until `until` is in what was read.
async fn read_until(stream: &mut TcpStream, until: &str) -> String {
    let mut seen = String::new();
    let mut chunk = [0; 4096];
    while !seen.contains(until) {
        let count = stream.read(&mut chunk).await.unwrap();
        assert!(count > 0, "closed after {seen:?}");
        seen.push_str(&String::from_utf8_lossy(&chunk[..count]));
    }
    seen
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or_default()
}

fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").map_or("", |(_, body)| body)
}

#[tokio::test]
async fn invalid_calls_are_rejected_with_v1_messages() {
    let bench = bench();
    let json = "Content-Type: application/json\r\n";
    for (headers, body_sent, expected) in [
        (json, r#"{"type":"REVIVE"}"#, ("200", "Some(REVIVE)")),
        (
            "Content-Type: application/json; charset=utf-8\r\n",
            r#"{"type":"REVIVE"}"#,
            ("200", "Some(REVIVE)"),
        ),
        ("", "{}", ("400", "Expecting 'Content-Type' to be present")),
        (json, "{", ("400", "Failed to parse body into JSON: syntax error at line 1 near: ")),
        (json, "", ("400", "Failed to parse body into JSON: syntax error at line 1 near: ")),
        (json, "[]", ("400", "Failed to convert JSON into Call protobuf: Expecting a JSON object")),
        (
            json,
            r#"{"type":"KILL","kill":{}}"#,
            ("400", "Failed to convert JSON into Call protobuf: Missing required fields: kill.task_id"),
        ),
        (
            "Content-Type: text/plain\r\n",
            "{}",
            ("415", "Expecting 'Content-Type' of application/json or application/x-protobuf"),
        ),
    ] {
        let answer = bench.post(headers, body_sent.as_bytes()).await;
        assert_eq!((status(&answer), body(&answer)), expected, "{headers} {body_sent}");
    }
    let answer = bench.post("Content-Type: application/x-protobuf\r\n", &[0xff, 0xff]).await;
    assert_eq!(status(&answer), "400");
    let answer = bench.get("/call", "").await;
    assert_eq!(status(&answer), "405");
    assert!(answer.contains("allow: POST\r\n"), "{answer}");
    assert!(answer.contains("content-type: text/plain; charset=utf-8\r\n"), "{answer}");
    assert_eq!(body(&answer), "405 Method Not Allowed. Expecting one of { 'POST' }, but received 'GET'.");
}

#[tokio::test]
async fn body_limit_applies_to_decompressed_bytes() {
    let bench = bench();
    let head = "POST /call HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\n";
    let announced = format!("{head}Content-Length: {}\r\n\r\n", CALL_BYTES_MAX + 1);
    let mut stream = bench.connect().await;
    stream.write_all(announced.as_bytes()).await.unwrap();
    let answer = read_until(&mut stream, "bytes").await;
    assert_eq!(status(&answer), "413");
    assert!(answer.contains("larger than the limit of 67108864 bytes"), "{answer}");

    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let mebibyte = vec![b' '; 1024 * 1024];
    for _ in 0..65 {
        encoder.write_all(&mebibyte).unwrap();
    }
    let bomb = encoder.finish().unwrap();
    let gzip = "Content-Type: application/json\r\nContent-Encoding: gzip\r\n";
    assert_eq!(status(&bench.post(gzip, &bomb).await), "413");
    assert_eq!(status(&bench.post(gzip, b"not gzip").await), "400");

    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(br#"{"type":"SUPPRESS"}"#).unwrap();
    let answer = bench.post(gzip, &encoder.finish().unwrap()).await;
    assert_eq!((status(&answer), body(&answer)), ("200", "Some(SUPPRESS)"));
}

#[tokio::test]
async fn large_answers_are_compressed_on_request_and_jsonp_is_a_script() {
    let bench = bench();
    let plain = bench.get("/big", "").await;
    assert!(!plain.contains("content-encoding"), "{plain}");
    assert_eq!(body(&plain).len(), 5002);
    let gzipped = bench.get("/big", "Accept-Encoding: gzip\r\n").await;
    assert!(gzipped.contains("content-encoding: gzip\r\n"));
    let script = bench.get("/big?jsonp=cb", "").await;
    assert!(script.contains("content-type: text/javascript\r\n"), "{script}");
    assert!(body(&script).starts_with("cb(\"x"));
    assert_eq!(body(&bench.get("/nope", "").await), "404 Not Found.");
    assert_eq!(status(&bench.get("/a/../b", "").await), "404");
}

fn event(n: u32) -> scheduler::Event {
    scheduler::Event {
        r#type: Some(scheduler::event::Type::ERROR),
        error: scheduler::event::Error { message: format!("e{n}"), ..Default::default() }.into(),
        ..Default::default()
    }
}

#[tokio::test]
async fn stream_sends_one_record_per_chunk_until_closed() {
    let mut bench = bench();
    let mut stream = bench.connect().await;
    stream.write_all(b"GET /subscribe HTTP/1.1\r\nHost: t\r\n\r\n").await.unwrap();
    let conn = bench.begun.recv().await.unwrap();
    bench.exchanges.open(conn, &[]);
    bench.exchanges.push(conn, &event(1));
    bench.exchanges.push(conn, &event(2));
    let seen = read_until(&mut stream, "e2").await;
    assert_eq!(status(&seen), "200");
    assert!(seen.contains("content-type: application/json\r\n"), "{seen}");
    assert!(seen.contains("transfer-encoding: chunked\r\n"), "{seen}");
    let record = r#"{"type":"ERROR","error":{"message":"e1"}}"#;
    assert!(seen.contains(&format!("\r\n2C\r\n41\n{record}\r\n")), "{seen}");
    bench.exchanges.push(conn, &event(3));
    bench.exchanges.close(conn);
    let rest = read_until(&mut stream, "0\r\n\r\n").await;
    assert!(rest.contains("e3"), "{rest}");
    drop(stream);
    bench.listening.stop().await;
    assert!(bench.ended.try_recv().is_err(), "the machine closed it; nobody needs to be told");
}

#[tokio::test]
async fn disconnected_client_is_detected_while_waiting_or_streaming() {
    let mut bench = bench();
    for open in [false, true] {
        let mut stream = bench.connect().await;
        stream.write_all(b"GET /subscribe HTTP/1.1\r\nHost: t\r\n\r\n").await.unwrap();
        let conn = bench.begun.recv().await.unwrap();
        if open {
            bench.exchanges.open(conn, &[]);
            bench.exchanges.push(conn, &event(1));
            read_until(&mut stream, "e1").await;
        }
        drop(stream);
        assert_eq!(bench.ended.recv().await.unwrap(), Ended { conn, kind: Kind });
        bench.exchanges.push(conn, &event(2));
        bench.exchanges.answer(conn, |_| accepted());
    }
}

#[tokio::test]
async fn subscriber_that_does_not_read_is_disconnected() {
    let limits = StreamLimits {
        subscriber_queue_events_max: 10,
        subscriber_over_limit_max: Duration::ZERO,
        ..StreamLimits::default()
    };
    let mut bench = bench_with(limits);
    let mut stream = bench.connect().await;
    stream.write_all(b"GET /subscribe HTTP/1.1\r\nHost: t\r\n\r\n").await.unwrap();
    let conn = bench.begun.recv().await.unwrap();
    bench.exchanges.open(conn, &[]);
    let mut large = event(1);
    large.error.get_or_insert_default().message = "x".repeat(1024 * 1024);
    let mut pushed = 0;
    let ended = loop {
        bench.exchanges.push(conn, &large);
        pushed += 1;
        assert!(pushed < 1000, "buffered without end");
        tokio::task::yield_now().await;
        if let Ok(ended) = bench.ended.try_recv() {
            break ended;
        }
    };
    assert_eq!(ended.conn, conn);
    // The connection is really closed: reading comes to an end, without the chunk that would make it look whole.
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest).await;
    assert!(!rest.ends_with(b"0\r\n\r\n"));
}

/// One that reads and one that does not: only the latter is dropped, and what it reads then ends with the reason.
#[tokio::test]
async fn a_dropped_subscriber_gets_the_reason() {
    let limits = StreamLimits {
        subscriber_queue_events_max: 10,
        subscriber_over_limit_max: Duration::ZERO,
        ..StreamLimits::default()
    };
    let mut bench = bench_with(limits);
    let [mut slow, mut fast] = [bench.connect().await, bench.connect().await];
    let mut conns = Vec::new();
    for stream in [&mut slow, &mut fast] {
        let request = b"GET /subscribe HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n";
        stream.write_all(request).await.unwrap();
        let conn = bench.begun.recv().await.unwrap();
        bench.exchanges.open(conn, &[]);
        conns.push(conn);
    }
    let error = |message: String| scheduler::Event {
        r#type: Some(scheduler::event::Type::ERROR),
        error: scheduler::event::Error { message, ..Default::default() }.into(),
        ..Default::default()
    };
    let large = error("x".repeat(1024 * 1024));
    let (mut pushed, mut read, mut chunk) = (0, 0, vec![0; 64 * 1024]);
    let ended = loop {
        bench.exchanges.push_all(&conns, &[&large], |lag| Some(error(format!("dropped: {lag}"))));
        pushed += 1;
        assert!(pushed < 1000, "buffered without end");
        while read < pushed * large.error.message.len() {
            read += fast.read(&mut chunk).await.unwrap();
        }
        if let Ok(ended) = bench.ended.try_recv() {
            break ended;
        }
    };
    assert_eq!(ended.conn, conns[0]);
    let mut rest = Vec::new();
    slow.read_to_end(&mut rest).await.unwrap();
    let last = String::from_utf8_lossy(&rest[rest.len() - 100..]).into_owned();
    assert!(
        last.contains(r#"{"message":"dropped: 12 events ("#) && last.ends_with("\r\n0\r\n\r\n"),
        "{last}"
    );
    assert!(rest.len() < (pushed - 10) * large.error.message.len(), "what was queued is not sent");
}

const LINK: &[u8] =
    b"POST /link HTTP/1.1\r\nHost: t\r\nConnection: upgrade\r\nUpgrade: t\r\nContent-Length: 0\r\n\r\n";

/// Opens a link; what was sent right behind the request belongs to it.
async fn link_up(bench: &mut Bench, first: &[u8]) -> (TcpStream, ConnId) {
    let mut stream = bench.connect().await;
    stream.write_all(&[LINK, first].concat()).await.unwrap();
    let conn = bench.begun.recv().await.unwrap();
    bench.exchanges.open(conn, &[]);
    let head = read_until(&mut stream, "\r\n\r\n").await;
    assert!(head.starts_with("HTTP/1.1 101 ") && head.contains("upgrade: t\r\n"), "{head}");
    (stream, conn)
}

#[tokio::test]
async fn link_carries_both_directions_until_the_peer_closes() {
    // The time for a head does not count on a link.
    let limits = ServerLimits { head_read_timeout: Duration::ZERO, ..ServerLimits::default() };
    let mut bench = bench_of(StreamLimits::default(), limits);
    let (mut stream, conn) = link_up(&mut bench, b"first").await;
    assert_eq!(bench.records.recv().await.unwrap(), b"first");
    for number in [7, 8, 9] {
        bench.exchanges.push(conn, &event(number));
        read_until(&mut stream, &format!("e{number}")).await;
        stream.write_all(b"again").await.unwrap();
        assert_eq!(bench.records.recv().await.unwrap(), b"again");
    }
    stream.shutdown().await.unwrap();
    assert_eq!(bench.ended.recv().await.unwrap().conn, conn);
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.unwrap();
    assert_eq!(rest, b"", "a link has no end of a body");
}

#[tokio::test]
async fn link_closes_when_its_receiver_or_the_program_ends_it() {
    let mut bench = bench();
    let (mut stream, conn) = link_up(&mut bench, b"").await;
    stream.write_all(b"wrong").await.unwrap();
    assert_eq!(bench.ended.recv().await.unwrap().conn, conn);
    let (mut aborted, conn) = link_up(&mut bench, b"").await;
    bench.exchanges.abort(conn);
    assert_eq!(bench.ended.recv().await.unwrap().conn, conn);
    let mut rest = Vec::new();
    // Reset or closed, both will do.
    let _ = aborted.read_to_end(&mut rest).await;
    let (mut open, conn) = link_up(&mut bench, b"").await;
    bench.exchanges.push(conn, &event(1));
    bench.exchanges.close_all();
    bench.listening.stop().await;
    open.read_to_end(&mut rest).await.unwrap();
    assert!(rest.windows(2).any(|part| part == b"e1"), "{rest:?}");
}

#[tokio::test]
async fn rejected_link_stays_http() {
    let mut bench = bench();
    let mut stream = bench.connect().await;
    stream.write_all(LINK).await.unwrap();
    let conn = bench.begun.recv().await.unwrap();
    bench.exchanges.answer(conn, |_| text(StatusCode::FORBIDDEN, "no"));
    let answer = read_until(&mut stream, "no").await;
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    stream.write_all(b"GET /thread HTTP/1.1\r\nHost: t\r\n\r\n").await.unwrap();
    read_until(&mut stream, "200 OK").await;
}

#[tokio::test]
async fn stop_closes_streams_and_rejects_connections() {
    let mut bench = bench();
    let mut stream = bench.connect().await;
    stream.write_all(b"GET /subscribe HTTP/1.1\r\nHost: t\r\n\r\n").await.unwrap();
    let conn = bench.begun.recv().await.unwrap();
    bench.exchanges.open(conn, &[]);
    bench.exchanges.push(conn, &event(1));
    bench.exchanges.close_all();
    bench.listening.stop().await;
    let mut all = String::new();
    stream.read_to_string(&mut all).await.unwrap();
    assert!(all.contains("e1") && all.ends_with("0\r\n\r\n"), "{all}");
    assert!(TcpStream::connect(bench.address).await.is_err());
}
