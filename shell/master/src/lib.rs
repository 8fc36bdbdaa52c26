//! Wiring of the master program
