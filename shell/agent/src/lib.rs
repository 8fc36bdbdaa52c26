//! Wiring of the agent program
