//! The agent's end of a container's switchboard: for attached output or input.
//!
//! Connections go to the supervisor, so they also work for a container that a former agent launched. Nothing is
//! buffered here beyond one frame each way: a slow reader makes the switchboard wait, under its limits.

use std::io;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use super::frame::{self, Decoder, FRAME_BYTES_MAX, Frame, Kind};
use super::switchboard;
use crate::host::beneath;
use crate::runtime_dir::ContainerDir;

/// Limit of waiting for the error of the last input.
const VERDICT_MAX: Duration = Duration::from_secs(1);

/// Why it is not possible to attach, or to stay attached.
#[derive(Debug, thiserror::Error)]
pub enum AttachFault {
    /// The container writes to its files by itself.
    #[error("I/O switchboard server was disabled for this container")]
    Disabled,
    #[error("Multiple input connections are not allowed")]
    Busy,
    #[error("the container has no terminal")]
    NoTerminal,
    /// Its supervisor has ended, or does not wait for us any longer.
    #[error("the connection to the container was lost")]
    Lost(#[source] io::Error),
}

/// A piece of output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    Stdout(Vec<u8>),
    Stderr(Vec<u8>),
}

/// What a container writes from now on.
#[derive(Debug)]
pub struct Output {
    reader: Reader,
    /// Kept open: closing it would end the connection.
    _writer: OwnedWriteHalf,
}

/// What a container reads.
#[derive(Debug)]
pub struct Input {
    pub writer: Writer,
    reader: Reader,
}

/// The typing end of an [`Input`].
#[derive(Debug)]
pub struct Writer {
    writer: OwnedWriteHalf,
}

#[derive(Debug)]
struct Reader {
    reader: OwnedReadHalf,
    decoder: Decoder,
    piece: Vec<u8>,
}

pub(crate) async fn output(dir: &ContainerDir) -> Result<Output, AttachFault> {
    let (reader, writer) = attach(dir, Kind::Listen).await?;
    Ok(Output { reader, _writer: writer })
}

pub(crate) async fn input(dir: &ContainerDir) -> Result<Input, AttachFault> {
    let (reader, writer) = attach(dir, Kind::Type).await?;
    Ok(Input { writer: Writer { writer }, reader })
}

async fn attach(dir: &ContainerDir, wish: Kind) -> Result<(Reader, OwnedWriteHalf), AttachFault> {
    let (reader, mut writer) = connect(dir).await?.into_split();
    writer.write_all(&frame::encoded(wish, &[])).await.map_err(AttachFault::Lost)?;
    let mut reader = Reader { reader, decoder: Decoder::default(), piece: vec![0; FRAME_BYTES_MAX] };
    match reader.next().await?.kind {
        Kind::Welcome => Ok((reader, writer)),
        Kind::Busy => Err(AttachFault::Busy),
        _ => Err(lost("its output is closed")),
    }
}

async fn connect(dir: &ContainerDir) -> Result<UnixStream, AttachFault> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(dir.path(), flags, Mode::empty());
    let opened = opened.map_err(|err| AttachFault::Lost(err.into()))?;
    match UnixStream::connect(beneath::held(&opened, switchboard::SOCKET)).await {
        Ok(socket) => Ok(socket),
        Err(err) if err.kind() == io::ErrorKind::NotFound => Err(AttachFault::Disabled),
        Err(err) => Err(AttachFault::Lost(err)),
    }
}

impl Output {
    /// The next piece; `None` at the end of the output. An error if the supervisor exited before, or the reader was
    /// too slow. Cancel safe.
    pub async fn next(&mut self) -> Result<Option<Piece>, AttachFault> {
        let Frame { kind, bytes } = self.reader.next().await?;
        match kind {
            Kind::Stdout => Ok(Some(Piece::Stdout(bytes))),
            Kind::Stderr => Ok(Some(Piece::Stderr(bytes))),
            Kind::End => Ok(None),
            _ => Err(lost("it sent a frame that is not output")),
        }
    }
}

impl Input {
    /// Waits for the end of the container's output, after which input is not read. Cancel safe.
    pub async fn ended(&mut self) -> Result<(), AttachFault> {
        match self.reader.next().await?.kind {
            Kind::End => Ok(()),
            Kind::NoTerminal => Err(AttachFault::NoTerminal),
            _ => Err(lost("it sent a frame that is not an answer")),
        }
    }

    /// Closes the input: another client may connect when this returns. Reports the error of the last input, unless
    /// the container is slow to read it.
    pub async fn finish(mut self) -> Result<(), AttachFault> {
        self.writer.writer.shutdown().await.ok(); // The peer closed the connection before.
        match tokio::time::timeout(VERDICT_MAX, self.ended()).await {
            Ok(Err(AttachFault::NoTerminal)) => Err(AttachFault::NoTerminal),
            Ok(_) | Err(_) => Ok(()),
        }
    }
}

impl Writer {
    /// Waits until the container has read enough.
    pub async fn type_in(&mut self, bytes: &[u8]) -> Result<(), AttachFault> {
        for piece in bytes.chunks(FRAME_BYTES_MAX) {
            self.send(Kind::Stdin, piece).await?;
        }
        Ok(())
    }

    /// Closes the container's input; at a terminal nothing happens.
    pub async fn end(&mut self) -> Result<(), AttachFault> {
        self.send(Kind::StdinEnd, &[]).await
    }

    /// Sets the size of the terminal.
    pub async fn resize(&mut self, rows: u16, columns: u16) -> Result<(), AttachFault> {
        self.send(Kind::Window, &frame::window(rows, columns)).await
    }

    async fn send(&mut self, kind: Kind, bytes: &[u8]) -> Result<(), AttachFault> {
        self.writer.write_all(&frame::encoded(kind, bytes)).await.map_err(AttachFault::Lost)
    }
}

impl Reader {
    async fn next(&mut self) -> Result<Frame, AttachFault> {
        loop {
            match self.decoder.next() {
                Ok(Some(frame)) => return Ok(frame),
                Ok(None) => (),
                Err(_) => return Err(lost("it sent data that is not a frame")),
            }
            match self.reader.read(&mut self.piece).await.map_err(AttachFault::Lost)? {
                0 => return Err(AttachFault::Lost(io::Error::from(io::ErrorKind::UnexpectedEof))),
                length => self.decoder.push(&self.piece[..length]),
            }
        }
    }
}

fn lost(why: &'static str) -> AttachFault {
    AttachFault::Lost(io::Error::other(why))
}
