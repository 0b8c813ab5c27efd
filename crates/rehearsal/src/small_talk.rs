//! Replies that need no tool: greetings, thanks, identity, abilities, date and time.

use crate::context::Context;
use crate::now;
use crate::sentences::shorten;
use crate::{when, words};

/// The reply to a message that is no request, if it is a known phrase.
pub(crate) fn answer(context: &Context<'_>) -> Option<String> {
    let said = context.message.text;
    if said.is_empty() {
        return Some(silent(context));
    }
    if !said.chars().any(char::is_alphanumeric) {
        return Some("I can only read words. Ask me something, or ask “what can you do?”.".into());
    }
    let phrase = phrase(said);
    if phrase.split(' ').count() > 9 {
        return None;
    }
    let begins = |beginnings: &[&str]| {
        beginnings.iter().any(|it| phrase == *it || phrase.starts_with(&format!("{it} ")))
    };
    if is_one_of(&phrase, WHO) {
        return Some(WHO_I_AM.into());
    }
    if is_one_of(&phrase, WHAT_CAN) || phrase == "help" {
        return Some(abilities(context));
    }
    if is_one_of(&phrase, CLOCK) {
        return Some(clock(context));
    }
    if let Some(date) = asked_date(context) {
        return Some(format!("That is {}.", now::day(date)));
    }
    let words = phrase.split(' ').count();
    if begins(&["thanks", "thank you", "thx", "cheers"]) && words <= 6 {
        return Some("You are welcome.".into());
    }
    if is_one_of(&phrase, PRESENT) {
        return Some("Yes, I am here. What would you like to know?".into());
    }
    if is_one_of(&phrase, COMMENTS) {
        return Some(
            "I can only look things up and call tools. Ask me something, or ask “what can you do?”.".into(),
        );
    }
    if is_one_of(&phrase, HOW_ARE_YOU) {
        return Some("I am a set of rules, so always the same. What would you like to know?".into());
    }
    // In a call, a goodbye hangs up, and there is a tool for that.
    if is_one_of(&phrase, BYE) && !context.is_spoken() {
        return Some("Goodbye!".into());
    }
    if is_cancellation(said) {
        return Some("All right, I leave it.".into());
    }
    (begins(GREETINGS) && words <= 3).then(|| greeting(context))
}

/// Whether the user withdraws the request.
pub(crate) fn is_cancellation(text: &str) -> bool {
    is_one_of(&phrase(text), NEVER_MIND)
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
];

#[rustfmt::skip]
const GREETINGS: &[&str] = &[
    "hello", "hi", "hey", "good morning", "good afternoon", "good evening", "good day", "greetings", "moin",
    "hei",
];
#[rustfmt::skip]
const WHO: &[&str] = &[
    "who are you", "what are you", "are you a robot", "are you human", "are you a human", "are you real",
    "are you an ai", "are you chatgpt", "are you a language model", "what model are you",
    "which model are you", "what is rehearsal", "what's your name", "what is your name", "are you a bot",
];
#[rustfmt::skip]
const WHAT_CAN: &[&str] = &[
    "what can you do", "what can i ask", "what can i ask you", "what do you do", "what are you able to do",
    "which tools do you have", "what tools do you have", "what can you do for me", "how can you help",
    "how can you help me", "can you help me", "what can i do here", "show me what you can do", "help me",
    "list your tools",
];
#[rustfmt::skip]
const CLOCK: &[&str] = &[
    "what time is it", "what's the time", "what is the time", "what day is it", "what day is it today",
    "what is the date", "what's the date", "what date is it", "what is today's date", "what's today's date",
    "what time is it now", "what is the date today",
];
#[rustfmt::skip]
const HOW_ARE_YOU: &[&str] =
    &["how are you", "how are you doing", "how do you do", "how is it going", "how's it going", "what's up"];
#[rustfmt::skip]
const BYE: &[&str] = &[
    "bye", "goodbye", "good bye", "bye bye", "see you", "see you later", "that is all", "that's all",
    "good night",
];
const PRESENT: &[&str] =
    &["are you there", "anybody there", "anyone there", "hello are you there", "test", "ping"];
#[rustfmt::skip]
const COMMENTS: &[&str] = &[
    "cool", "great", "nice", "wow", "hmm", "hm", "interesting", "i see", "lol", "haha", "good", "perfect", "i don't understand",
    "i do not understand", "that's wrong", "that is wrong", "you are wrong", "you're wrong", "what", "huh", "really", "oh",
];
#[rustfmt::skip]
const NEVER_MIND: &[&str] = &[
    "never mind", "nevermind", "forget it", "forget that", "cancel", "cancel that", "no thanks",
    "no thank you",
];

const WHO_I_AM: &str = "I am the rehearsal model that comes with Quarterdeck: no language model, but rules that work offline. I \
                        search the knowledge base, call the tools that are declared, and quote what they say. Set the key of \
                        a provider to talk to a real model.";

/// The words in lower case, without punctuation and without politeness around them.
pub(crate) fn phrase(text: &str) -> String {
    let words: Vec<String> = words::tokens(text, 12).into_iter().map(|token| token.lower).collect();
    let phrase = words.join(" ");
    let phrase = phrase.trim_end_matches(" please").trim_start_matches("please ");
    phrase.to_owned()
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

fn greeting(context: &Context<'_>) -> String {
    match context.toolbox.search() {
        Some(_) => "Hello! Ask me something about the knowledge base, or ask “what can you do?”.".into(),
        None => "Hello! Ask “what can you do?” to see what is possible.".into(),
    }
}

/// Every declared tool with its summary.
fn abilities(context: &Context<'_>) -> String {
    if context.toolbox.tools.is_empty() {
        return "There are no tools here, so I can only greet you and tell you what time it is.".into();
    }
    let lines =
        context.toolbox.tools.iter().map(|tool| format!("- {}: {}", tool.name, shorten(tool.summary(), 250)));
    format!("I can use these tools:\n\n{}\n\nJust ask in plain words.", lines.collect::<Vec<_>>().join("\n"))
}

/// “What's the date tomorrow?”, “what day is 24 December?”, and nothing else.
fn asked_date(context: &Context<'_>) -> Option<jiff::civil::Date> {
    let tokens = words::tokens(context.message.text, 12);
    let when = when::read(&tokens, &context.now);
    let asks = matches!(tokens.first()?.lower.as_str(), "what" | "what's" | "which");
    let is_about = |word: &str| matches!(word, "date" | "day" | "weekday");
    let rest = tokens
        .iter()
        .enumerate()
        .filter(|(at, _)| !when.used.contains(at))
        .map(|(_, token)| token.lower.as_str());
    let mut is_named = false;
    let is_plain = rest.into_iter().all(|word| {
        is_named |= is_about(word);
        is_about(word) || words::is_stop_word(word)
    });
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
