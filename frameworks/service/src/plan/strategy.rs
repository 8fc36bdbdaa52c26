//! Which elements of a plan or phase may go on, given which of them are complete.

use std::fmt;
use std::sync::Arc;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Strategy {
    /// One after the other. An element that is restarted holds back those behind it.
    Serial,
    Parallel,
    /// For each element, those that must be complete before it.
    Dependency(Arc<Vec<Vec<usize>>>),
}

impl Strategy {
    /// Those of the incomplete elements that may go on. `open` is in order of `position`.
    pub fn allowed<T: Copy>(
        &self,
        open: &[T],
        position: impl Fn(&T) -> usize,
        is_open: impl Fn(usize) -> bool,
    ) -> Vec<T> {
        match self {
            Strategy::Serial => open.first().copied().into_iter().collect(),
            Strategy::Parallel => open.to_vec(),
            Strategy::Dependency(before) => {
                let met = |element: &&T| {
                    !before.get(position(element)).into_iter().flatten().any(|own| is_open(*own))
                };
                open.iter().filter(met).copied().collect()
            }
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Strategy::Serial => "serial",
            Strategy::Parallel => "parallel",
            Strategy::Dependency(_) => "dependency",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strategies_allow_elements() {
        let chains = Strategy::Dependency(Arc::new(vec![vec![], vec![0], vec![], vec![0, 2]]));
        let cases: &[(&Strategy, &[bool], &[usize])] = &[
            (&Strategy::Serial, &[false, false, false], &[0]),
            (&Strategy::Serial, &[true, false, true], &[1]),
            (&Strategy::Serial, &[false, true, false], &[0]),
            (&Strategy::Serial, &[true, true], &[]),
            (&Strategy::Parallel, &[false, true, false], &[0, 2]),
            (&chains, &[false, false, false, false], &[0, 2]),
            (&chains, &[true, false, false, false], &[1, 2]),
            (&chains, &[true, false, true, false], &[1, 3]),
        ];
        for (strategy, complete, expected) in cases {
            let open: Vec<usize> = (0..complete.len()).filter(|element| !complete[*element]).collect();
            let allowed = strategy.allowed(&open, |element| *element, |element| !complete[element]);
            assert_eq!(allowed, *expected, "{strategy} {complete:?}");
        }
    }
}
