//! Attempts that are delayed because of many wrong secrets: so many in all, and of one address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard};

use super::guesses::network;

/// Attempts that wait; more are refused.
const ATTEMPTS_WAITING_MAX: usize = 256;
/// Those of one address, so that the others keep places.
const ATTEMPTS_OF_ADDRESS_MAX: usize = 16;

/// How many attempts of each address wait.
#[derive(Debug, Default)]
pub(super) struct Waiting(Mutex<HashMap<IpAddr, usize>>);

/// An attempt that waits.
#[derive(Debug)]
pub(super) struct Place<'w> {
    waiting: &'w Waiting,
    address: IpAddr,
}

impl Waiting {
    /// A place for one more attempt of an address; none if there are too many.
    pub fn enter(&self, address: IpAddr) -> Option<Place<'_>> {
        let (mut counts, address) = (self.lock(), network(address));
        let (total, own) =
            (counts.values().sum::<usize>(), counts.get(&address).copied().unwrap_or_default());
        if total >= ATTEMPTS_WAITING_MAX || own >= ATTEMPTS_OF_ADDRESS_MAX {
            return None;
        }
        counts.insert(address, own + 1);
        Some(Place { waiting: self, address })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.0.lock().expect("no code panics while it holds this lock")
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut counts = self.waiting.lock();
        match counts.get_mut(&self.address) {
            Some(own) if *own > 1 => *own -= 1,
            Some(_) | None => _ = counts.remove(&self.address),
        }
    }
}
