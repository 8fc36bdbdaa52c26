//! The one mechanism: decide now, make durable, then make visible.
//!
//! Each process is one single-threaded [`Fsm`]. A step appends *records* (to be made durable) and *effects* (to be
//! made visible) to an ordered [`Outbox`]; the driver of the machine releases the outbox in order, an effect only
//! after every earlier record is durable. Time, randomness and ids enter as arguments. Absent: a clock, a file, a
//! socket, a thread.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod deadlines;
mod durable;
mod outbox;
mod rng;
mod time;

pub use deadlines::Deadlines;
pub use durable::{Durable, Write};
pub use outbox::{Item, Outbox};
pub use rng::Rng;
pub use time::{Mono, Now, Wall};

/// Whether there is time for more work in this turn. The driver measures; the machine calls it between pieces of work.
pub type Budget<'a> = dyn FnMut() -> bool + 'a;

/// No deadline.
pub fn unlimited() -> bool {
    true
}

/// A single-threaded state machine: all input enters through `step`, all output leaves through `out`.
pub trait Fsm: Sized {
    type Input;
    /// Made durable, in order.
    type Record;
    /// Made visible, in order, after every earlier record is durable.
    type Effect;

    /// Takes one input in. Never waits, never fails: a refusal is an effect.
    fn step(&mut self, now: Now, input: Self::Input, out: &mut Outbox<Self>);

    /// Runs once per bounded batch of inputs, and whenever `deadline` has passed: due timers, offers, the snapshot.
    /// Work that exceeds the budget stays pending for the next turn: then `deadline` is in the past.
    fn settle(&mut self, now: Now, budget: &mut Budget<'_>, out: &mut Outbox<Self>);

    /// Whether an effect is the same whatever becomes of records before it, as a sign of life is. Such effects are not held
    /// back while records cannot be written.
    fn is_independent(_effect: &Self::Effect) -> bool {
        false
    }

    /// When to run the next turn if there is no input. Timers are state; there are none elsewhere.
    fn deadline(&self) -> Option<Mono>;
}
