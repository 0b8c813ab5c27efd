//! Finds references that would make judging a value go on for ever.
//!
//! A recursive schema is fine as long as each round looks at a smaller part of the value: a member, an item. One that
//! comes back to itself for the same value never ends, whatever the value is.

use std::collections::HashMap;

use serde_json::Value;

use crate::document::{Document, Place, ReferenceError};
use crate::keywords::{self, Subject};
use crate::pointer;

/// The pointers of the keywords that close such a circle, among the schemas that judging a value can reach.
pub(crate) fn endless(document: &Document<'_>) -> Vec<String> {
    let (edges, mut found) = same_value_edges(document);
    found.extend(closing_edges(&edges));
    found.sort();
    found.dedup();
    found
}

/// A step that stays on the same value.
struct Edge {
    target: usize,
    keyword: String,
}

fn same_value_edges<'d>(document: &Document<'d>) -> (Vec<Vec<Edge>>, Vec<String>) {
    let root = document.root();
    let mut numbers: HashMap<String, usize> = HashMap::from([(root.pointer.clone(), 0)]);
    let mut edges: Vec<Vec<Edge>> = vec![Vec::new()];
    let mut found = Vec::new();
    let mut waiting = vec![root];
    while let Some(place) = waiting.pop() {
        let from = numbers[&place.pointer];
        for (keyword, subject, target) in steps(document, &place, &mut found) {
            let to = *numbers.entry(target.pointer.clone()).or_insert_with(|| {
                edges.push(Vec::new());
                waiting.push(target);
                edges.len() - 1
            });
            if subject == Subject::Same {
                edges[from].push(Edge { target: to, keyword });
            }
        }
    }
    (edges, found)
}

fn steps<'d>(
    document: &Document<'d>,
    place: &Place<'d>,
    endless: &mut Vec<String>,
) -> Vec<(String, Subject, Place<'d>)> {
    let Value::Object(schema) = place.schema else { return Vec::new() };
    let base = place.inner_base();
    let mut steps = Vec::new();
    for (keyword, value) in schema {
        let here = pointer::join(&place.pointer, keyword);
        if let ("$ref" | "$dynamicRef", Value::String(reference)) = (keyword.as_str(), value) {
            match document.resolve(&base, reference) {
                Ok(target) => steps.push((here, Subject::Same, target)),
                Err(ReferenceError::Endless) => endless.push(here),
                Err(_) => {}
            }
            continue;
        }
        let Some((shape, subject)) = keywords::applicator(keyword) else { continue };
        if subject == Subject::Nothing {
            continue;
        }
        for (segment, schema) in keywords::subschemas(shape, value) {
            let pointer = segment.map_or_else(|| here.clone(), |segment| pointer::join(&here, &segment));
            steps.push((here.clone(), subject, Place { pointer, schema, base: base.clone().into_owned() }));
        }
    }
    steps
}

#[derive(Clone, Copy, PartialEq)]
enum Mark {
    New,
    Open,
    Done,
}

/// Depth-first without recursion: a chain of references can be as long as the document has schemas.
fn closing_edges(edges: &[Vec<Edge>]) -> Vec<String> {
    let mut marks = vec![Mark::New; edges.len()];
    let mut closing = Vec::new();
    for start in 0..edges.len() {
        if marks[start] != Mark::New {
            continue;
        }
        marks[start] = Mark::Open;
        let mut path = vec![(start, 0)];
        while let Some((node, next)) = path.last_mut() {
            let Some(edge) = edges[*node].get(*next) else {
                marks[*node] = Mark::Done;
                path.pop();
                continue;
            };
            *next += 1;
            match marks[edge.target] {
                Mark::New => {
                    marks[edge.target] = Mark::Open;
                    path.push((edge.target, 0));
                }
                Mark::Open => closing.push(edge.keyword.clone()),
                Mark::Done => {}
            }
        }
    }
    closing
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn endless_in(schema: Value) -> Vec<String> {
        endless(&Document::new(&schema))
    }

    #[test]
    fn recursion_through_a_member_ends() {
        let tree = json!({"type": "object", "properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}}});
        assert!(endless_in(tree).is_empty());
    }

    #[test]
    fn recursion_on_the_same_value_does_not() {
        assert_eq!(endless_in(json!({"$ref": "#"})), ["/$ref"]);
        assert_eq!(endless_in(json!({"anyOf": [{"type": "string"}, {"$ref": "#"}]})), ["/anyOf/1/$ref"]);
        let mutual = json!({
            "$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"not": {"$ref": "#/$defs/a"}}},
            "properties": {"x": {"$ref": "#/$defs/a"}}
        });
        assert_eq!(endless_in(mutual).len(), 1);
    }

    #[test]
    fn a_circle_that_nothing_reaches_does_no_harm() {
        assert!(endless_in(json!({"$defs": {"a": {"$ref": "#/$defs/a"}}})).is_empty());
    }
}
