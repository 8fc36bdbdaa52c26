//! How much happened in one run: a run in which nothing happens proves nothing.

use std::fmt;
use std::ops::AddAssign;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub events: u64,
    pub offers: u64,
    pub tasks: u64,
    pub reused_ids: u64,
    pub operations: u64,
    pub containers: u64,
    pub nested: u64,
    pub standalone: u64,
    pub sessions: u64,
    pub container_calls: u64,
    pub updates: u64,
    pub acknowledgements: u64,
    pub finished: u64,
    pub lost: u64,
    pub killed: u64,
    pub unheard_kills: u64,
    pub preempted: u64,
    pub out_of_time: u64,
    pub master_crashes: u64,
    pub agent_crashes: u64,
    pub reboots: u64,
    pub framework_crashes: u64,
    pub breaks: u64,
    pub stalls: u64,
    pub partitions: u64,
    pub gone: u64,
    pub departures: u64,
    pub pauses: u64,
    pub operator_calls: u64,
}

impl Counts {
    pub(crate) fn fields(&self) -> [(&'static str, u64); 29] {
        [
            ("events", self.events),
            ("offers", self.offers),
            ("tasks", self.tasks),
            ("reused ids", self.reused_ids),
            ("operations", self.operations),
            ("containers", self.containers),
            ("nested", self.nested),
            ("standalone", self.standalone),
            ("sessions", self.sessions),
            ("container calls", self.container_calls),
            ("updates", self.updates),
            ("acknowledgements", self.acknowledgements),
            ("finished", self.finished),
            ("lost", self.lost),
            ("killed", self.killed),
            ("unheard kills", self.unheard_kills),
            ("preempted", self.preempted),
            ("out of time", self.out_of_time),
            ("master crashes", self.master_crashes),
            ("agent crashes", self.agent_crashes),
            ("reboots", self.reboots),
            ("framework crashes", self.framework_crashes),
            ("breaks", self.breaks),
            ("stalls", self.stalls),
            ("partitions", self.partitions),
            ("gone", self.gone),
            ("departures", self.departures),
            ("pauses", self.pauses),
            ("operator calls", self.operator_calls),
        ]
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.events += other.events;
        self.offers += other.offers;
        self.tasks += other.tasks;
        self.reused_ids += other.reused_ids;
        self.operations += other.operations;
        self.containers += other.containers;
        self.nested += other.nested;
        self.standalone += other.standalone;
        self.sessions += other.sessions;
        self.container_calls += other.container_calls;
        self.updates += other.updates;
        self.acknowledgements += other.acknowledgements;
        self.finished += other.finished;
        self.lost += other.lost;
        self.killed += other.killed;
        self.unheard_kills += other.unheard_kills;
        self.preempted += other.preempted;
        self.out_of_time += other.out_of_time;
        self.master_crashes += other.master_crashes;
        self.agent_crashes += other.agent_crashes;
        self.reboots += other.reboots;
        self.framework_crashes += other.framework_crashes;
        self.breaks += other.breaks;
        self.stalls += other.stalls;
        self.partitions += other.partitions;
        self.gone += other.gone;
        self.departures += other.departures;
        self.pauses += other.pauses;
        self.operator_calls += other.operator_calls;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (name, count) in self.fields() {
            write!(f, "{separator}{count} {name}")?;
            separator = ", ";
        }
        Ok(())
    }
}
