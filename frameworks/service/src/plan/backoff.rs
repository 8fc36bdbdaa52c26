//! Delays of tasks that fail: growing while a task fails again soon, forgotten once it ran long enough.
//!
//! Entries are named after task instances of the spec, which bound their number.

use std::collections::BTreeMap;

/// Milliseconds of a monotonic clock.
pub type Millis = u64;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BackoffPolicy {
    pub enabled: bool,
    pub initial_ms: Millis,
    pub factor: f64,
    pub max_ms: Millis,
}

impl Default for BackoffPolicy {
    fn default() -> BackoffPolicy {
        BackoffPolicy { enabled: true, initial_ms: 60_000, factor: 1.15, max_ms: 300_000 }
    }
}

#[derive(Debug, Clone, Default)]
pub struct Backoff {
    policy: BackoffPolicy,
    delays: BTreeMap<String, Delay>,
}

#[derive(Debug, Clone, Copy)]
struct Delay {
    length_ms: Millis,
    state: DelayState,
}

#[derive(Debug, Clone, Copy)]
enum DelayState {
    /// No launch before this time.
    Until(Millis),
    /// The task reached its goal at this time.
    Reached(Millis),
}

impl Backoff {
    pub fn new(policy: BackoffPolicy) -> Backoff {
        Backoff { policy, delays: BTreeMap::new() }
    }

    /// A task failed. One that fails again before it ran for the length of its delay gets a longer one: reaching RUNNING
    /// alone does not end a crash loop.
    pub fn on_failure(&mut self, now: Millis, task: &str) {
        if !self.policy.enabled {
            return;
        }
        let length_ms = match self.delays.get(task) {
            Some(Delay { state: DelayState::Reached(at), .. })
                if now.saturating_sub(*at) >= self.stable_after(task) =>
            {
                self.policy.initial_ms
            }
            Some(delay) => self.longer(delay.length_ms),
            None => self.policy.initial_ms,
        };
        let delay = Delay { length_ms, state: DelayState::Until(now.saturating_add(length_ms)) };
        self.delays.insert(task.to_owned(), delay);
    }

    fn longer(&self, length_ms: Millis) -> Millis {
        let grown = (length_ms as f64 * self.policy.factor.max(1.0)).ceil();
        (grown as Millis).max(self.policy.initial_ms).min(self.policy.max_ms)
    }

    /// A task failed that nothing launches at the moment: it had reached its goal. The first such failure is not delayed, so that a
    /// task that ran for long is back at once; those that follow soon are.
    pub fn on_crash(&mut self, now: Millis, task: &str) {
        let is_first = match self.delays.get(task) {
            None => true,
            Some(Delay { state: DelayState::Reached(at), .. }) => {
                now.saturating_sub(*at) >= self.stable_after(task)
            }
            Some(Delay { state: DelayState::Until(_), .. }) => false,
        };
        match is_first && self.policy.enabled {
            true => {
                let delay = Delay { length_ms: 0, state: DelayState::Until(now) };
                self.delays.insert(task.to_owned(), delay);
            }
            false => self.on_failure(now, task),
        }
    }

    /// How long a task has to run before its failures are forgotten.
    pub fn stable_after(&self, task: &str) -> Millis {
        self.delays.get(task).map_or(0, |delay| delay.length_ms).max(self.policy.initial_ms)
    }

    /// Length and end of the delay of a task, to be recorded.
    pub fn delay(&self, task: &str) -> Option<(Millis, Millis)> {
        match self.delays.get(task)? {
            Delay { length_ms, state: DelayState::Until(until) } => Some((*length_ms, *until)),
            Delay { state: DelayState::Reached(_), .. } => None,
        }
    }

    /// Restores a recorded delay.
    pub fn restore(&mut self, task: &str, length_ms: Millis, until: Millis) {
        if self.policy.enabled {
            self.delays.insert(task.to_owned(), Delay { length_ms, state: DelayState::Until(until) });
        }
    }

    /// A task reached its goal and is ready.
    pub fn on_goal(&mut self, now: Millis, task: &str) {
        if let Some(delay) = self.delays.get_mut(task) {
            delay.state = DelayState::Reached(now);
        }
    }

    /// Forgets the failures of a task: restarts, replacements, agents that are gone.
    pub fn clear(&mut self, task: &str) {
        self.delays.remove(task);
    }

    /// When a delayed task may be launched.
    pub fn delayed_until(&self, now: Millis, task: &str) -> Option<Millis> {
        match self.delays.get(task)?.state {
            DelayState::Until(until) if until > now => Some(until),
            DelayState::Until(_) | DelayState::Reached(_) => None,
        }
    }

    /// The next time at which a delay ends.
    pub fn deadline(&self, now: Millis) -> Option<Millis> {
        self.delays.keys().filter_map(|task| self.delayed_until(now, task)).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> BackoffPolicy {
        BackoffPolicy { enabled: true, initial_ms: 100, factor: 2.0, max_ms: 300 }
    }

    #[test]
    fn delays_grow_to_their_limit_while_a_task_fails() {
        let mut backoff = Backoff::new(policy());
        let mut lengths = Vec::new();
        for now in [0, 1000, 2000, 3000] {
            backoff.on_failure(now, "a");
            lengths.push(backoff.delayed_until(now, "a").expect("delayed") - now);
        }
        assert_eq!(lengths, [100, 200, 300, 300]);
        assert_eq!((backoff.delayed_until(3299, "a"), backoff.delayed_until(3300, "a")), (Some(3300), None));
        assert_eq!((backoff.deadline(3000), backoff.deadline(3300)), (Some(3300), None));
    }

    #[test]
    fn a_task_that_ran_for_its_delay_starts_again_and_a_crash_loop_does_not() {
        let mut backoff = Backoff::new(policy());
        backoff.on_failure(0, "a");
        backoff.on_goal(150, "a");
        assert_eq!(backoff.delayed_until(150, "a"), None);
        backoff.on_failure(200, "a");
        assert_eq!(backoff.delayed_until(200, "a"), Some(400), "ran for 50 ms only");
        backoff.on_goal(500, "a");
        backoff.on_failure(700, "a");
        assert_eq!(backoff.delayed_until(700, "a"), Some(800), "ran for 200 ms");
    }

    #[test]
    fn cleared_and_disabled_backoff_does_not_delay() {
        let mut backoff = Backoff::new(policy());
        backoff.on_failure(0, "a");
        backoff.clear("a");
        assert_eq!(backoff.delayed_until(0, "a"), None);
        let mut off = Backoff::new(BackoffPolicy { enabled: false, ..policy() });
        off.on_failure(0, "a");
        assert_eq!(off.delayed_until(0, "a"), None);
    }
}
