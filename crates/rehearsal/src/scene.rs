//! A request, as far as it matters for the next reply.

use quarterdeck_contracts::{CallArguments, CallResult, ChatMessage, ChatRequest, Outcome, ToolUse};
use serde_json::Value;

use crate::decide::DESCRIBE;
use crate::guide::Guide;
use crate::now::Now;
use crate::toolbox::Toolbox;

/// How many rounds of calls a turn may have before it is answered in words.
const ROUNDS: usize = 5;
/// How much of a message is looked at, in bytes. What a person wants stands at the beginning.
pub(crate) const HEARD: usize = 16 * 1024;

/// What the model sees.
pub(crate) struct Scene<'a> {
    pub(crate) now: Now,
    pub(crate) toolbox: Toolbox<'a>,
    /// What the person said before, oldest first, without notes.
    pub(crate) earlier: Vec<Heard<'a>>,
    /// What they say now.
    pub(crate) said: Heard<'a>,
    /// The results of this turn, oldest first.
    pub(crate) results: Vec<Finished<'a>>,
    /// How many of them are new.
    pub(crate) fresh: usize,
    pub(crate) may_call: bool,
}

/// A message of the person and what followed it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Heard<'a> {
    /// The words, without notes.
    pub(crate) text: &'a str,
    /// What the runtime notes at its beginning.
    pub(crate) notes: Vec<&'a str>,
    /// What was answered in words.
    pub(crate) answer: String,
    /// What its calls came to.
    pub(crate) results: Vec<Finished<'a>>,
}

/// A call with its result.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Finished<'a> {
    pub(crate) name: &'a str,
    pub(crate) arguments: Option<&'a Value>,
    pub(crate) outcome: &'a Outcome,
}

impl<'a> Finished<'a> {
    /// What came back, where it succeeded.
    pub(crate) fn data(&self) -> Option<&'a Value> {
        match self.outcome {
            Outcome::Success(data) => Some(data),
            Outcome::Failure(_) => None,
        }
    }
}

impl<'a> Scene<'a> {
    pub(crate) fn read(request: &'a ChatRequest) -> Self {
        let mut heard = Vec::new();
        let mut current = Heard::default();
        let mut begun = false;
        let mut fresh = 0;
        let mut rounds = 0;
        for (at, message) in request.messages.iter().enumerate() {
            fresh = 0;
            match message {
                ChatMessage::User { text } => {
                    if std::mem::replace(&mut begun, true) {
                        heard.push(std::mem::take(&mut current));
                    }
                    let (notes, text) = split_notes(text);
                    current = Heard { text, notes, ..Heard::default() };
                    rounds = 0;
                }
                ChatMessage::Model(message) => current.answer.push_str(&message.text()),
                ChatMessage::Tools { results } => {
                    fresh = results.len();
                    rounds += 1;
                    let before = at.checked_sub(1).and_then(|at| request.messages.get(at));
                    current.results.extend(results.iter().map(|result| finished(result, before)));
                }
            }
        }
        let results = std::mem::take(&mut current.results);
        let mut toolbox = Toolbox::read(&request.tools, &request.system);
        for result in heard.iter().flat_map(|heard| &heard.results).chain(&results) {
            if result.name == DESCRIBE {
                described(&mut toolbox, result);
            }
        }
        let mut now = Now::parse(&request.system);
        // Where nobody says so, a call is what can be ended but not begun.
        let has = |name: &str| toolbox.find(name).is_some();
        now.is_spoken.get_or_insert(has("end_voice_session") && !has("start_voice_session"));
        Self {
            now,
            toolbox,
            earlier: heard,
            said: current,
            results,
            fresh,
            may_call: request.tool_use == ToolUse::Allowed && rounds < ROUNDS,
        }
    }

    /// The results that came last.
    pub(crate) fn newest(&self) -> &[Finished<'a>] {
        &self.results[self.results.len() - self.fresh.min(self.results.len())..]
    }

    /// Whether the person listens instead of reading.
    pub(crate) fn is_spoken(&self) -> bool {
        self.now.is_spoken == Some(true)
    }

    /// Whether this turn has made such a call already.
    pub(crate) fn has_called(&self, name: &str) -> bool {
        self.results.iter().any(|result| result.name == name)
    }
}

/// A guide that was asked for counts like one that was there from the start.
fn described(toolbox: &mut Toolbox<'_>, result: &Finished<'_>) {
    let texts = result.data().map(|data| match data {
        Value::Object(fields) => fields.values().filter_map(Value::as_str).collect(),
        other => other.as_str().into_iter().collect::<Vec<_>>(),
    });
    let guide = texts.into_iter().flatten().max_by_key(|text| text.len());
    let tool = result.arguments.and_then(|arguments| arguments.as_object()?.values().next()?.as_str());
    if let (Some(guide), Some(name)) = (guide, tool)
        && let Some(tool) = toolbox.tools.iter_mut().find(|tool| tool.name == name)
    {
        tool.guide = Guide::parse(guide);
        tool.has_guide = true;
    }
}

fn finished<'a>(result: &'a CallResult, before: Option<&'a ChatMessage>) -> Finished<'a> {
    let arguments = match before {
        Some(ChatMessage::Model(message)) => {
            message.calls().find(|call| call.id == result.id && call.name == result.name)
        }
        _ => None,
    };
    let arguments = arguments.and_then(|call| match &call.arguments {
        CallArguments::Json(arguments) => Some(arguments),
        CallArguments::Broken(_) => None,
    });
    Finished { name: &result.name, arguments, outcome: &result.response.outcome }
}

/// Takes `[Note: …]` lines off the beginning of a message.
fn split_notes(text: &str) -> (Vec<&str>, &str) {
    let mut notes = Vec::new();
    let mut rest = text.trim();
    while let Some(after) = rest.strip_prefix("[Note:") {
        let end = closing_bracket(after);
        let Some(end) = end else { break };
        notes.push(after[..end].trim());
        rest = after[end + 1..].trim_start();
    }
    let rest = super::sentences::head(rest, HEARD);
    (notes, rest)
}

/// Where the bracket that is open at the beginning is closed: a note may hold brackets itself.
fn closing_bracket(text: &str) -> Option<usize> {
    let mut depth = 1_usize;
    for (at, letter) in text.char_indices() {
        match letter {
            '[' => depth += 1,
            ']' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_taken_off_and_words_stay() {
        assert_eq!(
            split_notes("[Note: a [b] c]\n[Note: d]\n\nHi [Note: e]"),
            (vec!["a [b] c", "d"], "Hi [Note: e]")
        );
        assert_eq!(split_notes("[Note: only this]"), (vec!["only this"], ""));
        assert_eq!(split_notes("[Note: same line] Hi"), (vec!["same line"], "Hi"));
        assert_eq!(split_notes("[Note: one] see [two]"), (vec!["one"], "see [two]"));
        assert_eq!(split_notes("[Note: open"), (vec![], "[Note: open"));
    }
}
