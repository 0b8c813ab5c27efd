//! Short codes for confirmations, where a protocol has no way to ask the user: the reply is a message with the code.
//!
//! A code is no token. It only picks a confirmation that is open in the very conversation in which the user sends it, and
//! it counts only as the whole message, so that nothing a model writes can use it.

use std::fmt::Write;
use std::sync::Arc;

use quarterdeck_contracts::{
    ChatMessage, ConfirmationRequest, ModelMessage, PartContent, sha256, shown_arguments,
};

use super::conversation::{Conversation, OpenConfirmation};
use super::{ConfirmationReply, TextCore};

/// The code of a confirmation, from its token.
pub fn confirmation_code(token: &str) -> String {
    sha256(format!("code:{token}").as_bytes())[..6].to_uppercase()
}

/// A confirmation request as text, with everything that would be done and the code that answers it; empty without a token.
///
/// The values stand in a block that no value can close: they are JSON, so that none begins a line, and the fence is longer
/// than any in them. What the reader is to reply stands outside of it, where no value reaches.
pub fn format_confirmation(request: &ConfirmationRequest) -> String {
    let Some(token) = &request.token else { return String::new() };
    let code = confirmation_code(token.expose());
    let arguments = shown_arguments(&request.args);
    let shown = [request.preview.as_str(), request.reason.as_deref().unwrap_or_default(), arguments.as_str()];
    let fence = "`".repeat(shown.map(max_backtick_run).into_iter().fold(2, usize::max) + 1);
    let mut words = String::from("\n\n");
    let tool = &request.tool;
    let _ =
        writeln!(words, "> Your approval is needed. `{tool}` would be run with exactly these arguments:\n>");
    let _ = writeln!(words, "> {fence}text\n> {}\n>", request.preview);
    if let Some(reason) = &request.reason {
        let _ = writeln!(words, "> {reason}\n>");
    }
    for line in arguments.lines() {
        let _ = writeln!(words, "> {line}");
    }
    let _ = writeln!(
        words,
        "> {fence}\n>\n> To approve, reply `approve {code}`; to refuse, reply `deny {code}`.\n"
    );
    words
}

fn max_backtick_run(text: &str) -> usize {
    text.split(|character| character != '`').map(str::len).max().unwrap_or(0)
}

/// What a code that was typed stands for.
pub(super) enum CodeMatch {
    NotACode,
    /// It answers a confirmation of this conversation.
    Confirmation(Arc<Conversation>),
    /// It has the form of a code, and no open confirmation of this conversation has it.
    Unknown,
}

impl OpenConfirmation {
    pub(super) fn is_answered_by(&self, decision: &ConfirmationReply) -> bool {
        self.request.token.as_ref().is_some_and(|token| token.expose() == decision.token)
    }

    /// Whether the request appears in a transcript that a client sends: an answer of ours holds it word for word. A transcript
    /// that only has the code, or in which the user quotes it, is another conversation.
    fn appears_in(&self, transcript: &[ChatMessage]) -> bool {
        // Programs that keep a conversation may trim its lines.
        let lines = |text: &str| text.trim().lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
        let confirmation = lines(&format_confirmation(&self.request));
        let holds = |message: &ModelMessage| {
            message.parts.iter().any(|part| match &part.content {
                PartContent::Text(text) => lines(text).contains(&confirmation),
                _ => false,
            })
        };
        transcript.iter().any(|message| matches!(message, ChatMessage::Model(message) if holds(message)))
    }
}

impl TextCore {
    /// Finds the conversation whose confirmation a message answers. The client may shorten its transcript
    /// the next time, so it is recognised by the confirmation request itself.
    pub(super) fn match_code(&self, client: &str, transcript: &[ChatMessage], text: &str) -> CodeMatch {
        if parse_reply(text).is_none_or(|(_, code)| !is_code(code)) {
            return CodeMatch::NotACode;
        }
        let known = self.lock();
        let mut own = known.values().filter(|conversation| conversation.session.client() == client);
        match own.find(|conversation| conversation.find_reply(transcript, text).is_some()) {
            Some(conversation) => CodeMatch::Confirmation(conversation.clone()),
            None => CodeMatch::Unknown,
        }
    }
}

impl Conversation {
    /// The reply that a message is, if it is one to a confirmation request that appears in the transcript.
    pub(super) fn find_reply(&self, transcript: &[ChatMessage], text: &str) -> Option<ConfirmationReply> {
        let (is_approved, code) = parse_reply(text)?;
        let state = self.lock();
        let has_code = |confirmation: &&OpenConfirmation| {
            let token = confirmation.request.token.as_ref();
            token.is_some_and(|token| confirmation_code(token.expose()).eq_ignore_ascii_case(code))
        };
        let confirmation = state
            .confirmations
            .iter()
            .filter(has_code)
            .find(|confirmation| confirmation.appears_in(transcript))?;
        let token = confirmation.request.token.as_ref()?.expose().to_owned();
        Some(ConfirmationReply { token, is_approved })
    }
}

/// `approve` or `deny`, and what follows.
fn parse_reply(text: &str) -> Option<(bool, &str)> {
    let (word, code) = text.trim().split_once(char::is_whitespace)?;
    match word.to_ascii_lowercase().as_str() {
        "approve" => Some((true, code.trim())),
        "deny" => Some((false, code.trim())),
        _ => None,
    }
}

fn is_code(text: &str) -> bool {
    text.len() == 6 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
