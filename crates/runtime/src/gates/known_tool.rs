//! There is a tool of that name in the session's registry.

use quarterdeck_contracts::ErrorType;
use quarterdeck_schema::nearest_few;

use super::{Decision, Facts, Gate, Subject, refuse_with};

/// How many names are offered.
const MAX_SUGGESTIONS: usize = 3;

pub(super) struct KnownTool;

impl Gate for KnownTool {
    fn name(&self) -> &'static str {
        "known_tool"
    }

    fn judge(&self, call: &mut Subject<'_>, _: &Facts) -> Decision {
        if call.tool.is_some() {
            return Decision::Pass;
        }
        let known = (call.known)();
        let near = nearest_few(call.name, known.iter().map(String::as_str), MAX_SUGGESTIONS);
        let suggestion = (!near.is_empty()).then(|| format!("Did you mean {}?", near.join(" or ")));
        refuse_with(ErrorType::NotFound, format!("There is no tool called {}.", call.name), suggestion)
    }
}

#[cfg(test)]
mod tests {
    use quarterdeck_contracts::Mode;
    use serde_json::json;

    use super::super::sample::{describe, facts, subject, tool};
    use super::*;

    fn decide(name: &str) -> String {
        subject(name, None, &mut json!({}), |call| describe(&KnownTool.judge(call, &facts(Mode::Text))))
    }

    #[test]
    fn the_nearest_names_are_offered_the_nearest_first() {
        assert_eq!(
            decide("kb_serch"),
            "NOT_FOUND: There is no tool called kb_serch. Did you mean kb_search or kb_search_all or kb_search_old?"
        );
        assert_eq!(
            decide("getWeather"),
            "NOT_FOUND: There is no tool called getWeather. Did you mean get_weather?"
        );
    }

    #[test]
    fn nothing_is_offered_for_a_name_like_no_other() {
        assert_eq!(decide("zzz"), "NOT_FOUND: There is no tool called zzz.");
    }

    #[test]
    fn a_tool_that_exists_passes() {
        let tool = tool(json!({}));
        let decision = subject("kb_search", Some(&tool), &mut json!({}), |call| {
            describe(&KnownTool.judge(call, &facts(Mode::Text)))
        });
        assert_eq!(decision, "pass");
    }
}
