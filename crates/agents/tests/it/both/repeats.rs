//! The same call twice, by its content when there is no id to know it by.

use expect_test::expect;

use super::case::{Case, Each, Step, both, call, in_writing_and_in_speech};

in_writing_and_in_speech!(cases);

fn cases() -> Vec<Case> {
    let book = || call("book", "{\"what\":\"room\"}");
    let reordered = || call("book", " {\"what\" : \"\\u0072oom\"} ");
    vec![
        Case {
            name: "without ids, in one message, and again in the next turn",
            steps: vec![
                Step::Turn(both(vec![vec![book().without_id(), reordered().without_id()]])),
                Step::Turn(both(vec![vec![book().without_id()]])),
            ],
            expected: Each {
                written: expect![[r#"
                    model hears: Turn 1.
                    book -> {"ok":true,"data":{"did":"room"},"meta":{}}
                    book -> {"ok":true,"data":{"did":"room"},"meta":{"_original_turn":1,"_idempotent_cache_hit":true}}
                    user reads: Well.
                    model hears: Turn 2.
                    book -> {"ok":true,"data":{"did":"room"},"meta":{}}
                    user reads: Well.
                    ran: book 2
                "#]],
                spoken: expect![[r#"
                model hears: Turn 1.
                book -> {"output":{"did":"room"}}
                book -> {"output":{"did":"room"}}
                user reads: Well.
                model hears: Turn 2.
                book -> {"output":{"did":"room"}}
                user reads: Well.
                ran: book 2
            "#]],
            },
        },
        Case {
            name: "under ids that cannot be relied on",
            steps: vec![Step::Turn(both(vec![vec![book().with_id("c1")], vec![book().with_id("c2")]]))],
            expected: Each {
                written: expect![[r#"
                    model hears: Turn 1.
                    book -> {"ok":true,"data":{"did":"room"},"meta":{}}
                    book -> {"ok":true,"data":{"did":"room"},"meta":{"_original_turn":1,"_idempotent_cache_hit":true}}
                    user reads: Well.
                    ran: book 1
                "#]],
                spoken: expect![[r#"
                model hears: Turn 1.
                book -> {"output":{"did":"room"}}
                book -> {"output":{"did":"room"}}
                user reads: Well.
                ran: book 1
            "#]],
            },
        },
        Case {
            name: "the third time in a turn",
            steps: vec![Step::Turn(both(vec![vec![book()], vec![book()], vec![book()]]))],
            expected: Each {
                written: expect![[r#"
                    model hears: Turn 1.
                    book -> {"ok":true,"data":{"did":"room"},"meta":{}}
                    book -> {"ok":true,"data":{"did":"room"},"meta":{"_original_turn":1,"_idempotent_cache_hit":true}}
                    book -> {"ok":false,"error":{"type":"LOOP_DETECTED","message":"book was called 3 times with the same arguments.","retryable":false,"suggestion":"Try another approach or other words.","partialSideEffects":false},"meta":{}}
                    user reads: Well.
                    ran: book 1
                "#]],
                spoken: expect![[r#"
                model hears: Turn 1.
                book -> {"output":{"did":"room"}}
                book -> {"output":{"did":"room"}}
                book -> {"error":{"type":"LOOP_DETECTED","message":"book was called 3 times with the same arguments.","retryable":false,"suggestion":"Try another approach or other words.","partialSideEffects":false}}
                user reads: Well.
                ran: book 1
            "#]],
            },
        },
        Case {
            name: "under an id that can be relied on, in a later turn",
            steps: vec![
                Step::Turn(both(vec![vec![book().with_id("call-number-4711")]])),
                Step::Turn(both(vec![vec![book().with_id("call-number-4711")]])),
            ],
            expected: Each {
                written: expect![[r#"
                    model hears: Turn 1.
                    book -> {"ok":true,"data":{"did":"room"},"meta":{}}
                    user reads: Well.
                    model hears: Turn 2.
                    book -> {"ok":true,"data":{"did":"room"},"meta":{"_original_turn":1,"_idempotent_cache_hit":true}}
                    user reads: Well.
                    ran: book 1
                "#]],
                spoken: expect![[r#"
                model hears: Turn 1.
                book -> {"output":{"did":"room"}}
                user reads: Well.
                model hears: Turn 2.
                book -> {"output":{"did":"room"}}
                user reads: Well.
                ran: book 1
            "#]],
            },
        },
    ]
}
