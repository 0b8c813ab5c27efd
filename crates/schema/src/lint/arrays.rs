//! Keywords for arrays.

use serde_json::{Map, Value};

use super::issue::Rule;
use super::walk::{Coverage, Evaluated, Walk, WalkScope, always_valid};
use crate::excerpt::counted;
use crate::pointer;

impl<'d> Walk<'_, 'd> {
    pub(super) fn arrays(
        &mut self,
        schema: &'d Map<String, Value>,
        here: &mut WalkScope<'d>,
        evaluated: &mut Evaluated,
    ) {
        if let Some(Value::Array(prefix)) = schema.get("prefixItems") {
            self.tuple(schema, prefix, here, evaluated);
        }
        if let Some(items) = schema.get("items") {
            evaluated.items = Coverage::All;
            // `items: false` after a prefix is a limit on the length, not a schema for each item.
            if !(items == &Value::Bool(false) && schema.contains_key("prefixItems")) {
                let place = here.keyword("items");
                self.part(items, here, place);
            }
        }
        self.contains(schema, here, evaluated);
        if let Some(rest) = schema.get("unevaluatedItems") {
            if evaluated.items != Coverage::All && rest.is_object() {
                let place = here.keyword("unevaluatedItems");
                self.part(rest, here, place);
            }
            evaluated.items = Coverage::All;
        }
    }

    fn tuple(
        &mut self,
        schema: &'d Map<String, Value>,
        prefix: &'d [Value],
        here: &mut WalkScope<'d>,
        evaluated: &mut Evaluated,
    ) {
        let place = here.keyword("prefixItems");
        let says = |keyword: &str| schema.get(keyword).and_then(Value::as_f64) == Some(prefix.len() as f64);
        if !(says("minItems") && (says("maxItems") || schema.get("items") == Some(&Value::Bool(false)))) {
            let length = prefix.len();
            self.report(
                place.clone(),
                Rule::OpenTuple,
                format!(
                    "`prefixItems` describes {}, but the array may be shorter or longer",
                    counted(length, "item", "items")
                ),
                format!("add \"minItems\": {length} and \"items\": false"),
            );
        }
        evaluated.items = evaluated.items.max(Coverage::Some);
        for (index, item) in prefix.iter().enumerate() {
            self.part(item, here, pointer::join(&place, &index.to_string()));
        }
    }

    fn contains(
        &mut self,
        schema: &'d Map<String, Value>,
        here: &mut WalkScope<'d>,
        evaluated: &mut Evaluated,
    ) {
        let bound = |keyword: &str| schema.get(keyword).and_then(Value::as_f64);
        let Some(wanted) = schema.get("contains") else {
            for keyword in ["minContains", "maxContains"] {
                if schema.contains_key(keyword) {
                    let message = format!("`{keyword}` has no effect without `contains`");
                    self.report(
                        here.keyword(keyword),
                        Rule::IgnoredKeyword,
                        message,
                        "add `contains`, or remove it",
                    );
                }
            }
            return;
        };
        let (min, max) = (bound("minContains").unwrap_or(1.0), bound("maxContains"));
        match max {
            None if min == 0.0 => {
                let message =
                    "`minContains` 0 without `maxContains` makes `contains` have no effect".to_owned();
                let place = here.keyword("minContains");
                self.report(place, Rule::IgnoredKeyword, message, "add `maxContains`, or remove both");
            }
            Some(max) if min > max => {
                let message =
                    "`minContains` is greater than `maxContains`, so nothing is admitted".to_owned();
                let place = here.keyword("minContains");
                self.report(
                    place,
                    Rule::IgnoredKeyword,
                    message,
                    "lower `minContains`, or raise `maxContains`",
                );
            }
            _ => {
                let place = here.keyword("contains");
                let inner = if always_valid(wanted) {
                    here.same(place)
                } else {
                    evaluated.items = Coverage::All;
                    here.part(place)
                };
                self.subschema(wanted, inner.composite());
            }
        }
    }
}
