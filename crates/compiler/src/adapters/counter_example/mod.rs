//! Arguments that one schema admits and another refuses.
//!
//! A valid instance of the refusing schema is built so that it passes through the place where the two differ, and
//! what stands there is replaced by one suspect after another. Every answer has been judged by both schemas; when
//! the search finds nothing, that proves nothing. It is deterministic and its work is bounded.

mod instance;
mod route;
mod text;
mod variants;
mod view;

use quarterdeck_schema::Schema;
use serde_json::Value;

use self::instance::Generator;
use self::route::Routes;
use self::view::View;

/// How many places and suspects are looked at. Both are far more than real tools need.
const MAX_PLACES: usize = 12;
const MAX_SUSPECTS: usize = 160;

/// What helps a search: the sources of both schemas, and where to look.
#[derive(Debug, Clone, Copy)]
pub struct Hints<'a> {
    /// Source of the schema that should admit the answer.
    pub admitting: &'a Value,
    /// Source of the schema that should refuse it.
    pub refusing: &'a Value,
    /// Pointers in the refusing source, to schemas or to their keywords; empty to look everywhere.
    pub places: &'a [String],
}

/// A value that `admits` accepts and `refuses` does not, differing in one place only from one that `refuses`
/// accepts.
pub fn find(admits: &Schema, refuses: &Schema, hints: &Hints<'_>) -> Option<Value> {
    search(hints, |start, candidate| {
        // Were the start itself refused, every answer would be for another reason.
        refuses.accepts(start) && admits.accepts(candidate) && !refuses.accepts(candidate)
    })
}

/// The same, where the caller can tell from a value whether it is refused for the right reason.
pub fn find_where(
    admits: &Schema,
    refuses: &Schema,
    hints: &Hints<'_>,
    right: impl Fn(&Value) -> bool,
) -> Option<Value> {
    search(hints, |_, candidate| admits.accepts(candidate) && !refuses.accepts(candidate) && right(candidate))
}

/// A value that `schema` should accept: the least that it asks for. Not certain; ask the schema.
pub fn instance(schema: &Value) -> Value {
    Generator::new(schema).instance(schema)
}

fn search(hints: &Hints<'_>, good: impl Fn(&Value, &Value) -> bool) -> Option<Value> {
    let routes = Routes::new(hints.refusing);
    let everywhere;
    let places = if hints.places.is_empty() {
        everywhere = routes.places();
        &everywhere
    } else {
        hints.places
    };
    places.iter().take(MAX_PLACES).find_map(|place| search_at(hints, &routes, place, &good))
}

fn search_at(
    hints: &Hints<'_>,
    routes: &Routes<'_>,
    place: &str,
    good: impl Fn(&Value, &Value) -> bool,
) -> Option<Value> {
    let route = routes.to(place)?;
    let generator = Generator::new(hints.refusing);
    let start = generator.toward(&route);
    let here = start.pointer(&route.instance)?;
    let mut views = vec![generator.view(route.schema)];
    // Where both documents have the same layout, the other one knows what it admits there.
    if let Some(other) = hints.admitting.pointer(&route.at) {
        views.push(View::new(hints.admitting, other, None));
    }
    let mut candidate = start.clone();
    for suspect in variants::of(&generator, &views, here, route.keyword).into_iter().take(MAX_SUSPECTS) {
        *candidate.pointer_mut(&route.instance)? = suspect;
        if good(&start, &candidate) {
            return Some(candidate);
        }
    }
    None
}
