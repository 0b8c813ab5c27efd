//! Strict lints: everything about a schema that its author should hear before a model does.
//!
//! The measure is Ajv 8 in its 2020 build with `strict: true`, `useDefaults` and ajv-formats: a schema has no fault of
//! [`Severity::Error`] exactly when that accepts it, apart from these classes, in which we differ on purpose.
//!
//! | class | Ajv | here | why |
//! |---|---|---|---|
//! | `$schema` naming another draft | refuses | warning | a third of real tools say draft-07 and mean nothing by it |
//! | `$ref` to a document outside, the meta-schema included | depends on what was added | refused | a build must not depend on what else is loaded |
//! | references that come back to the same value (`{"allOf": [{"$ref": "#"}]}`) | compiles, overflows the stack on the first value | refused | a call would end the process |
//! | `$ref` to something that is not a schema, a number say | sometimes ignored | refused | it is a slip |
//! | `$dynamicRef` to an anchor that does not exist | calls the schema around it | refused | it is a slip |
//! | `$recursiveRef`, `formatMinimum` and its kin | known | unknown keywords | not of draft 2020-12; our validator would silently ignore them |
//! | keywords and required names such as `toString` or `constructor` | found on every JavaScript object, so accepted | judged as any other name | an accident of JavaScript |
//! | `__proto__` among `properties` | skipped | judged as any other name | the same |
//! | a pattern with a back-reference, or one that is very large | accepted | refused | the time it takes on a text has no bound that we could hold |
//! | what the validator crate cannot read for reasons of its own, an `$id` that is no URI say, or a reference to nothing in a part that Ajv skips | accepted | refused | it would fail at the first call |
//! | nesting beyond 128 levels, or more than 200 000 schemas once references are expanded | may overflow the stack | refused | bounded time and stack |

mod arrays;
mod issue;
mod meta;
mod objects;
mod patterns;
mod references;
mod types;
mod walk;

pub use issue::{LintIssue, Rule, Severity};

use serde_json::Value;

use crate::document::{self, Document};
use crate::schema::Schema;
use crate::{cycles, excerpt};

/// All faults of `schema`, in the order of a reader's eye: by place. Any JSON may be asked about.
pub fn lint(schema: &Value) -> Vec<LintIssue> {
    if !schema.is_object() && !schema.is_boolean() {
        return vec![LintIssue {
            pointer: String::new(),
            rule: Rule::MetaSchema,
            message: format!("{} is not a schema", excerpt::excerpt(schema)),
            help: "write an object, such as {\"type\": \"object\"}".to_owned(),
        }];
    }
    if !document::is_shallow(schema) {
        return vec![LintIssue {
            pointer: String::new(),
            rule: Rule::TooLarge,
            message: "the schema is nested too deeply".to_owned(),
            help: "move inner schemas to `$defs` and refer to them with `$ref`".to_owned(),
        }];
    }
    let document = Document::new(schema);
    let mut issues: Vec<LintIssue> = draft(schema).into_iter().collect();
    issues.extend(meta::objections(schema));
    issues.extend(ambiguous_names(&document));
    issues.extend(endless_references(&document));
    issues.extend(walk::issues(&document));
    if !issues.iter().any(LintIssue::is_error) {
        issues.extend(unreadable(schema));
    }
    issues.sort_by(|left, right| left.pointer.cmp(&right.pointer));
    issues.dedup();
    issues
}

/// What the rules have let through must also compile, or a tool would pass its build and fail at its first call.
fn unreadable(schema: &Value) -> Option<LintIssue> {
    let reason = Schema::compile(schema).err()?;
    Some(LintIssue {
        pointer: reason.pointer,
        rule: Rule::Unreadable,
        message: format!("the validator cannot read the schema: {}", reason.reason),
        help: "simplify this part of the schema".to_owned(),
    })
}

fn draft(schema: &Value) -> Option<LintIssue> {
    let named = schema.get("$schema")?.as_str()?;
    let is_ours = matches!(
        named.trim_end_matches('#'),
        "" | "https://json-schema.org/draft/2020-12/schema" | "http://json-schema.org/schema"
    );
    (!is_ours).then(|| LintIssue {
        pointer: "/$schema".to_owned(),
        rule: Rule::OtherDraft,
        message: format!("`$schema` names {}, but schemas are read as draft 2020-12", excerpt::cut(named)),
        help: "remove `$schema`, or set it to \"https://json-schema.org/draft/2020-12/schema\"".to_owned(),
    })
}

fn ambiguous_names(document: &Document<'_>) -> Vec<LintIssue> {
    let names = document.ambiguous().iter();
    names
        .map(|(name, pointer)| LintIssue {
            pointer: pointer.clone(),
            rule: Rule::AmbiguousReference,
            message: format!("\"{}\" already names another schema", excerpt::cut(name)),
            help: "give each schema its own `$id` or anchor".to_owned(),
        })
        .collect()
}

fn endless_references(document: &Document<'_>) -> Vec<LintIssue> {
    let places = cycles::endless(document).into_iter();
    places
        .map(|pointer| LintIssue {
            pointer,
            rule: Rule::EndlessReference,
            message:
                "the reference leads back to this schema for the same value, so judging it would never end"
                    .to_owned(),
            help:
                "let the recursion go through `properties` or `items`, so that each round sees a smaller part"
                    .to_owned(),
        })
        .collect()
}
