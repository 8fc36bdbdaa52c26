//! The events of one container, as the engine sends them.

use serde_json::Value;

use super::transport::Answer;
use super::{EngineFault, LINE_BYTES_MAX};

/// To be read until the engine ends them.
#[derive(Debug)]
pub struct ContainerEvents {
    answer: Answer,
    buffer: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerEvent {
    /// `start`, `die`, `oom`, `destroy`, `rename` and others.
    pub action: String,
    /// Of `die`.
    pub exit_code: Option<i64>,
}

impl ContainerEvents {
    pub(super) fn new(answer: Answer) -> Self {
        Self { answer, buffer: Vec::new() }
    }

    /// The next event; `None` when the engine has ended them. Cancel safe.
    pub async fn next(&mut self) -> Result<Option<ContainerEvent>, EngineFault> {
        loop {
            if let Some(event) = self.buffered()? {
                return Ok(Some(event));
            }
            let Some(chunk) = self.answer.endless_chunk().await? else { return Ok(None) };
            if self.buffer.len() + chunk.len() > LINE_BYTES_MAX {
                return Err(EngineFault::TooLarge { doing: self.answer.doing, bytes_max: LINE_BYTES_MAX });
            }
            self.buffer.extend_from_slice(&chunk);
        }
    }

    fn buffered(&mut self) -> Result<Option<ContainerEvent>, EngineFault> {
        let mut values = serde_json::Deserializer::from_slice(&self.buffer).into_iter::<Value>();
        match values.next() {
            Some(Ok(event)) => {
                let read = values.byte_offset();
                self.buffer.drain(..read);
                let action = event["Action"].as_str().unwrap_or_default().to_owned();
                let exit_code = event["Actor"]["Attributes"]["exitCode"].as_str();
                Ok(Some(ContainerEvent { action, exit_code: exit_code.and_then(|code| code.parse().ok()) }))
            }
            Some(Err(err)) if !err.is_eof() => {
                Err(EngineFault::Garbled { doing: self.answer.doing, why: err.to_string() })
            }
            Some(Err(_)) | None => Ok(None),
        }
    }
}
