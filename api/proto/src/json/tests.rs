//! Tables of the JSON rules, one test per rule.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use super::{JSON_DEPTH_MAX, JsonWriter, from_slice, list_from_slice, to_vec};
use crate::Wire;
use crate::mesos::v1::{
    AgentInfo, CheckInfo, ContainerID, Filters, FrameworkInfo, Label, Resource, TaskInfo, TaskStatus,
    WeightInfo, framework_info, master, scheduler, value,
};

/// Reads `json` as an `M` and writes it again; an error is its text.
fn pass<M: Wire>(json: &str) -> String {
    match from_slice::<M>(json.as_bytes()) {
        Ok(message) => text(&message),
        Err(error) => format!("error: {error}"),
    }
}

fn text<M: Wire>(message: &M) -> String {
    String::from_utf8(to_vec(message)).expect("JSON is text")
}

fn table<M: Wire>(rows: &[(&str, &str)]) {
    for (json, expected) in rows {
        assert_eq!(pass::<M>(json), *expected, "for {json}");
    }
}

#[test]
fn names_and_order_are_those_of_the_declaration() {
    let status = TaskStatus {
        message: Some("m".into()),
        data: Some(vec![0, 1, 255]),
        timestamp: Some(1.5),
        healthy: Some(true),
        ..TaskStatus::default()
    };
    assert_eq!(
        text(&status),
        r#"{"state":"TASK_STAGING","message":"m","data":"AAH/","timestamp":1.5,"healthy":true}"#
    );
}

#[test]
fn explicit_defaults_are_written_unless_deprecated() {
    assert_eq!(text(&Filters::default()), r#"{"refuse_seconds":5.0}"#);
    assert_eq!(
        pass::<FrameworkInfo>(r#"{"user":"u","name":"n"}"#),
        r#"{"user":"u","name":"n","failover_timeout":0.0,"checkpoint":false}"#
    );
    assert_eq!(pass::<AgentInfo>(r#"{"hostname":"h"}"#), r#"{"hostname":"h","port":5051}"#);
    assert_eq!(
        text(&CheckInfo::default()),
        r#"{"delay_seconds":15.0,"interval_seconds":10.0,"timeout_seconds":20.0}"#
    );
}

#[test]
fn empty_lists_are_omitted_and_empty_messages_are_not() {
    let set = Resource {
        name: "r".into(),
        r#type: value::Type::SET,
        set: value::Set::default().into(),
        ..Resource::default()
    };
    assert_eq!(text(&set), r#"{"name":"r","type":"SET","set":{}}"#);
}

#[test]
fn doubles_have_a_fraction_and_infinities_are_strings() {
    for (value, expected) in [
        (1.0, "1.0"),
        (0.1, "0.1"),
        (-0.0, "-0.0"),
        (1e30, "1e30"),
        (1e-7, "1e-7"),
        (1234567.25, "1234567.25"),
        (1700000000.123456, "1700000000.123456"),
        (f64::MAX, "1.7976931348623157e308"),
        (f64::INFINITY, r#""Infinity""#),
        (f64::NEG_INFINITY, r#""-Infinity""#),
    ] {
        let filters = Filters { refuse_seconds: Some(value), ..Filters::default() };
        let json = format!(r#"{{"refuse_seconds":{expected}}}"#);
        assert_eq!(text(&filters), json);
        assert_eq!(from_slice::<Filters>(json.as_bytes()), Ok(filters));
    }
    table::<Filters>(&[
        (r#"{"refuse_seconds":"2.5"}"#, r#"{"refuse_seconds":2.5}"#),
        (r#"{"refuse_seconds":7}"#, r#"{"refuse_seconds":7.0}"#),
        (r#"{"refuse_seconds":"1e3"}"#, r#"{"refuse_seconds":1000.0}"#),
        (
            r#"{"refuse_seconds":"NaN"}"#,
            r#"error: refuse_seconds: expected a number, found the string "NaN""#,
        ),
        (r#"{"refuse_seconds":NaN}"#, "error: syntax error at line 1 near: NaN}"),
        (
            r#"{"refuse_seconds":"inf"}"#,
            r#"error: refuse_seconds: expected a number, found the string "inf""#,
        ),
        (r#"{"refuse_seconds":""}"#, r#"error: refuse_seconds: expected a number, found the string """#),
        (r#"{"refuse_seconds":1e999}"#, "error: refuse_seconds: 1e999 is out of range for a double"),
        (r#"{"refuse_seconds":true}"#, "error: refuse_seconds: expected a number, found a boolean"),
    ]);
}

#[test]
fn nan_is_written_as_valid_json() {
    let mut w = JsonWriter::new();
    w.double(f64::NAN);
    assert_eq!(w.into_vec(), b"null");
}

#[test]
fn integers_are_range_checked() {
    let range = |begin: &str| format!(r#"{{"range":[{{"begin":{begin},"end":9}}]}}"#);
    for (given, expected) in [
        ("18446744073709551615", Ok("18446744073709551615")),
        (r#""7""#, Ok("7")),
        ("2.9", Ok("2")),
        ("-0.9", Ok("0")),
        ("1e3", Ok("1000")),
        (r#""3.5""#, Ok("3")),
        ("18446744073709551616", Err("18446744073709551616 is out of range for an unsigned 64-bit integer")),
        ("-1", Err("-1 is out of range for an unsigned 64-bit integer")),
        ("1e40", Err("1e40 is out of range for an unsigned 64-bit integer")),
        (r#""Infinity""#, Err("Infinity is out of range for an unsigned 64-bit integer")),
        (r#""0x10""#, Err(r#"expected a number, found the string "0x10""#)),
        (r#""+1""#, Err(r#"expected a number, found the string "+1""#)),
        ("{}", Err("expected a number, found an object")),
    ] {
        let expected = match expected {
            Ok(number) => range(number),
            Err(problem) => format!("error: range[0].begin: {problem}"),
        };
        assert_eq!(pass::<value::Ranges>(&range(given)), expected);
    }
    table::<AgentInfo>(&[
        (r#"{"hostname":"h","port":2147483647}"#, r#"{"hostname":"h","port":2147483647}"#),
        (
            r#"{"hostname":"h","port":2147483648}"#,
            "error: port: 2147483648 is out of range for a 32-bit integer",
        ),
        (
            r#"{"hostname":"h","port":-2147483649}"#,
            "error: port: -2147483649 is out of range for a 32-bit integer",
        ),
    ]);
}

#[test]
fn booleans_strings_and_bytes_are_type_checked() {
    table::<FrameworkInfo>(&[
        (
            r#"{"user":"u","name":"n","checkpoint":"true"}"#,
            r#"{"user":"u","name":"n","failover_timeout":0.0,"checkpoint":true}"#,
        ),
        (
            r#"{"user":"u","name":"n","checkpoint":"yes"}"#,
            r#"error: checkpoint: expected a boolean, found the string "yes""#,
        ),
        (
            r#"{"user":"u","name":"n","checkpoint":1}"#,
            "error: checkpoint: expected a boolean, found a number",
        ),
        (r#"{"user":1,"name":"n"}"#, "error: user: expected a string, found a number"),
        (r#"{"user":["u"],"name":"n"}"#, "error: user: expected a string, found an array"),
        (r#"{"user":"u","name":"n","id":"x"}"#, "error: id: expected an object, found a string"),
        (r#"{"user":"u","name":"n","id":[]}"#, "error: id: expected an object, found an array"),
    ]);
    let status = |data: &str| format!(r#"{{"task_id":{{"value":"t"}},"state":"TASK_LOST","data":{data}}}"#);
    assert_eq!(pass::<TaskStatus>(&status(r#""aGk=""#)), status(r#""aGk=""#));
    assert_eq!(pass::<TaskStatus>(&status(r#""aGk""#)), status(r#""aGk=""#), "padding may be absent");
    assert!(pass::<TaskStatus>(&status(r#""a?==""#)).starts_with("error: data: not base64: "));
    assert_eq!(
        pass::<TaskStatus>(&status("[104]")),
        "error: data: expected a string of base64, found an array"
    );
}

#[test]
fn enums_are_parsed_by_name_only() {
    let status = |state: &str, reason: &str| {
        format!(r#"{{"task_id":{{"value":"t"}},"state":{state},"reason":{reason}}}"#)
    };
    let lost = r#"{"task_id":{"value":"t"},"state":"TASK_LOST"}"#;
    for (given, expected) in [
        (status(r#""TASK_LOST""#, r#""REASON_FROM_THE_FUTURE""#), lost),
        (status(r#""TASK_LOST""#, "3"), "error: reason: expected the name of a value, found a number"),
        (status(r#""TASK_NEW""#, "null"), r#"error: state: unknown value "TASK_NEW""#),
        (status(r#""task_lost""#, "null"), r#"error: state: unknown value "task_lost""#),
        (status("null", "null"), "error: Missing required fields: state"),
    ] {
        assert_eq!(pass::<TaskStatus>(&given), expected, "for {given}");
    }
    table::<scheduler::Call>(&[(r#"{"type":"DANCE"}"#, "{}")]);
    table::<framework_info::Capability>(&[(r#"{"type":"MULTI_ROLE"}"#, r#"{"type":"MULTI_ROLE"}"#)]);
}

#[test]
fn lists_accept_a_bare_value() {
    table::<value::Set>(&[
        (r#"{"item":["a","b"]}"#, r#"{"item":["a","b"]}"#),
        (r#"{"item":"a"}"#, r#"{"item":["a"]}"#),
        (r#"{"item":[]}"#, "{}"),
        (r#"{"item":null}"#, "{}"),
        (r#"{"item":["a",null,"b"]}"#, r#"{"item":["a","b"]}"#),
        (r#"{"item":["a",1]}"#, "error: item[1]: expected a string, found a number"),
        (r#"{"item":1}"#, "error: item: expected a string, found a number"),
    ]);
    table::<value::Ranges>(&[
        (r#"{"range":{"begin":1,"end":2}}"#, r#"{"range":[{"begin":1,"end":2}]}"#),
        (r#"{"range":[[]]}"#, "error: range[0]: expected an object, found an array"),
    ]);
}

#[test]
fn maps_are_objects() {
    let task = |limits: &str| {
        format!(r#"{{"name":"n","task_id":{{"value":"t"}},"agent_id":{{"value":"a"}},"limits":{limits}}}"#)
    };
    let limits = r#"{"cpus":{"value":"Infinity"},"mem":{"value":32.0}}"#;
    let parsed = from_slice::<TaskInfo>(task(limits).as_bytes()).expect("a good task");
    assert_eq!(parsed.limits["cpus"].value, f64::INFINITY);
    assert!(text(&parsed).ends_with(&format!(r#","limits":{limits}}}"#)));
    for (given, expected) in [
        ("[]", "error: limits: expected an object, found an array"),
        (r#"{"a b":{}}"#, "error: Missing required fields: limits.a b.value"),
        (r#"{"cpus":{"value":"x"}}"#, r#"error: limits.cpus.value: expected a number, found the string "x""#),
        (
            r#"{"cpus":{},"cpus":{"value":"x"}}"#,
            r#"error: limits.cpus.value: expected a number, found the string "x""#,
        ),
    ] {
        assert_eq!(pass::<TaskInfo>(&task(given)), expected, "for {given}");
    }
    let replaced = task(r#"{"cpus":{},"cpus":{"value":1},"mem":null}"#);
    assert_eq!(from_slice::<TaskInfo>(replaced.as_bytes()).map(|task| task.limits.len()), Ok(1));
}

#[test]
fn well_known_types_have_no_special_json_form() {
    table::<master::call::DrainAgent>(&[
        (
            r#"{"agent_id":{"value":"a"},"max_grace_period":{"seconds":600,"nanos":0}}"#,
            r#"{"agent_id":{"value":"a"},"max_grace_period":{"seconds":600,"nanos":0},"mark_gone":false}"#,
        ),
        (
            r#"{"agent_id":{"value":"a"},"max_grace_period":"600s"}"#,
            "error: max_grace_period: expected an object, found a string",
        ),
    ]);
}

#[test]
fn nulls_unset_unknown_fields_are_ignored_and_duplicates_replace() {
    table::<Label>(&[
        (r#"{"key":"k","value":null}"#, r#"{"key":"k"}"#),
        (r#"{"zzz":{"a":[1,{"b":"\u00e9]}"}],"c":{}},"key":"k","Key":"no"}"#, r#"{"key":"k"}"#),
        (r#"{"key":"a","key":"b"}"#, r#"{"key":"b"}"#),
        (r#"{"key":"a","key":null}"#, "error: Missing required fields: key"),
        (r#"{"key":"a","value":"v","value":null}"#, r#"{"key":"a"}"#),
    ]);
    table::<FrameworkInfo>(&[
        (
            r#"{"user":"u","name":"n","id":{},"id":{"value":"f"}}"#,
            r#"{"user":"u","name":"n","id":{"value":"f"},"failover_timeout":0.0,"checkpoint":false}"#,
        ),
        (r#"{"user":"u","name":"n","id":{"value":"f"},"id":{}}"#, "error: Missing required fields: id.value"),
    ]);
    table::<value::Set>(&[(r#"{"item":["a","b"],"item":["c"]}"#, r#"{"item":["c"]}"#)]);
}

#[test]
fn all_missing_fields_are_named_with_their_path() {
    table::<scheduler::Call>(&[
        (r#"{"type":"KILL","kill":{}}"#, "error: Missing required fields: kill.task_id"),
        (
            r#"{"type":"ACCEPT","accept":{"operations":[{"type":"LAUNCH"},
               {"type":"LAUNCH","launch":{"task_infos":[{"task_id":{},"agent_id":{"value":"a"}}]}}]}}"#,
            "error: Missing required fields: accept.operations[1].launch.task_infos[0].task_id.value, \
             accept.operations[1].launch.task_infos[0].name",
        ),
    ]);
    let many = format!(r#"{{"range":[{}]}}"#, vec!["{}"; 60].join(","));
    let error = pass::<value::Ranges>(&many);
    assert!(
        error.starts_with("error: Missing required fields: range[0].begin, range[0].end, range[1].begin")
    );
    assert!(error.ends_with("range[49].end and 20 more"), "{error}");
}

#[test]
fn a_wrong_type_names_its_path() {
    table::<scheduler::Call>(&[(
        r#"{"accept":{"operations":[{},{"launch":{"task_infos":[{"name":1}]}}]}}"#,
        "error: accept.operations[1].launch.task_infos[0].name: expected a string, found a number",
    )]);
}

#[test]
fn malformed_json_is_rejected() {
    table::<Label>(&[
        ("", "error: syntax error at line 1 near: "),
        ("{", "error: syntax error at line 1 near: "),
        ("[]", "error: Expecting a JSON object"),
        ("7", "error: Expecting a JSON object"),
        (r#"{"key":"k"} x"#, "error: syntax error at line 1 near: x"),
        (r#"{"key":"k"}{}"#, "error: syntax error at line 1 near: {}"),
        ("{\"key\":\n \"k\",}", "error: syntax error at line 2 near: }"),
        (r#"{"key" "k"}"#, r#"error: syntax error at line 1 near: "k"}"#),
        (r#"{key:"k"}"#, r#"error: syntax error at line 1 near: key:"k"}"#),
        (r#"{"a":tru}"#, "error: syntax error at line 1 near: tru}"),
        (r#"{"a":01,"key":"k"}"#, r#"error: syntax error at line 1 near: 01,"key":"k"}"#),
        (r#"{"a":1.,"key":"k"}"#, r#"error: syntax error at line 1 near: 1.,"key":"k"}"#),
        (r#"{"a":[1 2],"key":"k"}"#, r#"error: syntax error at line 1 near: 2],"key":"k"}"#),
        (r#"{"a":[1,],"key":"k"}"#, r#"error: syntax error at line 1 near: ],"key":"k"}"#),
        (r#"{"a":[},"key":"k"}"#, r#"error: syntax error at line 1 near: },"key":"k"}"#),
        ("{\"key\":\"a\nb\"}", "error: syntax error at line 1 near: "),
        (r#"{"key":"\x"}"#, r#"error: syntax error at line 1 near: x"}"#),
        (r#"{"key":"\ud800"}"#, r#"error: syntax error at line 1 near: "}"#),
        (r#"{"key":"\udc00\ud800"}"#, r#"error: syntax error at line 1 near: "}"#),
        (r#"{"key":"\u12"}"#, r#"error: syntax error at line 1 near: 12"}"#),
    ]);
    let latin1 = from_slice::<Label>(b"{\"key\":\"caf\xe9\"}").expect_err("not UTF-8");
    assert!(latin1.is_syntax());
    assert!(!from_slice::<Label>(b"{}").expect_err("no key").is_syntax());
}

#[test]
fn escapes_round_trip() {
    let every: String =
        (0..0x300).filter_map(char::from_u32).chain(['\u{2028}', '\u{10ffff}', '😀']).collect();
    let label = Label { key: every, ..Label::default() };
    let json = text(&label);
    assert!(json.bytes().all(|byte| byte >= 0x20), "no bare control character");
    assert_eq!(from_slice::<Label>(json.as_bytes()), Ok(label));
    let spelled = r#"{"key":"\"\\\/\b\f\n\r\t\u0041\ud83d\ude00"}"#;
    let label = from_slice::<Label>(spelled.as_bytes()).expect("every escape there is");
    assert_eq!(label.key, "\"\\/\u{8}\u{c}\n\r\tA😀");
    assert_eq!(
        text(&Label { key: "\u{1}\u{1f}\"".into(), ..Label::default() }),
        r#"{"key":"\u0001\u001f\""}"#
    );
}

#[test]
fn depth_is_limited_for_known_and_unknown_fields() {
    let nested = |levels: usize| {
        let mut json = r#"{"value":"c"}"#.to_string();
        for _ in 1..levels {
            json = format!(r#"{{"value":"c","parent":{json}}}"#);
        }
        json
    };
    assert_eq!(pass::<ContainerID>(&nested(JSON_DEPTH_MAX)), nested(JSON_DEPTH_MAX));
    assert_eq!(pass::<ContainerID>(&nested(JSON_DEPTH_MAX + 1)), "error: nested deeper than 200 levels");
    let unknown =
        |levels: usize| format!(r#"{{"key":"k","x":{}{}}}"#, "[".repeat(levels), "]".repeat(levels));
    assert_eq!(pass::<Label>(&unknown(JSON_DEPTH_MAX - 1)), r#"{"key":"k"}"#);
    assert_eq!(pass::<Label>(&unknown(JSON_DEPTH_MAX)), "error: nested deeper than 200 levels");
    let mixed = r#"{"key":"k","x":[{"a":[{},[],{"b":{}}]},[[]],"]"]}"#;
    assert_eq!(pass::<Label>(mixed), r#"{"key":"k"}"#);
}

#[test]
fn top_level_lists_of_messages_are_parsed() {
    let weights = |json: &str| {
        list_from_slice::<WeightInfo>(json.as_bytes())
            .map(|weights| weights.iter().map(|info| info.weight).collect::<Vec<_>>())
            .map_err(|error| error.to_string())
    };
    assert_eq!(weights(r#"[{"role":"a","weight":2.5},{"role":"b","weight":"1"}]"#), Ok(vec![2.5, 1.0]));
    assert_eq!(weights(r#"{"role":"a","weight":2}"#), Ok(vec![2.0]));
    assert_eq!(
        weights(r#"[{"role":"a","weight":[]}]"#),
        Err("[0].weight: expected a number, found an array".into())
    );
    assert_eq!(weights("[{}]"), Err("Missing required fields: [0].weight".into()));
}

#[test]
fn writer_flushes_at_the_end_of_an_object() {
    let (sender, pieces) = std::sync::mpsc::channel();
    let mut w = JsonWriter::spilling(10, move |piece| sender.send(piece).unwrap());
    w.array(|w| {
        for n in 0..3 {
            w.object(|w| w.field("n", &n));
        }
        w.string("the end");
    });
    let mut text: Vec<String> = pieces.try_iter().map(|piece| String::from_utf8(piece).unwrap()).collect();
    assert_eq!(text, [r#"[{"n":0},{"n":1}"#]);
    text.push(String::from_utf8(w.into_vec()).unwrap());
    assert_eq!(text.concat(), r#"[{"n":0},{"n":1},{"n":2},"the end"]"#);
}

#[test]
fn writer_separates_elements_with_commas() {
    let mut w = JsonWriter::new();
    w.begin_array();
    w.value(&1);
    w.value("x");
    w.value(&[true, false][..]);
    w.raw(br#"{"cached":1}"#);
    w.object(|w| {
        w.optional_field("absent", None::<&str>);
        w.optional_field("tab\there", Some(&2.0));
        w.object_field("empty", |_| ());
    });
    w.end_array();
    assert_eq!(w.into_vec(), br#"[1,"x",[true,false],{"cached":1},{"tab\there":2.0,"empty":{}}]"#);
}
