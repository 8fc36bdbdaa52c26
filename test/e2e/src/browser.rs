//! A real browser without a window.

use std::path::Path;
use std::process::Command;

/// Virtual time the scripts of a page get, in milliseconds; the browser does not wait that long.
const SCRIPT_MS: u32 = 4000;

/// The document after the scripts of a page have run.
pub fn visit(profile: &Path, url: &str, flags: &[&str]) -> String {
    let output = Command::new("chromium")
        .args([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
        ])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("--virtual-time-budget={SCRIPT_MS}"))
        .args(flags)
        .args(["--dump-dom", url])
        .output()
        .expect("test/setup installs chromium");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
