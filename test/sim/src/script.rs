//! What a task does, written in its name and its command: `start:run:ending`, times in nanoseconds.

use std::fmt;
use std::time::Duration;

use crate::chance::{MS, Rng, SECOND, between};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Script {
    pub(crate) start: u64,
    pub(crate) run: u64,
    pub(crate) says_starting: bool,
    pub(crate) ending: CommandExit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandExit {
    Finish,
    Fail,
    /// The executor's process exits without an update.
    Crash,
    Oom,
    /// Runs until it is killed.
    Stay,
}

const ENDINGS: [(CommandExit, &str); 5] = [
    (CommandExit::Finish, "finish"),
    (CommandExit::Fail, "fail"),
    (CommandExit::Crash, "crash"),
    (CommandExit::Oom, "oom"),
    (CommandExit::Stay, "stay"),
];

impl Script {
    pub(crate) fn draw(rng: &mut Rng) -> Self {
        let ending = match rng.below(20) {
            0..=9 => CommandExit::Finish,
            10..=12 => CommandExit::Fail,
            13..=14 => CommandExit::Crash,
            15 => CommandExit::Oom,
            _ => CommandExit::Stay,
        };
        Script {
            start: between(rng, 0, 300 * MS),
            run: if rng.chance(0.2) { 0 } else { between(rng, 10 * MS, 30 * SECOND) },
            says_starting: rng.chance(0.3),
            ending,
        }
    }

    /// The `max_completion_time` of some long tasks. Custom executors ignore it.
    pub(crate) fn longest(&self) -> Option<Duration> {
        let is_limited = self.ending == CommandExit::Stay && self.start.is_multiple_of(3);
        is_limited.then(|| Duration::from_nanos(SECOND + self.run))
    }

    /// What a failed one exits with.
    pub(crate) fn exit_code(&self) -> i32 {
        1 + (self.run % 100) as i32
    }

    /// A script, if this is one.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let script = Self::parse(text);
        (script.to_string() == text).then_some(script)
    }

    /// What cannot be read stays until it is killed.
    pub(crate) fn parse(text: &str) -> Self {
        let mut parts = text.split(':');
        let mut number = || parts.next().and_then(|part| part.parse().ok()).unwrap_or(0);
        let (start, run, starting): (u64, u64, u64) = (number(), number(), number());
        let ending = ENDINGS.iter().find(|(_, name)| Some(*name) == text.rsplit(':').next());
        let ending = ending.map_or(CommandExit::Stay, |(ending, _)| *ending);
        Script { start, run, says_starting: starting == 1, ending }
    }
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = ENDINGS.iter().find(|(ending, _)| *ending == self.ending).map_or("stay", |(_, name)| name);
        write!(f, "{}:{}:{}:{name}", self.start, self.run, u64::from(self.says_starting))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn script_round_trips() {
        assert_eq!(Script::read("true"), None);
        let mut rng = crate::chance::Source::seeded(1).rng("main", 0);
        for _ in 0..100 {
            let script = Script::draw(&mut rng);
            assert_eq!(Script::read(&script.to_string()), Some(script));
        }
    }
}
