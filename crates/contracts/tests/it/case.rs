use quarterdeck_contracts::{CaseFile, ConfirmationAnswer, Mode};
use serde_json::json;

#[test]
fn a_case_file_is_one_case_or_a_list() {
    let case = json!({
        "name": "refuses", "mode": "voice", "now": "2026-01-13T09:00:00Z", "given": { "kb": [{ "id": "doc:a" }] },
        "args": { "query": "ice" }, "expect": { "ok": false }, "confirm": "deny",
    });
    let one: CaseFile = serde_json::from_value(case.clone()).unwrap();
    let many: CaseFile = serde_json::from_value(json!([case])).unwrap();
    let cases = one.into_cases();
    assert_eq!(cases, many.into_cases());
    assert_eq!(cases[0].mode, Some(Mode::Voice));
    assert_eq!(cases[0].confirm, Some(ConfirmationAnswer::Deny));
    assert_eq!(serde_json::to_value(&cases[0]).unwrap(), case);
}

#[test]
fn a_slip_in_a_case_is_not_ignored() {
    assert!(serde_json::from_value::<CaseFile>(json!([{ "name": "n", "arg": {} }])).is_err());
}
