//! Keywords for objects.

use serde_json::{Map, Value};

use super::issue::Rule;
use super::walk::{Coverage, Evaluated, Walk, WalkScope, always_valid};
use crate::types::Type;
use crate::{excerpt, pointer};

/// Matching every declared name against every pattern is a product; past this many pairs the list is cut.
const MAX_MATCHES_TRIED: usize = 20_000;

impl<'d> Walk<'_, 'd> {
    pub(super) fn objects(
        &mut self,
        schema: &'d Map<String, Value>,
        here: &mut WalkScope<'d>,
        evaluated: &mut Evaluated,
    ) {
        let properties = schema.get("properties").and_then(Value::as_object);
        self.ignored_defaults(properties, here);
        self.required(schema, properties, here);
        if let Some(names) = schema.get("propertyNames") {
            let place = here.keyword("propertyNames");
            let inner = if always_valid(names) { here.same(place) } else { here.part(place) };
            self.subschema(names, inner.of_types(&[Type::String]).composite());
        }
        self.additional_properties(schema, here, evaluated);
        self.dependent("dependencies", schema, here, evaluated);
        self.properties(properties, here, evaluated);
        self.pattern_properties(schema, properties, here, evaluated);
        self.dependent("dependentSchemas", schema, here, evaluated);
        if let Some(rest) = schema.get("unevaluatedProperties") {
            if evaluated.properties != Coverage::All && rest.is_object() {
                let place = here.keyword("unevaluatedProperties");
                self.part(rest, here, place);
            }
            evaluated.properties = Coverage::All;
        }
    }

    fn ignored_defaults(&mut self, properties: Option<&'d Map<String, Value>>, here: &WalkScope<'d>) {
        if !here.composite {
            return;
        }
        let place = here.keyword("properties");
        for (name, property) in properties.into_iter().flatten() {
            if property.get("default").is_some() {
                self.report(
                    pointer::join(&pointer::join(&place, name), "default"),
                    Rule::IgnoredDefault,
                    format!("the `default` of \"{}\" is never filled in: it stands below a choice", excerpt::cut(name)),
                    "move the property with its default out of `anyOf`, `oneOf`, `not`, `if` or `contains`, or remove \
                     the default",
                );
            }
        }
    }

    fn required(
        &mut self,
        schema: &Map<String, Value>,
        properties: Option<&Map<String, Value>>,
        here: &WalkScope<'d>,
    ) {
        let Some(Value::Array(required)) = schema.get("required") else { return };
        let place = here.keyword("required");
        for (index, name) in required.iter().enumerate() {
            let Some(name) = name.as_str() else { continue };
            let is_declared = properties.is_some_and(|properties| properties.contains_key(name))
                || here.declared.borrow().contains(name);
            if is_declared {
                continue;
            }
            let near = self.nearest(name, properties.into_iter().flatten().map(|(name, _)| name.as_str()));
            let help = match near {
                Some(near) => format!("did you mean \"{near}\"?"),
                None => "declare it in the `properties` beside this `required`, or remove it from the list"
                    .to_owned(),
            };
            let message =
                format!("required property \"{}\" is not declared in `properties`", excerpt::cut(name));
            self.report(pointer::join(&place, &index.to_string()), Rule::RequiredNotDeclared, message, help);
        }
    }

    fn additional_properties(
        &mut self,
        schema: &'d Map<String, Value>,
        here: &mut WalkScope<'d>,
        evaluated: &mut Evaluated,
    ) {
        let Some(rest) = schema.get("additionalProperties") else { return };
        evaluated.properties = Coverage::All;
        if !always_valid(rest) {
            self.patterns_of(schema, here);
        }
        if rest.is_object() {
            let place = here.keyword("additionalProperties");
            self.part(rest, here, place);
        }
    }

    fn dependent(
        &mut self,
        keyword: &str,
        schema: &'d Map<String, Value>,
        here: &mut WalkScope<'d>,
        evaluated: &mut Evaluated,
    ) {
        let Some(Value::Object(dependents)) = schema.get(keyword) else { return };
        let place = here.keyword(keyword);
        for (name, dependent) in dependents {
            let inner = here.same(pointer::join(&place, name));
            let inner = self.subschema(dependent, inner);
            evaluated.merge_if_valid(inner);
        }
    }

    fn properties(
        &mut self,
        properties: Option<&'d Map<String, Value>>,
        here: &mut WalkScope<'d>,
        evaluated: &mut Evaluated,
    ) {
        let Some(properties) = properties else { return };
        here.declared.borrow_mut().extend(properties.keys().map(String::as_str));
        if !properties.is_empty() {
            evaluated.properties = evaluated.properties.max(Coverage::Some);
        }
        let place = here.keyword("properties");
        for (name, property) in properties {
            self.part(property, here, pointer::join(&place, name));
            if !always_valid(property) {
                here.declared.borrow_mut().insert(name);
            }
        }
    }

    fn pattern_properties(
        &mut self,
        schema: &'d Map<String, Value>,
        properties: Option<&'d Map<String, Value>>,
        here: &mut WalkScope<'d>,
        evaluated: &mut Evaluated,
    ) {
        let Some(Value::Object(patterns)) = schema.get("patternProperties") else { return };
        let place = here.keyword("patternProperties");
        let is_trivial = patterns.values().all(always_valid) && evaluated.properties == Coverage::All;
        if !is_trivial && !patterns.is_empty() {
            self.patterns_of(schema, here);
            self.matching_properties(patterns, properties, here);
            evaluated.properties = evaluated.properties.max(Coverage::OnlyKnownLater);
        }
        for (pattern, property) in patterns {
            self.part(property, here, pointer::join(&place, pattern));
        }
    }

    fn patterns_of(&mut self, schema: &Map<String, Value>, here: &WalkScope<'d>) {
        let Some(Value::Object(patterns)) = schema.get("patternProperties") else { return };
        let place = here.keyword("patternProperties");
        for pattern in patterns.keys() {
            self.pattern(pattern, pointer::join(&place, pattern));
        }
    }

    fn matching_properties(
        &mut self,
        patterns: &Map<String, Value>,
        properties: Option<&Map<String, Value>>,
        here: &WalkScope<'d>,
    ) {
        let place = here.keyword("patternProperties");
        let pairs = patterns
            .keys()
            .flat_map(|pattern| properties.into_iter().flat_map(Map::keys).map(move |name| (pattern, name)));
        for (pattern, name) in pairs.take(MAX_MATCHES_TRIED) {
            if self.pattern_matches(pattern, name) {
                self.report(
                    pointer::join(&place, pattern),
                    Rule::PropertyMatchesPattern,
                    format!("property \"{}\" is declared and also matches this pattern", excerpt::cut(name)),
                    "make the pattern leave out the declared names, or drop one of the two",
                );
            }
        }
    }
}
