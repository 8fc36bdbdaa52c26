//! `tepui-sim --seed S [--trace]` plays one seed; `tepui-sim --seeds N [--from F]` plays many, and all that once failed.
#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use tepui_sim::{Counts, Report, Sabotage, Trace, regressions, run};

const USAGE: &str = "usage: tepui-sim --seed S [--trace] | --seeds N [--from F]";

fn main() -> ExitCode {
    match Options::parse(std::env::args().skip(1)) {
        Some(Options { seed: Some(seed), trace, .. }) => one(seed, trace),
        Some(Options { seeds: Some(seeds), from, .. }) => many(from, seeds),
        Some(_) | None => {
            eprintln!("{USAGE}");
            ExitCode::FAILURE
        }
    }
}

#[derive(Default)]
struct Options {
    seed: Option<u64>,
    trace: bool,
    seeds: Option<u64>,
    from: u64,
}

impl Options {
    fn parse(mut words: impl Iterator<Item = String>) -> Option<Self> {
        let mut options = Options::default();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--seed" => options.seed = Some(words.next()?.parse().ok()?),
                "--trace" => options.trace = true,
                "--seeds" => options.seeds = Some(words.next()?.parse().ok()?),
                "--from" => options.from = words.next()?.parse().ok()?,
                _ => return None,
            }
        }
        Some(options)
    }
}

fn one(seed: u64, trace: bool) -> ExitCode {
    let report = run(seed, Sabotage::None, if trace { Trace::Print } else { Trace::Off });
    println!("seed {seed}: {}", report.counts);
    match report.violation {
        None => ExitCode::SUCCESS,
        Some(violation) => {
            println!("seed {seed} violates {violation}");
            ExitCode::FAILURE
        }
    }
}

/// Seeds are independent: they share nothing but the list from which threads take them.
fn many(from: u64, count: u64) -> ExitCode {
    let mut seeds: Vec<u64> = regressions().collect();
    seeds.extend(from..from + count);
    std::panic::set_hook(Box::new(|_| ())); // Reported as violations.
    let (next, reports) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let report = run(*seed, Sabotage::None, Trace::Off);
                    reports.lock().expect("no thread panics while it holds it").push(report);
                }
            });
        }
    });
    summarize(reports.into_inner().expect("no thread panics while it holds it"))
}

fn summarize(mut reports: Vec<Report>) -> ExitCode {
    reports.sort_by_key(|report| report.seed);
    let mut counts = Counts::default();
    reports.iter().for_each(|report| counts += report.counts);
    let failed: Vec<&Report> = reports.iter().filter(|report| report.violation.is_some()).collect();
    for report in &failed {
        let seed = report.seed;
        if let Some(violation) = &report.violation {
            println!(
                "seed {seed} violates {violation}\n  replay: cargo run -p tepui-sim -- --seed {seed} --trace"
            );
        }
    }
    println!("{} seeds, {} failed: {counts}", reports.len(), failed.len());
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
