//! Skips are recorded with the test's name, and fail where they must not happen.

use std::process::Command;

use super::*;

const FILE: &str = "TEPUI_SKIPPED";

/// Runs `skip_names_its_test` in a child process: success, output and recorded skips.
fn run(require: &str) -> (bool, String, String) {
    let file = std::env::temp_dir().join(format!("tepui-skipped-{}-{require}", std::process::id()));
    let output = Command::new(std::env::current_exe().expect("a test"))
        .args(["--exact", "tests::skip_names_its_test", "--nocapture"])
        .envs([(FILE, file.as_os_str()), ("TEPUI_REQUIRE", require.as_ref()), ("SKIP", "1".as_ref())])
        .env_remove("NEXTEST_BINARY_ID")
        .env("CARGO_PKG_NAME", "package")
        .output()
        .expect("a test starts");
    let recorded = std::fs::read_to_string(&file).unwrap_or_default();
    std::fs::remove_file(&file).ok();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned(), recorded)
}

#[test]
fn a_skip_is_recorded_with_the_name_of_its_test() {
    let (passed, output, recorded) = run("root,other");
    assert!(passed, "{output}");
    assert!(
        output.contains("skipped: needs no-such-program: no program no-such-program in PATH"),
        "{output}"
    );
    let expected = "package::tepui_facilities tests::skip_names_its_test\tno-such-program\t";
    assert!(recorded.starts_with(expected) && recorded.lines().count() == 1, "{recorded}");
}

#[test]
fn a_skip_for_a_required_facility_fails() {
    let (passed, output, recorded) = run("root,no-such-program");
    assert!(!passed && recorded.is_empty(), "{recorded}");
    assert!(output.contains("TEPUI_REQUIRE lists no-such-program, but it is missing"), "{output}");
}

#[test]
fn port_is_held_by_one_process_at_a_time() {
    let ports: Vec<Port> = (0..100).map(|_| Port::take()).collect();
    let numbers: std::collections::BTreeSet<u16> = ports.iter().map(Port::number).collect();
    assert_eq!(numbers.len(), ports.len());
    let held = ports[0].number();
    assert!(Port::lock(held).is_none(), "{held} is held");
    std::net::TcpListener::bind(ports[0].address()).expect("its holder can listen on it");
    drop(ports);
}

/// Skips only in the processes of the tests above.
#[test]
fn skip_names_its_test() {
    if std::env::var_os("SKIP").is_some() {
        assert!(!available(&[Facility::Program("sh"), Facility::Program("no-such-program")]));
    }
    assert!(available(&[Facility::Program("sh")]));
}
