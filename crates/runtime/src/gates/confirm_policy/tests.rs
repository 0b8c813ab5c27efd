use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use quarterdeck_contracts::Mode;

use super::super::ClientFacts;
use super::super::sample::{facts, tool};
use super::*;

fn judged(confirm_when: Value, args: Value, facts: &Facts) -> PolicyVerdict {
    let definition = json!({
        "requiresConfirmation": "policy", "confirmWhen": confirm_when,
        "requestedBy": { "en": ["draw *", "make * picture *"], "de": ["zeichne *"] },
    });
    judge(&tool(definition).metadata, &args, facts)
}

/// The sentence that the user is shown, or the phrase that let the call pass.
fn said(confirm_when: Value, args: Value, facts: &Facts) -> String {
    match judged(confirm_when, args, facts) {
        PolicyVerdict::Ask(reason) => reason.sentence.unwrap_or_else(|| "always".into()),
        PolicyVerdict::Pass(why) => format!("pass {}", why["requestedBy"]),
    }
}

fn with_words(words: &str) -> Facts {
    Facts { user_words: words.into(), ..facts(Mode::Text) }
}

#[test]
fn what_the_user_asked_for_in_their_own_words_runs_unasked() {
    let policy = || json!({ "notRequestedThisTurn": true });
    let said = |words: &str| said(policy(), json!({ "query": "draw a fox" }), &with_words(words));
    assert_eq!(said("Draw a fox!"), "pass \"draw *\"");
    assert_eq!(said("Hello. Make me a picture of a ship."), "pass \"make * picture *\"");
    assert_eq!(said("zeichne einen Fuchs"), "pass \"zeichne *\"");
    // The arguments are the model's words, whatever they say.
    for other in ["", "What is a fox?", "Never draw a fox", "drawing"] {
        assert_eq!(said(other), "You did not ask for this just now.", "{other}");
    }
}

#[test]
fn without_phrases_nothing_counts_as_asking() {
    let definition =
        json!({ "requiresConfirmation": "policy", "confirmWhen": { "notRequestedThisTurn": true } });
    let verdict = judge(&tool(definition).metadata, &json!({}), &with_words("draw a fox"));
    assert!(matches!(verdict, PolicyVerdict::Ask(_)), "{verdict:?}");
}

#[test]
fn the_word_alone_and_a_policy_without_conditions_always_ask() {
    for confirm_when in [None, Some(json!({})), Some(json!({ "notRequestedThisTurn": false }))] {
        let mut definition = json!({ "requiresConfirmation": "policy" });
        if let Some(confirm_when) = confirm_when {
            definition["confirmWhen"] = confirm_when;
        }
        let verdict = judge(&tool(definition).metadata, &json!({}), &with_words("draw a fox"));
        assert_eq!(verdict, PolicyVerdict::Ask(ConfirmReason::default()));
    }
}

#[test]
fn an_argument_over_its_threshold_is_asked_about() {
    let said = |args: Value| {
        said(json!({ "over": { "/amount": 100, "/rows/*/price": 9.5 } }), args, &with_words(""))
    };
    for within in [
        json!({}),
        json!({ "amount": 100 }),
        json!({ "amount": 100.0, "rows": [] }),
        json!({ "amount": -5, "rows": [{ "price": 9.5 }, {}] }),
        json!({ "amount": null }),
    ] {
        assert_eq!(said(within.clone()), "pass null", "{within}");
    }
    assert_eq!(said(json!({ "amount": 100.5 })), "“amount” is 100.5; up to 100 needs no approval.");
    assert_eq!(
        said(json!({ "rows": [{ "price": 1 }, { "price": 10 }] })),
        "“rows.*.price” is 10; up to 9.5 needs no approval."
    );
    assert_eq!(said(json!({ "amount": "7" })), "“amount” is \"7\"; up to 100 needs no approval.");
}

#[test]
fn large_whole_numbers_are_compared_to_the_last_digit() {
    let said = |amount: u64| {
        said(
            json!({ "over": { "/amount": 9007199254740992_u64 } }),
            json!({ "amount": amount }),
            &with_words(""),
        )
    };
    assert_eq!(said(9007199254740992), "pass null");
    assert!(said(9007199254740993).contains("9007199254740993"));
}

#[test]
fn a_topic_is_asked_about_and_so_is_a_list_that_does_not_exist() {
    let lists = BTreeMap::from([("sensitive".to_owned(), vec!["weapons".to_owned()])]);
    let facts = Facts { topics: Arc::new(lists.into()), ..facts(Mode::Text) };
    let said = |list: &str, text: &str| said(json!({ "topics": list }), json!({ "query": text }), &facts);
    assert_eq!(said("sensitive", "a fox"), "pass null");
    assert_eq!(said("sensitive", "old Weapons"), "It touches on “weapons”.");
    assert_eq!(
        said("sensible", "a fox"),
        "Its topics cannot be checked: there is no list “sensible” in the configuration."
    );
}

#[test]
fn a_claim_that_is_missing_is_asked_about() {
    let said = |claims: Value| {
        let claims: BTreeMap<String, Value> = serde_json::from_value(claims).unwrap();
        let client = Arc::new(ClientFacts { authenticated: true, claims });
        said(json!({ "claims": ["staff", "role=editor"] }), json!({}), &Facts { client, ..facts(Mode::Text) })
    };
    assert_eq!(said(json!({ "staff": true, "role": ["editor"] })), "pass null");
    assert_eq!(said(json!({ "staff": true })), "Your sign-in does not include “role=editor”.");
    assert_eq!(
        said(json!({ "staff": false, "role": "guest" })),
        "Your sign-in does not include “staff”, “role=editor”."
    );
}

#[test]
fn every_condition_that_holds_is_named_and_the_trace_holds_no_argument() {
    let verdict = judged(
        json!({ "notRequestedThisTurn": true, "topics": "none", "over": { "/amount": 1 }, "claims": ["staff"] }),
        json!({ "amount": 4711, "query": "hunter2" }),
        &with_words(""),
    );
    let PolicyVerdict::Ask(reason) = verdict else { panic!("{verdict:?}") };
    assert_eq!(
        reason.conditions,
        Some(
            json!({ "notRequestedThisTurn": true, "topics": "none", "over": ["/amount"], "claims": ["staff"] })
        )
    );
    assert!(reason.sentence.unwrap().contains("4711"), "the user who approves sees the arguments anyway");
}

proptest! {
    /// A call passes only where none of the conditions, each judged by itself, holds.
    #[test]
    fn a_policy_is_its_conditions_each_by_itself(
        requested in any::<bool>(), amount in 0_u32..4, limit in 0_u32..4, has_claim in any::<bool>(),
        text in "(fox|weapons)", named in any::<[bool; 4]>(),
    ) {
        let lists = BTreeMap::from([("sensitive".to_owned(), vec!["weapons".to_owned()])]);
        let claims = BTreeMap::from([("staff".to_owned(), json!(has_claim))]);
        let facts = Facts {
            user_words: if requested { "draw it".into() } else { "".into() },
            topics: Arc::new(lists.into()),
            client: Arc::new(ClientFacts { authenticated: true, claims }),
            ..facts(Mode::Voice)
        };
        let all = [
            ("notRequestedThisTurn", json!(true), !requested),
            ("topics", json!("sensitive"), text == "weapons"),
            ("over", json!({ "/amount": limit }), amount > limit),
            ("claims", json!(["staff"]), !has_claim),
        ];
        let named: Vec<_> = all.iter().zip(named).filter(|(_, named)| *named).map(|(each, _)| each).collect();
        let policy: Map<_, _> = named.iter().map(|(name, value, _)| ((*name).to_owned(), value.clone())).collect();
        let verdict = judged(Value::Object(policy), json!({ "amount": amount, "query": text }), &facts);
        let holds = named.iter().any(|(_, _, holds)| *holds);
        prop_assert_eq!(matches!(verdict, PolicyVerdict::Pass(_)), !named.is_empty() && !holds);
    }
}
