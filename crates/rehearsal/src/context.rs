//! The context of the next reply: what the request says.

use quarterdeck_contracts::{CallArguments, CallResult, ChatMessage, ChatRequest, Outcome, ToolUse};
use serde_json::Value;

use crate::decide::DESCRIBE;
use crate::now::{Now, told_time};
use crate::toolbox::{Guide, Toolbox};

/// Rounds of calls in a turn, before it is answered in words.
const MAX_CALL_ROUNDS: usize = 5;
/// How much of a message is read. A request usually stands at the beginning.
pub(crate) const MAX_MESSAGE_BYTES: usize = 16 * 1024;

pub(crate) struct Context<'a> {
    pub(crate) now: Now,
    pub(crate) toolbox: Toolbox<'a>,
    /// Earlier messages, oldest first.
    pub(crate) earlier: Vec<UserMessage<'a>>,
    /// The latest message.
    pub(crate) message: UserMessage<'a>,
    /// The results of this turn, oldest first.
    pub(crate) results: Vec<CallOutcome<'a>>,
    /// How many of them came last.
    pub(crate) new_results: usize,
    pub(crate) may_call: bool,
}

/// A message of the user and what followed it.
#[derive(Debug, Clone, Default)]
pub(crate) struct UserMessage<'a> {
    /// Without notes.
    pub(crate) text: &'a str,
    /// What the runtime wrote at its beginning.
    pub(crate) notes: Vec<&'a str>,
    /// The model's text.
    pub(crate) answer: String,
    pub(crate) results: Vec<CallOutcome<'a>>,
}

/// A call with its result.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallOutcome<'a> {
    pub(crate) name: &'a str,
    pub(crate) arguments: Option<&'a Value>,
    pub(crate) outcome: &'a Outcome,
}

impl<'a> CallOutcome<'a> {
    pub(crate) fn data(&self) -> Option<&'a Value> {
        match self.outcome {
            Outcome::Success(data) => Some(data),
            Outcome::Failure(_) => None,
        }
    }
}

impl<'a> Context<'a> {
    pub(crate) fn read(request: &'a ChatRequest) -> Self {
        let mut earlier = Vec::new();
        let mut current = UserMessage::default();
        let mut begun = false;
        // Where notes tell the time, the last one counts.
        let mut time = None;
        let mut new_results = 0;
        let mut rounds = 0;
        for (at, message) in request.messages.iter().enumerate() {
            new_results = 0;
            match message {
                ChatMessage::User { text } => {
                    if std::mem::replace(&mut begun, true) {
                        earlier.push(std::mem::take(&mut current));
                    }
                    let (mut notes, text) = split_notes(text);
                    notes.retain(|note| told_time(note).inspect(|told| time = Some(*told)).is_none());
                    current = UserMessage { text, notes, ..UserMessage::default() };
                    rounds = 0;
                }
                ChatMessage::Model(message) => current.answer.push_str(&message.text()),
                ChatMessage::Tools { results } => {
                    new_results = results.len();
                    rounds += 1;
                    let before = at.checked_sub(1).and_then(|at| request.messages.get(at));
                    current.results.extend(results.iter().map(|result| call_outcome(result, before)));
                }
            }
        }
        let results = std::mem::take(&mut current.results);
        let mut toolbox = Toolbox::read(&request.tools, &request.system);
        for result in earlier.iter().flat_map(|message: &UserMessage<'_>| &message.results).chain(&results) {
            if result.name == DESCRIBE {
                take_guide(&mut toolbox, result);
            }
        }
        let mut now = Now::parse(&request.system);
        now.time = time.or(now.time);
        // Where the system text does not say, the mode of a call can be ended but not started.
        let has = |name: &str| toolbox.find(name).is_some();
        now.is_spoken.get_or_insert(has("end_voice_session") && !has("start_voice_session"));
        Self {
            now,
            toolbox,
            earlier,
            message: current,
            results,
            new_results,
            may_call: request.tool_use == ToolUse::Allowed && rounds < MAX_CALL_ROUNDS,
        }
    }

    /// The results that came last.
    pub(crate) fn newest(&self) -> &[CallOutcome<'a>] {
        &self.results[self.results.len() - self.new_results.min(self.results.len())..]
    }

    pub(crate) fn is_spoken(&self) -> bool {
        self.now.is_spoken == Some(true)
    }

    /// Whether this turn has made such a call already.
    pub(crate) fn has_called(&self, name: &str) -> bool {
        self.results.iter().any(|result| result.name == name)
    }
}

/// A guide from `describe_tool` counts like one in the system text.
fn take_guide(toolbox: &mut Toolbox<'_>, result: &CallOutcome<'_>) {
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

fn call_outcome<'a>(result: &'a CallResult, before: Option<&'a ChatMessage>) -> CallOutcome<'a> {
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
    CallOutcome { name: &result.name, arguments, outcome: &result.response.outcome }
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
    let rest = super::sentences::head(rest, MAX_MESSAGE_BYTES);
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
    fn a_note_that_tells_the_time_is_the_time_and_no_news() {
        let user = |text: &str| ChatMessage::User { text: text.into() };
        let request = ChatRequest {
            system: "## Now\n\nToday is Sunday (2026-11-15).\n\nThe conversation began at 09:10.\n".into(),
            messages: vec![user("[Note: It is 10:05 now.]\n[Note: a task is done]\n\nHi")],
            tools: [].into(),
            tool_use: ToolUse::Allowed,
            span: None,
        };
        let context = Context::read(&request);
        assert_eq!(context.now.time, "10:05".parse().ok());
        assert_eq!((context.message.text, context.message.notes), ("Hi", vec!["a task is done"]));
        let request = ChatRequest { messages: vec![user("Hi")], ..request };
        assert_eq!(Context::read(&request).now.time, "09:10".parse().ok());
    }

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
