//! What peers may not do: be many, send much, and be slow.

use tokio::time::timeout;

use super::*;

const BRIEF: Duration = Duration::from_millis(50);
/// Longer than any test lasts.
const LONG: Duration = Duration::from_secs(3600);
const HEAD: &str = "POST /call HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\n";
const ASK: &[u8] = b"GET /thread HTTP/1.1\r\nHost: t\r\n\r\n";

/// Nothing is limited but what a test is about.
fn patient() -> ServerLimits {
    ServerLimits {
        connections_max: 1000,
        idle_timeout: LONG,
        head_read_timeout: LONG,
        body_read_timeout: LONG,
        write_timeout: LONG,
    }
}

fn limited(limits: ServerLimits) -> Bench {
    bench_of(StreamLimits::default(), limits)
}

/// Sends all of `text`, a byte at a time and with a pause after each, and returns what is answered until the end.
async fn trickle(bench: &Bench, beginning: &str, text: impl Iterator<Item = u8>) -> String {
    let mut stream = bench.connect().await;
    stream.write_all(beginning.as_bytes()).await.unwrap();
    let (mut seen, mut chunk) = (Vec::new(), [0; 1024]);
    for byte in text {
        // What was closed already cannot be written to.
        let _ = stream.write_all(&[byte]).await;
        match timeout(BRIEF / 10, stream.read(&mut chunk)).await {
            Err(_) => (),
            Ok(Ok(0) | Err(_)) => break,
            Ok(Ok(count)) => seen.extend_from_slice(&chunk[..count]),
        }
    }
    String::from_utf8_lossy(&seen).into_owned()
}

async fn is_closed(stream: &mut TcpStream) -> bool {
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.unwrap();
    rest.is_empty()
}

/// Peers that begin and do not go on hold nothing for ever.
#[tokio::test]
async fn incomplete_request_times_out() {
    let quick_heads = limited(ServerLimits { head_read_timeout: BRIEF, ..patient() });
    let quick_idlers =
        limited(ServerLimits { idle_timeout: BRIEF, head_read_timeout: Duration::ZERO, ..patient() });
    let quick_bodies = limited(ServerLimits { body_read_timeout: BRIEF, ..patient() });
    for beginning in ["POST /ca", HEAD] {
        assert_eq!(quick_heads.raw(beginning.as_bytes()).await, "", "{beginning:?}");
    }
    assert_eq!(quick_idlers.raw(b"").await, "");
    for beginning in ["Content-Length: 9\r\n\r\n{", "Transfer-Encoding: chunked\r\n\r\n9\r\n{"] {
        let answer = quick_bodies.raw(format!("{HEAD}Connection: close\r\n{beginning}").as_bytes()).await;
        assert_eq!(status(&answer), "408", "{beginning:?}: {answer}");
    }
}

/// Neither does a byte now and then keep a connection alive.
#[tokio::test]
async fn trickled_request_times_out() {
    let quick_heads = limited(ServerLimits { head_read_timeout: BRIEF, ..patient() });
    let endless = b"x-never: ending ".iter().copied().cycle();
    assert_eq!(trickle(&quick_heads, HEAD, endless.clone()).await, "");
    let quick_bodies = limited(ServerLimits { body_read_timeout: BRIEF, ..patient() });
    let announced = format!("{HEAD}Content-Length: 1000000\r\n\r\n");
    let answer = trickle(&quick_bodies, &announced, endless).await;
    assert_eq!(status(&answer), "408", "{answer}");
}

/// A head has its time from its first byte, however long its connection waited for it.
#[tokio::test]
async fn idle_time_does_not_count_towards_the_head_timeout() {
    let bench = limited(ServerLimits { head_read_timeout: BRIEF, ..patient() });
    let mut stream = bench.connect().await;
    for _ in 0..3 {
        stream.write_all(ASK).await.unwrap();
        assert_eq!(status(&read_until(&mut stream, &thread()).await), "200");
        assert!(timeout(2 * BRIEF, stream.read_u8()).await.is_err(), "it was closed, or spoke");
    }
}

#[tokio::test]
async fn unread_response_times_out() {
    let mut bench = limited(ServerLimits { write_timeout: BRIEF, ..patient() });
    let mut stream = bench.connect().await;
    stream.write_all(b"GET /flood HTTP/1.1\r\nHost: t\r\n\r\n").await.unwrap();
    assert_eq!(bench.records.recv().await.unwrap(), b"gone");
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest).await;
    assert!(!rest.ends_with(b"0\r\n\r\n"), "it must not look whole");
}

#[tokio::test]
async fn idle_stream_does_not_time_out() {
    let mut bench = limited(ServerLimits { write_timeout: BRIEF, head_read_timeout: BRIEF, ..patient() });
    let mut stream = bench.connect().await;
    stream.write_all(b"GET /subscribe HTTP/1.1\r\nHost: t\r\n\r\n").await.unwrap();
    let conn = bench.begun.recv().await.unwrap();
    bench.exchanges.open(conn, &[]);
    for number in 1..3 {
        bench.exchanges.push(conn, &event(number));
        read_until(&mut stream, &format!("e{number}")).await;
        assert!(timeout(2 * BRIEF, stream.read_u8()).await.is_err(), "it was closed, or spoke");
    }
}

#[tokio::test]
async fn idle_connections_are_closed_at_the_connection_limit() {
    let bench = limited(ServerLimits { connections_max: 2, ..patient() });
    let [mut silent, mut used] = [bench.connect().await, bench.connect().await];
    used.write_all(ASK).await.unwrap();
    read_until(&mut used, &thread()).await;
    let mut third = bench.connect().await;
    third.write_all(ASK).await.unwrap();
    read_until(&mut third, &thread()).await;
    assert!(is_closed(&mut silent).await && is_closed(&mut used).await);
}

#[tokio::test]
async fn new_connections_wait_at_the_limit_of_busy_connections() {
    let mut bench = limited(ServerLimits { connections_max: 2, ..patient() });
    let mut busy = Vec::new();
    for _ in 0..2 {
        let mut stream = bench.connect().await;
        stream.write_all(b"GET /subscribe HTTP/1.1\r\nHost: t\r\n\r\n").await.unwrap();
        busy.push((stream, bench.begun.recv().await.unwrap()));
    }
    let mut third = bench.connect().await;
    third.write_all(ASK).await.unwrap();
    assert!(timeout(BRIEF, third.read_u8()).await.is_err(), "there is no room for it");
    let (mut stream, conn) = busy.remove(0);
    bench.exchanges.answer(conn, |_| accepted());
    assert_eq!(status(&read_until(&mut stream, "\r\n\r\n").await), "202");
    assert_eq!(status(&read_until(&mut third, &thread()).await), "200");
    assert!(is_closed(&mut stream).await, "it was idle and made room");
}

#[tokio::test]
async fn request_head_size_is_limited() {
    let bench = bench();
    let lines = |count: usize, length: usize| -> String {
        (0..count).map(|number| format!("x-{number}: {}\r\n", "y".repeat(length))).collect()
    };
    for (headers, expected) in [
        (lines(100, 100), "200"),
        (lines(126, 1), "200"),
        (lines(127, 1), "431"),
        (lines(1, 60_000), "200"),
        (lines(1, 200_000), "431"),
        (lines(100, 10_000), "431"),
    ] {
        let answer = bench.get("/thread", &headers).await;
        assert_eq!(status(&answer), expected, "{} bytes: {answer}", headers.len());
    }
    let answer = bench.get(&format!("/{}", "a".repeat(200_000)), "").await;
    assert!(["414", "431"].contains(&status(&answer)), "{answer}");
}

/// A client that sends everything before it reads gets its rejection all the same.
#[tokio::test]
async fn rejection_before_the_body_is_read_is_answered() {
    let bench = bench();
    for length in [100_000, 8 * 1024 * 1024] {
        let head = format!("POST /nope HTTP/1.1\r\nHost: t\r\nContent-Length: {length}\r\n\r\n");
        let answer = bench.raw(&[head.as_bytes(), &vec![b'x'; length]].concat()).await;
        assert_eq!(status(&answer), "404", "{answer}");
    }
}
