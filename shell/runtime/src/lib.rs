//! Drives any Fsm
