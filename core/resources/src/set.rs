//! Sorted sets of words. Cloning is cheap: the words are shared.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Set(Arc<[Arc<str>]>);

impl Set {
    pub fn iter(&self) -> impl Iterator<Item = &str> + '_ {
        self.0.iter().map(|item| &**item)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn has(&self, item: &str) -> bool {
        self.0.binary_search_by(|own| (**own).cmp(item)).is_ok()
    }

    pub fn contains(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || other.iter().all(|item| self.has(item))
    }

    pub fn union(&self, other: &Self) -> Self {
        self.0.iter().chain(&*other.0).cloned().collect()
    }

    pub fn difference(&self, other: &Self) -> Self {
        self.keep(|item| !other.has(item))
    }

    pub fn intersection(&self, other: &Self) -> Self {
        self.keep(|item| other.has(item))
    }

    /// The first `count` words in their order.
    pub fn first(&self, count: usize) -> Self {
        Self(self.0[..count.min(self.0.len())].into())
    }

    fn keep(&self, wanted: impl Fn(&str) -> bool) -> Self {
        Self(self.0.iter().filter(|item| wanted(item)).cloned().collect())
    }
}

impl FromIterator<Arc<str>> for Set {
    fn from_iter<I: IntoIterator<Item = Arc<str>>>(items: I) -> Self {
        let mut sorted: Vec<Arc<str>> = items.into_iter().collect();
        sorted.sort_unstable();
        sorted.dedup();
        Self(sorted.into())
    }
}

impl<'a> FromIterator<&'a str> for Set {
    fn from_iter<I: IntoIterator<Item = &'a str>>(items: I) -> Self {
        items.into_iter().map(Arc::from).collect()
    }
}

/// As v1 writes them: `{a, b}`.
impl fmt::Display for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (i, item) in self.iter().enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            write!(f, "{comma}{item}")?;
        }
        f.write_str("}")
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    fn set(items: &str) -> Set {
        items.split_whitespace().collect()
    }

    #[test]
    fn set_operations_are_correct() {
        let (ab, bc) = (set("b a"), set("c b b"));
        assert_eq!(ab.union(&bc).to_string(), "{a, b, c}");
        assert_eq!(ab.difference(&bc), set("a"));
        assert_eq!(ab.intersection(&bc), set("b"));
        assert_eq!(set("a b c").first(2), ab);
        assert!(set("a b c").contains(&bc) && !ab.contains(&bc) && ab.contains(&set("")));
        assert_eq!(bc.len(), 2);
    }
}
