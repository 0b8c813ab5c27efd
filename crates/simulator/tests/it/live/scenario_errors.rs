//! Scenarios that are none, and what is said about them.

use expect_test::{Expect, expect};
use proptest::prelude::*;
use quarterdeck_simulator::live::Scenario;

fn check(text: &str, expected: Expect) {
    expected.assert_eq(&Scenario::parse(text).unwrap_err().to_string());
}

#[test]
fn a_mistake_is_named_with_its_line_its_field_and_the_way_out() {
    check(
        "{ \"turns\": [",
        expect!["line 1: the scenario: no JSON: EOF while parsing a list at line 1 column 12"],
    );
    check("17", expect!["line 1: the scenario: must be an object, is a number"]);
    check("{}", expect!["line 1: turns: is missing"]);
    check(
        "{\n  \"turn\": []\n}",
        expect![
            "line 2: turn: is not known; known are about, frames, silenceMs, audio, turnEnds, atEnd, connections, turns"
        ],
    );
    check(
        "[\n  { \"begins\": \"shout\" }\n]",
        expect![
            "line 2: turns[0].begins: must be one of “anything”, “speech”, “text”, “content”, “start”, “answers”"
        ],
    );
    check(
        "{ \"turns\": [\n  { \"steps\": [\n    { \"say\": \"a\", \"call\": { \"name\": \"b\" } }\n  ] }\n] }",
        expect![
            "line 3: turns[0].steps[0]: must have exactly one of say, think, call, await, cancel, interrupt, expectInterruption, goAway, drop, wait, frame, malformed, resumable"
        ],
    );
    check(
        "[{ \"steps\": [\n{ \"say\": \"a\", \"loud\": true }] }]",
        expect!["line 2: turns[0].steps[0].loud: is not known; known are say, on, audio, transcript"],
    );
    check(
        "[{ \"steps\": [{ \"call\": { \"args\": {} } }] }]",
        expect!["line 1: turns[0].steps[0].call.name: is missing"],
    );
    check(
        "[{ \"steps\": [{ \"wait\": 3600001 }] }]",
        expect!["line 1: turns[0].steps[0].wait: is over an hour"],
    );
    check(
        "[{ \"steps\": [{ \"drop\": { \"code\": 1006 } }] }]",
        expect![
            "line 1: turns[0].steps[0].drop.code: may not be sent; 1001, 1007, 1008, 1011 and 1013 are usual"
        ],
    );
    check(
        "{ \"connections\": [{ \"nth\": 0 }], \"turns\": [] }",
        expect!["line 1: connections[0].nth: is counted from 1"],
    );
    check(
        "{ \"connections\": [{ \"cut\": {} }], \"turns\": [] }",
        expect!["line 1: connections[0].cut: must have either “afterSent” or “afterReceived”"],
    );
    check(
        "{ \"atEnd\": \"again\", \"turns\": [{ \"begins\": \"start\" }] }",
        expect!["line 1: atEnd: “again” needs a turn that waits for the client"],
    );
    check(
        "[{ \"end\": true }]",
        expect![
            "line 1: turns[0].end: must be an object of what comes with “turnComplete”, or “never”, is true or false"
        ],
    );
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "[\\[\\]{}:,\"a-z0-9 ]{0,200}") {
        let _ = Scenario::parse(&text);
    }

    #[test]
    fn no_step_makes_it_panic(
        word in "say|think|call|await|cancel|interrupt|expectInterruption|goAway|drop|wait|frame|malformed|resumable|on",
        value in "1|-1|1e300|null|true|\"x\"|\\[\\]|\\{\\}|\\[\\[\\]\\]|\\{\"base64\":\"=\"\\}|\\{\"code\":1e9\\}",
    ) {
        let _ = Scenario::parse(&format!("[{{\"steps\":[{{\"{word}\":{value}}}]}}]"));
    }
}
