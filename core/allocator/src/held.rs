//! What one framework holds of one agent.

use tepui_resources::Resources;

/// What one framework holds of one agent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Held {
    pub offered: Resources,
    pub used: Resources,
}

/// Which half of what a framework holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Offered,
    Used,
}

impl Held {
    pub(crate) fn is_empty(&self) -> bool {
        self.offered.is_empty() && self.used.is_empty()
    }

    pub(crate) fn part(&self, part: Part) -> &Resources {
        match part {
            Part::Offered => &self.offered,
            Part::Used => &self.used,
        }
    }

    pub(crate) fn part_mut(&mut self, part: Part) -> &mut Resources {
        match part {
            Part::Offered => &mut self.offered,
            Part::Used => &mut self.used,
        }
    }
}
