//! Someone who listens gets few results.

use quarterdeck_contracts::Category;
use serde_json::Value;

use super::{Clamped, Decision, Facts, Gate, Subject, ToolView};

const PARAMETER: &str = "top_k";

pub(super) struct Clamp;

impl Gate for Clamp {
    fn name(&self) -> &'static str {
        "clamp"
    }

    fn judge(&self, call: &mut Subject<'_>, facts: &Facts) -> Decision {
        let (Some(tool), Some(most)) = (call.tool, facts.budgets.top_k) else { return Decision::Pass };
        if tool.metadata.category != Category::Retrieval {
            return Decision::Pass;
        }
        // A value that is no number is left to the schema, which will say what is wrong with it.
        let asked = match call.args.get(PARAMETER) {
            Some(given) => whole(given),
            None => default_of(tool),
        };
        match (asked, call.args.as_object_mut()) {
            (Some(asked), Some(args)) if asked > most => {
                args.insert(PARAMETER.into(), most.into());
                Decision::Change(Clamped { parameter: PARAMETER, asked, given: most })
            }
            _ => Decision::Pass,
        }
    }
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
