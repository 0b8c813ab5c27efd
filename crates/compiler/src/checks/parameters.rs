//! The parameters (and `returns`) are a schema that means what it says.

use quarterdeck_schema::{LintIssue, Rule as SchemaRule, Schema, lint};
use serde_json::{Map, Value};

use super::Subject;
use crate::rules::{self, Rule};
use crate::source::child;
use crate::{Diagnostic, Severity};

const MAX_COMFORTABLE_DEPTH: usize = 5;

pub(super) fn check(subject: &Subject<'_>, problems: &mut Vec<Diagnostic>) {
    if let Some(returns) = subject.field("returns").filter(|returns| returns.is_object()) {
        problems.extend(lint(returns).into_iter().map(|issue| diagnostic(subject, "/returns", issue)));
    }
    let Some(parameters) = subject.field("parameters") else { return };
    let Some(root) = parameters.as_object() else {
        problems.push(
            Diagnostic::new(
                &rules::NOT_AN_OBJECT,
                "`parameters` is not a schema of an object",
                "write `{ \"type\": \"object\", \"additionalProperties\": false, \"properties\": {} }`",
            )
            .at(subject.json.place("/parameters")),
        );
        return;
    };
    check_root(subject, root, problems);
    problems.extend(lint(parameters).into_iter().map(|issue| diagnostic(subject, "/parameters", issue)));
    Walk { subject, root: parameters, problems, max_depth: 0 }.object("/parameters", parameters, 1);
}

fn check_root(subject: &Subject<'_>, root: &Map<String, Value>, problems: &mut Vec<Diagnostic>) {
    if root.get("type") != Some(&Value::from("object")) {
        problems.push(
            Diagnostic::new(
                &rules::NOT_AN_OBJECT,
                "`parameters` is not of type object",
                "arguments come as an object: add `\"type\": \"object\"`",
            )
            .at(subject.json.place(if root.contains_key("type") {
                "/parameters/type"
            } else {
                "/parameters"
            })),
        );
    }
    if root.get("additionalProperties") != Some(&Value::Bool(false)) {
        let here = "/parameters/additionalProperties";
        problems.push(
            Diagnostic::new(
                &rules::OPEN_ROOT,
                "`parameters` admits arguments that are not declared",
                "add `\"additionalProperties\": false` beside `\"properties\"`",
            )
            .at(subject.json.place(if root.contains_key("additionalProperties") {
                here
            } else {
                "/parameters"
            })),
        );
    }
}

fn diagnostic(subject: &Subject<'_>, base: &str, issue: LintIssue) -> Diagnostic {
    let pointer = format!("{base}{}", issue.pointer);
    let place = match issue.rule {
        SchemaRule::UnknownKeyword => subject.json.place_of_key(&pointer),
        _ => subject.json.place(&pointer),
    };
    Diagnostic::new(rule(issue.rule), issue.message, issue.help).at(place)
}

fn rule(rule: SchemaRule) -> &'static Rule {
    match rule {
        SchemaRule::UnknownKeyword => &rules::UNKNOWN_KEYWORD,
        SchemaRule::UnknownFormat => &rules::UNKNOWN_FORMAT,
        SchemaRule::RequiredNotDeclared => &rules::REQUIRED_UNDECLARED,
        SchemaRule::BadPattern => &rules::BAD_PATTERN,
        SchemaRule::UnboundedPattern => &rules::UNBOUNDED_PATTERN,
        SchemaRule::OtherDraft => &rules::OTHER_DRAFT,
        SchemaRule::UnionTypes
        | SchemaRule::MissingType
        | SchemaRule::TypeOutsideContext
        | SchemaRule::Nullable => &rules::LOOSE_TYPES,
        SchemaRule::OpenTuple
        | SchemaRule::IgnoredDefault
        | SchemaRule::PropertyMatchesPattern
        | SchemaRule::IgnoredKeyword => &rules::IGNORED,
        SchemaRule::UnresolvedReference
        | SchemaRule::ForeignReference
        | SchemaRule::EndlessReference
        | SchemaRule::AmbiguousReference => &rules::BAD_REFERENCE,
        _ => &rules::INVALID_SCHEMA,
    }
}

/// Visits what a caller fills in, following the places where values nest. References are not followed: what they
/// lead to stands under `$defs` and is visited there.
struct Walk<'a, 'b> {
    subject: &'a Subject<'b>,
    root: &'a Value,
    problems: &'a mut Vec<Diagnostic>,
    max_depth: usize,
}

impl Walk<'_, '_> {
    fn object(&mut self, pointer: &str, schema: &Value, depth: usize) {
        self.nested(pointer, schema, depth);
        for (name, definition) in self.definitions() {
            let at = format!("/parameters{}", child(&format!("/{}", name.0), &name.1));
            self.closed(&at, &definition);
            self.nested(&at, &definition, 1);
        }
    }

    fn definitions(&self) -> Vec<((&'static str, String), Value)> {
        let of = |keyword: &'static str| {
            let definitions = self.root.get(keyword).and_then(Value::as_object).into_iter().flatten();
            definitions.map(move |(name, schema)| ((keyword, name.clone()), schema.clone()))
        };
        of("$defs").chain(of("definitions")).collect()
    }

    fn nested(&mut self, pointer: &str, schema: &Value, depth: usize) {
        if depth > MAX_COMFORTABLE_DEPTH && self.max_depth <= MAX_COMFORTABLE_DEPTH {
            self.report(
                &rules::TOO_DEEP,
                pointer,
                "the parameters nest more than five levels deep",
                "flatten them",
            );
        }
        self.max_depth = self.max_depth.max(depth);
        for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let at = child(&child(pointer, "properties"), name);
            self.property(&at, name, property);
            self.nested(&at, property, depth + 1);
        }
        for keyword in ["items", "additionalProperties"] {
            if let Some(inner) = schema.get(keyword).filter(|inner| inner.is_object()) {
                let at = child(pointer, keyword);
                self.closed(&at, inner);
                self.nested(&at, inner, depth + 1);
            }
        }
        for keyword in ["anyOf", "oneOf", "allOf"] {
            for (index, branch) in
                schema.get(keyword).and_then(Value::as_array).into_iter().flatten().enumerate()
            {
                let at = format!("{}/{index}", child(pointer, keyword));
                // Parts of an `allOf` see only their own properties and must stay open.
                if keyword != "allOf" {
                    self.closed(&at, branch);
                }
                self.nested(&at, branch, depth);
            }
        }
    }

    fn property(&mut self, pointer: &str, name: &str, schema: &Value) {
        let Some(keywords) = schema.as_object() else { return };
        if !keywords.contains_key("description") && !keywords.contains_key("$ref") {
            let message = format!("the parameter `{name}` has no description");
            self.report(&rules::UNDESCRIBED, pointer, &message, "say in one sentence what it is for");
        }
        self.closed(pointer, schema);
        self.default(pointer, name, keywords);
    }

    fn closed(&mut self, pointer: &str, schema: &Value) {
        let declares = schema.get("properties").is_some_and(Value::is_object);
        if declares && schema.get("additionalProperties").is_none() {
            self.report(
                &rules::OPEN_NESTED,
                pointer,
                "this object admits properties that are not declared",
                "add `\"additionalProperties\": false`",
            );
        }
    }

    fn default(&mut self, pointer: &str, name: &str, keywords: &Map<String, Value>) {
        let Some(default) = keywords.get("default") else { return };
        let mut alone = keywords.clone();
        // Its references lead to the definitions of the whole document.
        for definitions in ["$defs", "definitions"] {
            if let Some(shared) = self.root.get(definitions) {
                alone.insert(definitions.into(), shared.clone());
            }
        }
        let Ok(schema) = Schema::compile(&Value::Object(alone)) else { return };
        if schema.admit(&mut default.clone()).is_err() {
            let message = format!("the default of `{name}` does not satisfy its own schema");
            let help = "calls that leave the parameter out will fail: change the default or the schema";
            self.report(&rules::BAD_DEFAULT, &child(pointer, "default"), &message, help);
        }
    }

    fn report(&mut self, rule: &'static Rule, pointer: &str, message: &str, help: &str) {
        debug_assert_eq!(rule.severity, Severity::Warning);
        self.problems.push(Diagnostic::new(rule, message, help).at(self.subject.json.place(pointer)));
    }
}
