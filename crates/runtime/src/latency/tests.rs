//! The scheduler's decisions, as a table and as promises.

use proptest::prelude::{Just, Strategy, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest};
use quarterdeck_contracts::Mode;
use serde_json::json;

use super::*;

/// A voice call of a tool that takes so long, in a turn that has used nothing.
fn facts(p50_ms: u64, p95_ms: u64) -> LatencyFacts {
    LatencyFacts {
        mode: Mode::Voice,
        is_nested: false,
        is_control: false,
        estimate: LatencyEstimate { p50_ms, p95_ms, source: EstimateSource::Measured },
        call_limit_ms: Some(1_000),
        turn_limit_ms: Some(1_500),
        max_wait_ms: Some(15_000),
        used_ms: 0,
        background_after_ms: None,
    }
}

fn decision(facts: LatencyFacts) -> (Schedule, ScheduleReason) {
    let scheduled = schedule(&facts).unwrap();
    (scheduled.schedule, scheduled.reason)
}

fn with_source(source: EstimateSource, p50_ms: u64) -> LatencyFacts {
    let facts = facts(p50_ms, p50_ms);
    LatencyFacts { estimate: LatencyEstimate { source, ..facts.estimate }, ..facts }
}

#[test]
fn decisions_follow_the_percentiles() {
    use Schedule::{Background, Filler, Inline, Refuse};
    use ScheduleReason::{
        AlwaysBackground, Control, NotMeasuredLately, OverSoftLimit, OverWait, UsuallyWithinSoftLimit,
        WithinSoftLimit,
    };
    let auto =
        |p50_ms, after_ms| LatencyFacts { background_after_ms: Some(after_ms), ..facts(p50_ms, p50_ms) };
    let used = |used_ms, p50_ms| LatencyFacts { used_ms, ..facts(p50_ms, p50_ms) };
    let unlimited = LatencyFacts {
        call_limit_ms: None,
        turn_limit_ms: None,
        max_wait_ms: None,
        ..facts(600_000, 600_000)
    };
    for (what, facts, expected) in [
        ("fast", facts(40, 90), (Inline, WithinSoftLimit)),
        ("at the limit", facts(1_000, 1_000), (Inline, WithinSoftLimit)),
        ("seldom slow", facts(400, 1_001), (Inline, UsuallyWithinSoftLimit)),
        ("slow", facts(1_001, 1_200), (Filler, OverSoftLimit)),
        ("as slow as may be", facts(15_000, 40_000), (Filler, OverSoftLimit)),
        ("too slow", facts(15_001, 15_001), (Refuse, OverWait)),
        (
            "too slow, lately unknown",
            with_source(EstimateSource::Outdated, 60_000),
            (Filler, NotMeasuredLately),
        ),
        (
            "too slow by its author's word",
            with_source(EstimateSource::Declared, 60_000),
            (Filler, NotMeasuredLately),
        ),
        (
            "too slow to end the call",
            LatencyFacts { is_control: true, ..facts(60_000, 60_000) },
            (Filler, Control),
        ),
        ("the turn has used its soft limit", used(1_400, 300), (Filler, OverSoftLimit)),
        ("a blink in a slow turn", used(60_000, 250), (Inline, WithinSoftLimit)),
        ("the turn has used the wait", used(12_000, 4_000), (Refuse, OverWait)),
        ("may become a task, and is fast", auto(400, 2_000), (Inline, WithinSoftLimit)),
        ("may become a task later", auto(1_900, 2_000), (Filler, OverSoftLimit)),
        ("would become a task", auto(2_001, 2_000), (Background, OverWait)),
        ("would become a task soon", auto(600, 500), (Background, OverWait)),
        ("is always a task", auto(0, 0), (Background, AlwaysBackground)),
        (
            "a blink of a task in a slow turn",
            LatencyFacts { used_ms: 60_000, ..auto(200, 2_000) },
            (Inline, WithinSoftLimit),
        ),
        ("no limits", unlimited, (Inline, WithinSoftLimit)),
        (
            "only the wait is limited",
            LatencyFacts { max_wait_ms: Some(5_000), ..unlimited },
            (Refuse, OverWait),
        ),
    ] {
        assert_eq!(decision(facts), expected, "{what}");
    }
}

#[test]
fn a_declared_budget_is_what_a_call_should_not_exceed() {
    let declared = |budget_ms| {
        let facts = facts(0, 0);
        decision(LatencyFacts { estimate: LatencyEstimate::declared(budget_ms), ..facts })
    };
    assert_eq!(declared(800), (Schedule::Inline, ScheduleReason::WithinSoftLimit));
    assert_eq!(declared(1_500), (Schedule::Inline, ScheduleReason::UsuallyWithinSoftLimit));
    assert_eq!(declared(3_000), (Schedule::Filler, ScheduleReason::OverSoftLimit));
}

#[test]
fn the_trace_has_the_figures() {
    let scheduled = schedule(&LatencyFacts { used_ms: 700, ..facts(3_200, 4_100) });
    assert_eq!(
        json!(scheduled),
        json!({
            "schedule": "filler", "reason": "over_soft_limit", "p50Ms": 3_200, "p95Ms": 4_100, "estimate": "measured",
            "softLimitMs": 800, "leftMs": 14_300,
        })
    );
    for schedule in Schedule::ALL {
        assert_eq!(json!(schedule), schedule.as_str());
    }
}

fn any_facts() -> impl Strategy<Value = LatencyFacts> {
    let limit = || prop::option::of(0_u64..40_000);
    let source = prop_oneof![
        Just(EstimateSource::Measured),
        Just(EstimateSource::Outdated),
        Just(EstimateSource::Declared)
    ];
    let estimate = (0_u64..60_000, 0_u64..60_000, source);
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    (flags, estimate, limit(), limit(), limit(), 0_u64..40_000, limit()).prop_map(
        |((is_text, is_nested, is_control), (p50_ms, more_ms, source), call, turn, wait, used_ms, after)| {
            LatencyFacts {
                mode: if is_text { Mode::Text } else { Mode::Voice },
                is_nested,
                is_control,
                estimate: LatencyEstimate { p50_ms, p95_ms: p50_ms + more_ms, source },
                call_limit_ms: call,
                turn_limit_ms: turn,
                max_wait_ms: wait,
                used_ms,
                background_after_ms: after,
            }
        },
    )
}

proptest! {
    #[test]
    fn only_outer_voice_calls_are_scheduled(facts in any_facts()) {
        let is_scheduled = facts.mode == Mode::Voice && !facts.is_nested;
        prop_assert_eq!(schedule(&facts).is_some(), is_scheduled);
    }

    #[test]
    fn a_refusal_needs_fresh_figures_beyond_the_wait_and_no_other_way(facts in any_facts()) {
        let Some(ScheduledCall { schedule: Schedule::Refuse, left_ms, .. }) = schedule(&facts) else {
            return Ok(());
        };
        prop_assert_eq!(facts.estimate.source, EstimateSource::Measured);
        prop_assert_eq!(facts.background_after_ms, None);
        prop_assert!(!facts.is_control);
        prop_assert!(facts.estimate.p50_ms > left_ms.unwrap());
    }

    #[test]
    fn only_a_tool_that_may_goes_to_the_background(facts in any_facts()) {
        let is_background = schedule(&facts).is_some_and(|it| it.schedule == Schedule::Background);
        prop_assert!(!is_background || facts.background_after_ms.is_some());
    }

    #[test]
    fn a_slower_tool_never_gets_a_faster_class(facts in any_facts(), slower_ms in 0_u64..60_000) {
        let mut slower = facts;
        slower.estimate.p50_ms += slower_ms;
        slower.estimate.p95_ms += slower_ms;
        let class = |facts| schedule(facts).map(|it| it.schedule);
        prop_assert!(class(&slower) >= class(&facts), "{:?} then {:?}", class(&facts), class(&slower));
    }

    #[test]
    fn a_turn_that_has_used_more_never_gets_a_faster_class(facts in any_facts(), more_ms in 0_u64..60_000) {
        let later = LatencyFacts { used_ms: facts.used_ms + more_ms, ..facts };
        let class = |facts| schedule(facts).map(|it| it.schedule);
        prop_assert!(class(&later) >= class(&facts));
    }
}
