//! Wrong secrets, and the limits on further attempts. Pure: the time is an argument.
//!
//! An address that named one principal with several wrong secrets has to pause, longer after each further one; its attempts
//! meanwhile are rejected unseen. Many wrong secrets of one address, or for one principal from anywhere, make attempts slower
//! and never reject them, so that a principal cannot be locked out from elsewhere.
//! Right secrets are stored separately from wrong ones, so that a flood of these does not displace them.
//! Never: more entries of either kind than twice [`GENERATION_ENTRIES_MAX`].

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

/// Wrong secrets of one address for one principal that cost nothing.
const PAIR_FREE: u32 = 5;
/// Wrong secrets of one address, or for one principal, that cost nothing.
const TOTAL_FREE: u32 = 50;
/// The pause after the first wrong secret that is not free; each further one doubles it.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// How much later attempts are checked that are merely slowed down.
const DELAY: Duration = Duration::from_secs(1);
/// After so much time without a wrong secret nothing is remembered.
const FORGET_AFTER: Duration = Duration::from_secs(15 * 60);
/// When so many entries are used, those that were not used since the last time are forgotten.
const GENERATION_ENTRIES_MAX: usize = 5_000;

/// What becomes of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    Right,
    Wrong,
    /// To be made again after this time, as one that has waited.
    Wait(Duration),
    /// Not looked at before this time has passed.
    Refused(Duration),
}

/// The sender of an attempt, and its principal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin<'o> {
    pub address: IpAddr,
    pub principal: &'o str,
    /// It has waited already.
    pub has_waited: bool,
    /// If its secret was right before, it is looked at in any case: otherwise a task could keep the agent of its own machine from
    /// its master.
    pub trusts_proven: bool,
}

#[derive(Clone, Copy, Debug)]
struct Tally {
    wrong: u32,
    last: Instant,
    until: Instant,
}

/// A principal at an address. Principals as digests, so that long names take no more memory than short ones.
type Pair = (IpAddr, u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Key {
    Pair(Pair),
    Address(IpAddr),
    Principal(u64),
}

#[derive(Debug, Default)]
pub(crate) struct Guesses {
    hasher: RandomState,
    tallies: Generations<Key, Tally>,
    /// Whose secret was right.
    proven: Generations<Pair, ()>,
}

/// The entries used last.
#[derive(Debug)]
struct Generations<K, V> {
    current: HashMap<K, V>,
    previous: HashMap<K, V>,
}

impl Guesses {
    /// Decides about one attempt; `verify` is called at most once.
    pub fn attempt(&mut self, now: Instant, origin: Origin<'_>, verify: impl FnOnce() -> bool) -> Attempt {
        let (address, principal) = (network(origin.address), self.hasher.hash_one(origin.principal));
        let pair = (address, principal);
        let totals = [Key::Address(address), Key::Principal(principal)];
        let is_proven = self.proven.get(&pair).is_some();
        if !(origin.trusts_proven && is_proven) {
            if let Some(left) = self.get(now, Key::Pair(pair)).map(|tally| tally.until.duration_since(now))
                && !left.is_zero()
            {
                return Attempt::Refused(left);
            }
            let is_suspect = |key| self.get(now, key).is_some_and(|tally| tally.wrong > TOTAL_FREE);
            if !is_proven && !origin.has_waited && totals.into_iter().any(is_suspect) {
                return Attempt::Wait(DELAY);
            }
        }
        match verify() {
            true => {
                self.proven.put(pair, ());
                self.tallies.remove(&Key::Pair(pair));
                Attempt::Right
            }
            false => {
                self.count(now, Key::Pair(pair), PAIR_FREE);
                totals.into_iter().for_each(|key| self.count(now, key, u32::MAX));
                Attempt::Wrong
            }
        }
    }

    fn count(&mut self, now: Instant, key: Key, free: u32) {
        let wrong = self.get(now, key).map_or(0, |tally| tally.wrong).saturating_add(1);
        let pause = match wrong.checked_sub(free) {
            None | Some(0) => Duration::ZERO,
            Some(beyond) => PAUSE_MIN.saturating_mul(1 << (beyond - 1).min(u32::BITS - 2)).min(PAUSE_MAX),
        };
        self.tallies.put(key, Tally { wrong, last: now, until: now + pause });
    }

    fn get(&self, now: Instant, key: Key) -> Option<Tally> {
        let is_new = |tally: &Tally| now.saturating_duration_since(tally.last) < FORGET_AFTER;
        self.tallies.get(&key).copied().filter(is_new)
    }
}

impl<K: Eq + Hash, V> Generations<K, V> {
    fn get(&self, key: &K) -> Option<&V> {
        self.current.get(key).or_else(|| self.previous.get(key))
    }

    fn put(&mut self, key: K, value: V) {
        if self.current.len() >= GENERATION_ENTRIES_MAX && !self.current.contains_key(&key) {
            self.previous = std::mem::take(&mut self.current);
        }
        self.current.insert(key, value);
    }

    fn remove(&mut self, key: &K) {
        self.current.remove(key);
        self.previous.remove(key);
    }
}

impl<K, V> Default for Generations<K, V> {
    fn default() -> Self {
        Self { current: HashMap::new(), previous: HashMap::new() }
    }
}

/// The owner of an IPv6 address has at least 2^64 of them.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Door {
        guesses: Guesses,
        now: Instant,
    }

    impl Door {
        fn new() -> Self {
            Self { guesses: Guesses::default(), now: Instant::now() }
        }

        fn try_as(&mut self, origin: Origin<'_>, is_right: bool) -> Attempt {
            self.guesses.attempt(self.now, origin, || is_right)
        }

        fn wrong(&mut self, address: &str, principal: &str) -> Attempt {
            self.try_as(origin(address, principal), false)
        }

        fn right(&mut self, address: &str, principal: &str) -> Attempt {
            self.try_as(origin(address, principal), true)
        }

        fn pass(&mut self, seconds: u64) {
            self.now += Duration::from_secs(seconds);
        }
    }

    fn origin<'o>(address: &str, principal: &'o str) -> Origin<'o> {
        let address = address.parse().expect("an address");
        Origin { address, principal, has_waited: false, trusts_proven: false }
    }

    fn refused(seconds: u64) -> Attempt {
        Attempt::Refused(Duration::from_secs(seconds))
    }

    #[test]
    fn failed_authentications_double_the_lockout() {
        let mut door = Door::new();
        for _ in 0..PAIR_FREE {
            assert_eq!(door.wrong("10.0.0.1", "ops"), Attempt::Wrong);
        }
        for pause in [1, 2, 4, 8, 16, 32, 60, 60] {
            assert_eq!(door.wrong("10.0.0.1", "ops"), Attempt::Wrong);
            assert_eq!(door.wrong("10.0.0.1", "ops"), refused(pause), "not looked at");
            assert_eq!(door.right("10.0.0.1", "ops"), refused(pause), "nor is a right one");
            door.pass(pause);
        }
        assert_eq!(door.right("10.0.0.1", "ops"), Attempt::Right);
        assert_eq!(door.wrong("10.0.0.1", "ops"), Attempt::Wrong, "a right one ends it");
        assert_eq!(door.wrong("10.0.0.1", "ops"), Attempt::Wrong);
    }

    #[test]
    fn other_addresses_and_principals_are_not_locked_out() {
        let mut door = Door::new();
        for _ in 0..=PAIR_FREE {
            door.wrong("10.0.0.1", "ops");
        }
        assert!(matches!(door.right("10.0.0.1", "ops"), Attempt::Refused(_)));
        assert_eq!(door.right("10.0.0.2", "ops"), Attempt::Right);
        assert_eq!(door.right("10.0.0.1", "dev"), Attempt::Right);
    }

    #[test]
    fn failures_from_many_addresses_only_delay_a_principal() {
        let mut door = Door::new();
        assert_eq!(door.right("10.9.9.9", "ops"), Attempt::Right);
        for number in 0..=TOTAL_FREE {
            assert_eq!(door.wrong(&format!("10.1.0.{number}"), "ops"), Attempt::Wrong);
        }
        assert_eq!(door.right("10.2.0.1", "ops"), Attempt::Wait(DELAY));
        let waited = Origin { has_waited: true, ..origin("10.2.0.1", "ops") };
        assert_eq!(door.try_as(waited, true), Attempt::Right);
        assert_eq!(door.right("10.2.0.1", "ops"), Attempt::Right, "it was right before");
        assert_eq!(door.right("10.9.9.9", "ops"), Attempt::Right, "and so was this one");
        door.pass(FORGET_AFTER.as_secs());
        assert_eq!(door.right("10.2.0.2", "ops"), Attempt::Right, "nothing is held against it any more");
    }

    #[test]
    fn address_failing_with_many_principals_is_delayed() {
        let mut door = Door::new();
        for number in 0..=TOTAL_FREE {
            assert_eq!(door.wrong("10.0.0.1", &format!("name{number}")), Attempt::Wrong);
        }
        assert_eq!(door.wrong("10.0.0.1", "another"), Attempt::Wait(DELAY));
        assert_eq!(door.wrong("10.0.0.2", "another"), Attempt::Wrong);
    }

    #[test]
    fn authenticated_agent_is_never_locked_out() {
        let mut door = Door::new();
        let agent = Origin { trusts_proven: true, ..origin("10.0.0.1", "agent") };
        assert_eq!(door.try_as(agent, true), Attempt::Right);
        for _ in 0..2 * PAIR_FREE {
            door.wrong("10.0.0.1", "agent");
        }
        assert!(matches!(door.right("10.0.0.1", "agent"), Attempt::Refused(_)), "as an operator it is");
        assert_eq!(door.try_as(agent, true), Attempt::Right);
        let stranger = Origin { trusts_proven: true, ..origin("10.0.0.1", "ops") };
        for _ in 0..=PAIR_FREE {
            assert_eq!(door.try_as(stranger, false), Attempt::Wrong);
        }
        assert!(matches!(door.try_as(stranger, true), Attempt::Refused(_)), "it never was right");
    }

    #[test]
    fn flood_of_wrong_secrets_does_not_lock_out_an_authenticated_agent() {
        let mut door = Door::new();
        let agent = Origin { trusts_proven: true, ..origin("10.0.0.1", "agent") };
        assert_eq!(door.try_as(agent, true), Attempt::Right);
        for number in 0..10 * GENERATION_ENTRIES_MAX {
            let (has_waited, name) = (true, format!("name{number}"));
            door.try_as(Origin { has_waited, ..origin("10.9.9.9", &name) }, false);
        }
        for _ in 0..=PAIR_FREE {
            door.wrong("10.0.0.1", "agent");
        }
        assert!(matches!(door.right("10.0.0.1", "agent"), Attempt::Refused(_)), "as an operator it is");
        assert_eq!(door.try_as(agent, true), Attempt::Right);
    }

    #[test]
    fn addresses_of_one_network_are_limited_together() {
        let mut door = Door::new();
        for number in 0..=PAIR_FREE {
            door.wrong(&format!("2001:db8::{number}"), "ops");
        }
        assert!(matches!(door.right("2001:db8::ffff", "ops"), Attempt::Refused(_)));
        assert_eq!(door.right("2001:db8:0:1::1", "ops"), Attempt::Right);
        for _ in 0..=PAIR_FREE {
            door.wrong("::ffff:10.0.0.1", "ops");
        }
        assert!(matches!(door.right("10.0.0.1", "ops"), Attempt::Refused(_)));
    }

    #[test]
    fn failure_table_is_bounded_and_keeps_the_most_active() {
        let mut door = Door::new();
        for _ in 0..=PAIR_FREE {
            door.wrong("10.0.0.1", "ops");
        }
        for number in 0..10 * GENERATION_ENTRIES_MAX {
            let waited = Origin { has_waited: true, ..origin("10.0.0.1", "x") };
            let name = format!("name{number}");
            door.try_as(Origin { principal: &name, ..waited }, false);
            let tallies = &door.guesses.tallies;
            let size = tallies.current.len() + tallies.previous.len();
            assert!(size <= 2 * GENERATION_ENTRIES_MAX, "{size}");
        }
        assert_eq!(door.wrong("10.0.0.1", "one more"), Attempt::Wait(DELAY), "its address is still known");
    }
}
