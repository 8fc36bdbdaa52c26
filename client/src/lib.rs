//! Scheduler, executor and operator sessions
