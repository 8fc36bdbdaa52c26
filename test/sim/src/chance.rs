//! Draws, and the units of the world's clock.
//!
//! A draw comes from a generator made of the seed, or, in a replay, from a recorded history. In both it has a name: the
//! event in which it is made, how many events of that name came before, the stream it is drawn from, and its position
//! among the draws of that stream in that event. A draw that a history does not contain has the quietest value: zero,
//! false, the shortest wait; identifiers are a hash of their name.
//! Absent: decisions about the simulated cluster.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use crate::history::{History, Name};

pub(crate) const MS: u64 = 1_000_000;
pub(crate) const SECOND: u64 = 1_000 * MS;

/// A whole number in `low..=high`.
pub(crate) fn between(rng: &mut Rng, low: u64, high: u64) -> u64 {
    low + rng.below(high.saturating_sub(low) + 1)
}

/// Usually in `low..=high`, rarely up to `far`: rare delays find most faults.
pub(crate) fn mostly(rng: &mut Rng, low: u64, high: u64, rarely: f64, far: u64) -> u64 {
    if rng.chance(rarely) { between(rng, high, far) } else { between(rng, low, high) }
}

/// One of these.
pub(crate) fn pick<'a, T>(rng: &mut Rng, from: &'a [T]) -> Option<&'a T> {
    from.get(rng.below(from.len() as u64) as usize)
}

/// The source of all draws of one run.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    seed: u64,
    /// Unset if the run is neither recorded nor replayed: draws need no names.
    tape: Option<Rc<RefCell<Tape>>>,
}

#[derive(Debug)]
struct Tape {
    event: Arc<str>,
    nth: u32,
    /// Events so far, also by name.
    events: u64,
    counts: BTreeMap<Arc<str>, u32>,
    mode: Mode,
}

#[derive(Debug)]
enum Mode {
    Record(History),
    Replay(BTreeMap<Name, u64>),
}

impl Source {
    pub(crate) fn seeded(seed: u64) -> Self {
        Source { seed, tape: None }
    }

    pub(crate) fn recording(seed: u64) -> Self {
        Self::with_tape(seed, Mode::Record(History::default()))
    }

    pub(crate) fn replaying(history: &History) -> Self {
        Self::with_tape(0, Mode::Replay(history.draws().cloned().collect()))
    }

    fn with_tape(seed: u64, mode: Mode) -> Self {
        let tape = Tape { event: "setup".into(), nth: 0, events: 0, counts: BTreeMap::new(), mode };
        Source { seed, tape: Some(Rc::new(RefCell::new(tape))) }
    }

    /// A separate generator: its draws do not shift those of others.
    pub(crate) fn rng(&self, stream: &str, salt: u64) -> Rng {
        Rng {
            generator: tepui_fsm::Rng::seeded(self.seed ^ salt),
            tape: self.tape.clone(),
            stream: stream.into(),
            event: 0,
            drawn: 0,
        }
    }

    /// The draws that follow belong to an event of this name, without blanks.
    pub(crate) fn enter(&self, name: impl FnOnce() -> String) {
        if let Some(tape) = &self.tape {
            tape.borrow_mut().enter(&name());
        }
    }

    /// The recorded draws; empty unless the run is recorded.
    pub(crate) fn history(&self) -> History {
        let Some(tape) = &self.tape else { return History::default() };
        match &tape.borrow().mode {
            Mode::Record(history) => history.clone(),
            Mode::Replay(_) => History::default(),
        }
    }
}

impl Tape {
    fn enter(&mut self, name: &str) {
        let count = match self.counts.get_key_value(name) {
            Some((known, count)) => (Arc::clone(known), count + 1),
            None => (name.into(), 0),
        };
        self.events += 1;
        (self.event, self.nth) = count.clone();
        self.counts.insert(count.0, count.1);
    }
}

/// A generator, or its replacement in a replay.
#[derive(Debug)]
pub(crate) struct Rng {
    generator: tepui_fsm::Rng,
    tape: Option<Rc<RefCell<Tape>>>,
    stream: Arc<str>,
    /// The event of the newest draw, and how many it has made.
    event: u64,
    drawn: u32,
}

impl Rng {
    /// A number in `0..bound`; 0 if `bound` is 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.draw(|_| 0, |generator| generator.below(bound)).min(bound.saturating_sub(1))
    }

    /// True with the given probability.
    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        self.draw(|_| 0, |generator| generator.chance(probability).into()) != 0 && probability > 0.0
    }

    /// A unique number: a seed, a part of an identifier.
    pub(crate) fn next_u64(&mut self) -> u64 {
        self.draw(Name::hash, tepui_fsm::Rng::next_u64)
    }

    /// Sixteen bytes shaped as a version 4 UUID.
    pub(crate) fn uuid(&mut self) -> [u8; 16] {
        let (high, low) = (u128::from(self.next_u64()), u128::from(self.next_u64()));
        let (version, variant) = (0xf000_u128 << 64, 0xc000_u128 << 48);
        let bits = (high << 64 | low) & !(version | variant);
        (bits | 0x4000_u128 << 64 | 0x8000_u128 << 48).to_be_bytes()
    }

    pub(crate) fn uuid_text(&mut self) -> String {
        tepui_client::random::uuid_text(&self.uuid())
    }

    /// Starts a named part: other parts may be added before it without shifting its draws.
    pub(crate) fn part(&mut self, name: &str) -> &mut Self {
        if let Some(tape) = &self.tape {
            tape.borrow_mut().enter(name);
        }
        self
    }

    fn draw(
        &mut self,
        quiet: impl FnOnce(&Name) -> u64,
        generate: impl FnOnce(&mut tepui_fsm::Rng) -> u64,
    ) -> u64 {
        let Some(tape) = &self.tape else { return generate(&mut self.generator) };
        let tape = &mut *tape.borrow_mut();
        if self.event != tape.events {
            (self.event, self.drawn) = (tape.events, 0);
        }
        let (event, stream) = (Arc::clone(&tape.event), Arc::clone(&self.stream));
        let name = Name { event, nth: tape.nth, stream, index: self.drawn };
        self.drawn += 1;
        match &mut tape.mode {
            Mode::Record(history) => {
                let value = generate(&mut self.generator);
                history.push(name, value);
                value
            }
            Mode::Replay(draws) => draws.get(&name).copied().unwrap_or_else(|| quiet(&name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three events, two of them of one name; the last one draws an identifier.
    fn play(source: &Source) -> (Vec<u64>, [u8; 16]) {
        let (mut rng, mut other) = (source.rng("main", 0), source.rng("other", 7));
        let mut drawn = Vec::new();
        for name in ["a", "b", "a"] {
            source.enter(|| name.into());
            drawn.extend([rng.below(1000), other.below(1000), rng.below(1000)]);
        }
        (drawn, rng.uuid())
    }

    #[test]
    fn recorded_run_replays_without_the_seed() {
        let source = Source::recording(5);
        let drawn = play(&source);
        assert_eq!(drawn, play(&Source::seeded(5)), "recording changes nothing");
        assert_eq!(drawn, play(&Source::replaying(&source.history())));
        let text = source.history().to_string();
        let read = History::parse(&text).expect("it was written");
        assert_eq!(drawn, play(&Source::replaying(&read)));
    }

    #[test]
    fn draws_beyond_the_recording_are_default_and_ids_stay_unique() {
        let history = History::parse("a 1 1=7 other.0=3\n").expect("a history");
        let (drawn, uuid) = play(&Source::replaying(&history));
        assert_eq!(drawn, [0, 0, 0, 0, 0, 0, 0, 3, 7]);
        let mut rng = Source::replaying(&history).rng("main", 0);
        assert_ne!(rng.uuid(), uuid);
    }

    #[test]
    fn uuids_are_those_of_the_generator() {
        let mut rng = Source::seeded(3).rng("main", 0);
        assert_eq!(rng.uuid(), tepui_fsm::Rng::seeded(3).uuid());
        assert_eq!(rng.uuid_text().len(), 36);
    }

    #[test]
    fn recorded_values_stay_within_their_bounds() {
        let history = History::parse("setup 0 0=500 1=1\n").expect("a history");
        let mut rng = Source::replaying(&history).rng("main", 0);
        assert_eq!((rng.below(10), rng.chance(0.0)), (9, false));
    }
}
