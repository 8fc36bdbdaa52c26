//! Counters of one run: a run without events proves nothing.

use std::fmt;
use std::ops::AddAssign;

/// One line a counter: the field, and its name in reports.
macro_rules! counts {
    ($($field:ident $name:literal)*) => {
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Counts {
            $(pub $field: u64,)*
        }

        impl Counts {
            pub(crate) fn fields(&self) -> Vec<(&'static str, u64)> {
                vec![$(($name, self.$field),)*]
            }
        }

        impl AddAssign for Counts {
            fn add_assign(&mut self, other: Self) {
                $(self.$field += other.$field;)*
            }
        }
    };
}

counts! {
    events "events"
    offers "offers"
    tasks "tasks"
    command_tasks "command tasks"
    docker_tasks "docker tasks"
    group_tasks "group tasks"
    reused_ids "reused ids"
    operations "operations"
    containers "containers"
    nested "nested"
    standalone "standalone"
    sessions "sessions"
    container_calls "container calls"
    repeated_calls "repeated calls"
    updates "updates"
    acknowledgements "acknowledgements"
    finished "finished"
    lost "lost"
    killed "killed"
    unheard_kills "unheard kills"
    preempted "preempted"
    completion_time_reached "out of time"
    out_of_memory "out of memory"
    probes "probes"
    command_probes "command probes"
    failed_probes "failed probes"
    unhealthy "unhealthy"
    master_crashes "master crashes"
    agent_crashes "agent crashes"
    reboots "reboots"
    framework_crashes "framework crashes"
    services_killed "services killed"
    service_commands "service commands"
    services_complete "services complete"
    services_uninstalled "services uninstalled"
    breaks "breaks"
    stalls "stalls"
    partitions "partitions"
    gone "gone"
    departures "departures"
    pauses "pauses"
    clock_jumps "clock jumps"
    full_disks "full disks"
    disk_pressures "disk pressures"
    reserved_writes "reserved writes"
    stuck_writes "stuck writes"
    failed_writes "failed writes"
    torn_writes "torn writes"
    rollbacks "rollbacks"
    refused_starts "refused starts"
    overloads "overloads"
    evicted "evicted"
    denied "denied"
    constrained "constrained"
    limited "limited"
    large "large clusters"
    elections "elections"
    lost_terms "lost terms"
    etcd_partitions "etcd partitions"
    fenced_writes "fenced writes"
    deposed_effects "deposed effects"
    operator_calls "operator calls"
    swarm_creates "swarm creates"
    swarm_created "swarm containers"
    swarm_rejected "swarm rejections"
    swarm_left "swarm clients that left"
    swarm_launches "swarm launches"
    swarm_adoptions "swarm adoptions"
    swarm_moves "swarm moves"
    swarm_starts "swarm starts"
    swarm_crashes "swarm crashes"
    engine_restarts "engine restarts"
    killed_holders "killed holders"
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
