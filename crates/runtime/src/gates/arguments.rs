//! The arguments fit the tool's schema.

use quarterdeck_schema::Violation;
use serde_json::Value;

use super::{Decision, Facts, Gate, Subject};
use crate::envelope::invalid_arguments;
use crate::redact::{Secrets, SensitiveArguments};

pub(super) struct Arguments;

impl Gate for Arguments {
    fn name(&self) -> &'static str {
        "arguments"
    }

    fn judge(&self, call: &mut Subject<'_>, _: &Facts) -> Decision {
        let Some(tool) = call.tool else { return Decision::Pass };
        let outcome = match call.judged {
            Some(judged) if judged.given == *call.args => fill(call.args, &judged.outcome),
            _ => tool.parameters.admit(call.args).map(drop),
        };
        match outcome {
            Ok(()) => Decision::Pass,
            Err(violations) => {
                let mut refusal = invalid_arguments(&violations);
                Secrets::of(SensitiveArguments::of(tool.metadata, tool.source), call.args)
                    .hide_in_error(&mut refusal);
                Decision::Refuse(Box::new(refusal))
            }
        }
    }
}

fn fill(args: &mut Value, outcome: &Result<Value, Vec<Violation>>) -> Result<(), Vec<Violation>> {
    let filled = outcome.as_ref().map_err(Vec::clone)?;
    args.clone_from(filled);
    Ok(())
}

#[cfg(test)]
mod tests {
    use quarterdeck_contracts::{ErrorType, Mode};
    use serde_json::json;

    use super::super::CheckedArguments;
    use super::super::sample::{decide, describe, facts, subject, tool};
    use super::*;

    #[test]
    fn defaults_are_filled_in() {
        let mut args = json!({ "query": "q" });
        assert_eq!(decide(&Arguments, &tool(json!({})), &mut args, &facts(Mode::Text)), "pass");
        assert_eq!(args, json!({ "query": "q", "top_k": 5 }));
    }

    #[test]
    fn what_was_judged_beforehand_counts_for_the_same_arguments_and_no_others() {
        let (tool, facts) = (tool(json!({})), facts(Mode::Text));
        let judged = CheckedArguments {
            given: json!({ "query": "long" }),
            outcome: Err(vec![Violation::too_complex()]),
        };
        let decide = |mut args: Value| {
            subject("kb_search", Some(&tool), &mut args, |call| {
                let Subject { name, tool, known, .. } = *call;
                let mut call = Subject { name, args: &mut *call.args, tool, judged: Some(&judged), known };
                describe(&Arguments.judge(&mut call, &facts))
            })
        };
        assert!(decide(json!({ "query": "long" })).contains("too complex"));
        assert_eq!(decide(json!({ "query": "other" })), "pass");
    }

    #[test]
    fn every_violation_is_listed_without_secret_values() {
        let tool = tool(json!({}));
        let mut args = json!({ "top_k": 21, "card": "4111-secret" });
        let decision =
            subject("kb_search", Some(&tool), &mut args, |call| Arguments.judge(call, &facts(Mode::Text)));
        let Decision::Refuse(error) = decision else { panic!("{decision:?}") };
        assert_eq!(
            (error.kind, error.retryable, error.partial_side_effects),
            (ErrorType::Validation, false, Some(false))
        );
        let details = error.details.as_ref().and_then(Value::as_array).unwrap();
        assert_eq!(details.len(), 3, "{details:?}");
        for detail in details {
            let fields: Vec<_> = detail.as_object().unwrap().keys().collect();
            assert_eq!(fields.len(), 3, "{detail}");
            assert!(
                ["path", "keyword", "message"].iter().all(|field| detail[*field].is_string()),
                "{detail}"
            );
        }
        assert!(!json!(error).to_string().contains("4111"), "{error:?}");
    }
}
