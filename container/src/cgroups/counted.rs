//! Usage of a container as counted by the kernel: processor time, throttling, memory, input and output.
//!
//! Read on demand from the container's own cgroups: the cost is independent of other containers. Nested containers
//! are included. Absent: limits that were requested; only limits in effect are read.

use std::path::Path;
use std::time::Duration;

use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::cgroup_info::blkio;
use tepui_proto::mesos::v1::cgroup_info::blkio::throttling::Statistics;

use super::{Cgroups, Controller, Place, Version, destroy};
use crate::host::kernel_file::read_kernel_file;
use crate::host::process::Process;
use crate::usage::{Memory, Throttled, Usage};

/// The most a file may hold and still mean that there is a limit.
const ENDLESS: u64 = i64::MAX as u64 / 2;

/// `None` if the container has no cgroup of its own that counts processor time or memory, or is just ending. What its
/// cgroups do not count is taken from its processes.
pub(crate) fn read(cgroups: &Cgroups, supervisor: Process) -> Option<Usage> {
    let core = cgroups.core();
    let counts_cpu = [Controller::Cpuacct, Controller::Cpu].iter().any(|one| cgroups.own(*one).is_some());
    let memory = cgroups.own(Controller::Memory);
    if !counts_cpu && memory.is_none() {
        return None;
    }
    // Every cgroup of v2 counts processor time.
    let time = cgroups.own(Controller::Cpuacct).or(core.filter(|core| core.version == Version::V2));
    let (times, memory) = match (time.map(cpu_times), memory.map(memory_of)) {
        (Some(None), _) | (_, Some(None)) => return None,
        (times, memory) => (times.flatten(), memory.flatten()),
    };
    let mut usage = match times.is_none() || memory.is_none() {
        true => of_processes(core?, supervisor),
        false => Usage::default(),
    };
    if let Some((user, system)) = times {
        (usage.cpus_user_time, usage.cpus_system_time) = (user, system);
    }
    if let Some(memory) = &memory {
        usage.mem_rss_bytes = memory.anon_bytes;
    }
    let (processes, threads) = core.and_then(population).unwrap_or_default();
    Some(Usage {
        processes,
        threads,
        throttled: cgroups.own(Controller::Cpu).and_then(throttled),
        memory,
        blkio: cgroups.own(Controller::Blkio).and_then(blkio_of),
        ..usage
    })
}

/// What the processes of the container used, and those that its supervisor waited for.
fn of_processes(core: &Place, supervisor: Process) -> Usage {
    let mut usage = Usage::default();
    if let Ok(Some(stat)) = Process::find(supervisor.pid)
        && stat.process == supervisor
    {
        usage.add_times(&stat.spent);
    }
    for pid in destroy::processes_below(&core.cgroup).unwrap_or_default() {
        if let Ok(Some(stat)) = Process::find(pid) {
            usage.add(&stat);
        }
    }
    usage
}

/// Processes and threads of the container and of those nested in it.
fn population(core: &Place) -> Option<(u64, u64)> {
    let threads = match core.version {
        Version::V1 => "tasks",
        Version::V2 => "cgroup.threads",
    };
    let count = |file| destroy::listed_below(&core.cgroup, file).ok().map(|all| all.len() as u64);
    Some((count("cgroup.procs")?, count(threads)?))
}

fn cpu_times(place: &Place) -> Option<(Duration, Duration)> {
    match place.version {
        Version::V1 => {
            let time = |file| number(&place.cgroup, file).map(Duration::from_nanos);
            Some((time("cpuacct.usage_user")?, time("cpuacct.usage_sys")?))
        }
        Version::V2 => {
            let stat = Keyed::read(&place.cgroup, "cpu.stat")?;
            let time = |key| stat.get(key).map(Duration::from_micros);
            Some((time("user_usec")?, time("system_usec")?))
        }
    }
}

fn throttled(place: &Place) -> Option<Throttled> {
    let stat = Keyed::read(&place.cgroup, "cpu.stat")?;
    let time = match place.version {
        Version::V1 => stat.get("throttled_time").map(Duration::from_nanos),
        Version::V2 => stat.get("throttled_usec").map(Duration::from_micros),
    };
    Some(Throttled { periods: stat.get("nr_periods")?, throttled: stat.get("nr_throttled")?, time: time? })
}

pub(super) fn memory_of(place: &Place) -> Option<Memory> {
    let cgroup = &place.cgroup;
    let stat = Keyed::read(cgroup, "memory.stat")?;
    let of = |key| stat.get(key).unwrap_or(0);
    match place.version {
        Version::V1 => Some(Memory {
            total_bytes: number(cgroup, "memory.usage_in_bytes")?,
            total_memsw_bytes: number(cgroup, "memory.memsw.usage_in_bytes"),
            kmem_bytes: number(cgroup, "memory.kmem.usage_in_bytes"),
            kmem_tcp_bytes: number(cgroup, "memory.kmem.tcp.usage_in_bytes"),
            file_bytes: of("total_cache"),
            anon_bytes: of("total_rss"),
            mapped_file_bytes: of("total_mapped_file"),
            swap_bytes: of("total_swap"),
            unevictable_bytes: of("total_unevictable"),
            inactive_file_bytes: of("total_inactive_file"),
            request_bytes: number(cgroup, "memory.soft_limit_in_bytes").filter(|bytes| *bytes < ENDLESS),
            limit_bytes: number(cgroup, "memory.limit_in_bytes").filter(|bytes| *bytes < ENDLESS),
        }),
        Version::V2 => Some(Memory {
            total_bytes: number(cgroup, "memory.current")?,
            total_memsw_bytes: None,
            kmem_bytes: stat.get("kernel").or_else(|| stat.get("slab")),
            kmem_tcp_bytes: stat.get("sock"),
            file_bytes: of("file"),
            anon_bytes: of("anon"),
            mapped_file_bytes: of("file_mapped"),
            swap_bytes: number(cgroup, "memory.swap.current").unwrap_or(0),
            unevictable_bytes: of("unevictable"),
            inactive_file_bytes: of("inactive_file"),
            request_bytes: number(cgroup, "memory.low"),
            limit_bytes: number(cgroup, "memory.max"),
        }),
    }
}

fn blkio_of(place: &Place) -> Option<blkio::Statistics> {
    let text = |file: &str| read_kernel_file(&place.cgroup.join(file));
    let throttling = match place.version {
        Version::V1 => {
            let served = |unit: &str| {
                let recursive = text(&format!("blkio.throttle.{unit}_recursive"));
                recursive.or_else(|| text(&format!("blkio.throttle.{unit}")))
            };
            blkio_v1(&served("io_serviced")?, &served("io_service_bytes")?)
        }
        Version::V2 => blkio_v2(&text("io.stat")?),
    };
    Some(blkio::Statistics { throttling, ..Default::default() })
}

/// `254:0 Read 4096`, and one line `Total 4096` at the end.
fn blkio_v1(serviced: &str, bytes: &str) -> Vec<Statistics> {
    let mut all: Vec<Statistics> = Vec::new();
    for (text, is_bytes) in [(serviced, false), (bytes, true)] {
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let (device, name, amount) = match words.as_slice() {
                [device, name, amount] => (number_of(device), *name, amount),
                [name, amount] => (None, *name, amount),
                _ => continue,
            };
            let Ok(amount) = amount.parse() else { continue };
            let place = all.iter().position(|one| one.device.as_option() == device.as_ref());
            let place = place.unwrap_or_else(|| {
                all.push(Statistics { device: device.into(), ..Default::default() });
                all.len() - 1
            });
            let list = if is_bytes { &mut all[place].io_service_bytes } else { &mut all[place].io_serviced };
            list.push(value(operation(name), amount));
        }
    }
    all
}

/// `254:0 rbytes=4096 wbytes=0 rios=1 wios=0 dbytes=0 dios=0`.
fn blkio_v2(text: &str) -> Vec<Statistics> {
    use blkio::Operation::{DISCARD, READ, WRITE};
    let device = |line: &str| {
        let (device, rest) = line.split_once(' ')?;
        let of = |key: &str| -> Option<u64> {
            rest.split(' ').find_map(|field| field.strip_prefix(key)?.strip_prefix('=')?.parse().ok())
        };
        let values = |keys: [&str; 3]| {
            let operations = keys.into_iter().zip([READ, WRITE, DISCARD]);
            operations.filter_map(|(key, operation)| Some(value(operation, of(key)?))).collect()
        };
        Some(Statistics {
            device: number_of(device).into(),
            io_serviced: values(["rios", "wios", "dios"]),
            io_service_bytes: values(["rbytes", "wbytes", "dbytes"]),
            ..Default::default()
        })
    };
    text.lines().filter_map(device).collect()
}

fn number_of(device: &str) -> Option<pb::device::Number> {
    let (major, minor) = device.split_once(':')?;
    Some(pb::device::Number {
        major_number: major.parse().ok()?,
        minor_number: minor.parse().ok()?,
        ..Default::default()
    })
}

fn operation(name: &str) -> blkio::Operation {
    match name {
        "Total" => blkio::Operation::TOTAL,
        "Read" => blkio::Operation::READ,
        "Write" => blkio::Operation::WRITE,
        "Sync" => blkio::Operation::SYNC,
        "Async" => blkio::Operation::ASYNC,
        "Discard" => blkio::Operation::DISCARD,
        _ => blkio::Operation::UNKNOWN,
    }
}

fn value(op: blkio::Operation, value: u64) -> blkio::Value {
    blkio::Value { op: Some(op), value: Some(value), ..Default::default() }
}

fn number(cgroup: &Path, file: &str) -> Option<u64> {
    read_kernel_file(&cgroup.join(file))?.trim().parse().ok()
}

/// A file of lines `name number`.
struct Keyed(String);

impl Keyed {
    fn read(cgroup: &Path, file: &str) -> Option<Keyed> {
        read_kernel_file(&cgroup.join(file)).map(Keyed)
    }

    fn get(&self, key: &str) -> Option<u64> {
        let mut lines = self.0.lines().filter_map(|line| line.split_once(' '));
        lines.find(|(name, _)| *name == key)?.1.trim().parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(all: &[Statistics], expected: Expect) {
        let list = |values: &[blkio::Value]| {
            let one = |one: &blkio::Value| {
                format!(" {:?}={}", one.op.unwrap_or_default(), one.value.unwrap_or_default())
            };
            values.iter().map(one).collect::<String>()
        };
        let lines = all.iter().map(|one| {
            let device = one.device.as_option().map(|it| format!("{}:{}", it.major_number, it.minor_number));
            format!(
                "{}:{} bytes:{}\n",
                device.unwrap_or_default(),
                list(&one.io_serviced),
                list(&one.io_service_bytes)
            )
        });
        expected.assert_eq(&lines.collect::<String>());
    }

    #[test]
    fn blkio_statistics_are_parsed_on_v1_and_v2() {
        check(
            &blkio_v1(
                "254:0 Read 1\n254:0 Write 2\n254:0 Total 3\nTotal 3\n",
                "254:0 Read 4096\nnonsense\nTotal 4096\n",
            ),
            expect![[r#"
                254:0: READ=1 WRITE=2 TOTAL=3 bytes: READ=4096
                : TOTAL=3 bytes: TOTAL=4096
            "#]],
        );
        check(
            &blkio_v2("254:0 rbytes=4096 wbytes=8192 rios=1 wios=2 dbytes=0 dios=0\n7:0 \n"),
            expect![[r#"
                254:0: READ=1 WRITE=2 DISCARD=0 bytes: READ=4096 WRITE=8192 DISCARD=0
                7:0: bytes:
            "#]],
        );
    }

    #[test]
    fn statistics_are_read_from_v2_files() {
        let dir = tempfile::tempdir().expect("a directory");
        let write = |file: &str, text: &str| {
            let file = dir.path().join(file);
            std::fs::create_dir_all(file.parent().expect("it is below")).expect("made");
            std::fs::write(file, text).expect("written");
        };
        write(
            "cpu.stat",
            "usage_usec 9\nuser_usec 5\nsystem_usec 4\nnr_periods 3\nnr_throttled 2\nthrottled_usec 1\n",
        );
        write(
            "memory.stat",
            "anon 100\nfile 200\nkernel 30\nsock 1\nfile_mapped 50\nunevictable 7\ninactive_file 40\n",
        );
        write("memory.current", "331\n");
        write("memory.low", "64\n");
        write("memory.max", "max\n");
        write("cgroup.procs", "");
        write("cgroup.threads", "");
        write("leaf/cgroup.procs", "1\n2\n");
        write("leaf/cgroup.threads", "1\n2\n3\n");
        let controllers = vec![Controller::Cpu, Controller::Cpuacct, Controller::Memory, Controller::Core];
        let place = Place { version: Version::V2, controllers, cgroup: dir.path().to_owned(), own: true };
        let nobody = Process { pid: i32::MAX, start_ticks: 0 };
        let usage =
            read(&Cgroups { places: vec![place], ..Cgroups::default() }, nobody).expect("all is there");
        expect![[r#"
            Usage {
                processes: 2,
                threads: 3,
                cpus_user_time: 5µs,
                cpus_system_time: 4µs,
                mem_rss_bytes: 100,
                throttled: Some(
                    Throttled {
                        periods: 3,
                        throttled: 2,
                        time: 1µs,
                    },
                ),
                memory: Some(
                    Memory {
                        total_bytes: 331,
                        total_memsw_bytes: None,
                        kmem_bytes: Some(
                            30,
                        ),
                        kmem_tcp_bytes: Some(
                            1,
                        ),
                        file_bytes: 200,
                        anon_bytes: 100,
                        mapped_file_bytes: 50,
                        swap_bytes: 0,
                        unevictable_bytes: 7,
                        inactive_file_bytes: 40,
                        request_bytes: Some(
                            64,
                        ),
                        limit_bytes: None,
                    },
                ),
                shortages: None,
                blkio: None,
                disk: [],
            }
        "#]]
        .assert_debug_eq(&usage);
    }
}
