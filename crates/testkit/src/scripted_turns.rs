//! A chat model that does what a scenario says. It remembers nothing: what it does follows from what it is shown.

use serde_json::Value;

/// The turns of a scenario, as the simulator of Gemini Live reads them. Of its steps these are known: `say`, `call`, `await`,
/// `wait`, and `drop` and `goAway`, at which the reply breaks off once. A turn is known by `containing` or by `heard`.
#[derive(Debug, Clone)]
pub struct ScriptedTurns(Vec<Value>);

/// A message that the model is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shown {
    /// What the user said.
    User(String),
    /// The results of one message's calls.
    Results,
    /// A message of the model itself, or anything else.
    Other,
}

/// What the model writes, and how that ends.
#[derive(Debug, Clone, PartialEq)]
pub struct ScriptedReply {
    pub text: String,
    /// Each with its `name` and `args`.
    pub calls: Vec<Value>,
    /// The turn and the step at which it breaks off.
    pub breaks_at: Option<(usize, usize)>,
}

impl ScriptedTurns {
    /// # Panics
    ///
    /// When it is no list of turns.
    pub fn new(turns: &Value) -> Self {
        Self(turns.as_array().expect("a list of turns").clone())
    }

    /// What the user says in turns that begin with speech, in their order.
    pub fn utterances(&self) -> impl Iterator<Item = String> {
        self.0.iter().filter(|turn| turn["begins"] == "speech").map(heard)
    }

    /// The reply to these messages. `has_broken` tells whether a reply broke off at a place already.
    pub fn reply(&self, messages: &[Shown], has_broken: impl Fn((usize, usize)) -> bool) -> ScriptedReply {
        let (turn, at) = self.turn_of(messages);
        let done = messages[at..].iter().filter(|message| **message == Shown::Results).count();
        let (mut text, mut batch) = (String::new(), 0);
        let steps = self.0[turn]["steps"].as_array().map_or(&[][..], Vec::as_slice);
        for (step, does) in steps.iter().enumerate() {
            let is_now = batch == done;
            if let (true, Some(words)) = (is_now, does["say"].as_str()) {
                text.push_str(if text.is_empty() { "" } else { " " });
                text.push_str(words);
            }
            let breaks = does.get("drop").or(does.get("goAway")).is_some();
            if is_now && breaks && !has_broken((turn, step)) {
                return ScriptedReply { text, calls: vec![], breaks_at: Some((turn, step)) };
            }
            if let Some(call) = does.get("call") {
                if is_now {
                    let calls = call.as_array().cloned().unwrap_or_else(|| vec![call.clone()]);
                    return ScriptedReply { text, calls, breaks_at: None };
                }
                batch += 1;
            }
        }
        ScriptedReply { text, calls: vec![], breaks_at: None }
    }

    /// The turn that the last words of the user are about, and the place of these words. What is unknown is about the first.
    fn turn_of(&self, messages: &[Shown]) -> (usize, usize) {
        for (at, message) in messages.iter().enumerate().rev() {
            let Shown::User(text) = message else { continue };
            let text = text.to_lowercase();
            let keys = self.0.iter().map(key).enumerate().filter(|(_, key)| !key.is_empty());
            let last = keys.filter_map(|(turn, key)| Some((text.rfind(&key)?, turn))).max();
            if let Some((_, turn)) = last {
                return (turn, at);
            }
        }
        (0, messages.iter().rposition(|message| matches!(message, Shown::User(_))).unwrap_or(0))
    }
}

fn key(turn: &Value) -> String {
    turn["containing"].as_str().map_or_else(|| heard(turn), str::to_owned).to_lowercase()
}

fn heard(turn: &Value) -> String {
    match &turn["heard"] {
        Value::Array(pieces) => pieces.iter().filter_map(Value::as_str).collect(),
        words => words.as_str().unwrap_or_default().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_reply_follows_from_what_was_said_last_and_what_was_done_since() {
        let turns = ScriptedTurns::new(&json!([
            { "begins": "text", "steps": [{ "say": "Hello." }] },
            { "begins": "speech", "heard": "Book it.", "steps": [
                { "say": "Let me see." }, { "call": { "name": "book" } }, { "drop": true }, { "say": "Done." },
            ] },
        ]));
        let user = |text: &str| Shown::User(text.to_owned());
        let greeting = turns.reply(&[user("Good day")], |_| false);
        assert_eq!((greeting.text.as_str(), greeting.calls.len()), ("Hello.", 0));
        let mut shown = vec![user("Good day"), Shown::Other, user("book it.")];
        let called = turns.reply(&shown, |_| false);
        assert_eq!((called.text.as_str(), called.calls), ("Let me see.", vec![json!({ "name": "book" })]));
        shown.extend([Shown::Other, Shown::Results]);
        assert_eq!(turns.reply(&shown, |_| false).breaks_at, Some((1, 2)));
        assert_eq!(turns.reply(&shown, |_| true).text, "Done.");
        assert_eq!(turns.utterances().collect::<Vec<_>>(), ["Book it."]);
    }
}
