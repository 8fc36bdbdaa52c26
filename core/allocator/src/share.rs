//! Shares and weights as exact numbers: equal fractions are equal, whatever they were computed from.
//!
//! A share is amount / (total x weight), cut (never rounded) to 53 binary digits after the first. No floating point, so
//! that no sum or quotient drifts and ties are ties.

/// Weights count in millionths.
const MILLION: u64 = 1_000_000;
/// The largest weight, in millionths; more is cut to this.
const WEIGHT_MILLIONTHS_MAX: u64 = 1 << 50;
/// Virtual time of one turn with the smallest weight.
const TURN_OF_A_MILLIONTH: u64 = 1 << 40;
/// Binary digits that are kept.
const DIGITS: u32 = 53;

/// The smallest and the largest weight that count as they are.
pub const WEIGHT_MIN: f64 = 0.000_001;
pub const WEIGHT_MAX: f64 = 1e9;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Weight {
    millionths: u64,
}

/// Ordered as the numbers they represent: the exponent in the upper bits, the digits below.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Share(u64);

impl Weight {
    pub(crate) const ONE: Weight = Weight { millionths: MILLION };

    /// Rounds to millionths; at least one of them.
    pub(crate) fn from_f64(weight: f64) -> Self {
        let millionths = (weight * MILLION as f64 + 0.5) as u64;
        Self { millionths: millionths.clamp(1, WEIGHT_MILLIONTHS_MAX) }
    }

    pub(crate) fn to_f64(self) -> f64 {
        self.millionths as f64 / MILLION as f64
    }

    /// How far one turn moves virtual time: the heavier, the less.
    pub(crate) fn turn(self) -> u64 {
        (TURN_OF_A_MILLIONTH / self.millionths).max(1)
    }
}

impl Share {
    pub(crate) const ZERO: Share = Share(0);
    /// Shares between 2^-BIAS and 2^BIAS have their place.
    const BIAS: i64 = 512;

    /// `amount / (total * weight)`; nothing of nothing is nothing.
    pub(crate) fn of(amount: i64, total: i64, weight: Weight) -> Self {
        let (Ok(amount), Ok(total)) = (u64::try_from(amount), u64::try_from(total)) else {
            return Self::ZERO;
        };
        if amount == 0 || total == 0 {
            return Self::ZERO;
        }
        // A whole weight needs no millionths; the quotient is the same, and the numbers are mostly small.
        let (up, down) = match weight.millionths % MILLION {
            0 => (1, weight.millionths / MILLION),
            _ => (MILLION, weight.millionths),
        };
        match (amount.checked_mul(up), total.checked_mul(down)) {
            (Some(left), Some(divisor)) if left >> DIGITS == 0 && divisor >> DIGITS == 0 => {
                Self::small_quotient(left, divisor)
            }
            _ => Self::quotient(u128::from(amount) * u128::from(up), u128::from(total) * u128::from(down)),
        }
    }

    /// The same for numbers that a double holds exactly: the processor's quotient is rounded, hence right or one too
    /// large in its last digit.
    fn small_quotient(left: u64, divisor: u64) -> Self {
        let rounded = (left as f64 / divisor as f64).to_bits();
        let exponent = (rounded >> (DIGITS - 1)) as i64 - 1022;
        let digits = rounded & ((1 << (DIGITS - 1)) - 1) | 1 << (DIGITS - 1);
        let after_point = i64::from(DIGITS) - exponent;
        // left * 2^after_point / divisor < digits, without dividing.
        let product = u128::from(digits) * u128::from(divisor);
        let too_large = match after_point {
            0.. => product > u128::from(left) << after_point,
            _ => product << -after_point > u128::from(left),
        };
        Self::cut(u128::from(digits) - u128::from(too_large), after_point)
    }

    /// Both are above zero and below 2^127.
    fn quotient(mut left: u128, divisor: u128) -> Self {
        let mut digits: u128 = 0;
        let mut after_point: i64 = 0;
        loop {
            // As many digits as there is room for.
            let shift = left.leading_zeros().min(digits.leading_zeros());
            left <<= shift;
            let more = left / divisor;
            digits = (digits << shift) + more;
            left -= more * divisor;
            after_point += i64::from(shift);
            if left == 0 || digits >> DIGITS != 0 {
                return Self::cut(digits, after_point);
            }
        }
    }

    fn cut(digits: u128, after_point: i64) -> Self {
        let length = 128 - i64::from(digits.leading_zeros());
        let surplus = length - i64::from(DIGITS);
        let cut = if surplus >= 0 { digits >> surplus } else { digits << -surplus };
        // The first digit is always 1 and is left out.
        let rest = cut as u64 & ((1 << (DIGITS - 1)) - 1);
        let exponent = (length - after_point + Self::BIAS) as u64;
        Self(exponent << (DIGITS - 1) | rest)
    }

    /// For people to read.
    pub(crate) fn to_f64(self) -> f64 {
        if self == Self::ZERO {
            return 0.0;
        }
        let exponent = (self.0 >> (DIGITS - 1)) as i64 - Self::BIAS;
        // An IEEE double has the same digits; only its exponent begins elsewhere.
        let biased = (exponent + 1022) as u64;
        f64::from_bits(biased << (DIGITS - 1) | self.0 & ((1 << (DIGITS - 1)) - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn share_is_amount_by_total_and_weight() {
        for (amount, total, weight, share) in [
            (0, 10, 1.0, 0.0),
            (10, 0, 1.0, 0.0),
            (5, 10, 1.0, 0.5),
            (10, 10, 1.0, 1.0),
            (30, 10, 1.0, 3.0),
            (5, 10, 2.0, 0.25),
            (5, 10, 0.5, 1.0),
            (1, 1 << 40, 1.0, 1.0 / (1u64 << 40) as f64),
            (1, 10, 1e-9, 100_000.0),
        ] {
            assert_eq!(
                Share::of(amount, total, Weight::from_f64(weight)).to_f64(),
                share,
                "{amount}/{total}/{weight}"
            );
        }
        assert_eq!(Weight::from_f64(2.5).to_f64(), 2.5);
    }

    #[test]
    fn equal_shares_tie_regardless_of_floating_point_error() {
        let tenth = |amount, weight| Share::of(amount, 10, Weight::from_f64(weight));
        assert_ne!(0.3 / 3.0, 0.1);
        assert_eq!(tenth(3, 3.0), tenth(1, 1.0));
        assert_eq!(tenth(1, 0.1), tenth(10, 1.0));
        assert_eq!(tenth(7, 0.7), tenth(10, 1.0));
    }

    proptest! {
        #[test]
        fn fast_and_exact_division_agree(a in 1..1u64 << 53, b in 1..1u64 << 53, less in 0..53u32) {
            for (left, divisor) in [(a >> less, b), (a, b >> less), (a, a), (a >> less, a), (a, a - 1)] {
                if left > 0 && divisor > 0 {
                    let exact = Share::quotient(u128::from(left), u128::from(divisor));
                    prop_assert_eq!(Share::small_quotient(left, divisor), exact, "{}/{}", left, divisor);
                }
            }
        }

        #[test]
        fn shares_are_ordered_as_fractions(
            a in 1..1i64 << 40, t in 1..1i64 << 40, w in 1..1u64 << 30,
            b in 1..1i64 << 40, u in 1..1i64 << 40, v in 1..1u64 << 30,
            factor in 1..1i64 << 20,
        ) {
            let weight = |millionths| Weight { millionths };
            let (one, other) = (Share::of(a, t, weight(w)), Share::of(b, u, weight(v)));
            prop_assert_eq!(one, Share::of(a * factor, t * factor, weight(w)));
            // a / (t w) against b / (u v), in 128 bits.
            let left = (a as u128).checked_mul(u as u128).and_then(|it| it.checked_mul(v as u128));
            let right = (b as u128).checked_mul(t as u128).and_then(|it| it.checked_mul(w as u128));
            let (left, right) = (left.expect("110 bits"), right.expect("110 bits"));
            // Cut to 53 digits: never the wrong way round.
            let ordered = if left <= right { one <= other } else { one >= other };
            prop_assert!(ordered);
        }
    }
}
