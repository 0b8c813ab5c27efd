//! Limits `top_k` in voice: a listener cannot take in many results.

use quarterdeck_contracts::Category;
use serde_json::Value;

use super::{Clamped, Decision, Facts, Gate, Subject, ToolView};
use crate::policy::Budgets;

const PARAMETER: &str = "top_k";

pub(super) struct Clamp;

impl Gate for Clamp {
    fn name(&self) -> &'static str {
        "clamp"
    }

    fn judge(&self, call: &mut Subject<'_>, facts: &Facts) -> Decision {
        let clamped = call.tool.and_then(|tool| clamp(tool, &facts.budgets, call.args));
        clamped.map_or(Decision::Pass, Decision::Change)
    }
}

/// Lowers what is above the mode's limit.
pub(crate) fn clamp(tool: ToolView<'_>, budgets: &Budgets, args: &mut Value) -> Option<Clamped> {
    let most = budgets.top_k.filter(|_| tool.metadata.category == Category::Retrieval)?;
    // A value that is no number is left to the schema, which will say what is wrong with it.
    let asked = match args.get(PARAMETER) {
        Some(given) => whole(given),
        None => default_of(tool),
    };
    let asked = asked.filter(|asked| *asked > most)?;
    args.as_object_mut()?.insert(PARAMETER.into(), most.into());
    Some(Clamped { parameter: PARAMETER, asked, given: most })
}

fn default_of(tool: ToolView<'_>) -> Option<u64> {
    whole(tool.source.get("properties")?.get(PARAMETER)?.get("default")?)
}

/// A whole number, however it is written.
fn whole(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| {
        value.as_f64().filter(|float| float.fract() == 0.0 && *float >= 0.0).map(|float| float as u64)
    })
}

#[cfg(test)]
mod tests {
    use quarterdeck_contracts::Mode;
    use serde_json::json;

    use super::super::sample::{decide, facts, tool};
    use super::*;

    /// The gate's decision, and the arguments after it.
    fn decision(mode: Mode, more: Value, mut args: Value) -> (String, Value) {
        let said = decide(&Clamp, &tool(more), &mut args, &facts(mode));
        (said, args)
    }

    #[test]
    fn voice_gets_at_most_three() {
        let three = json!({ "query": "q", "top_k": 3 });
        for (asked, args) in [
            (4, json!({ "query": "q", "top_k": 4 })),
            (10, json!({ "query": "q", "top_k": 10.0 })),
            (5, json!({ "query": "q" })),
            (u64::MAX, json!({ "query": "q", "top_k": 1e300 })),
        ] {
            assert_eq!(
                decision(Mode::Voice, json!({}), args),
                (format!("top_k from {asked} to 3"), three.clone())
            );
        }
    }

    #[test]
    fn what_is_small_enough_or_no_whole_number_is_left_to_the_schema() {
        for top_k in [
            json!(3),
            json!(3.0),
            json!(1),
            json!(0),
            json!(-9),
            json!(9.5),
            json!("9"),
            json!(null),
            json!([9]),
        ] {
            let args = json!({ "query": "q", "top_k": top_k });
            assert_eq!(decision(Mode::Voice, json!({}), args.clone()), ("pass".into(), args));
        }
    }

    #[test]
    fn an_absent_one_counts_as_its_default_if_it_has_one() {
        for properties in [
            json!({ "top_k": { "type": "integer", "default": 3 } }),
            json!({ "top_k": { "type": "integer" } }),
            json!({ "query": { "type": "string" } }),
        ] {
            let more = json!({ "properties": properties });
            assert_eq!(decision(Mode::Voice, more, json!({})), ("pass".into(), json!({})));
        }
    }

    #[test]
    fn in_text_and_for_other_tools_the_schema_alone_decides() {
        let many = json!({ "query": "q", "top_k": 20 });
        assert_eq!(decision(Mode::Text, json!({}), many.clone()), ("pass".into(), many.clone()));
        let utility = json!({ "category": "utility" });
        assert_eq!(decision(Mode::Voice, utility, many.clone()), ("pass".into(), many));
    }
}
