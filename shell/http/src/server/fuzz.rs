//! What a handler receives from a connection, for the fuzzer and for tests: the same whether calls are handled together or not.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use http::StatusCode;
use http::header::CONTENT_LENGTH;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::watch;

use super::{Handler, ServerLimits, Shared, Signals, exchange};
use crate::browser::BrowserPolicy;
use crate::connection::Ends;
use crate::request::{BodyBudget, Request};
use crate::respond::{Response, empty};

/// More than any test sends or is answered.
const STREAM_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Polls of a server before the end of its stream: so many, and one for each so many bytes.
const POLLS_MIN: usize = 16;
const POLL_BYTES: usize = 8;

/// Where calls go.
const CALL_PATH: &str = "/call";

/// Records requests that arrive whole.
struct Recorder {
    has_calls: bool,
    requests: Mutex<Vec<String>>,
}

impl Handler for Recorder {
    fn is_call(&self, head: &http::request::Parts) -> bool {
        self.has_calls && head.uri.path() == CALL_PATH
    }

    async fn handle(self: Arc<Self>, mut request: Request) -> Response {
        if let Ok(body) = request.read_body(STREAM_BYTES_MAX).await {
            let length = request.header(CONTENT_LENGTH.as_str()).and_then(|length| length.parse().ok());
            if length == Some(body.len()) {
                // A call that is handled with others has none.
                request.headers.remove(CONTENT_LENGTH);
            }
            let request = format!("{} {} {:?} {body:?}", request.method, request.target, request.headers);
            self.requests.lock().expect("no code panics while it holds this lock").push(request);
        }
        empty(StatusCode::OK)
    }
}

/// The whole requests on a connection whose peer sends `bytes` in pieces and then nothing more. `has_calls`: whether requests
/// of `/call` may be handled together. If `bytes` are in pieces the last ones may be missing: a request that is rejected
/// before its body has arrived ends the connection.
pub fn requests(bytes: &[u8], piece_bytes: usize, has_calls: bool) -> Vec<String> {
    let recorder = Arc::new(Recorder { has_calls, requests: Mutex::default() });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    runtime.block_on(play(bytes, piece_bytes, recorder.clone()));
    std::mem::take(&mut *recorder.requests.lock().expect("no code panics while it holds this lock"))
}

async fn play(bytes: &[u8], piece_bytes: usize, handler: Arc<Recorder>) {
    let (mut peer, stream) = tokio::io::duplex(STREAM_BYTES_MAX);
    let (stop, pressure) = (watch::channel(false).0, watch::channel(()).0);
    let signals = Signals { stop: stop.subscribe(), pressure: pressure.subscribe() };
    let browsers = BrowserPolicy::new(&["*".to_owned()], true).expect("any host is allowed");
    let (limits, budget) = (ServerLimits::default(), BodyBudget::default());
    let shared = Shared { handler, limits, browsers, budget, tls: None };
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
    let sending = async {
        for piece in bytes.chunks(piece_bytes) {
            // The server may have closed the connection.
            let _ = peer.write_all(piece).await;
            tokio::task::yield_now().await;
        }
        // At the end of the stream the ordinary server forgets requests that it has not begun. Each time it is polled it makes
        // progress, if it can.
        for _ in 0..POLLS_MIN + bytes.len() / POLL_BYTES {
            tokio::task::yield_now().await;
        }
        let _ = peer.shutdown().await;
        let _ = peer.read_to_end(&mut Vec::new()).await;
    };
    tokio::join!(exchange(stream, Ends { peer: address, local: address }, shared, signals), sending);
}
