//! What happened, as text: one line per event, the same for the same seed.

use std::fmt::Write as _;

/// The destination of trace lines.
#[derive(Debug)]
pub enum Trace {
    Off,
    Print,
    Keep(String),
}

impl Trace {
    pub(crate) fn is_on(&self) -> bool {
        !matches!(self, Trace::Off)
    }

    pub(crate) fn line(&mut self, now: u64, line: impl FnOnce() -> String) {
        match self {
            Trace::Off => (),
            Trace::Print => println!("{} {}", time(now), line()),
            Trace::Keep(text) => {
                writeln!(text, "{} {}", time(now), line()).expect("writing to a String cannot fail");
            }
        }
    }
}

fn time(nanos: u64) -> String {
    format!("{:>5}.{:06}", nanos / 1_000_000_000, nanos % 1_000_000_000 / 1000)
}
