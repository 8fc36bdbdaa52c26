//! Listeners of the API: TCP and Unix sockets, with or without TLS.
//!
//! A client that closes its connection drops the future of its request, which is how a waiting create is abandoned.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tepui_swarm::Host;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener, UnixSocket};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tracing::{debug, warn};

use crate::front::Front;
use crate::guard::rejection;
use crate::tls::Tls;

/// Connections of clients. With more, new ones wait in the kernel until one is closed.
const CONNECTIONS_MAX: usize = 4096;
/// Connections to a Unix socket that the kernel holds until they are accepted.
const BACKLOG_CONNECTIONS_MAX: u32 = 1024;
/// How long a peer may take to agree on a key.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
const HEAD_READ_TIMEOUT: Duration = Duration::from_secs(300);
const HEADERS_MAX: usize = 128;
/// Of the head of a request; the credentials of a registry are part of it.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// After a failure to accept, for instance because no file descriptors are left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// For the owner only: access to the API is root on every engine.
const SOCKET_MODE: u32 = 0o600;

/// A bound socket that does not answer yet.
#[derive(Debug)]
pub(crate) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    pub async fn bind(host: &Host) -> io::Result<Listener> {
        match host {
            Host::Tcp(address) => TcpListener::bind(address).await.map(Listener::Tcp),
            Host::Unix(path) => {
                remove_socket(path)?;
                let socket = UnixSocket::new_stream()?;
                socket.bind(path)?;
                // Connections are accepted only once it listens: the mode is set before.
                std::fs::set_permissions(path, PermissionsExt::from_mode(SOCKET_MODE))?;
                socket.listen(BACKLOG_CONNECTIONS_MAX).map(Listener::Unix)
            }
        }
    }

    /// Where it listens, as a client would name it.
    pub fn address(&self) -> String {
        match self {
            Listener::Tcp(listener) => listener
                .local_addr()
                .map_or_else(|_| "tcp://".to_owned(), |address| format!("tcp://{address}")),
            Listener::Unix(listener) => {
                let path = listener
                    .local_addr()
                    .ok()
                    .and_then(|it| it.as_pathname().map(|it| it.display().to_string()));
                format!("unix://{}", path.unwrap_or_default())
            }
        }
    }

    /// Answers until the task is aborted.
    pub fn serve(self, front: Front, tls: Option<Tls>) -> JoinHandle<()> {
        let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        tokio::spawn(async move {
            loop {
                let permit = room.clone().acquire_owned().await.expect("the semaphore is never closed");
                if let Err(err) = self.accept(&front, tls.as_ref(), permit).await {
                    warn!(error = %err, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        })
    }

    async fn accept(&self, front: &Front, tls: Option<&Tls>, permit: OwnedSemaphorePermit) -> io::Result<()> {
        let front = front.clone();
        match self {
            Listener::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                tokio::spawn(serve_connection(stream, None, Ok(()), front, permit));
            }
            Listener::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                tepui_http::keep_alive(&stream)?;
                let local = stream.local_addr()?;
                let checked = front.check_client(peer, local);
                let local = Some(local);
                let Some(tls) = tls else {
                    tokio::spawn(serve_connection(stream, local, checked, front, permit));
                    return Ok(());
                };
                let handshake = TlsAcceptor::from(tls.server()).accept(stream);
                tokio::spawn(async move {
                    match tokio::time::timeout(HANDSHAKE_TIMEOUT, handshake).await {
                        Ok(Ok(stream)) => serve_connection(stream, local, checked, front, permit).await,
                        Ok(Err(err)) => debug!(%peer, error = %err, "TLS handshake failed"),
                        Err(_) => debug!(%peer, "TLS handshake timed out"),
                    }
                });
            }
        }
        Ok(())
    }
}

/// Removes what an earlier manager left; a file of another type is a mistyped path and stays.
fn remove_socket(path: &str) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => std::fs::remove_file(path),
        Ok(_) => {
            Err(io::Error::new(io::ErrorKind::AlreadyExists, "a file that is not a socket exists there"))
        }
        Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(err) => Err(err),
    }
}

async fn serve_connection(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    local: Option<SocketAddr>,
    checked: Result<(), String>,
    front: Front,
    permit: OwnedSemaphorePermit,
) {
    let head_timeout = if checked.is_ok() { HEAD_READ_TIMEOUT } else { HANDSHAKE_TIMEOUT };
    let service = service_fn(|request| {
        let (front, checked) = (front.clone(), checked.clone());
        async move {
            Ok::<_, Infallible>(match checked {
                Ok(()) => front.respond(request, local).await,
                Err(message) => rejection(StatusCode::FORBIDDEN, &message),
            })
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        // From the end of one request to the end of the head of the next: clients keep connections for their calls.
        .header_read_timeout(head_timeout)
        .max_headers(HEADERS_MAX)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    if let Err(err) = connection.await {
        debug!(error = %err, "connection of a client ended");
    }
    drop(permit); // An upgraded stream goes on without it; the limit is for requests.
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn socket_of_an_earlier_manager_is_replaced_and_another_file_is_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name).display().to_string();
        let (socket, file) = (path("swarm.sock"), path("notes"));
        for _ in 0..2 {
            Listener::bind(&Host::Unix(socket.clone())).await.expect("a socket");
            let mode = std::fs::metadata(&socket).expect("the socket").permissions().mode();
            assert_eq!(mode & 0o777, SOCKET_MODE);
        }
        std::fs::write(&file, "kept").expect("a file");
        let error = Listener::bind(&Host::Unix(file.clone())).await.expect_err("a file is no socket");
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read_to_string(&file).expect("the file"), "kept");
    }
}
