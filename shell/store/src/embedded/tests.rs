//! Real files: reopened, locked, cut short, damaged.

use std::fs;
use std::sync::{Arc, Mutex};

use tempfile::TempDir;
use tepui_fsm::Rng;

use super::*;

fn place() -> (TempDir, PathBuf) {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("records.redb");
    (dir, path)
}

/// For tests with thousands of syncs: in memory, if the machine has a place for that.
fn fast_place() -> (TempDir, PathBuf) {
    let memory = Path::new("/dev/shm");
    let dir = if memory.is_dir() { TempDir::new_in(memory) } else { TempDir::new() }.unwrap();
    let path = dir.path().join("records.redb");
    (dir, path)
}

/// With a reserve that is made quickly.
const HEADROOM: Headroom = Headroom { reserve_bytes: 64 * 1024, available_bytes_min: 1024 * 1024 };

fn open(path: &Path) -> Result<Embedded, StoreFault> {
    Embedded::open(path, HEADROOM)
}

fn filled(path: &Path, count: usize) -> Vec<(String, Vec<u8>)> {
    let mut store = open(path).unwrap();
    let writes: Vec<Write> =
        (0..count).map(|i| Write::put(format!("key/{i:05}"), vec![i as u8; 100])).collect();
    store.commit(&writes).unwrap();
    store.load().unwrap()
}

#[test]
fn commits_survive_reopening() {
    let (_dir, path) = place();
    let mut store = open(&path).unwrap();
    assert_eq!(store.load().unwrap(), []);
    store.commit(&[Write::put("b", *b"2"), Write::put("a", *b"1"), Write::put("c", *b"3")]).unwrap();
    store
        .commit(&[Write::delete("b"), Write::put("c", *b"4"), Write::put("c", *b"5"), Write::delete("never")])
        .unwrap();
    drop(store);
    let expected = vec![("a".to_owned(), b"1".to_vec()), ("c".to_owned(), b"5".to_vec())];
    assert_eq!(open(&path).unwrap().load().unwrap(), expected);
}

#[test]
fn file_in_use_is_rejected_by_name() {
    let (_dir, path) = place();
    let _first = open(&path).unwrap();
    let fault = open(&path).unwrap_err();
    assert!(matches!(fault, StoreFault::Locked { .. }), "{fault}");
    assert!(fault.to_string().contains("records.redb"), "{fault}");
}

#[test]
fn unknown_format_is_rejected() {
    let (_dir, path) = place();
    filled(&path, 1);
    {
        let database = Database::create(&path).unwrap();
        let transaction = database.begin_write().unwrap();
        transaction.open_table(META).unwrap().insert("format", FORMAT + 1).unwrap();
        transaction.commit().unwrap();
    }
    let fault = open(&path).unwrap_err();
    assert!(matches!(fault, StoreFault::Format { found: 2, expected: 1, .. }), "{fault}");
}

#[test]
fn missing_directory_is_reported_with_its_path() {
    let fault = open(Path::new("/nowhere/at/all/records.redb")).unwrap_err();
    assert!(matches!(fault, StoreFault::Io { .. }), "{fault}");
    assert!(fault.to_string().contains("/nowhere/at/all"), "{fault}");
}

#[test]
fn truncated_or_foreign_file_is_reported() {
    let (_dir, path) = place();
    filled(&path, 500);
    let whole = fs::read(&path).unwrap();
    for keep in [0, 1, 63, 64, 100, 320, 4096, 5000, whole.len() / 2, whole.len() - 1] {
        fs::write(&path, &whole[..keep]).unwrap();
        let fault = open(&path).and_then(|store| store.load()).unwrap_err();
        assert!(matches!(fault, StoreFault::Corrupt { .. }), "{keep} bytes: {fault}");
    }
    fs::write(&path, "this is a letter, not a database\n".repeat(1000)).unwrap();
    let fault = open(&path).unwrap_err();
    assert!(matches!(fault, StoreFault::Corrupt { .. }), "{fault}");
}

#[test]
fn flipped_byte_is_detected_or_harmless() {
    let (_dir, path) = place();
    let expected = filled(&path, 200);
    let whole = fs::read(&path).unwrap();
    let mut rng = Rng::seeded(7);
    let mut found = 0;
    for _ in 0..60 {
        let mut damaged = whole.clone();
        let at = rng.below(64 * 1024) as usize % damaged.len();
        damaged[at] ^= 1 << rng.below(8);
        fs::write(&path, &damaged).unwrap();
        match open(&path).and_then(|store| store.load()) {
            Ok(loaded) => assert_eq!(loaded, expected, "byte {at}"),
            Err(_) => found += 1,
        }
    }
    assert!(found > 0);
}

/// A file after `kill -9` or closed, and what is in it: twenty acknowledged commits.
fn acknowledged(path: &Path, is_closed: bool) -> (Vec<u8>, Vec<(String, Vec<u8>)>) {
    let mut store = open(path).unwrap();
    for round in 0..20_u8 {
        store
            .commit(&[Write::put("round", [round]), Write::put(format!("key/{round}"), vec![round; 300])])
            .unwrap();
    }
    let expected = store.load().unwrap();
    let killed = fs::read(path).unwrap();
    drop(store);
    let file = if is_closed { fs::read(path).unwrap() } else { killed };
    (file, expected)
}

/// Damage anywhere: acknowledged writes are present and stay so, or the damage is reported. Returns the count of reports.
fn check_flips(
    crashed: &[u8],
    expected: &[(String, Vec<u8>)],
    flips: impl Iterator<Item = (usize, u32)>,
) -> usize {
    let (_dir, path) = fast_place();
    let headroom = Headroom { reserve_bytes: 0, available_bytes_min: 1 };
    // The engine panics about much of it; a backtrace of each takes most of the time.
    std::panic::set_hook(Box::new(|panic| eprintln!("{panic}")));
    let mut found = 0;
    for (at, bit) in flips {
        let mut damaged = crashed.to_vec();
        damaged[at] ^= 1 << bit;
        fs::write(&path, &damaged).unwrap();
        let opened =
            Embedded::open(&path, headroom).and_then(|store| store.load().map(|loaded| (store, loaded)));
        let Ok((mut store, loaded)) = opened else {
            found += 1;
            continue;
        };
        assert_eq!(loaded, expected, "bit {bit} of byte {at}");
        // The next commit does not write over pages in use.
        store.commit(&[Write::put("next", [1])]).unwrap();
        drop(store);
        let mut loaded = Embedded::open(&path, headroom).unwrap().load().unwrap();
        loaded.retain(|(key, _)| key != "next");
        assert_eq!(loaded, expected, "bit {bit} of byte {at}, after a commit");
    }
    found
}

/// Of the engine's header.
const HEADER_BYTES: usize = 320;

#[test]
fn flipped_bit_of_a_header_never_reverts_to_an_older_commit() {
    for is_closed in [false, true] {
        let (_dir, path) = place();
        let (file, expected) = acknowledged(&path, is_closed);
        let bits = (0..HEADER_BYTES).flat_map(|at| (0..8).map(move |bit| (at, bit)));
        assert!(check_flips(&file, &expected, bits) > 0);
    }
}

#[test]
fn flipped_bit_of_a_page_never_reverts_to_an_older_commit() {
    for is_closed in [false, true] {
        let (_dir, path) = place();
        let (file, expected) = acknowledged(&path, is_closed);
        let used = file.iter().rposition(|byte| *byte != 0).unwrap() as u64 + 1;
        let mut rng = Rng::seeded(11);
        let bits: Vec<_> = (0..300).map(|_| (rng.below(used) as usize, rng.below(8) as u32)).collect();
        assert!(check_flips(&file, &expected, bits.into_iter()) > 0);
    }
}

/// What the engine does to its file, in order.
#[derive(Clone, Debug)]
enum Step {
    Write(u64, Vec<u8>),
    Length(u64),
    Sync,
    Acknowledged,
}

/// A file in memory that records its changes.
#[derive(Clone, Debug)]
struct Recorder {
    content: Arc<Mutex<Vec<u8>>>,
    steps: Arc<Mutex<Vec<Step>>>,
}

impl Recorder {
    fn record(&self, step: Step) -> std::io::Result<()> {
        apply(&mut self.content.lock().unwrap(), &step);
        self.steps.lock().unwrap().push(step);
        Ok(())
    }
}

impl redb::StorageBackend for Recorder {
    fn len(&self) -> std::io::Result<u64> {
        Ok(self.content.lock().unwrap().len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> std::io::Result<()> {
        let at = offset as usize;
        out.copy_from_slice(&self.content.lock().unwrap()[at..at + out.len()]);
        Ok(())
    }

    fn set_len(&self, len: u64) -> std::io::Result<()> {
        self.record(Step::Length(len))
    }

    fn sync_data(&self) -> std::io::Result<()> {
        self.record(Step::Sync)
    }

    fn write(&self, offset: u64, data: &[u8]) -> std::io::Result<()> {
        self.record(Step::Write(offset, data.to_vec()))
    }
}

/// What is written beyond the end is lost, as it is if the length was not durable.
fn apply(content: &mut Vec<u8>, step: &Step) {
    match step {
        Step::Write(at, data) => {
            for (at, byte) in (*at as usize..).zip(data) {
                if let Some(place) = content.get_mut(at) {
                    *place = *byte;
                }
            }
        }
        Step::Length(len) => content.resize(*len as usize, 0),
        Step::Sync | Step::Acknowledged => (),
    }
}

/// A part of the steps: each sector of a write is durable or not by itself.
fn torn(steps: &[Step], rng: &mut Rng) -> Vec<Step> {
    const SECTOR: usize = 512;
    let mut durable = Vec::new();
    for step in steps {
        match step {
            Step::Write(at, data) => {
                for (number, sector) in data.chunks(SECTOR).enumerate() {
                    if rng.below(2) == 0 {
                        durable.push(Step::Write(at + (number * SECTOR) as u64, sector.to_vec()));
                    }
                }
            }
            other => durable.push(other.clone()),
        }
    }
    durable
}

/// The content of a database by commits, and the steps of each.
fn recorded_commits(path: &Path) -> (Vec<u8>, Vec<Step>, Vec<Vec<(String, Vec<u8>)>>) {
    drop(open(path).unwrap());
    let first = fs::read(path).unwrap();
    let content = Arc::new(Mutex::new(first.clone()));
    let recorder = Recorder { content, steps: Arc::default() };
    let database = Database::builder().create_with_backend(recorder.clone()).unwrap();
    let headroom = Headroom { reserve_bytes: 0, available_bytes_min: 1 };
    let path = path.to_path_buf();
    let mut store =
        Embedded { database: Some(database), path, identity: 1, headroom, reserve: None, is_short: false };
    let mut states = vec![store.load().unwrap()];
    for round in 0..8_u8 {
        // One of them needs a longer file, and the next a shorter one.
        let size = if round == 5 { 1_500_000 } else { 300 };
        let key = format!("key/{}", round % 5);
        store.commit(&[Write::put("round", [round]), Write::put(key, vec![round; size])]).unwrap();
        states.push(store.load().unwrap());
        recorder.steps.lock().unwrap().push(Step::Acknowledged);
    }
    let steps = recorder.steps.lock().unwrap().clone();
    (first, steps, states)
}

/// Power loss at any moment: what was not synced is durable in any part and order.
#[test]
fn crash_at_any_moment_loses_no_acknowledged_commit() {
    let (_dir, path) = fast_place();
    let (first, steps, states) = recorded_commits(&path);
    let headroom = Headroom { reserve_bytes: 0, available_bytes_min: 1 };
    let mut rng = Rng::seeded(5);
    // How often the commit that was not acknowledged was complete.
    let (mut completed, mut undone) = (0, 0);
    let (mut durable, mut synced) = (first, 0);
    for end in 0..=steps.len() {
        if end > 0 && matches!(steps[end - 1], Step::Sync) {
            steps[synced..end].iter().for_each(|step| apply(&mut durable, step));
            synced = end;
        }
        let acknowledged = steps[..end].iter().filter(|step| matches!(step, Step::Acknowledged)).count();
        let pending = &steps[synced..end];
        for part in [Vec::new(), pending.to_vec(), torn(pending, &mut rng), torn(pending, &mut rng)] {
            let mut crashed = durable.clone();
            part.iter().for_each(|step| apply(&mut crashed, step));
            fs::write(&path, &crashed).unwrap();
            let loaded = Embedded::open(&path, headroom).and_then(|store| store.load());
            let loaded = loaded.unwrap_or_else(|fault| panic!("after step {end}: {fault}"));
            match states.iter().position(|state| *state == loaded) {
                Some(at) if at == acknowledged => undone += 1,
                Some(at) if at == acknowledged + 1 => completed += 1,
                at => panic!("after step {end}: the state of commit {at:?}, not {acknowledged}"),
            }
        }
    }
    assert!(completed > 10 && undone > 10, "{completed} {undone}");
}

/// The disk is filled during commits: acknowledged writes survive, also a crash, and the reserve is refilled once there
/// is room.
#[test]
fn commits_use_the_reserve_while_the_disk_is_full() {
    let dir = TempDir::new().unwrap();
    let Some(disk) = tepui_facilities::Disk::mount(dir.path(), 8) else { return };
    let path = disk.path().join("records.redb");
    let mut store = open(&path).unwrap();
    let mut expected = std::collections::BTreeMap::new();
    let mut commit = |store: &mut Embedded, round: u32| {
        let (key, value) = (format!("key/{round:05}"), vec![round as u8; 700]);
        let writes = [Write::put(key.clone(), value.clone()), Write::put("round", round.to_le_bytes())];
        let done = store.commit(&writes);
        if done.is_ok() {
            expected.extend([(key, value), ("round".to_owned(), round.to_le_bytes().to_vec())]);
        }
        (done, expected.clone().into_iter().collect::<Vec<_>>())
    };
    commit(&mut store, 0).0.unwrap();
    assert!(!store.measure_room().unwrap().is_short);
    let filler = disk.fill();
    assert!(store.measure_room().unwrap().is_short);
    let mut round = 1;
    while !store.uses_reserve() {
        commit(&mut store, round).0.unwrap();
        round += 1;
    }
    let room = store.measure_room().unwrap();
    assert!(
        room.is_short && room.reserve_used_bytes > 0 && room.reserve_bytes == HEADROOM.reserve_bytes,
        "{room:?}"
    );
    // As after a crash, on a disk that is still full.
    drop(store);
    let mut store = open(&path).unwrap();
    let (done, acknowledged) = commit(&mut store, round);
    done.unwrap();
    assert_eq!(store.load().unwrap(), acknowledged);
    let (refused, acknowledged) = loop {
        round += 1;
        match commit(&mut store, round) {
            (Ok(()), _) => (),
            (Err(fault), acknowledged) => break (fault, acknowledged),
        }
    };
    assert!(matches!(refused, StoreFault::DiskFull { .. }), "{refused}");
    fs::remove_file(filler).unwrap();
    let room = store.measure_room().unwrap();
    assert_eq!((room.is_short, room.reserve_used_bytes), (false, 0));
    assert_eq!(store.load().unwrap(), acknowledged);
    drop(store);
    assert_eq!(open(&path).unwrap().load().unwrap(), acknowledged);
}

#[test]
fn reserve_is_allocated_once_the_disk_has_room() {
    let dir = TempDir::new().unwrap();
    let Some(disk) = tepui_facilities::Disk::mount(dir.path(), 8) else { return };
    let path = disk.path().join("records.redb");
    drop(open(&path).unwrap());
    fs::remove_file(crate::reserve_path(&path)).unwrap();
    let filler = disk.fill();
    let mut store = open(&path).unwrap();
    assert_eq!(store.measure_room().unwrap().reserve_bytes, 0);
    fs::remove_file(filler).unwrap();
    let room = store.measure_room().unwrap();
    assert_eq!((room.is_short, room.reserve_bytes), (false, HEADROOM.reserve_bytes));
}

#[test]
fn records_in_a_reserve_survive_that_it_is_disabled() {
    let (_dir, path) = place();
    let mut store = open(&path).unwrap();
    store.commit(&[Write::put("key", *b"old")]).unwrap();
    store.reserve.as_mut().unwrap().append(&[Write::put("key", *b"new")]).unwrap();
    drop(store);
    let disabled = Headroom { reserve_bytes: 0, available_bytes_min: 1 };
    let mut store = Embedded::open(&path, disabled).unwrap();
    let expected = vec![("key".to_owned(), b"new".to_vec())];
    assert_eq!(store.load().unwrap(), expected);
    assert_eq!(store.measure_room().unwrap().reserve_used_bytes, 0);
    drop(store);
    let mut store = Embedded::open(&path, disabled).unwrap();
    assert_eq!((store.load().unwrap(), store.measure_room().unwrap().reserve_bytes), (expected, 0));
}
