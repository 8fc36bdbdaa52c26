//! The two encodings of v1 bodies and the choice between them.

use tepui_proto::{Wire, json, wire};

/// A record or a response longer than this is refused and the connection closed: the operator stream begins with the
/// state of the whole cluster, so the limit is generous.
pub const MESSAGE_BYTES_MAX: usize = 512 * 1024 * 1024;

/// How bodies are written, in both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    #[default]
    Protobuf,
    Json,
}

impl Format {
    /// The value of `Content-Type` and `Accept`.
    pub fn media_type(self) -> &'static str {
        match self {
            Format::Protobuf => "application/x-protobuf",
            Format::Json => "application/json",
        }
    }

    /// The body of a message.
    pub fn encode<M: Wire>(self, message: &M) -> Vec<u8> {
        match self {
            Format::Protobuf => wire::encode(message),
            Format::Json => json::to_vec(message),
        }
    }

    /// The message in a body; the error names the position.
    pub fn decode<M: Wire + Default>(self, body: &[u8]) -> Result<M, String> {
        match self {
            Format::Protobuf => wire::decode(body, MESSAGE_BYTES_MAX).map_err(|err| err.to_string()),
            Format::Json => json::from_slice(body).map_err(|err| err.to_string()),
        }
    }
}
