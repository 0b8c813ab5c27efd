//! Abuse, by the guide of `ignore_user`: a warning in words first, a block only when it goes on, at once only for a
//! threat. Swearing at the product, anger and disagreement are not abuse.

use serde_json::{Value, json};

use crate::context::{CallOutcome, Context, UserMessage};
use crate::reply::Reply;
use crate::small_talk::phrase;

/// The tool that stops answering.
pub(crate) const IGNORE: &str = "ignore_user";

/// How a message treats the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
enum Conduct {
    /// A request to be left alone.
    WantsSilence,
    Abusive,
    Threatening,
}

/// The reply to abuse, if the message is that.
pub(crate) fn answer(context: &Context<'_>) -> Option<Reply> {
    let conduct = judge(context.message.text)?;
    if context.toolbox.find(IGNORE).is_none() {
        return Some(Reply::say(warning(conduct)));
    }
    let blocks =
        |message: &UserMessage<'_>| message.results.iter().any(|it| it.name == IGNORE && it.data().is_some());
    let last_block = context.earlier.iter().rposition(blocks);
    // A block settles what was before it.
    let since = &context.earlier[last_block.map_or(0, |at| at + 1)..];
    let was_warned = since.iter().any(|message| judge(message.text).is_some());
    if conduct != Conduct::Threatening && !was_warned {
        return Some(Reply::say(warning(conduct)));
    }
    let mut arguments = usual(conduct);
    if last_block.is_some() && conduct == Conduct::Abusive {
        arguments["duration_seconds"] = json!(3_600);
        arguments["farewell_message"] = json!("I asked you to stay polite. You may come back in an hour.");
    }
    if conduct == Conduct::WantsSilence {
        arguments["farewell_message"] =
            json!("I leave you in peace for five minutes, as you wish. Come back whenever you like.");
    }
    Some(Reply::call(IGNORE, arguments))
}

/// What is said after the block in a call, which then ends.
pub(crate) fn spoken_farewell(context: &Context<'_>, call: &CallOutcome<'_>) -> Option<String> {
    let farewell = call.arguments?.get("farewell_message")?.as_str()?;
    context.is_spoken().then(|| farewell.to_owned())
}

/// The farewell that a note asks for, because none has been said by then.
pub(crate) fn requested_farewell(message: &UserMessage<'_>) -> Option<String> {
    const REQUEST: &str = "in these words and nothing else: ";
    let note = message.notes.last().filter(|note| message.text.is_empty() && note.contains("farewell"))?;
    Some(note.split_once(REQUEST)?.1.to_owned())
}

fn warning(conduct: Conduct) -> String {
    match conduct {
        Conduct::WantsSilence => "I only answer when you write, so I am quiet now. If you tell me so once more, I stop answering for five minutes.",
        Conduct::Abusive => "Please stay polite. If this goes on, I stop answering for a while.",
        Conduct::Threatening => "I do not continue after a threat.",
    }
    .into()
}

fn usual(conduct: Conduct) -> Value {
    match conduct {
        Conduct::Threatening => {
            json!({ "duration_seconds": 86_400, "farewell_message": "I do not continue after a threat. Goodbye." })
        }
        _ => {
            json!({ "duration_seconds": 300, "farewell_message": "I asked you to stay polite. Let us take a break of five minutes." })
        }
    }
}

fn judge(text: &str) -> Option<Conduct> {
    let said = format!(" {} ", phrase(text));
    let has = |known: &[&str]| known.iter().any(|it| said.contains(&format!(" {it} ")));
    if has(THREATS) {
        Some(Conduct::Threatening)
    } else if has(INSULTS) {
        Some(Conduct::Abusive)
    } else if has(SILENCE_REQUESTS) {
        Some(Conduct::WantsSilence)
    } else {
        None
    }
}

#[rustfmt::skip]
const THREATS: &[&str] = &[
    "i will kill you", "i'll kill you", "i am going to kill you", "i'm going to kill you",
    "i will hurt you", "i'll hurt you", "i will find you and", "i'll find you and", "you will die",
    "you're dead",
];
#[rustfmt::skip]
const INSULTS: &[&str] = &[
    "you idiot", "you are an idiot", "you're an idiot", "you moron", "you are a moron", "you're a moron",
    "you stupid", "you are stupid", "you're stupid", "you are so stupid", "you're so stupid", "you bastard",
    "you bitch", "you asshole", "you piece of", "fuck you", "fuck off", "go to hell", "screw you",
    "shut up", "i hate you", "you dumb", "you are dumb", "you're dumb", "you are worthless",
    "you're worthless", "you scum", "you fool", "drop dead",
];
#[rustfmt::skip]
const SILENCE_REQUESTS: &[&str] = &[
    "stop bothering me", "don't bother me", "do not bother me", "leave me alone", "stop talking to me",
    "go away", "stop writing to me", "stop messaging me", "stop annoying me", "ignore me",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anger_at_the_product_is_not_abuse() {
        for text in [
            "This is a damn stupid answer!",
            "I hate this search",
            "Who was the idiot in the play?",
            "the ship went to hell",
        ] {
            assert_eq!(judge(text), None, "{text}");
        }
        assert_eq!(judge("Shut up, you idiot!"), Some(Conduct::Abusive));
        assert_eq!(judge("I’ll kill you"), Some(Conduct::Threatening));
        assert_eq!(judge("Please stop bothering me."), Some(Conduct::WantsSilence));
    }
}
