//! Bare numbers: how much of each name, and limits on that.
//!
//! The allocator's arithmetic. The five usual names lie in an array: sums of ordinary resources allocate nothing.

use alloc::vec::Vec;
use core::fmt;
use core::ops::{Add, AddAssign, Sub, SubAssign};

use crate::name::Name;
use crate::scalar::Scalar;

const USUAL: [Name; 5] = Quantities::USUAL;

/// Amounts by name. A name that is not there is zero; nothing is below zero.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Quantities {
    usual: [Scalar; USUAL.len()],
    /// Sorted by name; none is zero.
    others: Vec<(Name, Scalar)>,
}

/// Upper bounds by name. A name that is not there has no bound; zero is a bound.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Sorted by name.
    bounds: Vec<(Name, Scalar)>,
}

#[inline]
fn usual_index(name: &Name) -> Option<usize> {
    match name {
        Name::Cpus => Some(0),
        Name::Mem => Some(1),
        Name::Disk => Some(2),
        Name::Gpus => Some(3),
        Name::Ports => Some(4),
        Name::Other(_) => None,
    }
}

fn find(sorted: &[(Name, Scalar)], name: &Name) -> Result<usize, usize> {
    sorted.binary_search_by(|(own, _)| own.cmp(name))
}

impl Quantities {
    /// The names that lie in an array.
    pub const USUAL: [Name; 5] = [Name::Cpus, Name::Mem, Name::Disk, Name::Gpus, Name::Ports];

    pub const fn new() -> Self {
        Self { usual: [Scalar::ZERO; USUAL.len()], others: Vec::new() }
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.others.is_empty() && self.usual == [Scalar::ZERO; USUAL.len()]
    }

    #[inline]
    pub fn get(&self, name: &Name) -> Scalar {
        match usual_index(name) {
            Some(i) => self.usual[i],
            None => find(&self.others, name).map_or(Scalar::ZERO, |at| self.others[at].1),
        }
    }

    /// Below zero counts as zero.
    #[inline]
    pub fn set(&mut self, name: &Name, amount: Scalar) {
        let amount = amount.max(Scalar::ZERO);
        match usual_index(name) {
            Some(i) => self.usual[i] = amount,
            None => self.set_other(name, amount),
        }
    }

    fn set_other(&mut self, name: &Name, amount: Scalar) {
        match find(&self.others, name) {
            Ok(at) if amount.is_zero() => drop(self.others.remove(at)),
            Ok(at) => self.others[at].1 = amount,
            Err(_) if amount.is_zero() => (),
            Err(at) => self.others.insert(at, (name.clone(), amount)),
        }
    }

    #[inline]
    pub fn increase(&mut self, name: &Name, amount: Scalar) {
        match usual_index(name) {
            Some(i) => self.usual[i] += amount,
            None => self.set_other(name, self.get(name) + amount),
        }
    }

    /// By [`Quantities::USUAL`].
    #[inline]
    pub fn usual(&self) -> &[Scalar; USUAL.len()] {
        &self.usual
    }

    /// Of the other names, in their order; none is zero.
    #[inline]
    pub fn others(&self) -> &[(Name, Scalar)] {
        &self.others
    }

    /// Never below zero.
    pub fn decrease(&mut self, name: &Name, amount: Scalar) {
        self.set(name, self.get(name).minus_or_zero(amount));
    }

    pub fn contains(&self, other: &Quantities) -> bool {
        self.usual.iter().zip(&other.usual).all(|(own, wanted)| own >= wanted)
            && other.others.iter().all(|(name, wanted)| self.get(name) >= *wanted)
    }

    /// Those that are not zero, in order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&Name, Scalar)> + '_ {
        let usual = USUAL.iter().zip(self.usual).filter(|(_, amount)| !amount.is_zero());
        usual.chain(self.others.iter().map(|(name, amount)| (name, *amount)))
    }

    /// Grants what is left of the wanted amount and uses it up; without `divisible` all or nothing.
    pub(crate) fn take(&mut self, name: &Name, wanted: Scalar, divisible: bool) -> Scalar {
        let granted = grant(self.get(name), wanted, divisible);
        self.decrease(name, granted);
        granted
    }
}

impl Limits {
    pub const fn new() -> Self {
        Self { bounds: Vec::new() }
    }

    /// No bound at all.
    pub fn is_empty(&self) -> bool {
        self.bounds.is_empty()
    }

    pub fn get(&self, name: &Name) -> Option<Scalar> {
        find(&self.bounds, name).ok().map(|at| self.bounds[at].1)
    }

    pub fn set(&mut self, name: &Name, bound: Scalar) {
        match find(&self.bounds, name) {
            Ok(at) => self.bounds[at].1 = bound,
            Err(at) => self.bounds.insert(at, (name.clone(), bound)),
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Name, Scalar)> + '_ {
        self.bounds.iter().map(|(name, bound)| (name, *bound))
    }

    /// Whether these quantities keep within every bound.
    pub fn contains(&self, quantities: &Quantities) -> bool {
        self.iter().all(|(name, bound)| quantities.get(name) <= bound)
    }

    /// What may still be used; a bound that is passed becomes zero.
    pub fn minus(mut self, used: &Quantities) -> Limits {
        for (name, bound) in &mut self.bounds {
            *bound = bound.minus_or_zero(used.get(name));
        }
        self
    }

    pub(crate) fn take(&mut self, name: &Name, wanted: Scalar, divisible: bool) -> Scalar {
        let Ok(at) = find(&self.bounds, name) else { return wanted };
        let granted = grant(self.bounds[at].1, wanted, divisible);
        self.bounds[at].1 -= granted;
        granted
    }
}

fn grant(left: Scalar, wanted: Scalar, divisible: bool) -> Scalar {
    match (wanted <= left, divisible) {
        (true, _) => wanted,
        (false, true) => left,
        (false, false) => Scalar::ZERO,
    }
}

/// Adds up what has the same name.
impl FromIterator<(Name, Scalar)> for Quantities {
    fn from_iter<I: IntoIterator<Item = (Name, Scalar)>>(amounts: I) -> Self {
        let mut sum = Self::new();
        for (name, amount) in amounts {
            sum.increase(&name, amount);
        }
        sum
    }
}

/// The last bound of a name counts.
impl FromIterator<(Name, Scalar)> for Limits {
    fn from_iter<I: IntoIterator<Item = (Name, Scalar)>>(bounds: I) -> Self {
        let mut limits = Self::new();
        for (name, bound) in bounds {
            limits.set(&name, bound);
        }
        limits
    }
}

impl Clone for Quantities {
    #[inline]
    fn clone(&self) -> Self {
        let others = if self.others.is_empty() { Vec::new() } else { self.others.clone() };
        Self { usual: self.usual, others }
    }
}

impl AddAssign<&Quantities> for Quantities {
    #[inline]
    fn add_assign(&mut self, other: &Quantities) {
        for (own, more) in self.usual.iter_mut().zip(other.usual) {
            *own += more;
        }
        for (name, more) in &other.others {
            self.increase(name, *more);
        }
    }
}

/// Never below zero.
impl SubAssign<&Quantities> for Quantities {
    #[inline]
    fn sub_assign(&mut self, other: &Quantities) {
        for (own, less) in self.usual.iter_mut().zip(other.usual) {
            *own = own.minus_or_zero(less);
        }
        for (name, less) in &other.others {
            self.decrease(name, *less);
        }
    }
}

impl Add<&Quantities> for Quantities {
    type Output = Quantities;

    fn add(mut self, other: &Quantities) -> Quantities {
        self += other;
        self
    }
}

impl Sub<&Quantities> for Quantities {
    type Output = Quantities;

    fn sub(mut self, other: &Quantities) -> Quantities {
        self -= other;
        self
    }
}

impl<'a> core::iter::Sum<&'a Quantities> for Quantities {
    fn sum<I: Iterator<Item = &'a Quantities>>(all: I) -> Self {
        all.fold(Quantities::new(), |sum, next| sum + next)
    }
}

impl fmt::Display for Quantities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_amounts(f, self.iter())
    }
}

impl fmt::Display for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_amounts(f, self.iter())
    }
}

fn write_amounts<'a>(
    f: &mut fmt::Formatter<'_>,
    amounts: impl Iterator<Item = (&'a Name, Scalar)>,
) -> fmt::Result {
    for (i, (name, amount)) in amounts.enumerate() {
        let separator = if i == 0 { "" } else { "; " };
        write!(f, "{separator}{name}:{amount}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    fn amounts(text: &str) -> impl Iterator<Item = (Name, Scalar)> + '_ {
        let pair = |item: &str| {
            let (name, amount) = item.split_once(':').expect("name:amount");
            (Name::new(name), Scalar::from_f64(amount.parse().expect("a number")).expect("an amount"))
        };
        text.split_whitespace().map(pair)
    }

    fn quantities(text: &str) -> Quantities {
        amounts(text).collect()
    }

    #[test]
    fn quantities_are_added_and_subtracted() {
        let sum = quantities("cpus:1 foo:2 bar:1") + &quantities("cpus:0.5 foo:1 zoo:3");
        assert_eq!(sum.to_string(), "cpus:1.5; bar:1; foo:3; zoo:3");
        assert_eq!(sum.clone() - &quantities("cpus:2 foo:3 nil:4"), quantities("bar:1 zoo:3"));
        assert!((sum.clone() - &sum).is_empty());
        assert!(sum.contains(&quantities("foo:3 cpus:1")) && !sum.contains(&quantities("nil:1")));
    }

    #[test]
    fn zero_is_absent_in_quantities_but_a_limit() {
        assert_eq!(quantities("foo:0 mem:0"), Quantities::new());
        let limits: Limits = amounts("cpus:2 gpus:0").collect();
        assert!(limits.contains(&quantities("cpus:2 mem:99")));
        assert!(!limits.contains(&quantities("gpus:1")));
        assert_eq!(limits.minus(&quantities("cpus:3 mem:1")).to_string(), "cpus:0; gpus:0");
    }
}
