//! Real files: reopened, locked, cut short, damaged.

use std::fs;

use tempfile::TempDir;
use tepui_fsm::Rng;

use super::*;

fn place() -> (TempDir, PathBuf) {
    let dir = TempDir::new().unwrap();
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

/// Where the engine's header holds its flags.
const GOD_BYTE: usize = 9;

/// A file after `kill -9`, damaged anywhere: acknowledged writes are present, or the damage is reported.
#[test]
fn damage_after_a_crash_never_reverts_to_an_older_commit() {
    let (_dir, path) = place();
    let mut store = open(&path).unwrap();
    for round in 0..20_u8 {
        store
            .commit(&[Write::put("round", [round]), Write::put(format!("key/{round}"), vec![round; 300])])
            .unwrap();
    }
    let expected = store.load().unwrap();
    let crashed = fs::read(&path).unwrap();
    drop(store);
    let mut rng = Rng::seeded(11);
    // A bit of every byte of the header, and a sample of the pages.
    let header: Vec<_> = (0..320).map(|at| (at, rng.below(8) as u32)).collect();
    // The bit that selects the newer of two commits: flipped, it is the state of a crash before the commit.
    let header = header.into_iter().filter(|place| *place != (GOD_BYTE, 0));
    let used = crashed.iter().rposition(|byte| *byte != 0).unwrap() as u64;
    let pages: Vec<_> = (0..100).map(|_| (rng.below(used) as usize, rng.below(8) as u32)).collect();
    let (mut found, copy) = (0, path.with_extension("copy"));
    for (at, bit) in header.chain(pages) {
        let mut damaged = crashed.clone();
        damaged[at] ^= 1 << bit;
        fs::write(&copy, &damaged).unwrap();
        match open(&copy).and_then(|store| store.load()) {
            Ok(loaded) => assert_eq!(loaded, expected, "bit {bit} of byte {at}"),
            Err(_) => found += 1,
        }
    }
    assert!(found > 0);
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
    assert!(!store.look_at_room().unwrap().is_short);
    let filler = disk.fill();
    assert!(store.look_at_room().unwrap().is_short);
    let mut round = 1;
    while !store.uses_reserve() {
        commit(&mut store, round).0.unwrap();
        round += 1;
    }
    let room = store.look_at_room().unwrap();
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
    let room = store.look_at_room().unwrap();
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
    assert_eq!(store.look_at_room().unwrap().reserve_bytes, 0);
    fs::remove_file(filler).unwrap();
    let room = store.look_at_room().unwrap();
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
    assert_eq!(store.look_at_room().unwrap().reserve_used_bytes, 0);
    drop(store);
    let mut store = Embedded::open(&path, disabled).unwrap();
    assert_eq!((store.load().unwrap(), store.look_at_room().unwrap().reserve_bytes), (expected, 0));
}
