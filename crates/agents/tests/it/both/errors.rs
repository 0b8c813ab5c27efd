//! What a provider gets, to the letter: the whole envelope in writing; the data or the error alone in speech.

use expect_test::expect;

use super::case::{Case, Each, Step, both, call, in_writing_and_in_speech};

in_writing_and_in_speech!(cases);

fn cases() -> Vec<Case> {
    let uses = |name| Step::Turn(both(vec![vec![call(name, "{\"what\":\"room\"}")]]));
    vec![
        Case {
            name: "data",
            steps: vec![uses("look")],
            expected: Each {
                written: expect![[r#"
                    model hears: Turn 1.
                    look -> {"ok":true,"data":{"results":["room"]},"meta":{}}
                    user reads: Well.
                    ran: look 1
                "#]],
                spoken: expect![[r#"
                model hears: Turn 1.
                look -> {"output":{"results":["room"]}}
                user reads: Well.
                ran: look 1
            "#]],
            },
        },
        Case {
            name: "an error of the tool",
            steps: vec![uses("fail")],
            expected: Each {
                written: expect![[r#"
                    model hears: Turn 1.
                    fail -> {"ok":false,"error":{"type":"CONFLICT","message":"It is taken.","retryable":false,"details":{"taken":"room"},"suggestion":"Try tomorrow.","partialSideEffects":false},"meta":{}}
                    user reads: Well.
                    ran: fail 1
                "#]],
                spoken: expect![[r#"
                model hears: Turn 1.
                fail -> {"error":{"type":"CONFLICT","message":"It is taken.","retryable":false,"details":{"taken":"room"},"suggestion":"Try tomorrow.","partialSideEffects":false}}
                user reads: Well.
                ran: fail 1
            "#]],
            },
        },
        Case {
            name: "a tool that does not exist",
            steps: vec![uses("bok")],
            expected: Each {
                written: expect![[r#"
                    model hears: Turn 1.
                    bok -> {"ok":false,"error":{"type":"NOT_FOUND","message":"There is no tool called bok.","retryable":false,"suggestion":"Did you mean book?","partialSideEffects":false},"meta":{"toolVersion":""}}
                    user reads: Well.
                    ran: nothing
                "#]],
                spoken: expect![[r#"
                    model hears: Turn 1.
                    bok -> {"error":{"type":"NOT_FOUND","message":"There is no tool called bok.","retryable":false,"suggestion":"Did you mean book?","partialSideEffects":false}}
                    user reads: Well.
                    ran: nothing
                "#]],
            },
        },
    ]
}
