//! What a category demands, and what a reviewer should notice.

use serde_json::Value;

use super::Subject;
use crate::{Diagnostic, rules};

const MAX_VOICE_RETRIEVAL_MS: u64 = 800;
const MAX_VOICE_MS: u64 = 3_000;

pub(super) fn check(subject: &Subject<'_>, problems: &mut Vec<Diagnostic>) {
    let category = subject.text("category");
    let writes = subject.text("sideEffects") == Some("writes");
    if category == Some("retrieval") {
        if writes {
            problems.push(
                Diagnostic::new(
                    &rules::RETRIEVAL_WRITES,
                    "retrieval tools cannot write",
                    "set \"sideEffects\" to \"read_only\", or the category to \"action\"",
                )
                .at(subject.json.place("/sideEffects")),
            );
        }
        if subject.field("idempotent") == Some(&Value::Bool(false)) {
            problems.push(
                Diagnostic::new(
                    &rules::RETRIEVAL_NOT_IDEMPOTENT,
                    "retrieval tools are idempotent",
                    "set \"idempotent\" to true, or the category to \"action\"",
                )
                .at(subject.json.place("/idempotent")),
            );
        }
    }
    let is_control = subject.field("control") == Some(&Value::Bool(true));
    // Session control must work without approval: a user who is to be blocked would not give it.
    if category == Some("action")
        && writes
        && !is_control
        && subject.field("requiresConfirmation") == Some(&Value::Bool(false))
    {
        problems.push(
            Diagnostic::new(
                &rules::UNCONFIRMED_WRITE,
                "an action that writes runs without confirmation",
                "set \"requiresConfirmation\" to true unless it is harmless or can be undone",
            )
            .at(subject.json.place("/requiresConfirmation")),
        );
    }
    check_voice_latency(subject, category, problems);
}

fn check_voice_latency(subject: &Subject<'_>, category: Option<&str>, problems: &mut Vec<Diagnostic>) {
    if !subject.strings("allowedModes").any(|(_, mode)| mode == "voice") {
        return;
    }
    let (limit, kind) = match category {
        Some("retrieval") => (MAX_VOICE_RETRIEVAL_MS, "a retrieval tool"),
        _ => (MAX_VOICE_MS, "a tool"),
    };
    let Some(budget) =
        subject.field("latencyBudgetMs").and_then(Value::as_u64).filter(|budget| *budget > limit)
    else {
        return;
    };
    problems.push(
        Diagnostic::new(
            &rules::SLOW_IN_VOICE,
            format!("{budget} ms is long for {kind} in voice"),
            format!("aim for {limit} ms, or allow the tool in text only"),
        )
        .at(subject.json.place("/latencyBudgetMs")),
    );
}
