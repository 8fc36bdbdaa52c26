//! The agent as a state machine
