//! Labels of reservations and disk sources: compared regardless of order, sent in their original order.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::Ordering;

use tepui_proto::mesos::v1 as pb;

/// A key and perhaps a value.
pub type Label = (String, Option<String>);

#[derive(Clone, Debug, Default)]
pub struct Labels {
    given: Arc<[Label]>,
    /// The same labels sorted; shares `given` if that is sorted already.
    sorted: Arc<[Label]>,
}

impl Labels {
    pub fn iter(&self) -> impl Iterator<Item = &Label> + '_ {
        self.given.iter()
    }

    pub(crate) fn to_proto(&self) -> pb::Labels {
        let label =
            |(key, value): &Label| pb::Label { key: key.clone(), value: value.clone(), ..Default::default() };
        pb::Labels { labels: self.iter().map(label).collect(), ..Default::default() }
    }
}

impl FromIterator<Label> for Labels {
    fn from_iter<I: IntoIterator<Item = Label>>(labels: I) -> Self {
        let given: Arc<[Label]> = labels.into_iter().collect();
        if given.is_sorted() {
            return Self { sorted: given.clone(), given };
        }
        let mut sorted: Vec<Label> = given.to_vec();
        sorted.sort();
        Self { given, sorted: sorted.into() }
    }
}

impl From<&pb::Labels> for Labels {
    fn from(labels: &pb::Labels) -> Self {
        labels.labels.iter().map(|label| (label.key.clone(), label.value.clone())).collect()
    }
}

impl PartialEq for Labels {
    fn eq(&self, other: &Self) -> bool {
        self.sorted == other.sorted
    }
}

impl Eq for Labels {}

impl PartialOrd for Labels {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Labels {
    fn cmp(&self, other: &Self) -> Ordering {
        self.sorted.cmp(&other.sorted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equality_ignores_order() {
        let label = |key: &str| (key.into(), None);
        let (ab, ba): (Labels, Labels) =
            ([label("a"), label("b")].into_iter().collect(), [label("b"), label("a")].into_iter().collect());
        assert_eq!(ab, ba);
        assert_eq!(ba.to_proto().labels[0].key, "b");
        assert_ne!(ab, [label("a")].into_iter().collect());
    }
}
