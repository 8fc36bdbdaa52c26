//! Durable cluster facts
