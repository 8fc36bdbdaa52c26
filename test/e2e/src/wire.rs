//! A wire between two parties that a test can cut: nothing comes through, and nobody is told.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};

/// Connections to `address` end up at its target. What is sent over a cut wire arrives when it is mended, as over a
/// network that lost packets for a while.
pub struct Wire {
    pub address: String,
    state: Arc<State>,
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
        let state = Arc::new(State::default());
        let (shared, target) = (state.clone(), target.to_string());
        // Lives as long as the test's process; its connections end with their parties.
        std::thread::spawn(move || {
            for from in listener.incoming().flatten() {
                shared.wait_until_whole();
                if let Ok(to) = TcpStream::connect(&target) {
                    carry(&from, &to, &shared);
                    carry(&to, &from, &shared);
                }
            }
        });
        Self { address, state }
    }

    pub fn cut(&self) {
        self.state.set(true);
    }

    pub fn mend(&self) {
        self.state.set(false);
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

/// One direction of one connection, on a thread of its own.
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
        // One direction that ends is told to the other party as the end it is.
        let _ = to.shutdown(std::net::Shutdown::Both);
    });
}
