//! The switchboard: the part of the supervisor between a command's input and output and its files and clients.
//!
//! Output goes to the sandbox's files and to all attached clients; input comes from one client. One thread and
//! poll(2); each `turn` handles what is ready and waits if nothing is. A switchboard without a door moves output to files
//! only. Limits: a listener's backlog and timeout (`listener`), unread input, the number of connections.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rustix::fs::{Mode, OFlags};

use super::backlog::Backlog;
use super::frame::{self, Decoder, Frame, Kind, Nonsense};
use super::listener::Listener;
use super::log::Log;
use super::plan::SwitchboardPlan;
use super::terminal;
use crate::host::beneath;
use crate::host::user::Identity;

/// The socket's name in the container's runtime directory.
pub(super) const SOCKET: &str = "stdio.sock";

/// How much is read at once.
const PIECE_BYTES: usize = 32 * 1024;

/// With so much input that the command has not read, its client has to wait.
const TYPED_BYTES_MAX: usize = 64 * 1024;

/// More are sent away.
const CONNECTIONS_MAX: usize = 64;

/// How long a switchboard serves on after its command has ended: listeners take what is left, a session waits for its first.
pub(crate) const FINISH_MAX: Duration = Duration::from_secs(5);

/// Grace period between the end of a command's output and its exit, before listeners receive the end of the stream. A
/// client that receives the end closes a session, and its exit code would be lost.
const LAST_WORD_MAX: Duration = Duration::from_secs(1);

/// The command's ends.
#[derive(Debug)]
pub(crate) struct Ends {
    pub stdin: OwnedFd,
    pub stdout: OwnedFd,
    pub stderr: OwnedFd,
    /// They are a terminal, which the command should be controlled by.
    pub is_terminal: bool,
}

#[derive(Debug)]
pub(crate) struct Switchboard {
    door: Option<UnixListener>,
    newcomers: Vec<Option<(UnixStream, Decoder)>>,
    listeners: Vec<Listener>,
    typist: Option<(UnixStream, Decoder)>,
    input: Option<File>,
    typed: Backlog,
    /// Nothing comes after what was typed.
    typed_all: bool,
    /// Our end of the terminal, if there is one.
    terminal: Option<File>,
    outputs: Vec<(Kind, File)>,
    /// Those of them that came to their end in this turn, in order.
    ended: Vec<usize>,
    logs: [Log; 2],
    is_session: bool,
    /// A session without a listener so far.
    is_held: bool,
    /// The command and all it started have ended.
    is_over: bool,
    /// Since when there is no output any more that could be moved.
    silent_since: Option<Instant>,
    said_end: bool,
}

/// Something to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Signals,
    Door,
    Newcomer(usize),
    Listener(usize),
    Typist,
    Input,
    Output(usize),
}

impl Switchboard {
    /// Makes the ends, and the door if there is to be one. The logs are stdout and stderr.
    pub fn open(
        plan: Option<SwitchboardPlan>,
        runtime: &Path,
        logs: [Log; 2],
        user: Option<&Identity>,
    ) -> io::Result<(Switchboard, Ends)> {
        let mut switchboard = Switchboard {
            door: plan.is_some().then(|| open_door(runtime)).transpose()?,
            newcomers: Vec::new(),
            listeners: Vec::new(),
            typist: None,
            input: None,
            typed: Backlog::default(),
            typed_all: false,
            terminal: None,
            outputs: Vec::new(),
            ended: Vec::new(),
            logs,
            is_session: plan.is_some_and(|plan| plan.is_session),
            is_held: plan.is_some_and(|plan| plan.is_session),
            is_over: false,
            silent_since: None,
            said_end: false,
        };
        let ends = match plan.map(|plan| plan.terminal) {
            Some(Some(terminal)) => switchboard.open_terminal(terminal.size, user)?,
            Some(None) => {
                let (stdin, ours) = io::pipe()?;
                switchboard.input = Some(unblocked(OwnedFd::from(ours))?);
                switchboard.open_pipes(OwnedFd::from(stdin))?
            }
            None => switchboard.open_pipes(OwnedFd::from(File::open("/dev/null")?))?,
        };
        Ok((switchboard, ends))
    }

    fn open_terminal(&mut self, window: Option<(u16, u16)>, user: Option<&Identity>) -> io::Result<Ends> {
        let (ours, theirs) = terminal::open(window, user)?;
        let ours = unblocked(OwnedFd::from(ours))?;
        self.input = Some(ours.try_clone()?);
        self.outputs.push((Kind::Stdout, ours.try_clone()?));
        self.terminal = Some(ours);
        Ok(Ends {
            stdin: theirs.try_clone()?,
            stdout: theirs.try_clone()?,
            stderr: theirs,
            is_terminal: true,
        })
    }

    fn open_pipes(&mut self, stdin: OwnedFd) -> io::Result<Ends> {
        let (stdout, stderr): ((PipeReader, PipeWriter), (PipeReader, PipeWriter)) =
            (io::pipe()?, io::pipe()?);
        self.outputs.push((Kind::Stdout, unblocked(OwnedFd::from(stdout.0))?));
        self.outputs.push((Kind::Stderr, unblocked(OwnedFd::from(stderr.0))?));
        Ok(Ends { stdin, stdout: stdout.1.into(), stderr: stderr.1.into(), is_terminal: false })
    }

    /// Waits until there is something to do, does it, and returns also when a signal can be read.
    pub fn turn(&mut self, signals: Option<BorrowedFd<'_>>, until: Option<Instant>) -> io::Result<()> {
        let ready = self.wait(signals, until)?;
        let now = Instant::now();
        for source in ready {
            match source {
                Source::Signals => (), // OomCause they are.
                Source::Door => self.open_to_newcomers(),
                Source::Newcomer(at) => self.read_handshake(at, now),
                Source::Listener(at) => self.attend(at, now),
                Source::Typist => self.read_input(),
                Source::Input => self.feed(),
                Source::Output(at) => {
                    self.move_piece(at, now);
                }
            }
        }
        self.tidy(now);
        if self.is_over && self.is_moving() {
            self.move_rest(now);
        }
        if self.outputs.is_empty() && !self.said_end {
            let silent_since = *self.silent_since.get_or_insert(now);
            if self.is_over || now >= silent_since + LAST_WORD_MAX {
                self.write_end(now);
            }
        }
        Ok(())
    }

    /// Continues until all clients have received the rest, or the time limit. No writer is left.
    pub fn finish(&mut self) {
        let deadline = Instant::now() + FINISH_MAX;
        self.is_over = true;
        let is_done = |switchboard: &Switchboard| {
            switchboard.said_end && !switchboard.listeners.iter().any(Listener::is_behind)
        };
        while !is_done(self) && Instant::now() < deadline {
            let until = if self.is_moving() && !self.said_end { Instant::now() } else { deadline };
            if self.turn(None, Some(until)).is_err() {
                break; // Nothing can be waited for; what is left goes to the files.
            }
        }
        self.listeners.clear();
        self.is_held = false;
        self.move_rest(Instant::now());
    }

    fn wait(&mut self, signals: Option<BorrowedFd<'_>>, until: Option<Instant>) -> io::Result<Vec<Source>> {
        let mut waits: Vec<(Source, PollFd<'_>)> = Vec::new();
        let mut add = |source, file, flags| waits.push((source, PollFd::new(file, flags)));
        if let Some(signals) = signals {
            add(Source::Signals, signals, PollFlags::POLLIN);
        }
        if let Some(door) = &self.door {
            add(Source::Door, door.as_fd(), PollFlags::POLLIN);
        }
        for (at, (socket, _)) in self.newcomers.iter().flatten().enumerate() {
            add(Source::Newcomer(at), socket.as_fd(), PollFlags::POLLIN);
        }
        for (at, listener) in self.listeners.iter().enumerate() {
            let out = if listener.is_behind() { PollFlags::POLLOUT } else { PollFlags::empty() };
            add(Source::Listener(at), listener.socket.as_fd(), PollFlags::POLLIN | out);
        }
        if let Some((socket, _)) = self.typist.as_ref().filter(|_| self.typed.len() < TYPED_BYTES_MAX) {
            add(Source::Typist, socket.as_fd(), PollFlags::POLLIN);
        }
        if let Some(input) = self.input.as_ref().filter(|_| !self.typed.is_empty()) {
            add(Source::Input, input.as_fd(), PollFlags::POLLOUT);
        }
        for (at, (_, file)) in self.outputs.iter().enumerate().filter(|_| self.is_moving() && !self.is_over) {
            add(Source::Output(at), file.as_fd(), PollFlags::POLLIN);
        }
        let deadlines = self.listeners.iter().filter_map(|one| one.deadline(self.may_take_time()));
        let last_word = self.silent_since.filter(|_| !self.said_end).map(|since| since + LAST_WORD_MAX);
        let timeout = deadlines.chain(until).chain(last_word).min().map_or(PollTimeout::NONE, timeout_until);
        let (sources, mut files): (Vec<Source>, Vec<PollFd<'_>>) = waits.into_iter().unzip();
        match poll(&mut files, timeout) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => (),
            Err(err) => return Err(err.into()),
        }
        let ready = files.iter().map(|file| file.any().unwrap_or(false));
        Ok(sources.into_iter().zip(ready).filter_map(|(source, ready)| ready.then_some(source)).collect())
    }

    /// Whether output is read now.
    fn is_moving(&self) -> bool {
        !self.is_held && !self.listeners.iter().any(Listener::is_full)
    }

    fn may_take_time(&self) -> bool {
        self.is_session && self.listeners.len() == 1
    }

    fn open_to_newcomers(&mut self) {
        let Some(door) = &self.door else { return };
        while let Ok((socket, _)) = door.accept() {
            if self.newcomers.len() + self.listeners.len() < CONNECTIONS_MAX
                && socket.set_nonblocking(true).is_ok()
            {
                self.newcomers.push(Some((socket, Decoder::default())));
            }
        }
    }

    /// The first frame declares the kind of a client. One that closes or sends an invalid frame is dropped.
    fn read_handshake(&mut self, at: usize, now: Instant) {
        let Some((socket, mut decoder)) = self.newcomers[at].take() else { return };
        if receive(&socket, &mut decoder).is_err() {
            return;
        }
        match decoder.next() {
            Ok(None) => self.newcomers[at] = Some((socket, decoder)),
            Ok(Some(Frame { kind: Kind::Listen, .. })) => {
                self.is_held = false;
                let mut listener = Listener::new(socket, now);
                if self.said_end {
                    listener.push(Kind::End, &[], now);
                }
                self.listeners.push(listener);
            }
            Ok(Some(Frame { kind: Kind::Type, .. })) if self.typist.is_none() => {
                write_kind(&socket, if self.said_end { Kind::End } else { Kind::Welcome });
                self.typist = Some((socket, decoder)).filter(|_| !self.said_end);
                self.heed_typist();
            }
            Ok(Some(Frame { kind: Kind::Type, .. })) => write_kind(&socket, Kind::Busy),
            Ok(Some(_)) | Err(Nonsense) => (),
        }
    }

    /// A listener takes something, or leaves.
    fn attend(&mut self, at: usize, now: Instant) {
        let listener = &mut self.listeners[at];
        match (&listener.socket).read(&mut [0; 64]) {
            Err(err) if err.kind() == io::ErrorKind::WouldBlock => listener.send(now),
            // Listeners send nothing.
            Ok(_) | Err(_) => listener.close(),
        }
    }

    fn read_input(&mut self) {
        let Some((socket, decoder)) = &mut self.typist else { return };
        if receive(socket, decoder).is_err() {
            self.typist = None; // The input is available to another client.
            return;
        }
        self.heed_typist();
    }

    fn heed_typist(&mut self) {
        while let Some((_, decoder)) = &mut self.typist {
            match decoder.next() {
                Ok(None) => break,
                Ok(Some(frame)) => self.heed(frame),
                Err(Nonsense) => self.typist = None,
            }
        }
        self.feed();
    }

    fn heed(&mut self, Frame { kind, bytes }: Frame) {
        match kind {
            Kind::Stdin if self.input.is_some() && !self.typed_all => self.typed.push(&bytes),
            Kind::Stdin => (), // No reader is left.
            // At a terminal the end is a character.
            Kind::StdinEnd => self.typed_all = self.terminal.is_none(),
            Kind::Window => self.resize(&bytes),
            Kind::Listen | Kind::Type | Kind::Welcome | Kind::Busy | Kind::Stdout | Kind::Stderr => {
                self.typist = None;
            }
            Kind::NoTerminal | Kind::End => self.typist = None,
        }
    }

    fn resize(&mut self, bytes: &[u8]) {
        match (&self.terminal, frame::parse_window(bytes)) {
            (Some(terminal), Ok((rows, columns))) => {
                terminal::resize(terminal, rows, columns).ok(); // A terminal that has hung up.
            }
            (None, Ok(_)) => {
                if let Some((socket, _)) = self.typist.take() {
                    write_kind(&socket, Kind::NoTerminal);
                }
            }
            (_, Err(Nonsense)) => self.typist = None,
        }
    }

    /// Gives the command what was typed, and the end of it.
    fn feed(&mut self) {
        let Some(input) = &self.input else { return };
        let is_read = self.typed.drain_into(input).is_ok();
        if !is_read || (self.typed_all && self.typed.is_empty()) {
            self.input = None;
            self.typed.clear();
        }
    }

    /// Moves one piece of output; false if there is none now.
    fn move_piece(&mut self, at: usize, now: Instant) -> bool {
        let mut piece = [0; PIECE_BYTES];
        let (kind, file) = &mut self.outputs[at];
        let kind = *kind;
        match file.read(&mut piece) {
            Ok(length) if length > 0 => {
                let piece = &piece[..length];
                self.logs[usize::from(kind == Kind::Stderr)].write(piece);
                self.listeners.iter_mut().for_each(|listener| listener.push(kind, piece, now));
                true
            }
            Err(err) if matches!(err.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => false,
            // The end; a terminal whose other end is closed reports an error instead.
            Ok(_) | Err(_) => {
                self.ended.push(at);
                false
            }
        }
    }

    /// Moves the rest of the output of a command that has exited; a quiet descriptor has no writer left.
    fn move_rest(&mut self, now: Instant) {
        for at in 0..self.outputs.len() {
            while self.is_moving() && self.move_piece(at, now) {}
        }
        if self.is_moving() {
            self.outputs.clear();
        }
        self.ended.clear();
    }

    /// Removes closed clients, and disconnects those that delay the others.
    fn tidy(&mut self, now: Instant) {
        self.newcomers.retain(Option::is_some);
        let may_take_time = self.may_take_time();
        let is_late = |one: &Listener| one.deadline(may_take_time).is_some_and(|deadline| deadline <= now);
        self.listeners.retain(|one| !one.is_gone() && !is_late(one));
        for at in std::mem::take(&mut self.ended).into_iter().rev() {
            self.outputs.remove(at);
        }
    }

    /// All output was moved.
    fn write_end(&mut self, now: Instant) {
        self.said_end = true;
        self.listeners.iter_mut().for_each(|listener| listener.push(Kind::End, &[], now));
        if let Some((socket, _)) = self.typist.take() {
            write_kind(&socket, Kind::End);
        }
    }
}

/// The socket in the runtime directory, for the agent's user only. Reached by a short path, whatever the directory's is.
fn open_door(runtime: &Path) -> io::Result<UnixListener> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let dir = rustix::fs::open(runtime, flags, Mode::empty())?;
    let before = rustix::process::umask(Mode::from_raw_mode(0o177));
    let door = UnixListener::bind(beneath::held(&dir, SOCKET));
    rustix::process::umask(before);
    let door = door?;
    door.set_nonblocking(true)?;
    Ok(door)
}

fn unblocked(file: OwnedFd) -> io::Result<File> {
    rustix::io::ioctl_fionbio(&file, true)?;
    Ok(File::from(file))
}

/// Takes what has come. An error if the peer is gone.
fn receive(mut socket: &UnixStream, decoder: &mut Decoder) -> io::Result<()> {
    let mut piece = [0; PIECE_BYTES];
    match socket.read(&mut piece) {
        Ok(0) => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
        Ok(length) => {
            decoder.push(&piece[..length]);
            Ok(())
        }
        Err(err) if matches!(err.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(()),
        Err(err) => Err(err),
    }
}

/// A frame that always fits: nothing else is ever sent to the client of the input.
fn write_kind(mut socket: &UnixStream, kind: Kind) {
    socket.write_all(&frame::encoded(kind, &[])).ok();
}

fn timeout_until(deadline: Instant) -> PollTimeout {
    // Rounded up, so that it is over when the wait is.
    let millis = deadline.saturating_duration_since(Instant::now()).as_micros().div_ceil(1000);
    PollTimeout::try_from(millis).unwrap_or(PollTimeout::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn end_frame_is_sent_after_the_command_exits() {
        let dir = tempfile::tempdir().expect("a directory");
        let log = |name| {
            let sandbox = beneath::open_dir(dir.path(), Path::new("")).expect("a directory");
            Log::open(sandbox, name, None).expect("a file")
        };
        let (mut switchboard, ends) = Switchboard::open(
            Some(SwitchboardPlan::default()),
            dir.path(),
            [log("stdout"), log("stderr")],
            None,
        )
        .expect("a switchboard");
        let mut listener = UnixStream::connect(dir.path().join(SOCKET)).expect("a door");
        listener.set_nonblocking(true).expect("a socket");
        listener.write_all(&frame::encoded(Kind::Listen, &[])).expect("heard");
        // Its output is closed; whether it has exited is not known yet.
        drop(ends);
        let mut decoder = Decoder::default();
        let mut heard = |switchboard: &mut Switchboard| {
            for _ in 0..10 {
                switchboard.turn(None, Some(Instant::now())).expect("a turn");
            }
            receive(&listener, &mut decoder).ok();
            std::iter::from_fn(|| decoder.next().expect("sense")).map(|frame| frame.kind).collect::<Vec<_>>()
        };
        assert_eq!(heard(&mut switchboard), [Kind::Welcome]);
        assert!(switchboard.outputs.is_empty());
        switchboard.is_over = true;
        assert_eq!(heard(&mut switchboard), [Kind::End]);
    }
}
