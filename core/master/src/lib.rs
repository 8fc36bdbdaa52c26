//! The master as a state machine
