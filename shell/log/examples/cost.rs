//! The cost of a logged transition in processor time of the whole process: queue, format, limit of repeats, write.
//!
//! `cargo run --release -p tepui-log --example cost -- FILE` writes the lines to FILE as fast as possible.
#![forbid(unsafe_code)]

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tepui_log::{LogFormat, Settings, TransitionLog};

const TRANSITIONS: u64 = 1_000_000;
/// Transitions per push, as after one turn of a machine.
const BATCH: u64 = 4;
/// Transitions that wait at the most, below the limit at which they are dropped.
const WAITING_MAX: u64 = 10_000;
const PAUSE: Duration = Duration::from_millis(1);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("the file to write to is missing")?;
    let json = std::env::args().nth(2).is_some_and(|format| format == "json");
    let format = if json { LogFormat::Json } else { LogFormat::Text };
    let level = tracing::Level::INFO;
    let _set_level =
        tepui_log::start(Settings { format, level, file: Some(File::create(&path)?), stderr: false })?;
    let logged = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&logged);
    let log = TransitionLog::start("cost", move |number: u64| {
        count.fetch_add(1, Ordering::Relaxed);
        tracing::info!(
            task_id = %format_args!("task-{number}"),
            framework_id = "5f2a6e4c-6f4b-4d5e-9d3c-0c8f2b7a1e90-0000",
            agent_id = "5f2a6e4c-6f4b-4d5e-9d3c-0c8f2b7a1e90-S17",
            state = "TASK_FINISHED",
            source = "SOURCE_EXECUTOR",
            status_message = "Command exited with status 0",
            "task terminated"
        );
    })?;
    let (began, before) = (Instant::now(), processor_time()?);
    for batch in 0..TRANSITIONS / BATCH {
        log.push((0..BATCH).map(|number| batch * BATCH + number).collect());
        while batch * BATCH > logged.load(Ordering::Relaxed) + WAITING_MAX {
            std::thread::sleep(PAUSE);
        }
    }
    while logged.load(Ordering::Relaxed) < TRANSITIONS {
        std::thread::sleep(PAUSE);
    }
    tepui_log::flush();
    let used = processor_time()? - before;
    let micros = used.as_secs_f64() * 1e6 / TRANSITIONS as f64;
    let lines = std::fs::read_to_string(&path)?.lines().count();
    println!(
        "{lines} lines in {:.1} s, {micros:.2} µs of processor time each",
        began.elapsed().as_secs_f64()
    );
    Ok(())
}

/// What this process has used of processors, in user and kernel mode.
fn processor_time() -> Result<Duration, Box<dyn std::error::Error>> {
    const TICK: Duration = Duration::from_millis(10);
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let (_, fields) = stat.rsplit_once(')').ok_or("no fields in /proc/self/stat")?;
    let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<u32>);
    Ok(TICK * ticks.sum::<Result<u32, _>>()?)
}
