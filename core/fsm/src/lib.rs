//! The one mechanism: Fsm, Outbox, Now, seeded Rng, deadlines
