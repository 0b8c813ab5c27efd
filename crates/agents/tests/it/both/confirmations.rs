//! What a user must approve.

use std::time::Duration;

use expect_test::expect;

use super::case::{Case, Each, Step, both, call, in_writing_and_in_speech};

in_writing_and_in_speech!(cases);

fn cases() -> Vec<Case> {
    let pay = || Step::Turn(both(vec![vec![call("pay", "{\"what\":\"rent\"}")]]));
    let draw = |what: &str| Step::Turn(both(vec![vec![call("draw", &format!("{{\"what\":\"{what}\"}}"))]]));
    let yes = |is_noted| Step::Confirm { approves: true, is_noted };
    vec![
        Case {
            name: "approved, and approved again",
            steps: vec![pay(), yes(true), yes(false)],
            expected: Each {
                written: expect![[r#"
                    model hears: Turn 1.
                    confirmation requested: pay (what: rent)
                    pay -> {"ok":true,"data":{"did":"rent"},"meta":{}}
                    user reads: Well.
                    user: CONFIRMATION_INVALID
                    ran: pay 1
                "#]],
                spoken: expect![[r#"
                    model hears: Turn 1.
                    pay -> {"error":{"type":"CONFIRMATION_REQUIRED","message":"The user must approve pay first.","retryable":false,"suggestion":"Tell the user that their approval is pending, and go on; you will be told the outcome.","partialSideEffects":false,"confirmation_request":{"expires":1768295100000,"tool":"pay","args":{"what":"rent"},"preview":"pay (what: rent)"}}}
                    confirmation requested: pay (what: rent)
                    user reads: Well.
                    model hears: [Note: pay (function-call-1) was approved by the user and was done: {"did":"rent"}.]
                    user reads: Noted.
                    user: CONFIRMATION_INVALID
                    ran: pay 1
                "#]],
            },
        },
        Case {
            name: "asked for in the first turn, and not in the second",
            steps: vec![draw("a fox"), draw("a wolf"), yes(true)],
            expected: Each {
                written: expect![[r#"
                model hears: Turn 1.
                draw -> {"ok":true,"data":{"did":"a fox"},"meta":{}}
                user reads: Well.
                model hears: Turn 2.
                confirmation requested: draw (what: a wolf)
                draw -> {"ok":true,"data":{"did":"a wolf"},"meta":{}}
                user reads: Well.
                ran: draw 2
            "#]],
                spoken: expect![[r#"
                model hears: Turn 1.
                draw -> {"output":{"did":"a fox"}}
                user reads: Well.
                model hears: Turn 2.
                draw -> {"error":{"type":"CONFIRMATION_REQUIRED","message":"The user must approve draw first.","retryable":false,"suggestion":"Tell the user that their approval is pending, and go on; you will be told the outcome.","partialSideEffects":false,"confirmation_request":{"expires":1768295100000,"tool":"draw","args":{"what":"a wolf"},"preview":"draw (what: a wolf)","reason":"You did not ask for this just now."}}}
                confirmation requested: draw (what: a wolf)
                user reads: Well.
                model hears: [Note: draw (function-call-2) was approved by the user and was done: {"did":"a wolf"}.]
                user reads: Noted.
                ran: draw 2
            "#]],
            },
        },
        Case {
            name: "denied, and then approved",
            steps: vec![pay(), Step::Confirm { approves: false, is_noted: true }, yes(false)],
            expected: Each {
                written: expect![[r#"
                    model hears: Turn 1.
                    confirmation requested: pay (what: rent)
                    pay -> {"ok":false,"error":{"type":"CONFIRMATION_DENIED","message":"The user did not approve pay.","retryable":false,"partialSideEffects":false},"meta":{}}
                    user reads: Well.
                    user: CONFIRMATION_INVALID
                    ran: nothing
                "#]],
                spoken: expect![[r#"
                    model hears: Turn 1.
                    pay -> {"error":{"type":"CONFIRMATION_REQUIRED","message":"The user must approve pay first.","retryable":false,"suggestion":"Tell the user that their approval is pending, and go on; you will be told the outcome.","partialSideEffects":false,"confirmation_request":{"expires":1768295100000,"tool":"pay","args":{"what":"rent"},"preview":"pay (what: rent)"}}}
                    confirmation requested: pay (what: rent)
                    user reads: Well.
                    model hears: [Note: pay (function-call-1) was not approved by the user.]
                    user reads: Noted.
                    user: CONFIRMATION_INVALID
                    ran: nothing
                "#]],
            },
        },
        Case {
            name: "approved too late, and again",
            steps: vec![pay(), Step::Later(Duration::from_secs(301)), yes(false), yes(false)],
            expected: Each {
                written: expect![[r#"
                    model hears: Turn 1.
                    confirmation requested: pay (what: rent)
                    pay -> {"ok":false,"error":{"type":"CONFIRMATION_EXPIRED","message":"This confirmation has expired. Nothing was done.","retryable":false,"suggestion":"Ask again if it is still wanted.","partialSideEffects":false},"meta":{}}
                    user reads: Well.
                    user: CONFIRMATION_INVALID
                    ran: nothing
                "#]],
                spoken: expect![[r#"
                    model hears: Turn 1.
                    pay -> {"error":{"type":"CONFIRMATION_REQUIRED","message":"The user must approve pay first.","retryable":false,"suggestion":"Tell the user that their approval is pending, and go on; you will be told the outcome.","partialSideEffects":false,"confirmation_request":{"expires":1768295100000,"tool":"pay","args":{"what":"rent"},"preview":"pay (what: rent)"}}}
                    confirmation requested: pay (what: rent)
                    user reads: Well.
                    user: CONFIRMATION_EXPIRED
                    user: CONFIRMATION_EXPIRED
                    ran: nothing
                "#]],
            },
        },
    ]
}
