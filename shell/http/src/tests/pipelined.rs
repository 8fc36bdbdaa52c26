//! Calls on one connection that do not wait for each other's answers.

use tokio::time::timeout;

use super::*;

const BRIEF: Duration = Duration::from_millis(50);
const LONG: Duration = Duration::from_secs(3600);

fn call_with(headers: &str, body: &str) -> String {
    let length = body.len();
    format!("POST /echo HTTP/1.1\r\nHost: t\r\nx-call: 1\r\n{headers}Content-Length: {length}\r\n\r\n{body}")
}

fn call(body: &str) -> String {
    call_with("", body)
}

/// How many calls came together, each time; `alone` for what the ordinary server handled.
fn batches(bench: &mut Bench) -> Vec<String> {
    let records = std::iter::from_fn(|| bench.records.try_recv().ok());
    records.map(|record| String::from_utf8(record).unwrap()).collect()
}

/// Statuses and bodies of the answers, up to and with one whose body is `last`.
async fn answers(stream: &mut TcpStream, last: &str) -> Vec<String> {
    let seen = read_until(stream, &format!("\r\n\r\n{last}")).await;
    let answers = seen.split("HTTP/1.1 ").skip(1);
    answers.map(|answer| format!("{} {}", &answer[..3], body(answer))).collect()
}

#[tokio::test]
async fn pipelined_calls_are_batched_and_answered_in_order() {
    let mut bench = bench();
    let mut stream = bench.connect().await;
    let three = [call("one"), call("two-2"), call("end")].concat();
    for _ in 0..2 {
        stream.write_all(three.as_bytes()).await.unwrap();
        assert_eq!(answers(&mut stream, "end").await, ["200 one", "200 two-2", "200 end"]);
        assert_eq!(batches(&mut bench), ["3"]);
    }
    stream.write_all(call("end").as_bytes()).await.unwrap();
    let answer = read_until(&mut stream, "\r\n\r\nend").await;
    for header in ["x-content-type-options: nosniff\r\n", "date: ", "content-length: 3\r\n"] {
        assert!(answer.contains(header), "{answer}");
    }
    drop(stream);
    bench.listening.stop().await;
}

#[tokio::test]
async fn pipelined_calls_split_at_any_byte_are_parsed() {
    let bench = bench();
    let text = [call("one"), call_with("x-other: 1\r\n", "two"), call(""), call("end")].concat();
    for cut in (0..text.len()).step_by(7) {
        let mut stream = bench.connect().await;
        stream.write_all(&text.as_bytes()[..cut]).await.unwrap();
        tokio::task::yield_now().await;
        stream.write_all(&text.as_bytes()[cut..]).await.unwrap();
        assert_eq!(answers(&mut stream, "end").await, ["200 one", "200 two", "200 ", "200 end"], "{cut}");
    }
}

/// A peer may send its calls and say that nothing more follows, also if that is read together with the calls.
#[tokio::test]
async fn calls_before_the_end_of_the_stream_are_answered() {
    let bench = bench();
    let head = call(&"x".repeat(100)).len() - 100;
    for size in [511, 512, 513] {
        let mut stream = bench.connect().await;
        let text = call(&"x".repeat(size - head));
        stream.write_all(text.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert_eq!((text.len(), status(&answer)), (size, "200"), "{answer}");
    }
}

/// Whatever is not a small, plain call is left to the ordinary server, which answers it after the calls before it.
#[tokio::test]
async fn requests_other_than_calls_fall_back_to_the_ordinary_server() {
    let large = "x".repeat(70_000);
    for (other, expected) in [
        ("GET /thread HTTP/1.1\r\nHost: t\r\n\r\n".to_owned(), format!("200 {}", thread())),
        ("POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 1\r\n\r\nx".to_owned(), "200 x".to_owned()),
        (
            call_with("Transfer-Encoding: chunked\r\n", "").replace("Content-Length: 0\r\n", "")
                + "1\r\nx\r\n0\r\n\r\n",
            "200 x".to_owned(),
        ),
        (call_with("Expect: x\r\n", "x"), "200 x".to_owned()),
        (call_with("Host: evil.example\r\n", "x").replacen("Host: t\r\n", "", 1), "400 Host".to_owned()),
        (call(&large), format!("200 {large}")),
    ] {
        let mut bench = bench();
        let mut stream = bench.connect().await;
        stream.write_all([call("one"), other.clone(), call("end")].concat().as_bytes()).await.unwrap();
        let seen = answers(&mut stream, "end").await;
        assert_eq!((seen.len(), &*seen[0], &*seen[2]), (3, "200 one", "200 end"), "{other:.200}");
        assert!(seen[1].starts_with(&expected), "{other:.200}: {}", seen[1]);
        let batches = batches(&mut bench);
        assert_eq!((&*batches[0], &**batches.last().unwrap()), ("1", "alone"), "{other:.200}");
    }
    for malformed in ["Content-Length: 1\r\n", "x y: 1\r\n"] {
        let answer = bench().raw(call_with(malformed, "abc").as_bytes()).await;
        assert_eq!(status(&answer), "400", "{malformed}: {answer}");
    }
}

#[tokio::test]
async fn server_limits_apply_to_pipelined_calls() {
    let patient = ServerLimits {
        connections_max: 1,
        idle_timeout: LONG,
        head_read_timeout: LONG,
        body_read_timeout: LONG,
        write_timeout: LONG,
    };
    let limited = |limits| bench_of(StreamLimits::default(), limits);
    let closes = async |bench: &Bench, text: &str| {
        let mut stream = bench.connect().await;
        stream.write_all(call("one").as_bytes()).await.unwrap();
        read_until(&mut stream, "\r\n\r\none").await;
        stream.write_all(text.as_bytes()).await.unwrap();
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).await.unwrap();
        String::from_utf8(rest).unwrap()
    };
    let brief = ServerLimits { head_read_timeout: BRIEF, body_read_timeout: BRIEF, ..patient };
    assert_eq!(closes(&limited(brief), "POST /echo HTTP/1.1\r\nHost: t\r\n").await, "", "a head");
    let partial = call_with("Connection: close\r\n", "x").replace("Length: 1", "Length: 9");
    assert_eq!(status(&closes(&limited(brief), &partial).await), "408", "a body");
    let partial = call("x").replace("Length: 1", "Length: 9");
    assert_eq!(
        status(&closes(&limited(ServerLimits { idle_timeout: BRIEF, ..brief }), &partial).await),
        "408"
    );
    assert_eq!(
        closes(&limited(ServerLimits { idle_timeout: BRIEF, ..patient }), "").await,
        "",
        "an idle one"
    );

    // Answers without a reader.
    let bench = limited(ServerLimits { write_timeout: BRIEF, ..patient });
    let mut stream = bench.connect().await;
    let large = call_with("x-times: 1000000\r\n", "0123456789");
    let writing = [&*large; 10].concat();
    stream.write_all(writing.as_bytes()).await.unwrap();
    let mut other = bench.connect().await;
    other.write_all(call("one").as_bytes()).await.unwrap();
    read_until(&mut other, "\r\n\r\none").await;
}

#[tokio::test]
async fn idle_pipelined_connections_are_closed_at_the_limit_and_on_stop() {
    let limits = ServerLimits { connections_max: 1, ..ServerLimits::default() };
    let bench = bench_of(StreamLimits::default(), limits);
    let mut idle = bench.connect().await;
    idle.write_all(call("one").as_bytes()).await.unwrap();
    read_until(&mut idle, "\r\n\r\none").await;
    let mut next = bench.connect().await;
    next.write_all(call("two").as_bytes()).await.unwrap();
    read_until(&mut next, "\r\n\r\ntwo").await;
    let mut rest = Vec::new();
    assert_eq!(idle.read_to_end(&mut rest).await.unwrap(), 0);
    timeout(LONG, bench.listening.stop()).await.unwrap();
    assert_eq!(next.read_to_end(&mut rest).await.unwrap(), 0);
}

/// Lines that servers and proxies may read differently.
const LINES: [&str; 26] = [
    "Content-Length: 3\r\n",
    "Content-Length: 0\r\n",
    "Content-Length: 03\r\n",
    "Content-Length: +3\r\n",
    "Content-Length: 3, 3\r\n",
    "Content-Length: 3 \r\n",
    "Content-Length : 3\r\n",
    "content-length:3\r\n",
    "Content-Length: 0x3\r\n",
    "Content-Length: 99999999999999999999\r\n",
    "Content-Length:\r\n",
    "Content-Length: 3\n",
    "Transfer-Encoding: chunked\r\n",
    "Transfer-Encoding: identity\r\n",
    "Transfer-Encoding: gzip, chunked\r\n",
    "Transfer-Encoding : chunked\r\n",
    "transfer-encoding:\tchunked\r\n",
    "X: a\r\n Content-Length: 3\r\n",
    "X: a\rContent-Length: 3\r\n",
    "X: \u{e4}\r\n",
    "Connection: close\r\n",
    "Connection: keep-alive\r\n",
    "Expect: 100-continue\r\n",
    "Upgrade: h2c\r\nConnection: upgrade\r\n",
    "Host: t\r\n",
    "\n",
];
const FIRST_LINES: [&str; 6] = [
    "POST /call HTTP/1.1\r\n",
    "\r\n\nPOST /call HTTP/1.1\n",
    "POST http://t/call?a=%zz HTTP/1.1\r\n",
    "POST /call HTTP/1.0\r\n",
    "GET /call HTTP/1.1\r\n",
    "POST  /call HTTP/1.1\r\n",
];
const BODIES: [&str; 5] =
    ["", "abc", "3\r\nabc\r\n0\r\n\r\n", "3;x=\"y\"\r\nabc\r\n0\r\nT: 1\r\n\r\n", "3\nabc\n0\n\n"];

/// Both servers read the same requests from the same bytes, so that neither is a way around what the other checks.
#[test]
fn calls_are_read_as_by_the_ordinary_server() {
    let (first, length) = (FIRST_LINES[0], LINES[0]);
    let mut variants: Vec<[&str; 4]> = FIRST_LINES.iter().map(|first| [first, "", length, "abc"]).collect();
    // The head of the call before it, but for the length.
    variants.push([first, "x-call: 1\r\n", length, "abc"]);
    for line in LINES {
        for body in BODIES {
            variants.extend([["", line], [length, line], [line, length]].map(|[a, b]| [first, a, b, body]));
        }
    }
    let between = call("between").replace("/echo", "/call");
    let mut most = 0;
    for [first, a, b, body] in variants {
        let text = format!("{between}{first}Host: t\r\n{a}{b}\r\n{body}{between}");
        let expected = server::fuzz::requests(text.as_bytes(), text.len(), false);
        assert_eq!(server::fuzz::requests(text.as_bytes(), text.len(), true), expected, "{text:?}");
        let pieces = server::fuzz::requests(text.as_bytes(), 7, true);
        assert!(expected.starts_with(&pieces), "{text:?} {pieces:?}");
        assert!(!expected.is_empty(), "{text:?}");
        most = most.max(expected.len());
    }
    assert_eq!(most, 3);
}
