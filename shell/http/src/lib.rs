//! HTTP as both programs speak it: listener, path rules, negotiation, answers, event streams.
//!
//! Fed by peers; passes parsed requests to a program's [`Handler`] and gives every exchange its `ConnId`. A peer can
//! only cause a rejection, a close or a wait: every header, body, queue and pause has a limit. Absent: the meaning of
//! calls.
#![forbid(unsafe_code)]

mod audit;
pub mod auth;
mod body;
mod browser;
mod call;
mod connection;
mod error;
mod etag;
mod exchange;
mod file;
mod gzip;
mod link;
mod metrics;
mod negotiate;
mod outgoing;
mod pace;
mod path;
pub mod peer;
mod principal;
mod query;
mod queue;
mod rendering_threads;
mod renderings;
mod rendition;
mod request;
mod respond;
mod server;
mod socket;
mod tls;

pub use audit::{Audit, Deed, Entry, Outcome, Witness};
pub use auth::{Authentication, Realm};
pub use body::{Body, ChunkSender};
pub use browser::BrowserPolicy;
pub use call::{CALL_BYTES_MAX, parse_call, read_call, read_call_within};
pub use error::HttpError;
pub use etag::EntityTag;
pub use exchange::{EncodedOnce, Ended, Exchange, Exchanges, Held, Pushes};
pub use file::stream_file;
pub use link::{Link, Receive, Receiving};
pub use metrics::{Group, Metrics, MetricsForm, check_timeout, path_part};
pub use negotiate::{
    Encoding, StreamForm, accepts, accepts_gzip, accepts_stream, accepts_type, streamed_body,
};
pub use outgoing::Outgoing;
pub use path::components;
pub use principal::{Principal, Viewers, subject};
pub use query::Query;
pub use queue::{Lag, StreamBody, StreamLimits};
pub use renderings::{Renderings, UNVERSIONED};
pub use rendition::{DocumentWriter, Rendition, write_json};
pub use request::Request;
pub use respond::{
    Response, accepted, empty, encoded, json, message, redirect, switch_protocol, text, typed, with_header,
};
#[cfg(feature = "fuzz")]
pub use server::fuzz;
pub use server::{Handler, Listening, Server, ServerLimits};
pub use socket::{advertised_ip, keep_alive};
pub use tls::{ClientTls, Followed, Tls, TlsFault, TlsFiles};

#[cfg(test)]
mod tests;
