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

fn filled(path: &Path, count: usize) -> Vec<(String, Vec<u8>)> {
    let mut store = Embedded::open(path).unwrap();
    let writes: Vec<Write> =
        (0..count).map(|i| Write::put(format!("key/{i:05}"), vec![i as u8; 100])).collect();
    store.commit(&writes).unwrap();
    store.load().unwrap()
}

#[test]
fn what_was_committed_is_there_after_reopening() {
    let (_dir, path) = place();
    let mut store = Embedded::open(&path).unwrap();
    assert_eq!(store.load().unwrap(), []);
    store.commit(&[Write::put("b", *b"2"), Write::put("a", *b"1"), Write::put("c", *b"3")]).unwrap();
    store
        .commit(&[Write::delete("b"), Write::put("c", *b"4"), Write::put("c", *b"5"), Write::delete("never")])
        .unwrap();
    drop(store);
    let expected = vec![("a".to_owned(), b"1".to_vec()), ("c".to_owned(), b"5".to_vec())];
    assert_eq!(Embedded::open(&path).unwrap().load().unwrap(), expected);
}

#[test]
fn a_file_in_use_is_refused_by_name() {
    let (_dir, path) = place();
    let _first = Embedded::open(&path).unwrap();
    let fault = Embedded::open(&path).unwrap_err();
    assert!(matches!(fault, StoreFault::Locked { .. }), "{fault}");
    assert!(fault.to_string().contains("records.redb"), "{fault}");
}

#[test]
fn another_format_is_refused() {
    let (_dir, path) = place();
    filled(&path, 1);
    {
        let database = Database::create(&path).unwrap();
        let transaction = database.begin_write().unwrap();
        transaction.open_table(META).unwrap().insert("format", FORMAT + 1).unwrap();
        transaction.commit().unwrap();
    }
    let fault = Embedded::open(&path).unwrap_err();
    assert!(matches!(fault, StoreFault::Format { found: 2, expected: 1, .. }), "{fault}");
}

#[test]
fn a_directory_that_is_missing_is_a_fault_with_its_path() {
    let fault = Embedded::open(Path::new("/nowhere/at/all/records.redb")).unwrap_err();
    assert!(matches!(fault, StoreFault::Io { .. }), "{fault}");
    assert!(fault.to_string().contains("/nowhere/at/all"), "{fault}");
}

#[test]
fn a_truncated_or_foreign_file_is_a_fault_and_not_a_panic() {
    let (_dir, path) = place();
    filled(&path, 500);
    let whole = fs::read(&path).unwrap();
    for keep in [0, 1, 63, 64, 100, 320, 4096, 5000, whole.len() / 2, whole.len() - 1] {
        fs::write(&path, &whole[..keep]).unwrap();
        let fault = Embedded::open(&path).and_then(|store| store.load()).unwrap_err();
        assert!(matches!(fault, StoreFault::Corrupt { .. }), "{keep} bytes: {fault}");
    }
    fs::write(&path, "this is a letter, not a database\n".repeat(1000)).unwrap();
    let fault = Embedded::open(&path).unwrap_err();
    assert!(matches!(fault, StoreFault::Corrupt { .. }), "{fault}");
}

#[test]
fn a_flipped_byte_is_found_or_harmless() {
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
        match Embedded::open(&path).and_then(|store| store.load()) {
            Ok(loaded) => assert_eq!(loaded, expected, "byte {at}"),
            Err(_) => found += 1,
        }
    }
    assert!(found > 0);
}

/// Where the engine's header holds its flags.
const GOD_BYTE: usize = 9;

/// A file as `kill -9` leaves it, damaged anywhere: acknowledged writes are there, or the damage is reported.
#[test]
fn damage_after_a_crash_never_goes_back_to_an_older_commit() {
    let (_dir, path) = place();
    let mut store = Embedded::open(&path).unwrap();
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
    // The bit that says which of two commits is the newest: flipped, it is what a crash before the flip leaves.
    let header = header.into_iter().filter(|place| *place != (GOD_BYTE, 0));
    let used = crashed.iter().rposition(|byte| *byte != 0).unwrap() as u64;
    let pages: Vec<_> = (0..100).map(|_| (rng.below(used) as usize, rng.below(8) as u32)).collect();
    let (mut found, copy) = (0, path.with_extension("copy"));
    for (at, bit) in header.chain(pages) {
        let mut damaged = crashed.clone();
        damaged[at] ^= 1 << bit;
        fs::write(&copy, &damaged).unwrap();
        match Embedded::open(&copy).and_then(|store| store.load()) {
            Ok(loaded) => assert_eq!(loaded, expected, "bit {bit} of byte {at}"),
            Err(_) => found += 1,
        }
    }
    assert!(found > 0);
}
