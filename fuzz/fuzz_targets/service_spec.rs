//! A service spec that is uploaded: problems at places of its file, or a spec that is read the same from its own record.
#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::fuzz_target;
use tepui_service::spec::ServiceSpec;
use tepui_service::{Input, parse};

fuzz_target!(|text: &str| {
    let env: BTreeMap<String, String> =
        [("COUNT", "2"), ("OFF", "false")].map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let template = |_: &str| Ok(text.to_owned());
    let parsed = parse(Input { file: "svc.yml", text, env: &env, template: &template });
    let report = match &parsed {
        Ok((_, report)) | Err(report) => report,
    };
    let lines = text.matches('\n').count() + 1;
    assert!(report.problems.iter().all(|own| (1..=lines).contains(&own.line) && own.column > 0), "{report}");
    assert_eq!(parsed.is_err(), report.errors() > 0, "{report}");
    if let Ok((spec, _)) = parsed {
        let record = serde_json::to_vec(&spec).expect("a spec has a record");
        let again: ServiceSpec = serde_json::from_slice(&record).expect("its own record is valid");
        assert_eq!(again, spec);
    }
});
