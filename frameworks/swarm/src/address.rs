//! Where the engine of an agent listens, from the host name and the attributes of its offers.
//!
//! Classic Swarm connects to `hostname:docker_port` (2375, with TLS 2376). An agent on the manager's own machine may name
//! a Unix socket by the attribute `docker_socket` instead, so that no engine has to listen on TCP for one.

use alloc::borrow::ToOwned;
use alloc::string::String;
use core::fmt;

use serde::{Deserialize, Serialize};

/// Attributes of agents.
pub const PORT_ATTRIBUTE: &str = "docker_port";
pub const SOCKET_ATTRIBUTE: &str = "docker_socket";

const PLAIN_PORT: u16 = 2375;
const TLS_PORT: u16 = 2376;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EngineAddress {
    Tcp { host: String, port: u16 },
    Unix(String),
}

/// What the address is derived from.
#[derive(Clone, Copy, Debug, Default)]
pub struct Attributes<'a> {
    pub hostname: &'a str,
    /// A scalar is cut to a whole number, a text is taken as it is.
    pub docker_port: Option<&'a str>,
    pub docker_socket: Option<&'a str>,
}

impl EngineAddress {
    /// `is_local`: whether the host name is that of the manager's machine. Errors name the attribute.
    pub fn of_agent(attributes: Attributes<'_>, is_local: bool, tls: bool) -> Result<Self, String> {
        match (attributes.docker_port, attributes.docker_socket) {
            (None, Some(path)) if is_local => {
                if !path.starts_with('/') {
                    return Err(alloc::format!(
                        "attribute {SOCKET_ATTRIBUTE} must be an absolute path, not {path:?}"
                    ));
                }
                Ok(EngineAddress::Unix(path.to_owned()))
            }
            (None, _) => {
                let port = if tls { TLS_PORT } else { PLAIN_PORT };
                Ok(EngineAddress::Tcp { host: attributes.hostname.to_owned(), port })
            }
            (Some(text), _) => match text.parse::<u16>() {
                Ok(port) if port > 0 => Ok(EngineAddress::Tcp { host: attributes.hostname.to_owned(), port }),
                Ok(_) | Err(_) => Err(alloc::format!(
                    "attribute {PORT_ATTRIBUTE} must be a port from 1 to 65535, not {text:?}"
                )),
            },
        }
    }
}

impl fmt::Display for EngineAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EngineAddress::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            EngineAddress::Tcp { host, port } => write!(f, "{host}:{port}"),
            EngineAddress::Unix(path) => write!(f, "unix://{path}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn agent_attributes_determine_the_engine_address() {
        for (port, socket, is_local, tls, expected) in [
            (None, None, false, false, "host-1:2375"),
            (None, None, false, true, "host-1:2376"),
            (Some("5001"), None, false, true, "host-1:5001"),
            (
                Some("0"),
                None,
                false,
                false,
                "attribute docker_port must be a port from 1 to 65535, not \"0\"",
            ),
            (
                Some("x"),
                None,
                false,
                false,
                "attribute docker_port must be a port from 1 to 65535, not \"x\"",
            ),
            (None, Some("/run/d.sock"), true, false, "unix:///run/d.sock"),
            (None, Some("/run/d.sock"), false, false, "host-1:2375"),
            (Some("5001"), Some("/run/d.sock"), true, false, "host-1:5001"),
            (
                None,
                Some("d.sock"),
                true,
                false,
                "attribute docker_socket must be an absolute path, not \"d.sock\"",
            ),
        ] {
            let attributes = Attributes { hostname: "host-1", docker_port: port, docker_socket: socket };
            let got = match EngineAddress::of_agent(attributes, is_local, tls) {
                Ok(address) => address.to_string(),
                Err(error) => error,
            };
            assert_eq!(got, expected, "{port:?} {socket:?} {is_local} {tls}");
        }
    }
}
