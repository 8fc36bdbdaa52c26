//! A recorded history: the draws of a run by their names, as text.
//!
//! A line has the draws of one event: its name, how many of that name came before, and the draws that were not zero, each
//! as `index=value`, with the prefix `stream.` outside of the main stream. Lines that start with `#` describe the history.

use std::fmt;
use std::sync::Arc;

/// The stream that is not named.
pub(crate) const MAIN: &str = "main";

/// Which draw of a run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Name {
    pub(crate) event: Arc<str>,
    pub(crate) nth: u32,
    pub(crate) stream: Arc<str>,
    pub(crate) index: u32,
}

impl Name {
    /// FNV-1a, which stays the same wherever and whenever this is built.
    pub(crate) fn hash(&self) -> u64 {
        let numbers = [self.nth.to_be_bytes(), self.index.to_be_bytes()].concat();
        let bytes = self.event.bytes().chain([0]).chain(self.stream.bytes()).chain(numbers);
        let hash = bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        tepui_fsm::Rng::seeded(hash).next_u64()
    }
}

/// The draws of a run that are not zero, in the order in which they were made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    draws: Vec<(Name, u64)>,
}

impl History {
    pub(crate) fn push(&mut self, name: Name, value: u64) {
        if value > 0 {
            self.draws.push((name, value));
        }
    }

    pub(crate) fn draws(&self) -> impl ExactSizeIterator<Item = &(Name, u64)> {
        self.draws.iter()
    }

    pub fn len(&self) -> usize {
        self.draws.len()
    }

    pub fn is_empty(&self) -> bool {
        self.draws.is_empty()
    }

    pub fn parse(text: &str) -> Result<Self, String> {
        let mut history = History::default();
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if !line.is_empty() && !line.starts_with('#') {
                history.parse_line(line).map_err(|reason| format!("line {}: {reason}", at + 1))?;
            }
        }
        Ok(history)
    }

    fn parse_line(&mut self, line: &str) -> Result<(), String> {
        let mut words = line.split_whitespace();
        let event: Arc<str> = words.next().unwrap_or_default().into();
        let nth = words.next().and_then(|word| word.parse().ok());
        let nth: u32 = nth.ok_or_else(|| format!("expecting the number of the event after '{event}'"))?;
        for word in words {
            let (stream, index, value) = parse_draw(word)
                .ok_or_else(|| format!("expecting 'index=value' or 'stream.index=value', not '{word}'"))?;
            self.push(Name { event: Arc::clone(&event), nth, stream: stream.into(), index }, value);
        }
        Ok(())
    }
}

fn parse_draw(word: &str) -> Option<(&str, u32, u64)> {
    let (name, value) = word.split_once('=')?;
    let (stream, index) = name.split_once('.').unwrap_or((MAIN, name));
    Some((stream, index.parse().ok()?, value.parse().ok()?))
}

impl FromIterator<(Name, u64)> for History {
    fn from_iter<I: IntoIterator<Item = (Name, u64)>>(draws: I) -> Self {
        History { draws: draws.into_iter().collect() }
    }
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let events = self.draws.chunk_by(|(a, _), (b, _)| a.event == b.event && a.nth == b.nth);
        for draws in events {
            let (name, _) = &draws[0];
            write!(f, "{} {}", name.event, name.nth)?;
            for (Name { stream, index, .. }, value) in draws {
                match &**stream {
                    MAIN => write!(f, " {index}={value}")?,
                    stream => write!(f, " {stream}.{index}={value}")?,
                }
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn history_text_round_trips() {
        let text = "plan.agents 0 0=3\nturn:A0 12 0=5 2=7 patience.0=1\nturn:A0 13 0=1\n";
        let history = History::parse(&format!("# what it shows\n\n{text}")).expect("a history");
        assert_eq!((history.to_string().as_str(), history.len()), (text, 5));
    }

    #[test]
    fn unreadable_lines_are_named() {
        for (text, problem) in [
            ("turn:A0", "line 1: expecting the number of the event after 'turn:A0'"),
            ("# a\nturn:A0 x", "line 2: expecting the number of the event after 'turn:A0'"),
            ("turn:A0 1 2", "line 1: expecting 'index=value' or 'stream.index=value', not '2'"),
            ("turn:A0 1 a=2", "line 1: expecting 'index=value' or 'stream.index=value', not 'a=2'"),
        ] {
            assert_eq!(History::parse(text), Err(problem.into()));
        }
    }
}
