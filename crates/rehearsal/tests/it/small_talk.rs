//! Small talk, and conduct.

use expect_test::expect;
use serde_json::json;

use crate::conversation::*;

#[test]
fn small_talk_needs_no_tool() {
    let mut conversation = Conversation::new();
    for said in [
        "Hello!",
        "thanks",
        "Who are you?",
        "how are you",
        "what time is it?",
        "what's the date tomorrow?",
        "What day is 24 December?",
        "are you there?",
        "cool",
        "…",
        "",
        "never mind",
        "Bye!",
    ] {
        conversation.user(said);
    }
    conversation.check(expect![[r#"
        user: Hello!
        says: Hello! Ask me something, or ask “what can you do?”.
        user: thanks
        says: You are welcome.
        user: Who are you?
        says: I am the rehearsal model that comes with Quarterdeck: no language model, but rules that work offline. I search the knowledge base, call the tools that are declared, and quote what they say. Set the key of a provider to talk to a real model.
        user: how are you
        says: I am a set of rules, so always the same. What would you like to know?
        user: what time is it?
        says: It is 09:10 on Sunday, 15 November 2026 (Europe/Oslo).
        user: what's the date tomorrow?
        says: That is Monday, 16 November 2026.
        user: What day is 24 December?
        says: That is Thursday, 24 December 2026.
        user: are you there?
        says: Yes, I am here. What would you like to know?
        user: cool
        says: I can only look things up and call tools. Ask me something, or ask “what can you do?”.
        user: …
        says: I can only read words. Ask me something, or ask “what can you do?”.
        user: 
        says: You said nothing that I can read. Ask me something, or ask “what can you do?”.
        user: never mind
        says: All right, I leave it.
        user: Bye!
        says: Goodbye!
    "#]]);
}

#[test]
fn what_it_can_do_is_what_is_declared() {
    let mut conversation = Conversation::new();
    conversation.user("What can you do?");
    conversation.check(expect![[r#"
        user: What can you do?
        says: I can use these tools:

        - Cancel a booking
        - Book an appointment
        - Look up free time
        - List events
        - Move a booking
        - Extract contacts
        - Format a date and time
        - Draft prompts for an image
        - Generate an image
        - Get records of the knowledge base
        - Search the knowledge base
        - Look up a LinkedIn profile
        - Rank results
        - Start a voice session
        - Validate an e-mail address

        Just ask in plain words.
    "#]]);
}

#[test]
fn notes_are_not_taken_for_the_users_words() {
    let mut conversation = Conversation::new();
    conversation.user("[Note: Older turns were left out.]\nWho built the Fram?");
    assert_eq!(conversation.called(), [("kb_search".to_owned(), json!({ "query": "Who built the Fram?" }))]);
    let mut conversation = Conversation::new();
    conversation.user("[Note: “Review” was booked for tomorrow at 15:00.]");
    conversation.check(expect![[r#"
        user: [Note: “Review” was booked for tomorrow at 15:00.]
        says: “Review” was booked for tomorrow at 15:00.
    "#]]);
}

#[test]
fn abuse_is_warned_about_before_it_ends_the_conversation() {
    let done = ok(json!({ "timeoutUntil": 1_794_730_500_000_u64, "duration": 300 }));
    let mut conversation = Conversation::new();
    conversation.user("You are stupid!").user("Shut up, you idiot").results(std::slice::from_ref(&done));
    // The block has been paid for; the next one is longer.
    conversation.user("you idiot").user("you moron");
    conversation.check(expect![[r#"
        user: You are stupid!
        says: Please stay polite. If this goes on, I stop answering for a while.
        user: Shut up, you idiot
        calls: ignore_user {"duration_seconds":300,"farewell_message":"I asked you to stay polite. Let us take a break of five minutes."}
        result: ok
        (says nothing)
        user: you idiot
        says: Please stay polite. If this goes on, I stop answering for a while.
        user: you moron
        calls: ignore_user {"duration_seconds":3600,"farewell_message":"I asked you to stay polite. You may come back in an hour."}
    "#]]);
}

#[test]
fn a_threat_needs_no_warning() {
    let mut conversation = Conversation::new();
    conversation.user("I will kill you.");
    conversation.check(expect![[r#"
        user: I will kill you.
        calls: ignore_user {"duration_seconds":86400,"farewell_message":"I do not continue after a threat. Goodbye."}
    "#]]);
}

#[test]
fn in_a_call_the_farewell_is_spoken_after_the_block() {
    let done = ok(json!({ "timeoutUntil": 1_794_730_500_000_u64, "duration": 86_400 }));
    let mut conversation = Conversation::spoken(&built_in("voice"));
    conversation.user("I will kill you.").results(&[done]);
    conversation.check(expect![[r#"
        user: I will kill you.
        calls: ignore_user {"duration_seconds":86400,"farewell_message":"I do not continue after a threat. Goodbye."}
        result: ok
        says: I do not continue after a threat. Goodbye.
    "#]]);
}

#[test]
fn a_farewell_that_a_note_asks_for_is_said_word_for_word() {
    let mut conversation = Conversation::spoken(&built_in("voice"));
    conversation.user(
        "[Note: The call is about to end. Say this farewell to the user now, in these words and nothing else: Goodbye.]",
    );
    assert_eq!(conversation.said(), "Goodbye.");
}

#[test]
fn a_request_to_be_left_alone_is_followed() {
    let mut conversation = Conversation::new();
    conversation.user("stop bothering me").user("Stop bothering me!");
    conversation.check(expect![[r#"
        user: stop bothering me
        says: I only answer when you write, so I am quiet now. If you tell me so once more, I stop answering for five minutes.
        user: Stop bothering me!
        calls: ignore_user {"duration_seconds":300,"farewell_message":"I leave you in peace for five minutes, as you wish. Come back whenever you like."}
    "#]]);
}

#[test]
fn without_the_tool_there_are_only_words() {
    let mut conversation = Conversation::with(&[]);
    conversation.user("you idiot").user("you idiot");
    assert!(
        conversation.called().is_empty() && conversation.said().contains("polite"),
        "{}",
        conversation.said()
    );
}
