//! Tools that only one of the two may use.

use expect_test::expect;

use super::case::{Case, Each, Step, call, in_writing_and_in_speech};

in_writing_and_in_speech!(cases);

fn cases() -> Vec<Case> {
    let uses = |name| vec![vec![call(name, "{\"what\":\"it\"}")]];
    vec![
        Case {
            name: "the other one's",
            steps: vec![Step::Turn(Each { written: uses("speak_only"), spoken: uses("write_only") })],
            expected: Each {
                written: expect![[r#"
                    model hears: Turn 1.
                    speak_only -> {"ok":false,"error":{"type":"MODE_RESTRICTED","message":"speak_only is not available in text mode.","retryable":false,"suggestion":"In text, answer in the chat without it.","partialSideEffects":false},"meta":{}}
                    user reads: Well.
                    ran: nothing
                "#]],
                spoken: expect![[r#"
                model hears: Turn 1.
                write_only -> {"error":{"type":"MODE_RESTRICTED","message":"write_only is not available in voice mode.","retryable":false,"suggestion":"Offer to do this in the chat after the call.","partialSideEffects":false}}
                user reads: Well.
                ran: nothing
            "#]],
            },
        },
        Case {
            name: "its own",
            steps: vec![Step::Turn(Each { written: uses("write_only"), spoken: uses("speak_only") })],
            expected: Each {
                written: expect![[r#"
                    model hears: Turn 1.
                    write_only -> {"ok":true,"data":{"did":"it"},"meta":{}}
                    user reads: Well.
                    ran: write_only 1
                "#]],
                spoken: expect![[r#"
                model hears: Turn 1.
                speak_only -> {"output":{"did":"it"}}
                user reads: Well.
                ran: speak_only 1
            "#]],
            },
        },
    ]
}
