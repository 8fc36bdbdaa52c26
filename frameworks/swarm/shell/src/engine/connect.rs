//! How a connection to an engine is opened: TCP, TLS over TCP, or a Unix socket.

use std::sync::Arc;

use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tepui_swarm::EngineAddress;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;

use crate::body::Body;

/// Opens a connection that upgrades to a stream of bytes if the engine agrees to that.
pub async fn open(
    address: &EngineAddress,
    tls: Option<Arc<ClientConfig>>,
) -> Result<SendRequest<Body>, String> {
    match address {
        EngineAddress::Unix(path) => {
            shake_hands(UnixStream::connect(path).await.map_err(|err| err.to_string())?).await
        }
        EngineAddress::Tcp { host, port } => {
            let stream = TcpStream::connect((host.as_str(), *port)).await.map_err(|err| err.to_string())?;
            tepui_http::keep_alive(&stream).map_err(|err| err.to_string())?;
            match tls {
                None => shake_hands(stream).await,
                Some(config) => {
                    let name = ServerName::try_from(host.clone()).map_err(|err| err.to_string())?;
                    let connector = TlsConnector::from(config);
                    let stream = connector.connect(name, stream).await.map_err(|err| err.to_string())?;
                    shake_hands(stream).await
                }
            }
        }
    }
}

async fn shake_hands(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
) -> Result<SendRequest<Body>, String> {
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(|err| err.to_string())?;
    tokio::spawn(connection.with_upgrades()); // Its failure is that of the request on it.
    Ok(sender)
}
