//! Lines as they are written, in both formats.

use expect_test::expect;
use tracing::Level;

use super::*;

fn samples() {
    let (none, some): (Option<&str>, Option<&str>) = (None, Some("here"));
    tracing::info!(agent_id = %"S0", tasks = 3, active = true, "agent registered");
    tracing::warn!(none, some, share = 0.5, "two words");
    tracing::debug!(path = "/a b/c", empty = "", list = ?["x"], "quoted");
    tracing::error!(name = "a\nINFO forged line\u{202e}\u{7f}\"\\", "escaped {}", "\n");
    tracing::info!(uri = "fetch http://me:secret@host/x?a=b, https://you@host and ftp://host/@", "masked");
    tracing::info!(not = f64::NAN, "not a number");
}

#[test]
fn text_lines_keep_one_event_per_line() {
    let text = capture(LogFormat::Text, samples);
    let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
    let expected = expect![[r#"
        INFO agent registered agent_id=S0 tasks=3 active=true
        WARN two words some=here share=0.5
        DEBUG quoted path="/a b/c" empty="" list="[\"x\"]"
        ERROR escaped \n name="a\nINFO forged line\u202e\u007f\"\\"
        INFO masked uri="fetch http://***@host/x?a=b, https://***@host and ftp://host/@"
        INFO not a number not=NaN"#]];
    expected.assert_eq(&lines.join("\n"));
}

#[test]
fn json_lines_are_valid_objects() {
    let text = capture(LogFormat::Json, samples);
    let parsed: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(&format!("{{\"time\":\"{line}")).unwrap()).collect();
    assert_eq!(parsed.len(), 6);
    assert_eq!(parsed[0]["event"], "agent registered");
    assert_eq!(parsed[0]["level"], "INFO");
    assert_eq!((&parsed[0]["tasks"], &parsed[0]["active"]), (&3.into(), &true.into()));
    assert_eq!(parsed[3]["name"], "a\nINFO forged line\u{202e}\u{7f}\"\\");
    assert_eq!(parsed[3]["event"], "escaped \n");
    assert_eq!(parsed[5]["not"], "NaN");
}

#[test]
fn long_values_are_truncated() {
    let value = "ä".repeat(FIELD_BYTES_MAX);
    let text = capture(LogFormat::Text, || tracing::info!(value, "long"));
    let shown = "ä".repeat(FIELD_BYTES_MAX / 2);
    assert_eq!(text, format!("  INFO long value=\"{shown}… ({FIELD_BYTES_MAX} bytes more)\"\n"));
    let bare = "x".repeat(FIELD_BYTES_MAX + 1);
    assert!(capture(LogFormat::Text, || tracing::info!(bare, "long")).contains("… (1 bytes more)"));
}

#[test]
fn buffered_lines_keep_their_format() {
    let style = |format| Style { format, colours: false };
    for (format, expected) in [(LogFormat::Text, " dropped=7"), (LogFormat::Json, "\"dropped\":7}")] {
        let line =
            style(format).own_line(std::time::SystemTime::now(), Level::WARN, "dropped", ("dropped", 7));
        assert!(line.trim_end().ends_with(expected), "{line}");
        let rest = line.as_bytes()[format.time_bytes()..].to_vec();
        let repeated = writer::repeated(format, &repeats::Suppressed { line: rest, times: 5 });
        match format {
            LogFormat::Text => assert!(repeated.ends_with(" dropped=7 repeated=5\n"), "{repeated}"),
            LogFormat::Json => {
                let value: serde_json::Value = serde_json::from_str(&repeated).unwrap();
                assert_eq!((&value["dropped"], &value["repeated"]), (&7.into(), &5.into()));
            }
        }
    }
}
