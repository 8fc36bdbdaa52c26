//! A connection between two processes that a test can cut: packets are lost silently.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};

/// Forwards connections to `address` to its target. Data sent over a cut wire arrives after `mend`, as over a network with
/// packet loss.
pub struct Wire {
    pub address: String,
    there: Arc<State>,
    back: Arc<State>,
}

#[derive(Default)]
struct State {
    is_cut: Mutex<bool>,
    mended: Condvar,
}

impl Wire {
    pub fn to(target: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address").to_string();
        let (there, back) = (Arc::new(State::default()), Arc::new(State::default()));
        let (shared, target) = ((there.clone(), back.clone()), target.to_string());
        // Lives as long as the test's process; its connections close with their peers.
        std::thread::spawn(move || {
            for from in listener.incoming().flatten() {
                shared.0.wait_until_whole();
                if let Ok(to) = TcpStream::connect(&target) {
                    carry(&from, &to, &shared.0);
                    carry(&to, &from, &shared.1);
                }
            }
        });
        Self { address, there, back }
    }

    pub fn cut(&self) {
        self.there.set(true);
        self.back.set(true);
    }

    /// Cuts the way back only: the target gets everything, and nothing of it arrives.
    pub fn cut_back(&self) {
        self.back.set(true);
    }

    pub fn mend(&self) {
        self.there.set(false);
        self.back.set(false);
    }
}

impl State {
    fn set(&self, is_cut: bool) {
        *self.is_cut.lock().expect("nobody panics while holding it") = is_cut;
        self.mended.notify_all();
    }

    fn wait_until_whole(&self) {
        let is_cut = self.is_cut.lock().expect("nobody panics while holding it");
        drop(self.mended.wait_while(is_cut, |is_cut| *is_cut).expect("nobody panics while holding it"));
    }
}

/// Forwards one direction of a connection, on its own thread.
fn carry(from: &TcpStream, to: &TcpStream, state: &Arc<State>) {
    let clone = |stream: &TcpStream| stream.try_clone().expect("a second handle");
    let (mut from, mut to, state) = (clone(from), clone(to), state.clone());
    std::thread::spawn(move || {
        let mut bytes = [0; 64 * 1024];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            state.wait_until_whole();
            if to.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
        // The end of one direction closes the connection.
        let _ = to.shutdown(std::net::Shutdown::Both);
    });
}
