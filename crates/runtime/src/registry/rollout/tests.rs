use proptest::prelude::{any, prop, proptest};
use serde_json::json;

use super::*;

const A: &str = "aaaa";
const B: &str = "bbbb";
const C: &str = "cccc";

fn rollout(rules: Value) -> Rollout {
    let rollout: Rollout = serde_json::from_value(rules).unwrap();
    rollout.check().unwrap();
    rollout
}

fn split(percent: f64) -> Rollout {
    rollout(json!({ "shares": [{ "percent": percent, "version": A }], "rest": B }))
}

#[test]
fn rules_are_tried_in_their_order_and_the_first_that_fits_counts() {
    let rules = rollout(json!({
        "headerFrom": ["ci"],
        "claims": [{ "claim": "beta", "version": A }, { "claim": "role=staff", "version": B }],
        "organisations": [{ "organisation": "acme", "version": C }, { "organisation": "gone", "version": "dropped" }],
        "shares": [{ "percent": 100, "version": A }],
        "rest": B,
    }));
    let requested = |key: &str| Some(RequestedVersion { key: key.into(), version: "1.0.x".into() });
    let (beta, staff) = (json!({ "beta": true }), json!({ "role": ["staff"] }));
    let everything = json!({ "beta": true, "role": "staff" });
    let table = [
        (requested("ci"), &everything, Some("acme"), Choice::Requested("1.0.x")),
        (requested("other"), &everything, Some("acme"), Choice::Version(A, PinReason::Claim)),
        (None, &beta, Some("acme"), Choice::Version(A, PinReason::Claim)),
        (None, &staff, Some("acme"), Choice::Version(B, PinReason::Claim)),
        (None, &json!({ "beta": "true" }), Some("acme"), Choice::Version(C, PinReason::Organisation)),
        (None, &json!({}), Some("acme"), Choice::Version(C, PinReason::Organisation)),
        (None, &json!({}), Some("ACME"), Choice::Version(A, PinReason::Percentage)),
        (None, &json!({}), Some("gone"), Choice::Version(A, PinReason::Percentage)),
        (None, &json!({}), None, Choice::Version(A, PinReason::Percentage)),
    ];
    for (requested, claims, organisation, expected) in table {
        let claims = serde_json::from_value(claims.clone()).unwrap();
        let candidate =
            Candidate { client: "ann", claims: &claims, organisation, requested: requested.as_ref() };
        let choice = rules.choose(&candidate, |version| version != "dropped");
        assert_eq!(choice, expected, "{claims:?} {organisation:?} {requested:?}");
    }
    let nothing = BTreeMap::new();
    let candidate = Candidate { client: "ann", claims: &nothing, organisation: None, requested: None };
    assert_eq!(rules.choose(&candidate, |version| version != A), Choice::Rest, "a share without its version");
    assert_eq!(Rollout::default().choose(&candidate, |_| true), Choice::Rest);
}

fn count_in_share(rules: &Rollout, clients: impl Iterator<Item = String>) -> u32 {
    clients.map(|client| u32::from(rules.share(&client).is_some())).sum()
}

#[test]
fn thirty_percent_of_ten_thousand_clients_are_thirty_percent_to_one_point() {
    let rules = split(30.0);
    let forms: [fn(u32) -> String; 3] = [
        |number| format!("client-{number}"),
        |number| format!("sub:{number}@example.com"),
        // As cookies name clients.
        |number| format!("c_{:032x}", u128::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060)),
    ];
    for form in forms {
        let share = count_in_share(&rules, (0..10_000).map(form));
        assert!((2_900..=3_100).contains(&share), "{share} of 10,000, such as {}", form(0));
    }
}

#[test]
fn the_place_of_a_client_is_the_same_in_every_release() {
    // A change here would move clients between variants in the middle of an experiment.
    let places: Vec<_> = ["ann", "bob", "c_00", ""].iter().map(|client| bucket(client)).collect();
    expect_test::expect!["[2838, 438, 9813, 5893]"].assert_eq(&format!("{places:?}"));
}

proptest! {
    #[test]
    fn a_larger_share_keeps_its_clients(client in any::<String>(), small in 1_u16..=10_000, large in 1_u16..=10_000) {
        let (small, large) = (small.min(large), small.max(large));
        let (before, after) = (split(f64::from(small) / 100.0), split(f64::from(large) / 100.0));
        assert!(before.share(&client).is_none() || after.share(&client).is_some());
    }

    #[test]
    fn the_choice_depends_on_nothing_but_the_facts(
        clients in prop::collection::vec("[a-z0-9:_]{1,20}", 1..20),
        percents in prop::collection::vec(1_u16..=2_000, 0..5),
    ) {
        let shares = percents.iter().enumerate().map(|(number, hundredths)| Share {
            percent: Percent(*hundredths),
            version: number.to_string(),
        });
        let rules = Rollout { shares: shares.collect(), ..Rollout::default() };
        rules.check().unwrap();
        let again: Rollout = serde_json::from_str(&json!(rules).to_string()).unwrap();
        assert_eq!(again, rules, "and it is stored as it is");
        let nothing = BTreeMap::new();
        for client in &clients {
            let candidate = Candidate { client, claims: &nothing, organisation: None, requested: None };
            assert_eq!(rules.choose(&candidate, |_| true), again.choose(&candidate, |_| true));
        }
    }
}

#[test]
fn rules_that_cannot_be_meant_are_refused_with_the_reason() {
    let share = |percent: f64| json!({ "percent": percent, "version": A });
    let over = serde_json::from_value::<Rollout>(json!({ "shares": [share(60.0), share(40.5)] })).unwrap();
    assert!(over.check().unwrap_err().to_string().contains("100.5 %"));
    let full = serde_json::from_value::<Rollout>(json!({ "shares": [share(60.0), share(40.0)] })).unwrap();
    full.check().unwrap();
    for rules in [
        json!({ "claims": [{ "claim": "role=", "version": A }] }),
        json!({ "organisations": [{ "organisation": " ", "version": A }] }),
        json!({ "headerFrom": ["x".repeat(201)] }),
        json!({ "headerFrom": vec!["key"; 101] }),
    ] {
        assert!(serde_json::from_value::<Rollout>(rules.clone()).unwrap().check().is_err(), "{rules}");
    }
    for unread in [json!({ "share": [] }), json!({ "shares": [{ "percent": 0, "version": A }] })] {
        assert!(serde_json::from_value::<Rollout>(unread.clone()).is_err(), "{unread}");
    }
}

#[test]
fn percentages_have_at_most_two_places() {
    for (text, expected) in
        [("30", Some(3_000)), ("2.5%", Some(250)), ("0.01", Some(1)), ("100 %", Some(10_000))]
    {
        assert_eq!(text.parse::<Percent>().ok().map(|percent| percent.0), expected, "{text}");
    }
    for wrong in ["0", "-1", "100.01", "0.001", "NaN", "inf", "", "a third"] {
        assert!(wrong.parse::<Percent>().is_err(), "{wrong}");
    }
}
