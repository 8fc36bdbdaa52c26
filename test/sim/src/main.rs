//! Plays seeds and recorded histories; see USAGE.
#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use tepui_sim::{
    Counts, History, REGRESSIONS, Report, Sabotage, Trace, record, replay, run, run_with_audits_every, shrink,
};

/// The cores allocate much and briefly.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const USAGE: &str = "usage: tepui-sim --seed S [--trace | --record FILE] | --replay FILE [--trace] | --seeds N [--from F] [--jobs N] [--audit_every N]

  --seed S       Play one seed
  --record FILE  Write the history of that seed to FILE; if it fails, only the part that shows the failure
  --replay FILE  Play a recorded history
  --seeds N      Play all recorded regressions and N seeds
  --from F       First of these seeds [default: 0]
  --jobs N       Threads that play [default: one for each processor]
  --audit_every N
                 Compare the books of the master with a walk over them after every N of its turns [default: 1]
  --trace        Print every event";

fn main() -> ExitCode {
    let Some(options) = Options::parse(std::env::args().skip(1)) else { return usage() };
    let trace = if options.trace { Trace::Print } else { Trace::Off };
    match options {
        Options { seed: Some(seed), record: Some(file), .. } => write_history(seed, &file),
        Options { seed: Some(seed), .. } => show(&format!("seed {seed}"), &run(seed, Sabotage::None, trace)),
        Options { replay: Some(file), .. } => play_history(&file, trace),
        Options { seeds: Some(count), from, jobs, audit_every, .. } => {
            many(from..from + count, jobs, audit_every)
        }
        Options { .. } => usage(),
    }
}

fn usage() -> ExitCode {
    eprintln!("{USAGE}");
    ExitCode::FAILURE
}

#[derive(Default)]
struct Options {
    seed: Option<u64>,
    record: Option<String>,
    replay: Option<String>,
    trace: bool,
    seeds: Option<u64>,
    from: u64,
    jobs: Option<usize>,
    audit_every: Option<u64>,
}

impl Options {
    fn parse(mut words: impl Iterator<Item = String>) -> Option<Self> {
        let mut options = Options::default();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--seed" => options.seed = Some(words.next()?.parse().ok()?),
                "--record" => options.record = Some(words.next()?),
                "--replay" => options.replay = Some(words.next()?),
                "--trace" => options.trace = true,
                "--seeds" => options.seeds = Some(words.next()?.parse().ok()?),
                "--from" => options.from = words.next()?.parse().ok()?,
                "--jobs" => options.jobs = Some(words.next()?.parse().ok()?),
                "--audit_every" => options.audit_every = Some(words.next()?.parse().ok()?),
                _ => return None,
            }
        }
        Some(options)
    }
}

fn show(name: &str, report: &Report) -> ExitCode {
    println!("{name}: {}", report.counts);
    match &report.violation {
        None => ExitCode::SUCCESS,
        Some(violation) => {
            println!("{name} violates {violation}");
            ExitCode::FAILURE
        }
    }
}

fn write_history(seed: u64, file: &str) -> ExitCode {
    std::panic::set_hook(Box::new(|_| ())); // Reported as violations.
    let (report, whole) = record(seed, Sabotage::None);
    let history = match &report.violation {
        Some(violation) => shrink(&whole, violation, Sabotage::None),
        None => whole.clone(),
    };
    let violation = report.violation.as_ref().map_or_else(|| "nothing".into(), ToString::to_string);
    let text = format!("# Recorded from seed {seed}, which violated {violation}\n{history}");
    if let Err(error) = std::fs::write(file, text) {
        eprintln!("cannot write {file}: {error}");
        return ExitCode::FAILURE;
    }
    println!("seed {seed} violates {violation}; {} of {} draws are in {file}", history.len(), whole.len());
    ExitCode::SUCCESS
}

fn play_history(file: &str, trace: Trace) -> ExitCode {
    let text = std::fs::read_to_string(file).map_err(|error| error.to_string());
    match text.and_then(|text| History::parse(&text)) {
        Ok(history) => show(file, &replay(&history, Sabotage::None, trace)),
        Err(error) => {
            eprintln!("cannot read {file}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// One run of many.
#[derive(Clone, Copy)]
enum Item {
    Seed(u64),
    Regression(&'static str, &'static str),
}

impl Item {
    fn play(self, audit_every: Option<u64>) -> Report {
        match self {
            Item::Seed(seed) => run_with_audits_every(seed, audit_every.unwrap_or(1)),
            Item::Regression(_, text) => {
                let history = History::parse(text).expect("a test reads it");
                replay(&history, Sabotage::None, Trace::Off)
            }
        }
    }

    /// What it is called, and how to play it alone.
    fn names(self) -> (String, String) {
        match self {
            Item::Seed(seed) => (format!("seed {seed}"), format!("--seed {seed}")),
            Item::Regression(name, _) => {
                (format!("regression {name}"), format!("--replay test/sim/regressions/{name}.txt"))
            }
        }
    }
}

/// Runs are independent: they share nothing but the list from which threads take them.
fn many(seeds: impl Iterator<Item = u64>, jobs: Option<usize>, audit_every: Option<u64>) -> ExitCode {
    let regressions = REGRESSIONS.iter().map(|(name, text)| Item::Regression(name, text));
    let items: Vec<Item> = regressions.chain(seeds.map(Item::Seed)).collect();
    std::panic::set_hook(Box::new(|_| ())); // Reported as violations.
    let (next, reports) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let threads = jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(at) else { break };
                    let report = item.play(audit_every);
                    reports.lock().expect("no thread panics while it holds it").push((at, report));
                }
            });
        }
    });
    summarize(&items, reports.into_inner().expect("no thread panics while it holds it"))
}

fn summarize(items: &[Item], mut reports: Vec<(usize, Report)>) -> ExitCode {
    reports.sort_by_key(|(at, _)| *at);
    let mut counts = Counts::default();
    reports.iter().for_each(|(_, report)| counts += report.counts);
    let mut failed = 0;
    for (at, report) in &reports {
        if let Some(violation) = &report.violation {
            failed += 1;
            let (name, how) = items[*at].names();
            println!("{name} violates {violation}\n  replay: cargo run -p tepui-sim -- {how} --trace");
        }
    }
    println!("{} runs, {failed} failed: {counts}", reports.len());
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
