//! Scripts: offers, statuses and commands in, records and effects out.

mod assumed;
mod cluster;
mod deploy;
mod model;
mod properties;
mod recovery;
mod replacement;
mod restart;
mod script;
mod update;
mod upload;
