use crate::talk::*;
use std::fs;

#[test]
#[ignore]
fn eyeball() {
    for file in ["plain.tsv", "nothing.txt", "misspelt.tsv"] {
        let plain = fs::read_to_string(root().join("kb/_questions").join(file)).unwrap();
        for line in plain.lines() {
            let q = line.split('\t').next().unwrap();
            let mut t = Talk::new();
            t.person(q);
            if t.called().first().is_none_or(|c| c.0 != "kb_search") {
                println!("!!! {q}: {} {:?}", t.said(), t.called());
                continue;
            }
        }
    }
    for q in [
        "let's talk",
        "start voice",
        "start a voice session",
        "call me",
        "can we talk on the phone?",
        "I'd rather speak",
        "let's talk about the hull",
        "book a meeting tomorrow at 15:00 with anna@example.com about the budget",
        "book a meeting tomorrow at 15:00 with anna@example.com for 30 minutes",
        "Schedule lunch with Anna next Friday at noon",
        "please arrange a call with bo@example.com on Monday from 10 to 11",
        "book a meeting",
        "can you book a 45-minute review with a@b.org and c@d.org in two hours without a zoom link?",
        "when is Anna free on Friday?",
        "is anyone free tomorrow afternoon?",
        "who is free?",
        "Am I free next week?",
        "find a free slot of 60 minutes tomorrow",
        "are you available on Tuesday morning?",
        "is the team free on Thursday?",
        "how would 2026-03-01 be written in German?",
        "Write 2026-03-01T10:00:00Z for someone in Tokyo",
        "what is the format of 1 March 2026 in French?",
        "how long until 24 December?",
        "how do you say 2026-03-01T10:00:00Z aloud?",
        "what is the date format in Japanese for 2026-03-01",
        "is anna@example.com a valid email address?",
        "validate anna@gmial.com",
        "check this e-mail: foo@bar",
        "is foo@@bar.com a correct e-mail address?",
        "extract contacts from this text: Ana Ruiz, ana@example.com, +47 22 33 44 55",
        "find the phone numbers and e-mail addresses in: call 030 901820 or a@b.com",
        "extract the contacts",
        "find Ingrid Berg on LinkedIn",
        "linkedin profile of ingrid berg",
        "What is Marit Eksempel's LinkedIn?",
        "find someone on linkedin",
        "show me person:otto-sverdrup",
        "doc:hull-of-fram",
        "what does doc:hull-of-fram say?",
        "rank these results",
        "Wer hat die Fram gebaut?",
        "Tell me about the windmill",
        "talk to me about the hull",
        "When did the museum in Oslo open?",
        "start",
        "open",
        "free",
        "time",
        "book",
        "email",
        "what about the meeting of Nansen and Jackson",
        "I need help with the voyage",
        "who called at Khabarova?",
        "what happened on Friday?",
        "hello there",
        "bye",
    ] {
        let mut t = Talk::new();
        t.person(q);
        println!(
            "{q}\n    {} {}",
            t.said(),
            t.called().iter().map(|(n, a)| format!("{n} {a}")).collect::<Vec<_>>().join(" ")
        );
    }
}
