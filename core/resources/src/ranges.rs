//! Sets of `u64` as inclusive ranges, such as ports.
//!
//! Invariant: ranges are sorted, disjoint and not adjacent.
//! Cloning is cheap: the ranges are shared.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

/// `begin..=end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Range {
    pub begin: u64,
    pub end: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ranges(Arc<[Range]>);

impl Range {
    /// `None` if `end` is less than `begin`.
    pub fn new(begin: u64, end: u64) -> Option<Self> {
        (begin <= end).then_some(Self { begin, end })
    }

    /// How many values it has; up to 2^64.
    pub fn count(self) -> u128 {
        u128::from(self.end) - u128::from(self.begin) + 1
    }

    fn overlaps(self, other: Self) -> bool {
        self.begin <= other.end && other.begin <= self.end
    }

    fn touches(self, next: Self) -> bool {
        self.overlaps(next) || self.end.checked_add(1) == Some(next.begin)
    }
}

impl Ranges {
    pub fn as_slice(&self) -> &[Range] {
        &self.0
    }

    pub fn iter(&self) -> impl Iterator<Item = Range> + '_ {
        self.0.iter().copied()
    }

    /// Every value, in order.
    pub fn values(&self) -> impl Iterator<Item = u64> + '_ {
        self.iter().flat_map(|range| range.begin..=range.end)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn count(&self) -> u128 {
        let between: u128 = self.iter().map(|range| u128::from(range.end - range.begin)).sum();
        between + self.0.len() as u128
    }

    pub fn has(&self, value: u64) -> bool {
        self.contains_range(Range { begin: value, end: value })
    }

    pub fn contains(&self, other: &Self) -> bool {
        self.0 == other.0 || other.iter().all(|range| self.contains_range(range))
    }

    pub fn union(&self, other: &Self) -> Self {
        if other.is_empty() || Arc::ptr_eq(&self.0, &other.0) {
            return self.clone();
        }
        self.iter().chain(other.iter()).collect()
    }

    pub fn difference(&self, other: &Self) -> Self {
        if self.0 == other.0 {
            return Self::default();
        }
        let mut rest = Vec::with_capacity(self.0.len() + other.0.len());
        let mut holes = other.iter().peekable();
        for range in self.iter() {
            let mut begin = Some(range.begin);
            while let (Some(from), Some(hole)) = (begin, holes.peek().copied()) {
                if hole.begin > range.end {
                    break;
                }
                if hole.begin > from && hole.end >= from {
                    rest.push(Range { begin: from, end: hole.begin - 1 });
                }
                if hole.end >= range.end {
                    begin = None; // The hole may reach into the next range: keep it.
                } else {
                    begin = Some(from.max(hole.end + 1));
                    holes.next();
                }
            }
            rest.extend(begin.map(|begin| Range { begin, end: range.end }));
        }
        Self(rest.into())
    }

    pub fn intersection(&self, other: &Self) -> Self {
        let mut common = Vec::new();
        let (mut left, mut right) = (self.iter().peekable(), other.iter().peekable());
        while let (Some(a), Some(b)) = (left.peek().copied(), right.peek().copied()) {
            common.extend(Range::new(a.begin.max(b.begin), a.end.min(b.end)));
            if a.end < b.end {
                left.next()
            } else {
                right.next()
            };
        }
        Self(common.into())
    }

    /// The lowest `count` values.
    pub fn first(&self, count: u128) -> Self {
        let mut left = count;
        let mut kept = Vec::new();
        for range in self.iter() {
            if left == 0 {
                break;
            }
            let taken = left.min(range.count());
            // At least one and at most the whole range: no overflow.
            kept.push(Range { begin: range.begin, end: range.begin + (taken - 1) as u64 });
            left -= taken;
        }
        Self(kept.into())
    }

    fn contains_range(&self, wanted: Range) -> bool {
        let after = self.0.partition_point(|range| range.begin <= wanted.begin);
        after > 0 && self.0[after - 1].end >= wanted.end
    }
}

/// Sorts and coalesces.
impl FromIterator<Range> for Ranges {
    fn from_iter<I: IntoIterator<Item = Range>>(ranges: I) -> Self {
        let mut sorted: Vec<Range> = ranges.into_iter().collect();
        sorted.sort_unstable();
        sorted.dedup_by(|next, kept| {
            let joined = kept.touches(*next);
            if joined {
                kept.end = kept.end.max(next.end);
            }
            joined
        });
        Self(sorted.into())
    }
}

/// As v1 writes them: `[31000-32000, 33000-33010]`.
impl fmt::Display for Ranges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (i, range) in self.iter().enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            write!(f, "{comma}{}-{}", range.begin, range.end)?;
        }
        f.write_str("]")
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec;

    use super::*;

    const MAX: u64 = u64::MAX;

    fn ranges(pairs: &[(u64, u64)]) -> Ranges {
        pairs.iter().map(|&(begin, end)| Range { begin, end }).collect()
    }

    #[test]
    fn collecting_sorts_and_coalesces() {
        assert_eq!(ranges(&[(5, 6), (1, 2), (3, 4), (9, 9), (8, 10)]).to_string(), "[1-6, 8-10]");
        assert_eq!(ranges(&[(MAX, MAX), (0, MAX), (3, 4)]), ranges(&[(0, MAX)]));
        assert_eq!(ranges(&[(MAX, MAX), (0, MAX - 1)]), ranges(&[(0, MAX)]));
        assert_eq!(ranges(&[]).to_string(), "[]");
    }

    #[test]
    fn range_differences_are_exact_at_the_edges() {
        for (left, right, rest) in [
            (vec![(1, 10)], vec![(3, 4), (6, 6)], vec![(1, 2), (5, 5), (7, 10)]),
            (vec![(1, 10), (20, 30)], vec![(5, 25)], vec![(1, 4), (26, 30)]),
            (vec![(1, 10)], vec![(0, 11)], vec![]),
            (vec![(0, MAX)], vec![(MAX, MAX)], vec![(0, MAX - 1)]),
            (vec![(0, MAX)], vec![(0, 0)], vec![(1, MAX)]),
            (vec![(0, MAX)], vec![(0, MAX)], vec![]),
            (vec![(10, 20)], vec![(1, 2), (5, 6)], vec![(10, 20)]),
            (vec![(1, 2)], vec![], vec![(1, 2)]),
        ] {
            assert_eq!(ranges(&left).difference(&ranges(&right)), ranges(&rest), "{left:?} - {right:?}");
        }
    }

    #[test]
    fn ranges_up_to_the_maximum_are_counted() {
        let all = ranges(&[(0, MAX)]);
        assert_eq!(all.count(), 1 << 64);
        assert!(all.has(MAX) && all.has(0) && all.contains(&ranges(&[(MAX, MAX)])));
        assert!(!ranges(&[(0, MAX - 1)]).has(MAX));
        assert!(!ranges(&[(1, 4), (6, 9)]).contains(&ranges(&[(4, 6)])));
    }

    #[test]
    fn first_values_of_ranges_are_taken_in_order() {
        let ports = ranges(&[(1, 3), (10, 20)]);
        for (count, want) in
            [(0, ranges(&[])), (2, ranges(&[(1, 2)])), (4, ranges(&[(1, 3), (10, 10)])), (99, ports.clone())]
        {
            assert_eq!(ports.first(count), want);
        }
        assert_eq!(ranges(&[(0, MAX)]).first(1 << 64), ranges(&[(0, MAX)]));
    }
}
