use super::*;

fn alarms(when: &str, for_seconds: u64) -> Alarms {
    let text = format!(
        r#"{{ "rules": [{{ "id": "rule", "severity": "critical", "summary": "s", "remedy": "r.", "forSeconds": {for_seconds},
             "when": {when} }}] }}"#
    );
    let rules = Rules::extended(&text).unwrap().rules;
    Alarms::new(Rules {
        rules: rules.into_iter().filter(|rule| rule.id == "rule").collect(),
        without: Vec::new(),
    })
}

const FAILING: &str = r#"{ "kind": "gauge", "series": "failing", "above": 0 }"#;

/// What changes with each text, 15 seconds apart.
fn follow(alarms: &Alarms, texts: &[&str]) -> Vec<(usize, AlarmEvent, String)> {
    let texts = texts.iter().enumerate();
    let changes = texts.flat_map(|(at, text)| {
        let changes = alarms.evaluate(at as u64 * 15_000, text);
        changes.into_iter().map(move |change| (at, change.event, change.alarm.id))
    });
    changes.collect()
}

#[test]
fn an_alarm_fires_when_it_has_held_long_enough_and_resolves() {
    let alarms = alarms(FAILING, 30);
    let changes =
        follow(&alarms, &["failing 1", "failing 1", "failing 1", "failing 1", "failing 0", "failing 1"]);
    let id = "rule".to_owned();
    assert_eq!(changes, [(2, AlarmEvent::Fired, id.clone()), (4, AlarmEvent::Resolved, id)]);
    assert_eq!(alarms.list()[0].state, AlarmState::Pending, "it begins anew");
}

#[test]
fn what_flickers_within_the_time_is_no_alarm() {
    let alarms = alarms(FAILING, 30);
    assert_eq!(follow(&alarms, &["failing 1", "failing 1", "failing 0"].repeat(9)), []);
}

#[test]
fn each_set_of_labels_is_an_alarm_of_its_own() {
    let alarms = alarms(FAILING, 0);
    let changes = follow(
        &alarms,
        &["failing{m=\"a\"} 1\nfailing{m=\"b\"} 1", "failing{m=\"a\"} 1\nfailing{m=\"b\"} 0"],
    );
    let (a, b) = ("rule:m=a".to_owned(), "rule:m=b".to_owned());
    use AlarmEvent::{Fired, Resolved};
    assert_eq!(changes, [(0, Fired, a.clone()), (0, Fired, b.clone()), (1, Resolved, b)]);
    assert_eq!(alarms.list().into_iter().map(|alarm| alarm.id).collect::<Vec<_>>(), [a]);
}

#[test]
fn a_lifted_alarm_is_quiet_until_it_holds_again() {
    let alarms = alarms(FAILING, 0);
    assert_eq!(follow(&alarms, &["failing 1"]).len(), 1);
    assert_eq!(alarms.lift("other"), None);
    assert_eq!(alarms.lift("rule").unwrap().event, AlarmEvent::Lifted);
    assert_eq!(alarms.lift("rule"), None, "once");
    assert_eq!(follow(&alarms, &["failing 1", "failing 0"]), [], "it is quiet, and ends quietly");
    assert_eq!(follow(&alarms, &["failing 1"]).len(), 1);
}

#[test]
fn alarms_are_bounded() {
    let alarms = alarms(FAILING, 0);
    let text: String = (0..1_500).map(|n| format!("failing{{m=\"{n}\"}} 1\n")).collect();
    assert_eq!(alarms.evaluate(0, &text).len(), MAX_ALARMS);
    assert_eq!(alarms.evaluate(1, &text).len(), 0);
}
