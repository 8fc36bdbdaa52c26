//! Amounts: thousandths in an `i64`, so that sums are exact and do not depend on their order.
//!
//! Doubles of v1 clients are rounded once to three decimals, as in v1.
//! Absent: floating point arithmetic beyond the two conversions, wrapping overflow.

use core::fmt;
use core::ops::{Add, AddAssign, Sub, SubAssign};

/// The largest amount taken from a peer, in thousandths. Up to here every thousandth survives being a double.
pub const SCALAR_THOUSANDTHS_MAX: i64 = 1 << 51;

/// An amount with three decimals.
///
/// `+` and `-` saturate at the limits of `i64`; they never wrap and never panic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scalar(i64);

/// Why a double is not an amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScalarError {
    NotANumber,
    Infinite,
    Negative,
    TooLarge,
}

impl Scalar {
    pub const ZERO: Scalar = Scalar(0);
    pub const ONE: Scalar = Scalar(1000);
    pub const MAX: Scalar = Scalar(i64::MAX);

    pub const fn from_thousandths(thousandths: i64) -> Self {
        Self(thousandths)
    }

    pub const fn thousandths(self) -> i64 {
        self.0
    }

    /// A whole number; saturates.
    pub const fn from_count(count: u128) -> Self {
        if count > (i64::MAX / 1000) as u128 { Self::MAX } else { Self(count as i64 * 1000) }
    }

    /// Rounds to thousandths, halves away from zero.
    pub fn from_f64(value: f64) -> Result<Self, ScalarError> {
        if value.is_nan() {
            return Err(ScalarError::NotANumber);
        }
        if value.is_infinite() {
            return Err(if value > 0.0 { ScalarError::Infinite } else { ScalarError::Negative });
        }
        if value < 0.0 {
            return Err(ScalarError::Negative);
        }
        let scaled = value * 1000.0;
        if scaled > SCALAR_THOUSANDTHS_MAX as f64 {
            return Err(ScalarError::TooLarge);
        }
        let whole = scaled as i64;
        let rounds_up = scaled - whole as f64 >= 0.5;
        Ok(Self(whole + i64::from(rounds_up)))
    }

    pub fn to_f64(self) -> f64 {
        self.0 as f64 / 1000.0
    }

    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    pub const fn is_whole(self) -> bool {
        self.0 % 1000 == 0
    }

    pub fn checked_add(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self)
    }

    pub fn checked_sub(self, other: Self) -> Option<Self> {
        self.0.checked_sub(other.0).map(Self)
    }

    /// `self - other`, but never below zero.
    pub fn minus_or_zero(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0).max(0))
    }

    /// `self` taken `times` times; saturates.
    pub fn times(self, times: u32) -> Self {
        Self(self.0.saturating_mul(i64::from(times)))
    }
}

impl Add for Scalar {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Scalar {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Scalar {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl SubAssign for Scalar {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl core::iter::Sum for Scalar {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Self::add)
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let whole = self.0.unsigned_abs() / 1000;
        let rest = self.0.unsigned_abs() % 1000;
        match (rest, rest % 10, rest % 100) {
            (0, _, _) => write!(f, "{sign}{whole}"),
            (_, _, 0) => write!(f, "{sign}{whole}.{}", rest / 100),
            (_, 0, _) => write!(f, "{sign}{whole}.{:02}", rest / 10),
            (_, _, _) => write!(f, "{sign}{whole}.{rest:03}"),
        }
    }
}

impl fmt::Display for ScalarError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ScalarError::NotANumber => "is not a number",
            ScalarError::Infinite => "is infinite",
            ScalarError::Negative => "is negative",
            ScalarError::TooLarge => "is larger than 2251799813685.248",
        })
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn doubles_round_to_thousandths_halves_up() {
        for (value, thousandths) in [
            (0.0, 0),
            (-0.0, 0),
            (0.1, 100),
            (0.0004, 0),
            (0.0005, 1),
            (0.0015, 2),
            (1.9996, 2000),
            (2.5, 2500),
            (1e9 + 0.001, 1_000_000_000_001),
            (f64::MIN_POSITIVE, 0),
        ] {
            assert_eq!(Scalar::from_f64(value), Ok(Scalar(thousandths)), "{value}");
        }
    }

    #[test]
    fn invalid_doubles_are_rejected() {
        for (value, why) in [
            (f64::NAN, ScalarError::NotANumber),
            (f64::INFINITY, ScalarError::Infinite),
            (f64::NEG_INFINITY, ScalarError::Negative),
            (-1e-9, ScalarError::Negative),
            (1e13, ScalarError::TooLarge),
            (f64::MAX, ScalarError::TooLarge),
        ] {
            assert_eq!(Scalar::from_f64(value), Err(why), "{value}");
        }
    }

    #[test]
    fn display_omits_trailing_zeros() {
        for (thousandths, text) in [
            (0, "0"),
            (1, "0.001"),
            (15_500, "15.5"),
            (20, "0.02"),
            (-1_250, "-1.25"),
            (i64::MIN, "-9223372036854775.808"),
        ] {
            assert_eq!(Scalar(thousandths).to_string(), text);
        }
    }

    #[test]
    fn sums_saturate() {
        assert_eq!(Scalar::MAX + Scalar::ONE, Scalar::MAX);
        assert_eq!(Scalar(i64::MIN) - Scalar::ONE, Scalar(i64::MIN));
        assert_eq!(Scalar::from_count(u128::MAX), Scalar::MAX);
        assert_eq!(Scalar::ONE.minus_or_zero(Scalar(1001)), Scalar::ZERO);
        assert_eq!(Scalar::MAX.times(3), Scalar::MAX);
    }

    #[test]
    fn every_thousandth_round_trips_through_a_double() {
        for thousandths in
            (0..2_000_000).step_by(7).chain([SCALAR_THOUSANDTHS_MAX, SCALAR_THOUSANDTHS_MAX - 1])
        {
            assert_eq!(Scalar::from_f64(Scalar(thousandths).to_f64()), Ok(Scalar(thousandths)));
        }
    }
}
