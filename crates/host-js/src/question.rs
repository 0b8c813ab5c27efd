//! What the guest asks the host and is told at once: the other half of `guest.h` and of `Question` in `prelude.js`.

use quarterdeck_contracts::handler::CancelReason;
use quarterdeck_host_wasm::{
    CallState, Channel, bytes, bytes_mut, fault, memory_of, without_lone_surrogates,
};
use serde_json::{Value, json};
use wasmtime::{Caller, Linker};

use crate::program::resolve_in_call;
use crate::url;

/// The name that JavaScript's own imports are made from.
pub(crate) const IMPORT_MODULE: &str = "javascript";

/// A question, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Question {
    /// Where an import leads: the module, the specifier.
    Resolve,
    /// The source of a module.
    Source,
    /// What is wrong with a module: its name, the message, the stack.
    SyntaxError,
    /// Why the call should stop; empty while it should not.
    AbortReason,
    /// Something for the user meanwhile.
    Progress,
    /// An event for the audit trail, and its data.
    Audit,
    /// A part of the answer. Something is told if it was taken.
    Emit,
    /// A request that is not waited for any more.
    Cancel,
    /// The body of a response, as text.
    BodyText,
    /// The same as bytes.
    BodyBytes,
    /// The parts of a URL: its text, a base.
    ParseUrl,
    /// The same after one of them was set: the URL, the part, its value.
    SetUrl,
    /// The pairs of a form.
    ParseForm,
    /// The form of pairs.
    WriteForm,
    /// A fact of the call, by its name in `context`.
    Fact,
}

impl Question {
    pub(crate) fn from_number(number: u32) -> Option<Self> {
        const ALL: [Question; 15] = [
            Question::Resolve,
            Question::Source,
            Question::SyntaxError,
            Question::AbortReason,
            Question::Progress,
            Question::Audit,
            Question::Emit,
            Question::Cancel,
            Question::BodyText,
            Question::BodyBytes,
            Question::ParseUrl,
            Question::SetUrl,
            Question::ParseForm,
            Question::WriteForm,
            Question::Fact,
        ];
        ALL.get(number as usize).copied()
    }

    /// The answer to what depends on nothing but the texts.
    pub(crate) fn pure_answer(self, [a, b, c]: [&str; 3]) -> Option<String> {
        match self {
            Self::ParseUrl => Some(url::parse_url(a, b)),
            Self::SetUrl => Some(url::set_url(a, b, c)),
            Self::ParseForm => Some(url::parse_form(a)),
            Self::WriteForm => Some(url::write_form(a)),
            _ => None,
        }
    }
}

/// Adds the functions of a call.
pub(crate) fn add_to(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    linker.func_wrap(IMPORT_MODULE, "ask", ask)?;
    linker.func_wrap(IMPORT_MODULE, "take", take)?;
    Ok(())
}

/// Three texts of the guest's, by address and length.
pub(crate) type Places = (u32, u32, u32, u32, u32, u32);

/// The texts of a question. Half a character, which JavaScript has and UTF-8 has not, becomes U+FFFD.
pub(crate) fn texts(memory: &[u8], places: Places) -> wasmtime::Result<[String; 3]> {
    let (a, a_length, b, b_length, c, c_length) = places;
    let text = |address, length| -> wasmtime::Result<String> {
        Ok(String::from_utf8_lossy(bytes(memory, address, length, "the text of its question")?).into_owned())
    };
    Ok([text(a, a_length)?, text(b, b_length)?, text(c, c_length)?])
}

#[expect(clippy::too_many_arguments, reason = "an import of WebAssembly takes numbers")]
fn ask(
    mut caller: Caller<'_, CallState>,
    question: u32,
    a: u32,
    a_length: u32,
    b: u32,
    b_length: u32,
    c: u32,
    c_length: u32,
) -> wasmtime::Result<u32> {
    let (memory, state) = memory_of(&mut caller)?.data_and_store_mut(&mut caller);
    let texts = texts(memory, (a, a_length, b, b_length, c, c_length))?;
    let question = Question::from_number(question).ok_or_else(|| fault("it asks an unknown question"))?;
    state.reply = answer(state, question, texts.each_ref().map(String::as_str));
    u32::try_from(state.reply.len()).map_err(|_| fault("the answer is larger than any memory"))
}

/// Copies the answer to where the guest has made room for it.
fn take(mut caller: Caller<'_, CallState>, target: u32) -> wasmtime::Result<()> {
    let (memory, state) = memory_of(&mut caller)?.data_and_store_mut(&mut caller);
    let reply = std::mem::take(&mut state.reply);
    let length = u32::try_from(reply.len()).map_err(|_| fault("the answer is larger than any memory"))?;
    bytes_mut(memory, target, length, "the room for an answer")?.copy_from_slice(&reply);
    Ok(())
}

fn answer(state: &mut CallState, question: Question, texts: [&str; 3]) -> Vec<u8> {
    let [a, b, _] = texts;
    match question {
        Question::Resolve => resolve_in_call(a, b).into_bytes(),
        Question::AbortReason => abort_reason(state).into_bytes(),
        Question::Progress => {
            state.charge(Channel::Progress, a.len()).into_iter().for_each(|to| to.progress(a));
            Vec::new()
        }
        Question::Audit => {
            let context = state.charge(Channel::Audit, a.len() + b.len());
            context.into_iter().for_each(|to| to.audit(a, read(b).unwrap_or_default()));
            Vec::new()
        }
        Question::Emit => {
            let context = state.charge(Channel::Partial, a.len());
            let is_taken = context.is_some_and(|to| read(a).is_some_and(|chunk| to.emit(chunk)));
            if is_taken { b"taken".to_vec() } else { Vec::new() }
        }
        Question::Cancel => {
            a.parse().ok().map(|id| state.cancel(id));
            Vec::new()
        }
        Question::BodyText => {
            let body = body(state, a);
            String::from_utf8_lossy(body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&body))
                .into_owned()
                .into_bytes()
        }
        Question::BodyBytes => body(state, a),
        Question::Fact => state.fact(a).unwrap_or_default().into_bytes(),
        // Asked only where nothing runs.
        Question::Source | Question::SyntaxError => Vec::new(),
        Question::ParseUrl | Question::SetUrl | Question::ParseForm | Question::WriteForm => {
            question.pure_answer(texts).unwrap_or_default().into_bytes()
        }
    }
}

fn body(state: &mut CallState, id: &str) -> Vec<u8> {
    id.parse().ok().and_then(|id| state.take_body(id)).unwrap_or_default()
}

/// Why the call should stop, as `abort.js` reads it.
fn abort_reason(state: &CallState) -> String {
    let reason = state.context.signal().reason();
    reason.map_or_else(String::new, |reason| {
        json!({ "message": reason.message(), "isDeadline": reason == CancelReason::Deadline }).to_string()
    })
}

/// Reads JSON that the engine wrote. A JavaScript string may hold half of a character, which is escaped there and has no place
/// in ours: it becomes U+FFFD rather than the end of an otherwise good answer.
pub(crate) fn read(text: &str) -> Option<Value> {
    let again = || serde_json::from_str(&without_lone_surrogates(text));
    serde_json::from_str(text).or_else(|_| again()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers stand in two languages.
    #[test]
    fn prelude_has_the_same_numbers() {
        let prelude = include_str!("prelude.js");
        let (_, list) = prelude.split_once("export const Question = freeze({").unwrap();
        let (list, _) = list.split_once("});").unwrap();
        let mut seen = 0;
        for entry in list
            .split(',')
            .map(str::trim)
            .filter(|entry| !entry.is_empty() && !entry.starts_with("__proto__"))
        {
            let (name, number) = entry.split_once(": ").unwrap();
            let question = Question::from_number(number.parse().unwrap()).unwrap();
            assert_eq!(format!("{question:?}").to_lowercase(), name.to_lowercase());
            seen += 1;
        }
        assert_eq!(seen, 12);
    }
}
