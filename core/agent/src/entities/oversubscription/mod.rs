//! Oversubscription: resources that are given out and not used are offered again, revocable; and when the machine
//! suffers, those who took them go.
//!
//! The estimator works from samples of what containers use, the controller from samples of the machine's load; both
//! come in as inputs. Nothing is measured here.

mod estimate;
mod quality;

pub(crate) use estimate::{due, used};
pub(crate) use quality::loaded;
