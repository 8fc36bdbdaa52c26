//! A terminal with our binary in it: keys, output, window size.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use crate::{binary, wait_for};

pub struct TerminalSession {
    child: Child,
    terminal: File,
    /// The output so far.
    shown: Arc<Mutex<Vec<u8>>>,
    /// Finishes when the last program has closed the terminal and its output was read.
    screen: JoinHandle<()>,
    read: usize,
}

impl TerminalSession {
    /// Starts our binary in a new terminal of this size, with these variables.
    pub fn start(size: (u16, u16), arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&terminal).expect("granted");
        unlockpt(&terminal).expect("unlocked");
        let name = ptsname(&terminal, Vec::new()).expect("a name");
        let theirs = || -> OwnedFd {
            rustix::fs::open(&*name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).expect("opened")
        };
        resize(&terminal, size);
        // Makes it the controlling terminal, so that the program receives SIGWINCH.
        let child = Command::new("setsid")
            .args(["--ctty", "--wait"])
            .arg(binary())
            .args(arguments)
            .envs(variables.iter().copied())
            .stdin(theirs())
            .stdout(theirs())
            .stderr(theirs())
            .spawn()
            .expect("setsid starts");
        let terminal = File::from(terminal);
        let shown = Arc::new(Mutex::new(Vec::new()));
        let (mut output, all) = (terminal.try_clone().expect("another handle"), shown.clone());
        let screen = std::thread::spawn(move || {
            let mut piece = [0; 4096];
            // Returns an error when the last program has closed the terminal.
            while let Ok(length @ 1..) = output.read(&mut piece) {
                all.lock().expect("no panic").extend_from_slice(&piece[..length]);
            }
        });
        Self { child, terminal, shown, screen, read: 0 }
    }

    pub fn send_keys(&mut self, keys: &str) {
        self.terminal.write_all(keys.as_bytes()).expect("the terminal takes keys");
    }

    pub fn resize(&self, size: (u16, u16)) {
        resize(&self.terminal, size);
    }

    /// Waits until this is printed, after the previously expected text.
    pub fn expect_text(&mut self, text: &str) {
        let from = self.read;
        let end = wait_for(&format!("{text:?} on the screen"), || {
            // Before the search: the last output may arrive between the two.
            let is_over = self.screen.is_finished();
            let shown = self.shown.lock().expect("no panic").clone();
            let start = shown[from..].windows(text.len()).position(|part| part == text.as_bytes());
            let all = || String::from_utf8_lossy(&shown);
            assert!(start.is_some() || !is_over, "it ended without {text:?}: {}", all());
            start.map(|start| from + start + text.len())
        });
        self.read = end;
    }

    /// Whether this was printed, at any time.
    pub fn has_text(&self, text: &str) -> bool {
        let shown = self.shown.lock().expect("no panic");
        shown.windows(text.len()).any(|part| part == text.as_bytes())
    }

    /// Whether the terminal echoes keys, which is its default.
    pub fn terminal_echoes(&self) -> bool {
        tcgetattr(&self.terminal).expect("a terminal").local_modes.contains(LocalModes::ECHO)
    }

    /// Sends a signal to the program at the terminal.
    pub fn signal(&self, name: &str) {
        let children = format!("/proc/{id}/task/{id}/children", id = self.child.id());
        let forked = std::fs::read_to_string(children).unwrap_or_default();
        // setsid forks if it has to.
        let id = forked.split_whitespace().next().map_or_else(|| self.child.id().to_string(), str::to_owned);
        let sent = Command::new("kill").args([&format!("-{name}"), &id]).status().expect("kill starts");
        assert!(sent.success());
    }

    /// Waits for the program to exit.
    pub fn wait(&mut self) -> ExitStatus {
        wait_for("the program to end", || self.child.try_wait().expect("it can be waited for"))
    }
}

impl Drop for TerminalSession {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- screen\n{}", String::from_utf8_lossy(&self.shown.lock().expect("no panic")));
        }
        if matches!(self.child.try_wait(), Ok(None)) {
            self.signal("KILL");
            let _ = self.child.wait();
        }
    }
}

fn resize(terminal: impl std::os::fd::AsFd, (rows, columns): (u16, u16)) {
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(terminal, size).expect("a terminal");
}
