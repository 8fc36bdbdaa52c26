//! A machine that reports its inputs, driven through every way its turns can end.

use std::sync::mpsc::{Receiver, channel};

use tepui_fsm::{Budget, Mono, Now, Outbox, Write};

use super::*;

/// Only a failing test waits so long.
const WAIT_MAX: Duration = Duration::from_secs(120);

/// A machine that reports its inputs. Input "r x" records x, "e x" shows x, which is independent of records if it
/// begins with "!", "t" requests a wake-up in 10 ms, "b" checks the time budget, "panic" panics.
#[derive(Default)]
struct Teller {
    wake: Option<Mono>,
    steps: usize,
    asks: bool,
}

struct Note(String);

impl Durable for Note {
    fn writes(&self, into: &mut Vec<Write>) {
        into.push(Write::put(self.0.clone(), *b"x"));
    }
}

impl Fsm for Teller {
    type Input = String;
    type Record = Note;
    type Effect = String;

    fn step(&mut self, now: Now, input: String, out: &mut Outbox<Self>) {
        self.steps += 1;
        match input.split_once(' ') {
            Some(("r", x)) => out.record(Note(x.to_owned())),
            Some(("e", x)) => out.effect(x),
            _ if input == "b" => self.asks = true,
            _ if input == "t" => self.wake = Some(now.mono + Duration::from_millis(10)),
            _ => panic!("told to"),
        }
    }

    fn settle(&mut self, now: Now, budget: &mut Budget<'_>, out: &mut Outbox<Self>) {
        if self.wake.is_some_and(|at| at <= now.mono) {
            self.wake = None;
            out.effect("woken");
        }
        if std::mem::take(&mut self.asks) {
            out.effect(if budget() { "time" } else { "no time" });
        }
        if self.steps > 0 {
            out.effect(format!("settled {}", std::mem::take(&mut self.steps)));
        }
    }

    fn is_independent(effect: &String) -> bool {
        effect.starts_with('!')
    }

    fn deadline(&self) -> Option<Mono> {
        self.wake
    }
}

struct Bench {
    handle: Handle<String>,
    running: Running,
    seen: Receiver<String>,
}

fn bench(store: Store, limits: Limits) -> Bench {
    bench_with(store, limits, &[])
}

fn bench_with(store: Store, limits: Limits, waiting: &[&str]) -> Bench {
    let (handle, mailbox) = mailbox(8);
    for input in waiting {
        handle.send_blocking((*input).to_owned()).unwrap();
    }
    let (sender, seen) = channel();
    let sink = move |effects: Vec<String>| {
        effects.into_iter().for_each(|effect| drop(sender.send(effect)));
    };
    let running = start("teller", Teller::default(), mailbox, store, Clock::start(), limits, sink).unwrap();
    Bench { handle, running, seen }
}

/// Turns end by the number of their inputs only, however slow the machine is.
fn long_turns() -> Limits {
    Limits { step_time_max: Duration::MAX, ..Limits::default() }
}

fn all(seen: &Receiver<String>) -> Vec<String> {
    seen.try_iter().collect()
}

fn keys(store: &Store) -> Vec<String> {
    store.load().unwrap().into_iter().map(|(key, _)| key).collect()
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

#[test]
fn turns_are_bounded_and_in_order() {
    let waiting = ["e a", "e b", "r k", "e c", "e d"];
    let bench = bench_with(Store::memory(), Limits { turn_inputs_max: 2, ..long_turns() }, &waiting);
    let times = bench.running.turns();
    block_on(bench.running.stop()).unwrap();
    assert_eq!(all(&bench.seen), ["a", "b", "settled 2", "c", "settled 2", "d", "settled 1"]);
    // The first has no inputs.
    assert_eq!(times.turns(), 1 + 3);
}

#[test]
fn turn_stops_at_its_time_limit() {
    let limits = Limits { step_time_max: Duration::ZERO, ..Limits::default() };
    let bench = bench_with(Store::memory(), limits, &["e a", "e b", "e c"]);
    block_on(bench.running.stop()).unwrap();
    assert_eq!(all(&bench.seen), ["a", "settled 1", "b", "settled 1", "c", "settled 1"]);
}

#[test]
fn long_turns_are_counted_including_effects() {
    let (handle, mailbox) = mailbox(8);
    let sink = |_: Vec<String>| thread::sleep(Duration::from_millis(2));
    handle.send_blocking("e slowly shown".to_owned()).unwrap();
    let (clock, limits) = (Clock::start(), Limits::default());
    let running = start("teller", Teller::default(), mailbox, Store::memory(), clock, limits, sink).unwrap();
    let times = running.turns();
    block_on(running.stop()).unwrap();
    assert!(times.long() >= 1);
    let longest = |timings: &Timings| timings.statistics(std::time::Instant::now()).unwrap().max_ms;
    assert!(longest(&times.wall) >= 2.0);
    // Asleep it used no processor.
    assert!(longest(&times.cpu) < longest(&times.wall));
}

#[test]
fn machine_can_query_its_remaining_turn_budget() {
    for (settle_time_max, said) in [(Duration::ZERO, "no time"), (Duration::MAX, "time")] {
        let limits = Limits { settle_time_max, ..Limits::default() };
        let bench = bench_with(Store::memory(), limits, &["b"]);
        block_on(bench.running.stop()).unwrap();
        assert_eq!(all(&bench.seen), [said, "settled 1"]);
    }
}

#[test]
fn stop_drains_the_mailbox_and_commits() {
    let memory = tepui_store::Memory::default();
    let bench = bench_with(Store::Memory(memory.clone()), long_turns(), &["r 1", "e x", "r 2"]);
    let handle = bench.handle.clone();
    block_on(bench.running.stop()).unwrap();
    assert_eq!(keys(&Store::Memory(memory)), ["1", "2"]);
    assert_eq!(all(&bench.seen), ["x", "settled 3"]);
    assert_eq!(block_on(handle.send("e late".to_owned())), Err(Closed));
}

#[test]
fn records_of_a_turn_share_one_commit() {
    let waiting = ["e a", "r 1", "e b", "r 2", "r 3", "e c"];
    let bench = bench_with(Store::memory(), long_turns(), &waiting);
    let commits = bench.running.commits();
    block_on(bench.running.stop()).unwrap();
    assert_eq!(all(&bench.seen), ["a", "b", "c", "settled 6"]);
    let statistics = commits.timings.statistics(std::time::Instant::now());
    assert_eq!(statistics.map(|times| times.count), Some(1));
}

#[test]
fn an_effect_is_visible_only_after_the_record_before_it_is_durable() {
    let memory = tepui_store::Memory::default();
    let (handle, mailbox) = mailbox(8);
    let (sender, seen) = channel();
    let reader = Store::Memory(memory.clone());
    let sink = move |effects: Vec<String>| {
        effects.into_iter().for_each(|effect| drop(sender.send((effect, keys(&reader)))));
    };
    let clock = Clock::start();
    let store = Store::Memory(memory);
    let running = start("teller", Teller::default(), mailbox, store, clock, Limits::default(), sink).unwrap();
    for round in 0..200 {
        handle.send_blocking(format!("r k{round:03}")).unwrap();
        handle.send_blocking(format!("e k{round:03}")).unwrap();
    }
    block_on(running.stop()).unwrap();
    let mut shown = 0;
    for (effect, durable) in seen.try_iter().filter(|(effect, _)| effect.starts_with('k')) {
        assert_eq!(effect, format!("k{shown:03}"));
        assert!(durable.contains(&effect), "{effect} was shown before it was durable");
        shown += 1;
    }
    assert_eq!(shown, 200);
}

/// The snapshot is the last effect of its turn, and the receiver of an effect must find it in there.
#[test]
fn effects_of_a_turn_are_released_together() {
    let (handle, mailbox) = mailbox(8);
    for input in ["e a", "r 1", "e b", "r 2", "e c"] {
        handle.send_blocking(input.to_owned()).unwrap();
    }
    let (sender, seen) = channel();
    let sink = move |effects: Vec<String>| sender.send(effects.join(" ")).unwrap();
    let clock = Clock::start();
    let running =
        start("teller", Teller::default(), mailbox, Store::memory(), clock, long_turns(), sink).unwrap();
    block_on(running.stop()).unwrap();
    assert_eq!(seen.try_iter().collect::<Vec<_>>(), ["a b c settled 5"]);
}

#[test]
fn deadline_wakes_an_idle_machine() {
    let bench = bench(Store::memory(), Limits::default());
    bench.handle.send_blocking("t".to_owned()).unwrap();
    assert_eq!(bench.seen.recv_timeout(WAIT_MAX).unwrap(), "settled 1");
    assert_eq!(bench.seen.recv_timeout(WAIT_MAX).unwrap(), "woken");
    block_on(bench.running.stop()).unwrap();
}

#[test]
fn machine_stops_when_all_handles_are_dropped() {
    let Bench { handle, mut running, seen } = bench(Store::memory(), Limits::default());
    handle.send_blocking("e last".to_owned()).unwrap();
    drop(handle);
    block_on(running.ended());
    block_on(running.stop()).unwrap();
    assert_eq!(all(&seen), ["last", "settled 1"]);
}

#[test]
fn a_panic_is_a_fault_of_that_machine_only() {
    let Bench { handle, mut running, .. } = bench(Store::memory(), Limits::default());
    handle.send_blocking("panic".to_owned()).unwrap();
    block_on(running.ended());
    let fault = block_on(running.stop()).unwrap_err();
    assert!(matches!(fault, RuntimeFault::Panicked { thread: "machine", .. }), "{fault}");
}

#[test]
fn failed_commit_stops_the_machine_and_publishes_no_later_effect() {
    let memory = tepui_store::Memory::default();
    memory.break_down();
    let Bench { handle, mut running, seen } = bench(Store::Memory(memory), Limits::default());
    handle.send_blocking("e before".to_owned()).unwrap();
    assert_eq!(seen.recv().unwrap(), "before");
    assert_eq!(seen.recv().unwrap(), "settled 1");
    handle.send_blocking("r lost".to_owned()).unwrap();
    block_on(running.ended());
    while handle.send_blocking("e after".to_owned()).is_ok() {}
    let fault = block_on(running.stop()).unwrap_err();
    assert!(matches!(fault, RuntimeFault::Store { .. }), "{fault}");
    assert_eq!(all(&seen), Vec::<String>::new());
}

#[test]
fn commit_waits_while_the_disk_is_full() {
    let memory = tepui_store::Memory::default();
    memory.set_full(true);
    let Bench { handle, running, seen } = bench(Store::Memory(memory.clone()), Limits::default());
    handle.send_blocking("e before".to_owned()).unwrap();
    assert_eq!([seen.recv().unwrap(), seen.recv().unwrap()], ["before", "settled 1"]);
    handle.send_blocking("r kept".to_owned()).unwrap();
    handle.send_blocking("e after".to_owned()).unwrap();
    let commits = running.commits();
    block_on(commits.stuck());
    assert!(seen.try_recv().is_err(), "nothing is shown before it is durable");
    memory.set_full(false);
    while seen.recv_timeout(WAIT_MAX).unwrap() != "after" {}
    assert!(!commits.is_stuck());
    block_on(running.stop()).unwrap();
    assert_eq!(keys(&Store::Memory(memory)), ["kept"]);
}

#[test]
fn stop_cancels_the_wait_for_disk_space() {
    let memory = tepui_store::Memory::default();
    memory.set_full(true);
    let Bench { handle, running, .. } = bench(Store::Memory(memory), Limits::default());
    handle.send_blocking("r lost".to_owned()).unwrap();
    let fault = block_on(running.stop()).unwrap_err();
    assert!(matches!(fault, RuntimeFault::Store { .. }), "{fault}");
}

#[test]
fn independent_effects_do_not_wait_for_records() {
    let memory = tepui_store::Memory::default();
    memory.set_full(true);
    let Bench { handle, running, seen } = bench(Store::Memory(memory.clone()), Limits::default());
    handle.send_blocking("r kept".to_owned()).unwrap();
    handle.send_blocking("e after".to_owned()).unwrap();
    let commits = running.commits();
    block_on(commits.stuck());
    // More turns than ever wait for a disk that works.
    for count in 0..1000 {
        handle.send_blocking("e dependent".to_owned()).unwrap();
        handle.send_blocking(format!("e !alive {count}")).unwrap();
        assert_eq!(seen.recv_timeout(WAIT_MAX).unwrap(), format!("!alive {count}"));
    }
    memory.set_full(false);
    while seen.recv_timeout(WAIT_MAX).unwrap() != "after" {}
    assert_eq!(seen.recv_timeout(WAIT_MAX).unwrap().split(' ').next(), Some("settled"));
    block_on(running.stop()).unwrap();
    assert_eq!(keys(&Store::Memory(memory)), ["kept"]);
}

/// A full disk accepts records that fit into the reserve; the machine is informed at once when space is short, and
/// when it no longer is.
#[test]
fn records_use_the_reserve_and_disk_pressure_is_reported() {
    let memory = tepui_store::Memory::default();
    memory.set_reserve(3);
    let Bench { handle, running, seen } = bench(Store::Memory(memory.clone()), Limits::default());
    let (told, mut heard) = mailbox(8);
    let passing = pass_room(running.commits(), told, |room| room.is_short);
    memory.set_full(true);
    for count in 0..3 {
        handle.send_blocking(format!("r {count}")).unwrap();
        handle.send_blocking(format!("e {count}")).unwrap();
        while seen.recv_timeout(WAIT_MAX).unwrap() != count.to_string() {}
    }
    let commits = running.commits();
    assert!(!commits.is_stuck() && commits.room().is_some_and(|room| room.is_short));
    handle.send_blocking("r one too many".to_owned()).unwrap();
    block_on(async {
        tokio::select! {
            () = passing => panic!("it ends with the machine"),
            () = async {
                assert_eq!(heard.next().await, Some(true));
                commits.stuck().await;
                memory.set_full(false);
                assert_eq!(heard.next().await, Some(false));
            } => (),
        }
    });
    // A stop cancels the wait for disk space: the record must have been written before.
    handle.send_blocking("e written".to_owned()).unwrap();
    while seen.recv_timeout(WAIT_MAX).unwrap() != "written" {}
    block_on(running.stop()).unwrap();
    assert_eq!(keys(&Store::Memory(memory)), ["0", "1", "2", "one too many"]);
}

#[tokio::test]
async fn batched_inputs_are_received_in_order() {
    let (handle, mut mailbox) = mailbox(4);
    let sent: Vec<String> = (0..10).map(|number| number.to_string()).collect();
    let expected = sent.clone();
    // More than fit: the rest waits for room.
    let sending = tokio::spawn(async move { handle.send_all(sent).await });
    let mut seen = Vec::new();
    while let Some(input) = mailbox.next().await {
        seen.push(input);
    }
    assert_eq!(seen, expected);
    assert_eq!(sending.await.unwrap(), Ok(()));
    let (handle, closed) = super::mailbox(4);
    drop(closed);
    assert_eq!(handle.send_all(vec!["lost".to_owned()]).await, Err(Closed));
}
