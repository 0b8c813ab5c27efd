//! The walk over a schema, in the order in which Ajv compiles it.
//!
//! The order matters: which properties count as declared, and which subschemas are looked at at all, depends on what
//! came before. Definitions are looked at where they are referred to; one that nothing uses is held to the
//! meta-schema only.

use std::cell::RefCell;
use std::collections::{HashSet, VecDeque};
use std::rc::Rc;

use serde_json::{Map, Value};

use super::issue::{LintIssue, Rule};
use super::patterns::Patterns;
use crate::document::{self, Document, Place};
use crate::formats::{self, Format};
use crate::pattern::PatternError;
use crate::types::Type;
use crate::{excerpt, keywords, nearest, pointer};

/// Schemas looked at before giving up. References to large definitions multiply: without a limit a small document
/// could keep the walk busy for minutes.
const MAX_SCHEMAS: usize = 200_000;

/// A suggestion compares a word with many others, so a schema that is wrong all over gets only so many.
const MAX_SUGGESTIONS: usize = 100;

pub(super) fn issues(document: &Document<'_>) -> Vec<LintIssue> {
    let mut walk = Walk::new(document);
    walk.enqueue(document.root());
    while let Some(place) = walk.waiting.pop_front() {
        walk.standalone(place);
    }
    walk.issues
}

/// Where the walk stands: the schema's place and what the schemas around it have established for the same value.
#[derive(Debug, Clone)]
pub(super) struct WalkScope<'d> {
    pub(super) pointer: String,
    pub(super) base: Rc<str>,
    /// The types that the value is known to have; empty while nothing is known.
    pub(super) types: Vec<Type>,
    /// Whether a failure here is not final (below `anyOf`, `not` …), in which case defaults are not filled.
    pub(super) composite: bool,
    /// Property names declared so far. It is shared between schemas as Ajv shares it, which is more widely than one
    /// would think.
    pub(super) declared: Rc<RefCell<HashSet<&'d str>>>,
    is_async: bool,
    is_top: bool,
}

impl<'d> WalkScope<'d> {
    /// A subschema for the same value.
    pub(super) fn same(&self, pointer: String) -> Self {
        Self { pointer, is_top: false, ..self.clone() }
    }

    /// A subschema for a part of the value. Both forget the declared names and share the new, empty set.
    pub(super) fn part(&mut self, pointer: String) -> Self {
        self.declared = Rc::default();
        Self { types: Vec::new(), ..self.same(pointer) }
    }

    pub(super) fn composite(self) -> Self {
        Self { composite: true, ..self }
    }

    pub(super) fn of_types(self, types: &[Type]) -> Self {
        Self { types: types.to_vec(), ..self }
    }

    pub(super) fn keyword(&self, keyword: &str) -> String {
        pointer::join(&self.pointer, keyword)
    }
}

/// How much of an object or array the keywords so far have judged, as far as one can tell without the value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Coverage {
    #[default]
    Nothing,
    Some,
    OnlyKnownLater,
    All,
}

/// Coverage of members and of items.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Evaluated {
    pub(super) properties: Coverage,
    pub(super) items: Coverage,
}

impl Evaluated {
    /// Takes over what a subschema that always applies has judged.
    pub(super) fn merge(&mut self, other: Self) {
        self.properties = self.properties.max(other.properties);
        self.items = self.items.max(other.items);
    }

    /// Takes over what a subschema that may not apply has judged.
    pub(super) fn merge_if_valid(&mut self, other: Self) {
        let later = |coverage: Coverage| coverage.min(Coverage::OnlyKnownLater);
        let doubtful =
            |coverage| if coverage == Coverage::Nothing { coverage } else { Coverage::OnlyKnownLater };
        self.merge(Self {
            properties: later(doubtful(other.properties)),
            items: later(doubtful(other.items)),
        });
    }
}

pub(super) struct Walk<'w, 'd> {
    pub(super) document: &'w Document<'d>,
    pub(super) issues: Vec<LintIssue>,
    patterns: Patterns,
    waiting: VecDeque<Place<'d>>,
    enqueued: HashSet<String>,
    reported: HashSet<(Rule, String, String)>,
    looked_at: usize,
    suggestions_left: usize,
}

impl<'w, 'd> Walk<'w, 'd> {
    fn new(document: &'w Document<'d>) -> Self {
        Self {
            document,
            issues: Vec::new(),
            patterns: Patterns::default(),
            waiting: VecDeque::new(),
            enqueued: HashSet::new(),
            reported: HashSet::new(),
            looked_at: 0,
            suggestions_left: MAX_SUGGESTIONS,
        }
    }

    /// Has a schema looked at by itself, once.
    pub(super) fn enqueue(&mut self, place: Place<'d>) {
        if self.enqueued.insert(place.pointer.clone()) {
            self.waiting.push_back(place);
        }
    }

    /// Reports once, however often a shared definition is passed.
    pub(super) fn report(&mut self, pointer: String, rule: Rule, message: String, help: impl Into<String>) {
        if self.reported.insert((rule, pointer.clone(), message.clone())) {
            self.issues.push(LintIssue { pointer, rule, message, help: help.into() });
        }
    }

    /// The word that `word` is a slip of, for the first few slips.
    pub(super) fn nearest<'c>(
        &mut self,
        word: &str,
        candidates: impl Iterator<Item = &'c str>,
    ) -> Option<&'c str> {
        self.suggestions_left = self.suggestions_left.checked_sub(1)?;
        nearest::nearest(word, candidates)
    }

    fn standalone(&mut self, place: Place<'d>) {
        let Value::Object(schema) = place.schema else { return };
        let mut here = WalkScope {
            base: place.base.as_str().into(),
            pointer: place.pointer,
            types: Vec::new(),
            composite: false,
            declared: Rc::default(),
            is_async: schema.get("$async").is_some_and(is_truthy),
            is_top: true,
        };
        self.unknown_keywords(schema, &here);
        if !keywords::has_rules(schema) {
            return;
        }
        if schema.contains_key("default") {
            self.report(
                here.keyword("default"),
                Rule::IgnoredDefault,
                "a `default` for the whole value is never filled in".to_owned(),
                "remove it, or give the properties defaults of their own",
            );
        }
        self.keywords(schema, &mut here);
    }

    /// Looks at a subschema and returns what it judges.
    pub(super) fn subschema(&mut self, schema: &'d Value, mut here: WalkScope<'d>) -> Evaluated {
        let Value::Object(schema) = schema else { return Evaluated::default() };
        self.looked_at += 1;
        if self.looked_at > MAX_SCHEMAS {
            self.report(
                String::new(),
                Rule::TooLarge,
                "the schema is too large once its references are expanded".to_owned(),
                "use smaller definitions, or refer to them less often",
            );
            return Evaluated::default();
        }
        self.unknown_keywords(schema, &here);
        if !keywords::has_rules(schema) {
            return Evaluated::default();
        }
        if let Some(base) = document::inner_base(schema, &here.base) {
            here.base = base.into();
        }
        if schema.get("$async").is_some_and(is_truthy) && !here.is_async {
            let place = here.keyword("$async");
            self.report(
                place,
                Rule::AsyncSchema,
                "`$async` has no meaning here".to_owned(),
                "remove `$async`",
            );
        }
        self.keywords(schema, &mut here)
    }

    /// Looks at a subschema for a part of the value. One that accepts everything leaves no trace.
    pub(super) fn part(&mut self, schema: &'d Value, here: &mut WalkScope<'d>, pointer: String) {
        let inner = if always_valid(schema) { here.same(pointer) } else { here.part(pointer) };
        self.subschema(schema, inner);
    }

    fn unknown_keywords(&mut self, schema: &Map<String, Value>, here: &WalkScope<'d>) {
        for keyword in schema.keys().filter(|keyword| !keywords::is_known(keyword)) {
            let help = match (keyword.as_str(), self.nearest(keyword, keywords::all())) {
                ("id", _) => "use `$id`".to_owned(),
                ("$anchor", _) => "refer to the schema by its place, as in \"#/$defs/name\"".to_owned(),
                ("example", _) => "use `examples`, a list".to_owned(),
                ("additionalItems", _) => "use `items` beside `prefixItems`".to_owned(),
                (_, Some(near)) => format!("did you mean `{near}`?"),
                (_, None) => "remove it, or say it in the `description`".to_owned(),
            };
            let message = format!("unknown keyword `{}`", excerpt::cut(keyword));
            self.report(here.keyword(keyword), Rule::UnknownKeyword, message, help);
        }
    }

    fn keywords(&mut self, schema: &'d Map<String, Value>, here: &mut WalkScope<'d>) -> Evaluated {
        let types = self.declared_types(schema, here);
        let mut evaluated = Evaluated::default();
        let reference = schema.get("$ref").and_then(Value::as_str);
        if let (Some(reference), false) = (reference, keywords::has_rules_beside_ref(schema)) {
            self.reference(reference, here, &mut evaluated);
            return evaluated;
        }
        self.strict_types(schema, types, here);
        self.dynamic(schema, here);
        if let Some(reference) = reference {
            self.reference(reference, here, &mut evaluated);
        }
        self.enumeration(schema, here);
        self.composition(schema, here, &mut evaluated);
        self.format(schema, here);
        if let Some(Value::String(pattern)) = schema.get("pattern") {
            self.pattern(pattern, here.keyword("pattern"));
        }
        self.arrays(schema, here, &mut evaluated);
        self.objects(schema, here, &mut evaluated);
        evaluated
    }

    fn dynamic(&mut self, schema: &'d Map<String, Value>, here: &WalkScope<'d>) {
        if schema.contains_key("$dynamicAnchor") && !here.is_top {
            // A dynamic anchor can be entered from anywhere, so its schema must also stand by itself.
            if let Ok(place) = self.document.at(&here.pointer, &here.base) {
                self.enqueue(place);
            }
        }
        if let Some(Value::String(reference)) = schema.get("$dynamicRef") {
            self.dynamic_reference(reference, here);
        }
    }

    fn enumeration(&mut self, schema: &Map<String, Value>, here: &WalkScope<'d>) {
        if schema.get("enum").and_then(Value::as_array).is_some_and(Vec::is_empty) {
            let message = "an `enum` without values admits nothing".to_owned();
            self.report(here.keyword("enum"), Rule::EmptyEnum, message, "list the values, or remove `enum`");
        }
    }

    fn composition(
        &mut self,
        schema: &'d Map<String, Value>,
        here: &mut WalkScope<'d>,
        evaluated: &mut Evaluated,
    ) {
        if let Some(inner) = schema.get("not") {
            self.subschema(inner, here.same(here.keyword("not")).composite());
        }
        for keyword in ["anyOf", "oneOf", "allOf"] {
            let Some(Value::Array(branches)) = schema.get(keyword) else { continue };
            let place = here.keyword(keyword);
            for (index, branch) in branches.iter().enumerate() {
                let inner = here.same(pointer::join(&place, &index.to_string()));
                if keyword == "allOf" {
                    let inner = self.subschema(branch, inner);
                    evaluated.merge(inner);
                } else {
                    let inner = self.subschema(branch, inner.composite());
                    evaluated.merge_if_valid(inner);
                }
            }
        }
        self.conditional(schema, here, evaluated);
    }

    fn conditional(
        &mut self,
        schema: &'d Map<String, Value>,
        here: &mut WalkScope<'d>,
        evaluated: &mut Evaluated,
    ) {
        let branches = ["then", "else"];
        let Some(condition) = schema.get("if") else {
            for keyword in branches.into_iter().filter(|keyword| schema.contains_key(*keyword)) {
                let message = format!("`{keyword}` has no effect without `if`");
                self.report(here.keyword(keyword), Rule::IgnoredKeyword, message, "add `if`, or remove it");
            }
            return;
        };
        if branches.iter().all(|keyword| !schema.contains_key(*keyword)) {
            let message = "`if` has no effect without `then` or `else`".to_owned();
            self.report(
                here.keyword("if"),
                Rule::IgnoredKeyword,
                message,
                "add `then` or `else`, or remove it",
            );
        }
        let trivial = |keyword: &str| schema.get(keyword).is_none_or(always_valid);
        if trivial("then") && trivial("else") {
            // The condition then decides nothing and is not looked at, but what the branches say still is.
            for (keyword, branch) in
                branches.iter().filter_map(|keyword| Some((keyword, schema.get(*keyword)?)))
            {
                self.subschema(branch, here.same(here.keyword(keyword)));
            }
            return;
        }
        let inner = self.subschema(condition, here.same(here.keyword("if")).composite());
        evaluated.merge(inner);
        for keyword in branches {
            let Some(branch) = schema.get(keyword) else { continue };
            let inner = self.subschema(branch, here.same(here.keyword(keyword)));
            evaluated.merge_if_valid(inner);
        }
    }

    fn format(&mut self, schema: &Map<String, Value>, here: &WalkScope<'d>) {
        let Some(Value::String(format)) = schema.get("format") else { return };
        if Format::find(format).is_some() {
            return;
        }
        let help = match self.nearest(format, formats::names()) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None => "use a known format or a `pattern`, or say it in the `description`".to_owned(),
        };
        let message = format!("unknown format \"{}\"", excerpt::cut(format));
        self.report(here.keyword("format"), Rule::UnknownFormat, message, help);
    }

    pub(super) fn pattern(&mut self, pattern: &str, place: String) {
        let Some(issue) = self.patterns.judge(pattern) else { return };
        let (rule, help) = match &issue {
            PatternError::Grammar(_) => (
                Rule::BadPattern,
                "patterns follow JavaScript with the `u` flag: no inline flags such as (?i), no \\A or \\Z, and no \
                 escapes of characters that need none",
            ),
            PatternError::Unsupported(_) => (Rule::BadPattern, "name the characters themselves, as in [a-z]"),
            PatternError::BackReference => (
                Rule::UnboundedPattern,
                "list the alternatives, as in (aa|bb), or let the handler compare the two parts",
            ),
            PatternError::TooLarge => (
                Rule::UnboundedPattern,
                "make it smaller: `maxLength` limits a length better than a counted repetition",
            ),
        };
        self.report(place, rule, issue.to_string(), help);
    }

    pub(super) fn pattern_matches(&mut self, pattern: &str, text: &str) -> bool {
        self.patterns.matches(pattern, text)
    }
}

/// Whether the schema accepts everything without being looked at.
pub(super) fn always_valid(schema: &Value) -> bool {
    match schema {
        Value::Bool(accepts) => *accepts,
        Value::Object(schema) => !keywords::has_rules(schema),
        _ => false,
    }
}

fn is_truthy(value: &Value) -> bool {
    !matches!(value, Value::Null | Value::Bool(false))
}
