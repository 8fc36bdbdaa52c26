//! What each line gives, or the words of the refusal.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use expect_test::{Expect, expect};

use super::*;
use crate::resources::Resources;

fn read(text: &str, role: &str) -> String {
    match resources(text, role) {
        Ok(list) if list.is_empty() => "nothing".into(),
        Ok(list) => list.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
        Err(error) => format!("error: {error}"),
    }
}

fn check(cases: &[(&str, &str)], want: Expect) {
    let lines = cases.iter().map(|(text, role)| format!("{text}\n  => {}\n", read(text, role)));
    want.assert_eq(&lines.collect::<String>());
}

#[test]
fn text_resources_are_parsed() {
    check(
        &[
            ("", "*"),
            ("cpus:4;mem:1024;disk:0.5;ports:[31000-32000]", "*"),
            (" cpus ( web ) : 2 ; ports : [ 1 - 2 , 3-4 ] ;;", "*"),
            ("cpus:1;cpus(ops):2", "eng/web"),
            ("gpus:0;zones:{b,a,b};none:{};ports:[]", "*"),
            ("cpus:1e3;mem:+2;x:.5", "*"),
        ],
        expect![[r#"

              => nothing
            cpus:4;mem:1024;disk:0.5;ports:[31000-32000]
              => cpus:4; mem:1024; disk:0.5; ports:[31000-32000]
             cpus ( web ) : 2 ; ports : [ 1 - 2 , 3-4 ] ;;
              => cpus(reservations: [(STATIC,web)]):2; ports:[1-4]
            cpus:1;cpus(ops):2
              => cpus(reservations: [(STATIC,eng/web)]):1; cpus(reservations: [(STATIC,ops)]):2
            gpus:0;zones:{b,a,b};none:{};ports:[]
              => gpus:0; zones:{a, b}; none:{}; ports:[]
            cpus:1e3;mem:+2;x:.5
              => cpus:1000; mem:2; x:0.5
        "#]],
    );
}

#[test]
fn text_form_errors_name_the_item() {
    check(
        &[
            ("cpus", "*"),
            ("cpus:1:2", "*"),
            ("cpus(web:1", "*"),
            ("cpus)web(:1", "*"),
            (":1", "*"),
            ("cpus(-web):1", "*"),
            ("cpus:1", "a//b"),
            ("cpus:-1", "*"),
            ("cpus:NaN", "*"),
            ("cpus:inf", "*"),
            ("cpus:1e30", "*"),
            ("cpus:0.0001", "*"),
            ("cpus:many", "*"),
            ("cpus:", "*"),
            ("ports:[1-2", "*"),
            ("ports:1-2]", "*"),
            ("ports:[1]", "*"),
            ("ports:[2-1]", "*"),
            ("ports:[1-2,]", "*"),
            ("x:[0-99999999999999999999]", "*"),
            ("zones:{a", "*"),
            ("zones:{a}}", "*"),
            ("cpus:1;cpus:[1-2]", "*"),
        ],
        expect![[r#"
            cpus
              => error: Bad value 'cpus': missing or extra ':', expected 'name:value'
            cpus:1:2
              => error: Bad value 'cpus:1:2': missing or extra ':', expected 'name:value'
            cpus(web:1
              => error: Bad value 'cpus(web:1': mismatched parentheses, expected 'name(role):value'
            cpus)web(:1
              => error: Bad value 'cpus)web(:1': mismatched parentheses, expected 'name(role):value'
            :1
              => error: Bad value ':1': the name before ':' is empty
            cpus(-web):1
              => error: Bad value 'cpus(-web):1': the role is invalid: a role component cannot start with '-'
            cpus:1
              => error: Bad value 'a//b': the role is invalid: a role cannot contain two adjacent slashes
            cpus:-1
              => error: Bad value 'cpus:-1': the value is negative
            cpus:NaN
              => error: Bad value 'cpus:NaN': the value is not a number
            cpus:inf
              => error: Bad value 'cpus:inf': the value is infinite
            cpus:1e30
              => error: Bad value 'cpus:1e30': the value is larger than 2251799813685.248
            cpus:0.0001
              => error: Bad value 'cpus:0.0001': the value must be 0 or at least 0.001
            cpus:many
              => error: Bad value 'cpus:many': text is not a resource value; expected a number, [ranges] or {a set}
            cpus:
              => error: Bad value 'cpus:': the value after ':' is empty
            ports:[1-2
              => error: Bad value 'ports:[1-2': mismatched brackets, expected '[begin-end,…]' or '{item,…}'
            ports:1-2]
              => error: Bad value 'ports:1-2]': mismatched brackets, expected '[begin-end,…]' or '{item,…}'
            ports:[1]
              => error: Bad value 'ports:[1]': '1' is not a range 'begin-end' with begin <= end
            ports:[2-1]
              => error: Bad value 'ports:[2-1]': '2-1' is not a range 'begin-end' with begin <= end
            ports:[1-2,]
              => error: Bad value 'ports:[1-2,]': '' is not a range 'begin-end' with begin <= end
            x:[0-99999999999999999999]
              => error: Bad value 'x:[0-99999999999999999999]': '0-99999999999999999999' is not a range 'begin-end' with begin <= end
            zones:{a
              => error: Bad value 'zones:{a': mismatched brackets, expected '[begin-end,…]' or '{item,…}'
            zones:{a}}
              => error: Bad value 'zones:{a}}': mismatched brackets, expected '[begin-end,…]' or '{item,…}'
            cpus:1;cpus:[1-2]
              => error: Bad value 'cpus': this name has values of different types
        "#]],
    );
}

#[test]
fn json_resources_are_parsed_and_validated() {
    let web = r#"{"name":"mem","type":"SCALAR","scalar":{"value":64},"#;
    let item = |rest: &str| format!("[{web}{rest}}}]");
    let cases = [
        item(r#""role":"*""#),
        item(r#""role":"ops""#),
        item(r#""unknown":1"#),
        item(r#""reservations":[{"type":"STATIC","role":"a"}]"#),
        item(r#""reservations":[{"type":"DYNAMIC","role":"a"}]"#),
        item(r#""role":"a","reservation":{}"#),
        item(r#""revocable":{}"#),
        item(r#""allocation_info":{"role":"a"}"#),
        item(r#""disk":{}"#),
        r#"[{"name":"disk","type":"SCALAR","scalar":{"value":1},"role":"a","disk":{"persistence":{"id":"v"}}}]"#.into(),
        r#"[{"name":"disk","type":"SCALAR","scalar":{"value":1},"disk":{"source":{"type":"MOUNT","mount":{"root":"/m"}}}}]"#.into(),
        r#"[{"name":"cpus","type":"SCALAR","scalar":{"value":-1}}]"#.into(),
        r#"[{"name":"cpus"}]"#.into(),
        "[1".into(),
        "[]".into(),
    ];
    let cases: Vec<(&str, &str)> = cases.iter().map(|text| (text.as_str(), "web")).collect();
    check(
        &cases,
        expect![[r#"
            [{"name":"mem","type":"SCALAR","scalar":{"value":64},"role":"*"}]
              => mem:64
            [{"name":"mem","type":"SCALAR","scalar":{"value":64},"role":"ops"}]
              => mem(reservations: [(STATIC,ops)]):64
            [{"name":"mem","type":"SCALAR","scalar":{"value":64},"unknown":1}]
              => mem(reservations: [(STATIC,web)]):64
            [{"name":"mem","type":"SCALAR","scalar":{"value":64},"reservations":[{"type":"STATIC","role":"a"}]}]
              => mem(reservations: [(STATIC,a)]):64
            [{"name":"mem","type":"SCALAR","scalar":{"value":64},"reservations":[{"type":"DYNAMIC","role":"a"}]}]
              => error: Bad value 'mem': a dynamic reservation cannot be given on the command line
            [{"name":"mem","type":"SCALAR","scalar":{"value":64},"role":"a","reservation":{}}]
              => error: Bad value 'mem': a dynamic reservation cannot be given on the command line
            [{"name":"mem","type":"SCALAR","scalar":{"value":64},"revocable":{}}]
              => error: Bad value 'mem': a revocable resource cannot be given on the command line
            [{"name":"mem","type":"SCALAR","scalar":{"value":64},"allocation_info":{"role":"a"}}]
              => error: Bad value 'mem': an allocation cannot be given on the command line
            [{"name":"mem","type":"SCALAR","scalar":{"value":64},"disk":{}}]
              => error: Resource 'mem' is invalid: DiskInfo should not be set: 'disk' is for the resource 'disk' only
            [{"name":"disk","type":"SCALAR","scalar":{"value":1},"role":"a","disk":{"persistence":{"id":"v"}}}]
              => error: Bad value 'disk': a persistent volume cannot be given on the command line
            [{"name":"disk","type":"SCALAR","scalar":{"value":1},"disk":{"source":{"type":"MOUNT","mount":{"root":"/m"}}}}]
              => disk(reservations: [(STATIC,web)])[MOUNT:/m]:1
            [{"name":"cpus","type":"SCALAR","scalar":{"value":-1}}]
              => error: Resource 'cpus' is invalid: Invalid scalar resource: 'scalar.value' is negative
            [{"name":"cpus"}]
              => error: Bad value '--resources': not a JSON array of resources: Missing required fields: [0].type
            [1
              => error: Bad value '--resources': not a JSON array of resources: [0]: expected an object, found a number
            []
              => nothing
        "#]],
    );
}

#[test]
fn attribute_values_are_numbers_ranges_or_text() {
    let read = |text: &str| match attributes(text) {
        Ok(list) if list.is_empty() => "nothing".into(),
        Ok(list) => {
            let shown = crate::legacy_attributes(&list).map(|(name, value)| format!("{name}={value:?}"));
            shown.collect::<Vec<_>>().join(" ")
        }
        Err(error) => format!("error: {error}"),
    };
    let cases = [
        "rack:abc;level:3\nports:[1-2]",
        "url:http://a b",
        "a:",
        ":a",
        "a",
        "a:{b}",
        "a:[1",
        "a:-1",
        "a:NaN",
        "",
    ];
    let lines = cases.iter().map(|text| format!("{}\n  => {}\n", text.escape_debug(), read(text)));
    expect![[r#"
        rack:abc;level:3\nports:[1-2]
          => rack=Text("abc") level=Number(3.0) ports=Text("[1-2]")
        url:http://a b
          => url=Text("http://ab")
        a:
          => error: Bad value 'a:': the value after ':' is empty
        :a
          => error: Bad value ':a': the name before ':' is empty
        a
          => error: Bad value 'a': missing or extra ':', expected 'name:value'
        a:{b}
          => error: Bad value 'a:{b}': a set is not an attribute value; expected a number, [ranges] or text
        a:[1
          => error: Bad value 'a:[1': mismatched brackets, expected '[begin-end,…]' or '{item,…}'
        a:-1
          => error: Bad value 'a:-1': the value is negative
        a:NaN
          => error: Bad value 'a:NaN': the value is not a number

          => nothing
    "#]]
    .assert_eq(&lines.collect::<String>());
}

#[test]
fn parsed_resources_are_summed() {
    let all: Resources = resources("cpus:1;cpus:2;cpus(a):0", "*").expect("valid").into_iter().collect();
    assert_eq!(all.to_string(), "cpus:3");
}
