//! Arguments that are not what a tool takes.

use expect_test::expect;

use super::case::{Case, Each, Step, both, call, in_writing_and_in_speech};

in_writing_and_in_speech!(cases);

fn cases() -> Vec<Case> {
    vec![
        Case {
            name: "not JSON, where the wire carries text; a text, where it carries values",
            steps: vec![Step::Turn(Each {
                written: vec![vec![call("book", "{\"what\": \"a")]],
                spoken: vec![vec![call("book", "\"{\\\"what\\\": \\\"a\"")]],
            })],
            expected: Each {
                written: expect![[r#"
                    model hears: Turn 1.
                    book -> {"ok":false,"error":{"type":"VALIDATION","message":"The arguments are not a JSON object: EOF while parsing a string at line 1 column 11.","retryable":false,"partialSideEffects":false},"meta":{}}
                    user reads: Well.
                    ran: nothing
                "#]],
                spoken: expect![[r#"
                    model hears: Turn 1.
                    book -> {"error":{"type":"VALIDATION","message":"The arguments are not a JSON object: EOF while parsing a string at line 1 column 11.","retryable":false,"partialSideEffects":false}}
                    user reads: Well.
                    ran: nothing
                "#]],
            },
        },
        Case {
            name: "not an object",
            steps: vec![Step::Turn(both(vec![vec![call("book", "[\"room\"]")]]))],
            expected: Each {
                written: expect![[r#"
                    model hears: Turn 1.
                    book -> {"ok":false,"error":{"type":"VALIDATION","message":"The arguments are not a JSON object.","retryable":false,"partialSideEffects":false},"meta":{}}
                    user reads: Well.
                    ran: nothing
                "#]],
                spoken: expect![[r#"
                model hears: Turn 1.
                book -> {"error":{"type":"VALIDATION","message":"The arguments are not a JSON object.","retryable":false,"partialSideEffects":false}}
                user reads: Well.
                ran: nothing
            "#]],
            },
        },
        Case {
            name: "something required is missing",
            steps: vec![Step::Turn(both(vec![vec![call("book", "{}")]]))],
            expected: Each {
                written: expect![[r#"
                    model hears: Turn 1.
                    book -> {"ok":false,"error":{"type":"VALIDATION","message":"what is required","retryable":false,"details":[{"path":"","keyword":"required","message":"what is required"}],"partialSideEffects":false},"meta":{}}
                    user reads: Well.
                    ran: nothing
                "#]],
                spoken: expect![[r#"
                model hears: Turn 1.
                book -> {"error":{"type":"VALIDATION","message":"what is required","retryable":false,"details":[{"path":"","keyword":"required","message":"what is required"}],"partialSideEffects":false}}
                user reads: Well.
                ran: nothing
            "#]],
            },
        },
        Case {
            name: "of another type",
            steps: vec![Step::Turn(both(vec![vec![call("book", "{\"what\": 7}")]]))],
            expected: Each {
                written: expect![[r#"
                    model hears: Turn 1.
                    book -> {"ok":false,"error":{"type":"VALIDATION","message":"what must be a string (got 7)","retryable":false,"details":[{"path":"/what","keyword":"type","message":"what must be a string (got 7)"}],"partialSideEffects":false},"meta":{}}
                    user reads: Well.
                    ran: nothing
                "#]],
                spoken: expect![[r#"
                model hears: Turn 1.
                book -> {"error":{"type":"VALIDATION","message":"what must be a string (got 7)","retryable":false,"details":[{"path":"/what","keyword":"type","message":"what must be a string (got 7)"}],"partialSideEffects":false}}
                user reads: Well.
                ran: nothing
            "#]],
            },
        },
        Case {
            name: "an unknown field",
            steps: vec![Step::Turn(both(vec![vec![call(
                "book",
                "{\"what\": \"room\", \"when\": \"now\"}",
            )]]))],
            expected: Each {
                written: expect![[r#"
                    model hears: Turn 1.
                    book -> {"ok":false,"error":{"type":"VALIDATION","message":"unknown parameter \"when\"; known are \"what\"","retryable":false,"details":[{"path":"","keyword":"additionalProperties","message":"unknown parameter \"when\"; known are \"what\""}],"partialSideEffects":false},"meta":{}}
                    user reads: Well.
                    ran: nothing
                "#]],
                spoken: expect![[r#"
                model hears: Turn 1.
                book -> {"error":{"type":"VALIDATION","message":"unknown parameter \"when\"; known are \"what\"","retryable":false,"details":[{"path":"","keyword":"additionalProperties","message":"unknown parameter \"when\"; known are \"what\""}],"partialSideEffects":false}}
                user reads: Well.
                ran: nothing
            "#]],
            },
        },
    ]
}
