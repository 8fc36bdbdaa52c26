//! Weights of roles, from a flag or a call.

use alloc::format;
use alloc::string::String;

use tepui_allocator::{WEIGHT_MAX, WEIGHT_MIN};

use super::framework::role_name;

pub(crate) fn role(role: &str) -> Result<(), String> {
    role_name(role).map_err(|why| format!("Invalid role '{role}': {why}"))
}

/// Weights are compared in millionths: one that cannot be distinguished from another weight is rejected.
pub(crate) fn value(weight: f64) -> Result<(), String> {
    let why = match weight {
        weight if !weight.is_finite() || weight <= 0.0 => "Weights must be positive".into(),
        weight if !(WEIGHT_MIN..=WEIGHT_MAX).contains(&weight) => {
            format!("Weights must be between {WEIGHT_MIN} and {WEIGHT_MAX}")
        }
        _ => return Ok(()),
    };
    Err(format!("Invalid weight '{weight}': {why}"))
}
