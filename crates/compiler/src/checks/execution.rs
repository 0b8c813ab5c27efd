//! Tools that go on in the background: which may, and which times belong to them.

use serde_json::Value;

use super::Subject;
use crate::{Diagnostic, rules};

/// What `taskTimeoutMs` is when it is not declared.
const DEFAULT_TASK_TIMEOUT_MS: u64 = 600_000;

pub(super) fn check(subject: &Subject<'_>, problems: &mut Vec<Diagnostic>) {
    let execution = subject.text("execution").unwrap_or("inline");
    let is_inline = execution == "inline";
    if !is_inline && subject.field("control") == Some(&Value::Bool(true)) {
        problems.push(
            Diagnostic::new(
                &rules::CONTROL_IN_BACKGROUND,
                "session control cannot go on in the background",
                "remove \"execution\", or \"control\"",
            )
            .at(subject.json.place("/execution")),
        );
    }
    let is_unused = |field: &str| match field {
        "backgroundAfterMs" => execution != "auto",
        "taskTimeoutMs" => is_inline,
        _ => !is_inline,
    };
    for field in ["backgroundAfterMs", "taskTimeoutMs", "timeoutMs"] {
        if subject.field(field).is_some() && is_unused(field) {
            let help = match field {
                "backgroundAfterMs" => "set \"execution\" to \"auto\", or remove the field",
                "taskTimeoutMs" => "set \"execution\" to \"background\" or \"auto\", or write \"timeoutMs\"",
                _ => "write \"taskTimeoutMs\" instead",
            };
            problems.push(
                Diagnostic::new(
                    &rules::UNUSED_TIME,
                    format!("`{field}` has no effect with \"execution\": \"{execution}\""),
                    help,
                )
                .at(subject.json.place(&format!("/{field}"))),
            );
        }
    }
    let number = |field: &str| subject.field(field).and_then(Value::as_u64);
    let timeout = number("taskTimeoutMs").unwrap_or(DEFAULT_TASK_TIMEOUT_MS);
    if execution == "auto" && number("backgroundAfterMs").is_some_and(|after| after >= timeout) {
        problems.push(
            Diagnostic::new(
                &rules::NEVER_IN_BACKGROUND,
                "a call would be stopped before it becomes a task",
                "make \"backgroundAfterMs\" shorter than \"taskTimeoutMs\"",
            )
            .at(subject.json.place("/backgroundAfterMs")),
        );
    }
}
