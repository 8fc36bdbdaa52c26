//! Input and output of a container, as messages of the agent's API. Pure: no I/O, no clocks.
//!
//! Fed by `attach`. Input is a stream of calls, of which the first names the container; output is a stream of
//! `ProcessIO`. Both carry heartbeats, so that no proxy closes an idle connection.

use std::time::Duration;

use tepui_proto::mesos::v1::agent::call::attach_container_input::Type as Step;
use tepui_proto::mesos::v1::agent::call::{AttachContainerInput, AttachContainerOutput, Type};
use tepui_proto::mesos::v1::agent::process_io::{self, control, data};
use tepui_proto::mesos::v1::agent::{Call, ProcessIO};
use tepui_proto::mesos::v1::tty_info::WindowSize;
use tepui_proto::mesos::v1::{ContainerID, TTYInfo};

use crate::shorthand::{duration_info, from_duration_info};

/// Heartbeat interval of idle input, as in v1's command line.
pub const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(30);

/// An output of which so many heartbeats are missing counts as broken.
pub const HEARTBEATS_MISSED_MAX: u32 = 5;

/// Input of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContainerInput {
    /// Bytes for its standard input.
    Keys(Vec<u8>),
    /// Its standard input ends; a terminal has no end.
    End,
    /// How large its terminal is shown.
    Window {
        rows: u16,
        columns: u16,
    },
    Heartbeat,
}

impl ContainerInput {
    /// The record of an input.
    pub fn call(self) -> Call {
        input(AttachContainerInput {
            r#type: Some(Step::PROCESS_IO),
            process_io: self.process_io().into(),
            ..Default::default()
        })
    }

    fn process_io(self) -> ProcessIO {
        match self {
            ContainerInput::Keys(bytes) => stdin(bytes),
            ContainerInput::End => stdin(Vec::new()),
            ContainerInput::Window { rows, columns } => control_message(process_io::Control {
                r#type: Some(control::Type::TTY_INFO),
                tty_info: terminal(rows, columns).into(),
                ..Default::default()
            }),
            ContainerInput::Heartbeat => control_message(process_io::Control {
                r#type: Some(control::Type::HEARTBEAT),
                heartbeat: control::Heartbeat {
                    interval: duration_info(HEARTBEAT_INTERVAL).into(),
                    ..Default::default()
                }
                .into(),
                ..Default::default()
            }),
        }
    }
}

fn stdin(bytes: Vec<u8>) -> ProcessIO {
    let data = process_io::Data { r#type: Some(data::Type::STDIN), data: Some(bytes), ..Default::default() };
    ProcessIO { r#type: Some(process_io::Type::DATA), data: data.into(), ..Default::default() }
}

fn control_message(control: process_io::Control) -> ProcessIO {
    ProcessIO { r#type: Some(process_io::Type::CONTROL), control: control.into(), ..Default::default() }
}

/// A terminal of this size.
pub fn terminal(rows: u16, columns: u16) -> TTYInfo {
    let size = WindowSize { rows: rows.into(), columns: columns.into(), ..Default::default() };
    TTYInfo { window_size: size.into(), ..Default::default() }
}

/// The first record of input: the container of all others.
pub fn addressed(container: &ContainerID) -> Call {
    input(AttachContainerInput {
        r#type: Some(Step::CONTAINER_ID),
        container_id: container.clone().into(),
        ..Default::default()
    })
}

fn input(input: AttachContainerInput) -> Call {
    Call {
        r#type: Some(Type::ATTACH_CONTAINER_INPUT),
        attach_container_input: input.into(),
        ..Default::default()
    }
}

/// Attaches to the output of a container from now on.
pub fn listen(container: &ContainerID) -> Call {
    let output = AttachContainerOutput { container_id: container.clone().into(), ..Default::default() };
    Call {
        r#type: Some(Type::ATTACH_CONTAINER_OUTPUT),
        attach_container_output: output.into(),
        ..Default::default()
    }
}

/// A piece of what a container wrote. With a terminal all of it is [`Heard::Stdout`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContainerOutput {
    Stdout(Vec<u8>),
    Stderr(Vec<u8>),
}

/// The receiving end: separates output from heartbeats.
#[derive(Clone, Copy, Debug, Default)]
pub struct Listener {
    interval: Option<Duration>,
}

impl Listener {
    /// The output in a message; none if it is about something else.
    pub fn receive(&mut self, message: ProcessIO) -> Option<ContainerOutput> {
        let ProcessIO { data, control, .. } = message;
        if control.r#type == Some(control::Type::HEARTBEAT) {
            let interval = from_duration_info(&control.heartbeat.interval);
            self.interval = (!interval.is_zero()).then_some(interval);
        }
        let data = data.into_option()?;
        let bytes = data.data.filter(|bytes| !bytes.is_empty())?;
        match data.r#type? {
            data::Type::STDOUT => Some(ContainerOutput::Stdout(bytes)),
            data::Type::STDERR => Some(ContainerOutput::Stderr(bytes)),
            data::Type::STDIN | data::Type::UNKNOWN => None,
        }
    }

    /// Limit of silence; none until the peer has announced its heartbeat interval.
    pub fn patience(&self) -> Option<Duration> {
        Some(self.interval? * HEARTBEATS_MISSED_MAX)
    }
}

#[cfg(test)]
mod tests {
    use tepui_proto::json;

    use super::*;

    fn text(call: Call) -> String {
        String::from_utf8(json::to_vec(&call)).expect("text")
    }

    #[test]
    fn attach_input_calls_match_the_v1_wire_format() {
        let nested = ContainerID {
            value: "c".into(),
            parent: ContainerID { value: "p".into(), ..Default::default() }.into(),
            ..Default::default()
        };
        let io = |io: &str| {
            let input = format!(r#"{{"type":"PROCESS_IO","process_io":{io}}}"#);
            format!(r#"{{"type":"ATTACH_CONTAINER_INPUT","attach_container_input":{input}}}"#)
        };
        assert_eq!(
            text(addressed(&nested)),
            r#"{"type":"ATTACH_CONTAINER_INPUT","attach_container_input":{"type":"CONTAINER_ID","container_id":{"value":"c","parent":{"value":"p"}}}}"#
        );
        for (said, expected) in [
            (
                ContainerInput::Keys(b"ls\n".to_vec()),
                r#"{"type":"DATA","data":{"type":"STDIN","data":"bHMK"}}"#,
            ),
            (ContainerInput::End, r#"{"type":"DATA","data":{"type":"STDIN","data":""}}"#),
            (
                ContainerInput::Window { rows: 24, columns: 80 },
                r#"{"type":"CONTROL","control":{"type":"TTY_INFO","tty_info":{"window_size":{"rows":24,"columns":80}}}}"#,
            ),
            (
                ContainerInput::Heartbeat,
                r#"{"type":"CONTROL","control":{"type":"HEARTBEAT","heartbeat":{"interval":{"nanoseconds":30000000000}}}}"#,
            ),
        ] {
            assert_eq!(text(said.call()), io(expected));
        }
    }

    #[test]
    fn output_is_distinguished_from_heartbeats() {
        let mut listener = Listener::default();
        let mut receive =
            |text: &str| listener.receive(json::from_slice(text.as_bytes()).expect("a message"));
        assert_eq!(
            receive(r#"{"type":"DATA","data":{"type":"STDOUT","data":"YQ=="}}"#),
            Some(ContainerOutput::Stdout(b"a".into()))
        );
        assert_eq!(
            receive(r#"{"type":"DATA","data":{"type":"STDERR","data":"YQ=="}}"#),
            Some(ContainerOutput::Stderr(b"a".into()))
        );
        assert_eq!(receive(r#"{"type":"DATA","data":{"type":"STDOUT","data":""}}"#), None);
        assert_eq!(receive(r#"{"type":"DATA"}"#), None);
        assert_eq!(listener.patience(), None);
        let heartbeat = r#"{"type":"CONTROL","control":{"type":"HEARTBEAT","heartbeat":{"interval":{"nanoseconds":1000000000}}}}"#;
        assert_eq!(listener.receive(json::from_slice(heartbeat.as_bytes()).expect("a message")), None);
        assert_eq!(listener.patience(), Some(Duration::from_secs(5)));
    }
}
