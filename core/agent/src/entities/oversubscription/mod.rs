//! Oversubscription: allocated but unused resources are offered again as revocable; under pressure their users are
//! killed.
//!
//! The estimator works from samples of container usage, the controller from samples of the machine's load; both come
//! in as inputs. Nothing is measured here.

mod estimate;
mod quality;

pub(crate) use estimate::{due, used};
pub(crate) use quality::loaded;
