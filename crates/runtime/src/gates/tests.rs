//! The gates together: their order, what they cost, and that a verdict can be given again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use quarterdeck_contracts::Mode;
use serde_json::json;

use super::sample::{Tool, facts, refusal, subject, tool};
use super::*;

/// A situation to which gates may object, one by one.
struct Situation {
    name: &'static str,
    tool: Option<Tool>,
    definition: Value,
    args: Value,
    facts: Facts,
}

impl Situation {
    fn harmless() -> Self {
        let args = json!({ "query": "q", "top_k": 3 });
        Self { name: "kb_search", tool: None, definition: json!({}), args, facts: facts(Mode::Voice) }
    }

    /// Makes one gate object. Clamping is no objection, and the budget's gate is asked for a plain tool.
    fn spoil(&mut self, gate: &str) {
        match gate {
            "well_formed" => self.args = json!([]),
            "known_tool" => self.name = "no_such_tool",
            "mode" => self.definition["allowedModes"] = json!(["text"]),
            "redelivery" => self.facts.redelivery = Redelivery::Same,
            "loop" => self.facts.identical = 2,
            "duplicate" => self.facts.duplicate = Duplicate::InTurn,
            "budget" => self.facts.calls = 3,
            "arguments" if self.args.is_object() => self.args["query"] = json!(7),
            "arguments" => {}
            "availability" => self.definition["availability"] = json!({ "requires": ["maps"] }),
            "confirmation" => self.definition["requiresConfirmation"] = json!(true),
            other => panic!("there is no gate called {other}"),
        }
    }

    fn judge(&mut self) -> (Verdict, Trace) {
        self.tool = (self.name == "kb_search").then(|| tool(self.definition.clone()));
        subject(self.name, self.tool.as_ref(), &mut self.args, |call| judge(call, &self.facts))
    }
}

const OBJECTING: [&str; 10] = [
    "well_formed",
    "known_tool",
    "mode",
    "redelivery",
    "loop",
    "duplicate",
    "budget",
    "arguments",
    "availability",
    "confirmation",
];

#[test]
fn the_order_is_that_of_the_specification() {
    let mut with_clamp = OBJECTING.to_vec();
    with_clamp.insert(7, "clamp");
    assert_eq!(names().to_vec(), with_clamp);
}

#[test]
fn of_two_gates_that_object_the_earlier_one_answers() {
    assert!(matches!(Situation::harmless().judge().0, Verdict::Allow(_)));
    for (place, earlier) in OBJECTING.iter().enumerate() {
        for later in &OBJECTING[place..] {
            let mut situation = Situation::harmless();
            // In this order, because a call that is no object of arguments cannot have a wrong one among them.
            situation.spoil(later);
            situation.spoil(earlier);
            let (verdict, trace) = situation.judge();
            assert_eq!(trace.answered_by(), Some(*earlier), "{earlier} before {later}: {verdict:?}");
            assert!(!matches!(verdict, Verdict::Allow(_)));
        }
    }
}

#[test]
fn what_a_gate_answers_before_the_budget_costs_nothing_and_what_is_refused_after_it_does() {
    let free = ["well_formed", "known_tool", "mode", "redelivery", "loop", "duplicate", "budget"];
    for gate in names() {
        assert_eq!(uses_budget(gate), !free.contains(&gate), "{gate}");
    }
}

#[test]
fn a_pass_that_changed_something_is_in_the_trace_and_a_plain_one_is_not() {
    let mut situation = Situation::harmless();
    situation.definition = json!({ "rateLimit": { "calls": 2, "windowMs": 60000, "per": "client" } });
    situation.args = json!({ "query": "q" });
    let (verdict, trace) = situation.judge();
    let Verdict::Allow(allowed) = verdict else { panic!("{verdict:?}") };
    assert_eq!(allowed.clamped, [Clamped { parameter: "top_k", asked: 5, given: 3 }]);
    assert_eq!(allowed.rate_limit.map(|limit| limit.calls), Some(2));
    assert_eq!(
        json!(trace),
        json!([
            { "gate": "clamp", "decision": "changed", "detail": { "top_k": { "asked": 5, "given": 3 } } },
            { "gate": "availability", "decision": "reserved", "detail": { "calls": 2, "windowMs": 60000, "per": "client" } },
        ])
    );
    assert_eq!(trace.answered_by(), None);
    assert_eq!(situation.args, json!({ "query": "q", "top_k": 3 }));
}

#[test]
fn a_trace_holds_no_arguments() {
    let mut situation = Situation::harmless();
    situation.args = json!({ "query": "q", "top_k": 3, "hunter2": "hunter2" });
    let (_, trace) = situation.judge();
    assert_eq!(json!(trace), json!([{ "gate": "arguments", "decision": "refused", "detail": "VALIDATION" }]));
}

fn describe(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Allow(allowed) => format!("{allowed:?}"),
        Verdict::Replay(which) => format!("{which:?}"),
        Verdict::Refuse(error) => format!("{} {:?}", refusal(error), error.details),
        Verdict::Confirm(reason) => format!("{reason:?}"),
    }
}

fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_filter("JSON has no others", |it| it.is_finite()).prop_map(Value::from),
        (0_i64..30).prop_map(Value::from),
        "[a-z]{0,4}".prop_map(Value::from),
    ]
}

fn any_args() -> impl Strategy<Value = Value> {
    let object =
        (prop::option::of(any_value()), prop::option::of(any_value()), prop::option::of(any_value()));
    prop_oneof![
        8 => object.prop_map(|(query, top_k, more)| {
            let named = [("query", query), ("top_k", top_k), ("more", more)];
            named.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
        }),
        1 => any_value(),
    ]
}

fn any_facts() -> impl Strategy<Value = Facts> {
    let seen = prop_oneof![6 => Just(Redelivery::New), 1 => Just(Redelivery::Same), 1 => Just(Redelivery::Different)];
    let equal = prop_oneof![6 => Just(Duplicate::No), 1 => Just(Duplicate::InTurn), 1 => Just(Duplicate::UndeliveredWrite)];
    let claims = prop::collection::btree_map("plan|role", any_value(), 0..2);
    (any::<bool>(), seen, 0_u32..4, 0_u32..4, equal, 0_u32..5, 0_u32..4, any::<[bool; 3]>(), claims).prop_map(
        |(spoken, redelivery, identical, empty, duplicate, calls, retrieval, flags, claims)| {
            let [authenticated, present, is_nested] = flags;
            Facts {
                redelivery,
                identical,
                empty,
                duplicate,
                calls,
                retrieval,
                client: Arc::new(ClientFacts { authenticated, claims: BTreeMap::from_iter(claims) }),
                present: Arc::new(BTreeSet::from_iter(present.then(|| "maps".to_owned()))),
                is_nested,
                ..facts(if spoken { Mode::Voice } else { Mode::Text })
            }
        },
    )
}

fn any_definition() -> impl Strategy<Value = Value> {
    (any::<[bool; 4]>(), 0_usize..3, 0_usize..3, 0_usize..4).prop_map(
        |(flags, category, confirmation, asks)| {
            let [control, repeatable, is_for_text, is_limited] = flags;
            let category = ["retrieval", "action", "utility"][category];
            let confirmation = [json!(true), json!(false), json!("policy")][confirmation].clone();
            let asks = [
                json!({}),
                json!({ "authenticated": true }),
                json!({ "claims": { "plan": ["pro", 1] } }),
                json!({ "requires": ["maps"] }),
            ][asks]
                .clone();
            let mut definition = json!({
                "control": control, "repeatable": repeatable, "category": category,
                "requiresConfirmation": confirmation, "availability": asks,
            });
            if is_for_text {
                definition["allowedModes"] = json!(["text"]);
            }
            if is_limited {
                definition["rateLimit"] = json!({ "calls": 1, "windowMs": 1000, "per": "global" });
            }
            definition
        },
    )
}

proptest! {
    /// What was recorded of a call is enough to judge it again elsewhere.
    #[test]
    fn a_verdict_can_be_given_again_from_what_was_recorded(
        definition in any_definition(), args in any_args(), facts in any_facts(), exists in prop::bool::weighted(0.9),
    ) {
        let recorded = (json!(facts).to_string(), args.to_string());
        let tool = tool(definition);
        let tool = exists.then_some(&tool);
        let mut first = args;
        let (verdict, trace) = subject("kb_search", tool, &mut first, |call| judge(call, &facts));

        let facts: Facts = serde_json::from_str(&recorded.0).unwrap();
        let mut again: Value = serde_json::from_str(&recorded.1).unwrap();
        let (other_verdict, other_trace) = subject("kb_search", tool, &mut again, |call| judge(call, &facts));
        prop_assert_eq!(describe(&verdict), describe(&other_verdict));
        prop_assert_eq!(&trace, &other_trace);
        prop_assert_eq!(first, again);
        let trace_again: Trace = serde_json::from_str(&json!(trace).to_string()).unwrap();
        prop_assert_eq!(trace_again, trace);
    }
}
