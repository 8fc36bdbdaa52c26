//! Which elements of a plan or phase may go on, given which of them are complete.

use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Strategy {
    /// One after the other. An element that is restarted holds back those behind it.
    Serial,
    Parallel,
    /// For each element, those that must be complete before it.
    Dependency(Vec<Vec<usize>>),
}

impl Strategy {
    /// The incomplete elements that may go on.
    pub fn allowed(&self, complete: &[bool]) -> Vec<usize> {
        let incomplete = (0..complete.len()).filter(|element| !complete[*element]);
        match self {
            Strategy::Serial => incomplete.take(1).collect(),
            Strategy::Parallel => incomplete.collect(),
            Strategy::Dependency(before) => {
                let met =
                    |element: &usize| before.get(*element).into_iter().flatten().all(|own| complete[*own]);
                incomplete.filter(met).collect()
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
        let chains = Strategy::Dependency(vec![vec![], vec![0], vec![], vec![0, 2]]);
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
            assert_eq!(strategy.allowed(complete), *expected, "{strategy} {complete:?}");
        }
    }
}
