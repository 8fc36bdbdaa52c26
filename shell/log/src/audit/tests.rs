//! The file: complete lines, mode, rotation, lost entries.

use super::*;

fn lines(path: &Path) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().filter(|line| !line.is_empty()).map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn numbers(path: &Path) -> Vec<u64> {
    lines(path).iter().filter_map(|entry| entry["number"].as_u64()).collect()
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn entry(number: u64) -> String {
    format!("{{\"number\":{number}}}")
}

#[test]
fn entries_are_lines_with_their_time_in_a_private_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit");
    std::fs::write(&path, "{\"number\":0}\n").unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
    let log = AuditLog::start(&path).unwrap();
    (1..4).for_each(|number| log.push(&entry(number)));
    log.flush();
    assert_eq!((numbers(&path), mode(&path)), (vec![0, 1, 2, 3], 0o600));
    assert_eq!(lines(&path)[1]["time"].as_str().map(str::len), Some("2026-01-01T00:00:00.000000Z".len()));
}

#[test]
fn rotated_file_is_reopened() {
    let dir = tempfile::tempdir().unwrap();
    let (path, old) = (dir.path().join("audit"), dir.path().join("audit.1"));
    let log = AuditLog::start(&path).unwrap();
    log.push(&entry(1));
    log.flush();
    std::fs::rename(&path, &old).unwrap();
    log.push(&entry(2));
    log.flush();
    assert_eq!((numbers(&old), numbers(&path), mode(&path)), (vec![1], vec![2], 0o600));
    // Copied and truncated instead.
    std::fs::write(&path, "").unwrap();
    log.push(&entry(3));
    log.flush();
    assert_eq!(numbers(&path), [3]);
}

#[test]
fn full_queue_drops_and_counts_entries() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit");
    let (queue, messages) = sync_channel(2);
    let log = AuditLog { queue, lost: Arc::default() };
    (1..6).for_each(|number| log.push(&entry(number)));
    assert_eq!(log.lost.load(Ordering::Relaxed), 3);
    let (lost, file) = (Arc::clone(&log.lost), AuditFile::open(&path).unwrap());
    drop(log);
    run(&messages, &lost, file);
    assert_eq!(numbers(&path), [1, 2]);
    let report = &lines(&path)[0];
    assert_eq!((&report["action"], &report["count"]), (&"ENTRIES_LOST".into(), &3.into()));
}

/// `/dev/full` refuses every byte, as a full disk does.
#[test]
fn full_disk_drops_entries_until_it_has_room() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit");
    let lost = AtomicU64::new(0);
    let mut file = AuditFile::open(&path).unwrap();
    let full = File::options().append(true).open("/dev/full").unwrap();
    let real = std::mem::replace(&mut file.file, full);
    let name = std::mem::replace(&mut file.path, PathBuf::from("/dev/full"));
    for number in 1..4 {
        write(&mut file, &lost, timed(SystemTime::now(), &entry(number)));
        assert_eq!(lost.load(Ordering::Relaxed), number);
    }
    (file.file, file.path) = (real, name);
    write(&mut file, &lost, timed(SystemTime::now(), &entry(4)));
    assert_eq!((numbers(&path), lines(&path)[0]["count"].as_u64()), (vec![4], Some(3)));
}

#[test]
fn torn_line_does_not_corrupt_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit");
    let mut file = AuditFile::open(&path).unwrap();
    file.file.write_all(b"{\"number\":").unwrap();
    file.torn = true;
    file.append(format!("{}\n", entry(7)).as_bytes()).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\"number\":\n{\"number\":7}\n");
}

#[test]
fn non_regular_file_is_rejected() {
    let dir = tempfile::tempdir().unwrap();
    assert!(AuditLog::start(dir.path()).is_err());
    assert!(AuditLog::start(&dir.path().join("missing/audit")).is_err());
}
