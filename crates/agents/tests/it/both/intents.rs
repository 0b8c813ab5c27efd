//! What a tool asks of the session.

use expect_test::expect;

use super::case::{Case, Each, Step, both, call, in_writing_and_in_speech};

in_writing_and_in_speech!(cases);

fn cases() -> Vec<Case> {
    let uses = |name| Step::Turn(both(vec![vec![call(name, "{\"what\":\"it\"}")]]));
    vec![
        Case {
            name: "the end: of a call, after its last words; writing has none",
            steps: vec![uses("leave")],
            expected: Each {
                written: expect![[r#"
                    model hears: Turn 1.
                    leave -> {"ok":true,"data":{"did":"it"},"intents":[{"type":"END_VOICE_SESSION","after":"current_turn"}],"meta":{}}
                    user reads: Well.
                    ran: leave 1
                "#]],
                spoken: expect![[r#"
                model hears: Turn 1.
                leave -> {"output":{"did":"it"}}
                user reads: Well.
                the call ends: user_requested closing=- text=-
                ran: leave 1
            "#]],
            },
        },
        Case {
            name: "silence: nothing more is read or heard; writing goes on",
            steps: vec![uses("hide"), uses("look")],
            expected: Each {
                written: expect![[r#"
                    model hears: Turn 1.
                    hide -> {"ok":true,"data":{"did":"it"},"intents":[{"type":"SUPPRESS_AUDIO","value":true},{"type":"SUPPRESS_TRANSCRIPT","value":true}],"meta":{}}
                    user reads: Well.
                    model hears: Turn 2.
                    look -> {"ok":true,"data":{"results":["it"]},"meta":{}}
                    user reads: Well.
                    ran: hide 1, look 1
                "#]],
                spoken: expect![[r#"
                model hears: Turn 1.
                hide -> {"output":{"did":"it"}}
                model hears: Turn 2.
                look -> {"output":{"results":["it"]}}
                ran: hide 1, look 1
            "#]],
            },
        },
        Case {
            name: "a message: in front of the next turn, once",
            steps: vec![uses("remind"), uses("look"), uses("book")],
            expected: Each {
                written: expect![[r#"
                    model hears: Turn 1.
                    remind -> {"ok":true,"data":{"did":"it"},"intents":[{"type":"SET_PENDING_MESSAGE","message":"The shop closes at six."}],"meta":{}}
                    user reads: Well.
                    model hears: [Note: The shop closes at six.]⏎⏎Turn 2.
                    look -> {"ok":true,"data":{"results":["it"]},"meta":{}}
                    user reads: Well.
                    model hears: Turn 3.
                    book -> {"ok":true,"data":{"did":"it"},"meta":{}}
                    user reads: Well.
                    ran: book 1, look 1, remind 1
                "#]],
                spoken: expect![[r#"
                model hears: Turn 1.
                remind -> {"output":{"did":"it"}}
                user reads: Well.
                model hears: [Note: The shop closes at six.]
                model hears: Turn 2.
                look -> {"output":{"results":["it"]}}
                user reads: Well.
                model hears: Turn 3.
                book -> {"output":{"did":"it"}}
                user reads: Well.
                ran: book 1, look 1, remind 1
            "#]],
            },
        },
    ]
}
