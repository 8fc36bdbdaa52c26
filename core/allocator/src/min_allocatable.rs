//! The smallest offer worth making: a list of alternatives, one of which must be met.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use tepui_resources::{Name, Quantities, Scalar};

/// Without alternatives everything that is not empty is worth offering.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MinAllocatable {
    alternatives: Vec<Quantities>,
}

/// Why a text is not a list of alternatives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MinAllocatableError {
    part: String,
}

impl MinAllocatable {
    pub fn new(alternatives: Vec<Quantities>) -> Self {
        Self { alternatives }
    }

    /// `cpus:0.01|mem:32`.
    pub fn usual() -> Self {
        let amount =
            |name, thousandths| Quantities::from_iter([(name, Scalar::from_thousandths(thousandths))]);
        Self::new([amount(Name::Cpus, 10), amount(Name::Mem, 32_000)].into())
    }

    /// Alternatives separated by `|`, the amounts of each by `;`: `cpus:0.01|mem:32;disk:100`.
    pub fn parse(text: &str) -> Result<Self, MinAllocatableError> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        text.split('|').map(alternative).collect::<Result<_, _>>().map(Self::new)
    }

    /// Whether an offer of this much is worth making.
    pub fn allows(&self, offer: &Quantities) -> bool {
        !offer.is_empty()
            && (self.alternatives.is_empty() || self.alternatives.iter().any(|least| offer.contains(least)))
    }
}

fn alternative(text: &str) -> Result<Quantities, MinAllocatableError> {
    text.split(';').map(amount).collect()
}

fn amount(text: &str) -> Result<(Name, Scalar), MinAllocatableError> {
    let parsed = text.split_once(':').and_then(|(name, amount)| {
        let amount = Scalar::from_f64(amount.trim().parse().ok()?).ok()?;
        Some((Name::new(name.trim()), amount)).filter(|(name, _)| !name.as_str().is_empty())
    });
    parsed.ok_or_else(|| MinAllocatableError { part: text.trim().to_string() })
}

impl fmt::Display for MinAllocatableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is not an amount such as cpus:0.01 (alternatives are separated by |)", self.part)
    }
}

impl core::error::Error for MinAllocatableError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn quantities(text: &str) -> Quantities {
        if text.is_empty() { Quantities::new() } else { alternative(text).unwrap() }
    }

    #[test]
    fn one_alternative_must_be_met() {
        for (least, offer, allowed) in [
            ("cpus:0.01|mem:32", "cpus:0.01", true),
            ("cpus:0.01|mem:32", "mem:32;disk:1", true),
            ("cpus:0.01|mem:32", "mem:31.999;disk:1000", false),
            ("cpus:1;mem:32", "cpus:2", false),
            ("cpus:1;mem:32", "cpus:2;mem:32", true),
            ("ports:2", "ports:1", false),
            ("", "disk:0.001", true),
            ("", "", false),
            ("cpus:0", "", false),
        ] {
            let least_offer = MinAllocatable::parse(least).unwrap();
            assert_eq!(least_offer.allows(&quantities(offer)), allowed, "{least} / {offer}");
        }
        assert_eq!(MinAllocatable::parse("cpus:0.01|mem:32"), Ok(MinAllocatable::usual()));
    }

    #[test]
    fn malformed_minimums_are_rejected() {
        for text in ["cpus", "cpus:", "cpus:x", ":1", "cpus:1|", "cpus:-1", "cpus:1;;mem:2", "cpus:NaN"] {
            assert!(MinAllocatable::parse(text).is_err(), "{text}");
        }
    }
}
