//! Replies that need no tool: greetings, thanks, identity, abilities, date and time.

use crate::context::Context;
use crate::sentences::shorten;
use crate::{language, now, when, words};

/// The reply to a message that is no request, if it is a known phrase.
pub(crate) fn answer(context: &Context<'_>) -> Option<String> {
    let said = context.message.text;
    if said.is_empty() {
        return Some(silent(context));
    }
    if !said.chars().any(char::is_alphanumeric) {
        return Some("I can only read words. Ask me something, or ask “what can you do?”.".into());
    }
    if let Some(text) = language::answer(said) {
        return Some(text.into());
    }
    let phrase = phrase(said);
    if phrase.split(' ').count() > 9 {
        return None;
    }
    if let Some((_, reply)) = PHRASES.iter().find(|(known, _)| is_one_of(&phrase, known)) {
        return Some((*reply).into());
    }
    if is_one_of(&phrase, WHAT_CAN) {
        return Some(abilities(context));
    }
    if is_one_of(&phrase, CLOCK) {
        return Some(clock(context));
    }
    if let Some(date) = asked_date(context) {
        return Some(format!("That is {}.", now::day(date)));
    }
    let begins =
        |known: &[&str]| known.iter().any(|it| phrase == *it || phrase.starts_with(&format!("{it} ")));
    let words = phrase.split(' ').count();
    if begins(&["thanks", "thank you", "thx", "cheers"]) && words <= 6 {
        return Some("You are welcome.".into());
    }
    // In a call, a goodbye hangs up, and there is a tool for that.
    if is_goodbye(said) && !context.is_spoken() {
        return Some("Goodbye!".into());
    }
    if is_cancellation(said) {
        return Some("All right, I leave it.".into());
    }
    (begins(GREETINGS) && words <= 3).then(|| "Hello! Ask me something, or ask “what can you do?”.".into())
}

/// Whether the user withdraws the request.
pub(crate) fn is_cancellation(text: &str) -> bool {
    is_one_of(&phrase(text), NEVER_MIND)
}

pub(crate) fn is_goodbye(text: &str) -> bool {
    is_one_of(&phrase(text), BYE)
}

/// A message without the greeting that it begins with, when there is more.
pub(crate) fn without_greeting(text: &str) -> &str {
    let end = text.find(['!', ',', '.', '\n']).filter(|end| *end < 30);
    let rest = end.map_or("", |end| text[end..].trim_start_matches(['!', ',', '.']).trim());
    let is_greeting = end.is_some_and(|end| {
        let said = phrase(&text[..end]);
        GREETINGS
            .iter()
            .any(|it| said == *it || (said.starts_with(&format!("{it} ")) && said.split(' ').count() <= 3))
    });
    if is_greeting && !rest.is_empty() { rest } else { text }
}

/// Whether a message only says yes or no to something.
pub(crate) fn is_yes_or_no(text: &str) -> bool {
    YES_OR_NO.contains(&phrase(text).as_str())
}

#[rustfmt::skip]
const YES_OR_NO: &[&str] = &[
    "yes", "no", "ok", "okay", "sure", "do it", "yes do it", "go ahead", "approve", "confirm", "i confirm", "yep", "fine",
    "yes please",
];
#[rustfmt::skip]
const GREETINGS: &[&str] =
    &["hello", "hi", "hey", "good morning", "good afternoon", "good evening", "good day", "greetings", "moin"];
#[rustfmt::skip]
const WHAT_CAN: &[&str] = &[
    "what can you do", "what can i ask", "what can i ask you", "what do you do", "what are you able to do", "help", "help me",
    "which tools do you have", "what tools do you have", "what can you do for me", "how can you help", "how can you help me",
    "can you help me", "what can i do here", "show me what you can do", "list your tools", "what else can you do",
];
#[rustfmt::skip]
const CLOCK: &[&str] = &[
    "what time is it", "what's the time", "what is the time", "what day is it", "what day is it today",
    "what is the date", "what's the date", "what date is it", "what is today's date", "what's today's date",
    "what time is it now", "what is the date today", "which day is it",
];
const BYE: &[&str] = &[
    "bye",
    "goodbye",
    "good bye",
    "bye bye",
    "see you",
    "see you later",
    "that is all",
    "that's all",
    "good night",
];
const NEVER_MIND: &[&str] = &[
    "never mind",
    "nevermind",
    "forget it",
    "forget that",
    "cancel",
    "cancel that request",
    "no thanks",
    "no thank you",
    "leave it",
];
/// Phrases with one reply each.
#[rustfmt::skip]
const PHRASES: &[(&[&str], &str)] = &[
    (
        &[
            "who are you", "what are you", "are you a robot", "are you human", "are you a human", "are you real",
            "are you an ai", "are you chatgpt", "are you a language model", "what model are you", "who made you",
            "which model are you", "what is rehearsal", "what's your name", "what is your name", "are you a bot",
        ],
        "I am the rehearsal model that comes with Quarterdeck: no language model, but rules that work offline. I search the \
         knowledge base, call the tools that are declared, and quote what they say. Set the key of a provider to talk to a \
         real model.",
    ),
    (
        &["are you there", "you there", "anybody there", "anyone there", "test", "ping"],
        "Yes, I am here. What would you like to know?",
    ),
    (
        &["how are you", "how are you doing", "how do you do", "how is it going", "how's it going", "what's up"],
        "I am a set of rules, so always the same. What would you like to know?",
    ),
    (
        &[
            "cool", "great", "nice", "wow", "hmm", "hm", "interesting", "i see", "lol", "haha", "good", "perfect", "what", "huh",
            "really", "oh", "i don't understand", "i do not understand", "that's wrong", "that is wrong", "you are wrong",
            "you're wrong", "tell me a joke", "tell me a story", "sing a song", "do you love me", "i love you",
        ],
        "I can only look things up and call tools. Ask me something, or ask “what can you do?”.",
    ),
];

/// The words in lower case, without punctuation and without politeness around them.
pub(crate) fn phrase(text: &str) -> String {
    let words: Vec<String> = words::tokens(text, 12).into_iter().map(|token| token.lower).collect();
    words.join(" ").trim_end_matches(" please").trim_start_matches("please ").to_owned()
}

/// The phrase alone, or after a greeting.
fn is_one_of(phrase: &str, known: &[&str]) -> bool {
    let bare = GREETINGS.iter().find_map(|greeting| phrase.strip_prefix(greeting)?.strip_prefix(' '));
    let bare = bare.unwrap_or(phrase);
    let bare = bare.strip_prefix("and ").or_else(|| bare.strip_prefix("so ")).unwrap_or(bare);
    known.contains(&phrase) || known.contains(&bare)
}

fn silent(context: &Context<'_>) -> String {
    match context.message.notes.as_slice() {
        [] => "You said nothing that I can read. Ask me something, or ask “what can you do?”.".into(),
        notes => shorten(&notes.join(" "), 600),
    }
}

/// What there are tools for, by the headings of their guides.
fn abilities(context: &Context<'_>) -> String {
    let tools =
        context.toolbox.tools.iter().filter(|tool| context.toolbox.is_usable(tool, context.is_spoken()));
    let lines: Vec<String> = tools.map(|tool| format!("- {}", shorten(tool.label(), 100))).collect();
    if lines.is_empty() {
        return "There are no tools here, so I can only greet you and tell you what time it is.".into();
    }
    if context.is_spoken() {
        return "I search the knowledge base and use the tools of this site, such as its calendar. Just ask in plain words.".into();
    }
    format!("I can use these tools:\n\n{}\n\nJust ask in plain words.", lines.join("\n"))
}

/// “What's the date tomorrow?”, “what day is 24 December?”, and nothing else.
fn asked_date(context: &Context<'_>) -> Option<jiff::civil::Date> {
    let tokens = words::tokens(context.message.text, 12);
    let when = when::read(&tokens, &context.now);
    let asks = matches!(tokens.first()?.lower.as_str(), "what" | "what's" | "which");
    let is_about = |word: &str| matches!(word, "date" | "day" | "weekday");
    let rest = tokens.iter().enumerate().filter(|(at, _)| !when.used.contains(at));
    let rest: Vec<&str> = rest.map(|(_, token)| token.lower.as_str()).collect();
    let is_plain = rest.iter().all(|word| is_about(word) || words::is_stop_word(word));
    let is_named = rest.iter().any(|word| is_about(word));
    when.date.filter(|_| asks && is_plain && is_named && when.time.is_none() && when.until.is_none())
}

fn clock(context: &Context<'_>) -> String {
    let now = &context.now;
    match (now.today, now.time) {
        (Some(today), Some(time)) => {
            format!("It is {} on {} ({}).", now::clock(time), now::day(today), now.zone_name)
        }
        (Some(today), None) => format!("It is {}.", now::day(today)),
        _ => "I do not know what day it is.".into(),
    }
}
