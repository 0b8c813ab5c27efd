//! Gives each loss a counter-example where one can be found.

use std::collections::BTreeMap;

use quarterdeck_contracts::Loss;
use quarterdeck_schema::Schema;
use serde_json::{Map, Value};

use super::counter_example::{Hints, find_where};

/// Losses by name, each with arguments that `admitting` (the provider's form, as JSON Schema) admits and the
/// original refuses for that very reason.
pub(super) fn with_counter_examples<'n>(
    notes: impl IntoIterator<Item = (&'n str, Vec<String>)>,
    original: &Value,
    admitting: &Value,
) -> Vec<Loss> {
    let mut notes = notes.into_iter().peekable();
    if notes.peek().is_none() {
        return Vec::new();
    }
    // Compiled only when something was lost: this is the expensive part, and most tools lose nothing.
    let schemas = Schema::compile(admitting).ok().zip(Schema::compile(original).ok());
    let counter_example = |what: &str, at: &[String]| {
        let (admits, refuses) = schemas.as_ref()?;
        let without = Schema::compile(&without(original, what, at)).ok()?;
        let hints = Hints { admitting, refusing: original, places: at };
        find_where(admits, refuses, &hints, |candidate| without.accepts(candidate))
    };
    let loss = |(what, at): (&str, Vec<String>)| {
        let counter_example = counter_example(what, &at);
        Loss { what: what.to_owned(), at, counter_example, renamed: BTreeMap::new() }
    };
    notes.map(loss).collect()
}

/// Losses whose places are whole schemas; the places of all others are keywords.
const OF_SCHEMAS: [&str; 3] = ["untyped schema", "array without items", "recursive $ref"];

/// `original` without what was lost: it accepts what is refused because of that and of nothing else.
fn without(original: &Value, what: &str, places: &[String]) -> Value {
    let mut relaxed = original.clone();
    for place in places {
        if OF_SCHEMAS.contains(&what) {
            if let Some(schema) = relaxed.pointer_mut(place) {
                *schema = Value::Bool(true);
            }
        } else if let Some((owner, keyword)) = place.rsplit_once('/')
            && let Some(owner) = relaxed.pointer_mut(owner).and_then(Value::as_object_mut)
        {
            take_away(owner, what, keyword);
        }
    }
    relaxed
}

fn take_away(owner: &mut Map<String, Value>, what: &str, keyword: &str) {
    let taken = owner.shift_remove(keyword);
    match (what, taken) {
        // Only "exactly one" was lost; "any" was kept.
        ("oneOf", Some(branches)) => {
            owner.entry("anyOf").or_insert(branches);
        }
        // `items` speaks of what follows the tuple.
        ("prefixItems", _) => {
            owner.shift_remove("items");
        }
        _ => {}
    }
}
