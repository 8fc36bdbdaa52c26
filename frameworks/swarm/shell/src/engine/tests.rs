//! Engines that are connected at the same time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tepui_swarm::EngineAddress;
use tepui_types::AgentId;
use tokio::io::AsyncReadExt;
use tokio::net::UnixListener;
use tokio::sync::mpsc;

use super::*;

/// An engine that counts requests and answers none before the limit of engines is reached; then it ends the connection.
async fn refuse_later(listener: UnixListener, asked: Arc<AtomicUsize>, most: mpsc::UnboundedSender<usize>) {
    while let Ok((mut stream, _)) = listener.accept().await {
        let read = stream.read(&mut [0; 1024]).await;
        read.expect("a request");
        most.send(asked.fetch_add(1, Ordering::SeqCst) + 1).expect("the test reads");
        while asked.load(Ordering::SeqCst) < READING_ENGINES_MAX {
            tokio::task::yield_now().await;
        }
        // Further engines would send their requests now.
        for _ in 0..1000 {
            tokio::task::yield_now().await;
        }
        asked.fetch_sub(1, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn version_requests_respect_the_limit_of_engines() {
    let directory = tempfile::tempdir().expect("a directory");
    let (inputs, _mailbox) = tepui_runtime::mailbox::<Input>(1024);
    let engines = Engines::new(inputs, None);
    let (asked, (most, mut counts)) = (Arc::<AtomicUsize>::default(), mpsc::unbounded_channel());
    for number in 0..3 * READING_ENGINES_MAX {
        let path = directory.path().join(number.to_string());
        let listener = UnixListener::bind(&path).expect("a socket");
        tokio::spawn(refuse_later(listener, asked.clone(), most.clone()));
        let address = EngineAddress::Unix(path.display().to_string());
        engines.connect(AgentId::new(number.to_string()), address);
    }
    for _ in 0..2 * READING_ENGINES_MAX {
        let count = tokio::time::timeout(Duration::from_secs(30), counts.recv()).await.expect("in time");
        assert!(count.expect("a count") <= READING_ENGINES_MAX, "{count:?} engines are asked at once");
    }
}
