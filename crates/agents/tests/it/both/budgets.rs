//! How much a model may call in a turn. The numbers differ, the rule does not.

use expect_test::expect;

use super::case::{Case, Each, ScriptedCall, Step, call, in_writing_and_in_speech};

in_writing_and_in_speech!(cases);

fn cases() -> Vec<Case> {
    let calls = |name: &'static str, count: usize| -> Vec<ScriptedCall> {
        (1..=count).map(|number| call(name, &format!("{{\"what\":\"{name} {number}\"}}"))).collect()
    };
    vec![
        Case {
            name: "one look-up too many, and the next turn",
            steps: vec![
                Step::Turn(Each { written: vec![calls("look", 6)], spoken: vec![calls("look", 3)] }),
                Step::Turn(Each { written: vec![calls("look", 1)], spoken: vec![calls("look", 1)] }),
            ],
            expected: Each {
                written: expect![[r#"
                    model hears: Turn 1.
                    look -> {"ok":true,"data":{"results":["look 1"]},"meta":{}}
                    look -> {"ok":true,"data":{"results":["look 2"]},"meta":{}}
                    look -> {"ok":true,"data":{"results":["look 3"]},"meta":{}}
                    look -> {"ok":true,"data":{"results":["look 4"]},"meta":{}}
                    look -> {"ok":true,"data":{"results":["look 5"]},"meta":{}}
                    look -> {"ok":false,"error":{"type":"BUDGET_EXCEEDED","message":"This turn's budget of 5 retrieval calls is spent.","retryable":false,"suggestion":"Answer with what you have, or ask the user to narrow it down.","partialSideEffects":false},"meta":{}}
                    user reads: Well.
                    model hears: Turn 2.
                    look -> {"ok":true,"data":{"results":["look 1"]},"meta":{}}
                    user reads: Well.
                    ran: look 6
                "#]],
                spoken: expect![[r#"
                    model hears: Turn 1.
                    look -> {"output":{"results":["look 1"]}}
                    look -> {"output":{"results":["look 2"]}}
                    look -> {"error":{"type":"BUDGET_EXCEEDED","message":"This turn's budget of 2 retrieval calls is spent.","retryable":false,"suggestion":"Answer with what you have, or ask the user to narrow it down.","partialSideEffects":false}}
                    user reads: Well.
                    model hears: Turn 2.
                    look -> {"output":{"results":["look 1"]}}
                    user reads: Well.
                    ran: look 3
                "#]],
            },
        },
        Case {
            name: "one call too many, but for what steers the session",
            steps: vec![Step::Turn(Each {
                written: vec![calls("book", 11), calls("remind", 1)],
                spoken: vec![calls("book", 4), calls("remind", 1)],
            })],
            expected: Each {
                written: expect![[r#"
                    model hears: Turn 1.
                    book -> {"ok":true,"data":{"did":"book 1"},"meta":{}}
                    book -> {"ok":true,"data":{"did":"book 2"},"meta":{}}
                    book -> {"ok":true,"data":{"did":"book 3"},"meta":{}}
                    book -> {"ok":true,"data":{"did":"book 4"},"meta":{}}
                    book -> {"ok":true,"data":{"did":"book 5"},"meta":{}}
                    book -> {"ok":true,"data":{"did":"book 6"},"meta":{}}
                    book -> {"ok":true,"data":{"did":"book 7"},"meta":{}}
                    book -> {"ok":true,"data":{"did":"book 8"},"meta":{}}
                    book -> {"ok":true,"data":{"did":"book 9"},"meta":{}}
                    book -> {"ok":true,"data":{"did":"book 10"},"meta":{}}
                    book -> {"ok":false,"error":{"type":"BUDGET_EXCEEDED","message":"This turn's budget of 10 calls is spent.","retryable":false,"suggestion":"Answer with what you have, or ask the user to narrow it down.","partialSideEffects":false},"meta":{}}
                    remind -> {"ok":true,"data":{"did":"remind 1"},"intents":[{"type":"SET_PENDING_MESSAGE","message":"The shop closes at six."}],"meta":{}}
                    user reads: Well.
                    ran: book 10, remind 1
                "#]],
                spoken: expect![[r#"
                    model hears: Turn 1.
                    book -> {"output":{"did":"book 1"}}
                    book -> {"output":{"did":"book 2"}}
                    book -> {"output":{"did":"book 3"}}
                    book -> {"error":{"type":"BUDGET_EXCEEDED","message":"This turn's budget of 3 calls is spent.","retryable":false,"suggestion":"Answer with what you have, or ask the user to narrow it down.","partialSideEffects":false}}
                    remind -> {"output":{"did":"remind 1"}}
                    user reads: Well.
                    ran: book 3, remind 1
                "#]],
            },
        },
    ]
}
