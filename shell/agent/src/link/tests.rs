//! The link against a master that the test plays byte by byte.

use tepui_runtime::{Mailbox, mailbox};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

struct Bench {
    listener: TcpListener,
    links: Links,
    inputs: Mailbox<Input>,
}

async fn bench() -> Bench {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (handle, inputs) = mailbox(16);
    let targets = Targets::parse(&listener.local_addr().unwrap().to_string(), None).unwrap();
    Bench { links: Links::new(handle, targets, None, &ProcessOptions::on_port(0)), listener, inputs }
}

impl Bench {
    async fn input(&mut self) -> Input {
        self.inputs.next().await.expect("the links hold a handle")
    }

    async fn accept(&self) -> TcpStream {
        self.listener.accept().await.unwrap().0
    }
}

async fn read_until(stream: &mut TcpStream, until: &[u8]) -> Vec<u8> {
    let mut seen = Vec::new();
    while !seen.windows(until.len()).any(|part| part == until) {
        let mut chunk = [0; 4096];
        let count = stream.read(&mut chunk).await.unwrap();
        assert!(count > 0, "closed after {}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&chunk[..count]);
    }
    seen
}

const SWITCH: &[u8] =
    b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: tepui.agent.v1\r\n\r\n";

/// PONG as a record.
const CALL: &[u8] = b"2\n\x08\x06";

fn call() -> link::Call {
    link::Call { r#type: Some(link::call::Type::PONG), ..Default::default() }
}

fn ping() -> Vec<u8> {
    let event = link::Event { r#type: Some(link::event::Type::PING), ..Default::default() };
    recordio::encode(&wire::encode(&event))
}

#[tokio::test]
async fn link_sends_calls_and_receives_events() {
    let mut bench = bench().await;
    bench.links.connect(LinkId(1));
    let mut master = bench.accept().await;
    assert!(matches!(bench.input().await, Input::LinkUp { link: LinkId(1) }));
    bench.links.send(LinkId(0), &call());
    bench.links.send(LinkId(1), &call());
    let head = read_until(&mut master, CALL).await;
    let head = String::from_utf8_lossy(&head).into_owned();
    assert!(head.starts_with("POST /api/v1/agent HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("upgrade: tepui.agent.v1\r\n") && head.contains("content-length: 4\r\n"), "{head}");
    master.write_all(&[SWITCH, &ping()].concat()).await.unwrap();
    match bench.input().await {
        Input::LinkEvent { link: LinkId(1), event } => {
            assert_eq!(event.r#type, Some(link::event::Type::PING))
        }
        other => panic!("{other:?}"),
    }
    bench.links.send(LinkId(1), &call());
    assert_eq!(read_until(&mut master, CALL).await, CALL);
    drop(master);
    assert!(matches!(bench.input().await, Input::LinkDown { link: LinkId(1), .. }));
}

#[tokio::test]
async fn rejections_and_redirects_are_link_down_reasons() {
    let mut bench = bench().await;
    let address = bench.listener.local_addr().unwrap();
    let redirect = format!(
        "HTTP/1.1 307 Temporary Redirect\r\nLocation: //{address}/master/api/v1/agent\r\nContent-Length: 0\r\n\r\n"
    );
    let switch = str::from_utf8(SWITCH).unwrap();
    for (number, (answer, reason)) in [
        (
            "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 9\r\n\r\nno leader",
            "503 Service Unavailable: no leader",
        ),
        (&redirect, "the leading master is at"),
        (
            "HTTP/1.1 307 Temporary Redirect\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n",
            "which is not a valid address",
        ),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwhat?", "200 OK: what?"),
        (&[switch, "what?"].concat(), "begin with its length"),
        ("garbage\r\n\r\n", "HTTP"),
    ]
    .into_iter()
    .enumerate()
    {
        let id = LinkId(number as u64);
        bench.links.connect(id);
        let mut master = bench.accept().await;
        assert!(matches!(bench.input().await, Input::LinkUp { .. }));
        bench.links.send(id, &call());
        read_until(&mut master, CALL).await;
        master.write_all(answer.as_bytes()).await.unwrap();
        match bench.input().await {
            Input::LinkDown { link, reason: said } => {
                assert_eq!(link, id);
                assert!(said.contains(reason), "{said}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn unreachable_master_is_reported_as_link_down() {
    let mut bench = bench().await;
    let address = bench.listener.local_addr().unwrap();
    drop(std::mem::replace(&mut bench.listener, TcpListener::bind("127.0.0.1:0").await.unwrap()));
    bench.links.connect(LinkId(7));
    match bench.input().await {
        Input::LinkDown { link: LinkId(7), reason } => {
            assert!(reason.contains(&address.to_string()), "{reason}")
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn new_link_closes_the_old_one() {
    let mut bench = bench().await;
    bench.links.connect(LinkId(1));
    let mut first = bench.accept().await;
    assert!(matches!(bench.input().await, Input::LinkUp { link: LinkId(1) }));
    bench.links.connect(LinkId(2));
    let mut rest = Vec::new();
    // Closed or reset, both will do.
    let _ = first.read_to_end(&mut rest).await;
    let _second = bench.accept().await;
    assert!(matches!(bench.input().await, Input::LinkUp { link: LinkId(2) }));
}

/// Reads one request and answers it.
async fn answer(listener: &TcpListener, answer: &str) {
    let mut stream = listener.accept().await.unwrap().0;
    read_until(&mut stream, b"\r\n\r\n").await;
    stream.write_all(answer.as_bytes()).await.unwrap();
}

/// The master accepts connections and never answers, as a stopped process.
#[tokio::test]
async fn silent_master_triggers_leader_discovery() {
    let frozen = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let standby = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let leader = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = |listener: &TcpListener| listener.local_addr().unwrap().to_string();
    let (handle, mut inputs) = mailbox(16);
    let targets = Targets::parse(&format!("{},{}", at(&frozen), at(&standby)), None).unwrap();
    let mut links = Links::new(handle, targets, None, &ProcessOptions::on_port(0));
    links.silence_max = Duration::from_millis(20);
    links.connect(LinkId(1));
    let mut link = frozen.accept().await.unwrap().0;
    assert!(matches!(inputs.next().await, Some(Input::LinkUp { link: LinkId(1) })));
    links.send(LinkId(1), &call());
    read_until(&mut link, CALL).await;
    link.write_all(SWITCH).await.unwrap();
    link.write_all(&ping()).await.unwrap();
    let named = |leader: &str| {
        format!("HTTP/1.1 307 Temporary Redirect\r\nLocation: //{leader}\r\nContent-Length: 0\r\n\r\n")
    };
    // The first master still names the old leader.
    answer(&standby, &named(&at(&frozen))).await;
    answer(&standby, &named(&at(&leader))).await;
    answer(&leader, &named(&at(&leader))).await;
    assert!(matches!(inputs.next().await, Some(Input::LinkEvent { .. })));
    match inputs.next().await {
        Some(Input::LinkDown { link: LinkId(1), reason }) => assert!(reason.contains("silent"), "{reason}"),
        other => panic!("{other:?}"),
    }
    links.connect(LinkId(2));
    let mut stream = leader.accept().await.unwrap().0;
    assert!(matches!(inputs.next().await, Some(Input::LinkUp { link: LinkId(2) })));
    links.send(LinkId(2), &call());
    read_until(&mut stream, b"POST /api/v1/agent").await;
}
