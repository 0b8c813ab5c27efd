//! The checks, one file each. A check looks at one tool and reports what it finds; it never stops the others.

pub(crate) mod handler;
pub(crate) mod json;
pub(crate) mod providers;

mod capabilities;
mod confirm_when;
mod examples;
mod execution;
mod fields;
mod identity;
mod parameters;
mod policy;
mod preview;
mod secrets;
mod sensitive;
mod similarity;

pub(crate) use self::fields::Fields;

use serde_json::Value;

use crate::Diagnostic;
use crate::compile::CheckedTool;
use crate::documentation::Documentation;
use crate::source::JsonSource;
use crate::tree::Folder;

/// What the checks of one tool look at.
pub(crate) struct Subject<'a> {
    pub(crate) folder: &'a Folder,
    pub(crate) json: &'a JsonSource,
    pub(crate) documentation: Option<&'a Documentation>,
    pub(crate) fields: &'a Fields,
}

pub(crate) type Check = fn(&Subject<'_>, &mut Vec<Diagnostic>);

/// Every check of a single tool's definition.
pub(crate) const TOOL_CHECKS: &[Check] = &[
    fields::check,
    identity::check,
    policy::check,
    confirm_when::check,
    execution::check,
    capabilities::check,
    secrets::check,
    parameters::check,
    sensitive::check,
    preview::check,
    examples::check,
];

/// What only shows when all tools are seen together.
pub(crate) fn across(folders: &[Folder], sound: &[CheckedTool]) -> Vec<Diagnostic> {
    let mut problems = identity::across(folders);
    problems.extend(similarity::across(sound));
    problems.extend(providers::across(sound));
    problems
}

impl<'a> Subject<'a> {
    fn field(&self, name: &str) -> Option<&'a Value> {
        self.json.value.get(name)
    }

    fn text(&self, name: &str) -> Option<&'a str> {
        self.field(name).and_then(Value::as_str)
    }

    /// The strings of a list, with their index; what is not a string is another check's business.
    fn strings(&self, name: &str) -> impl Iterator<Item = (usize, &'a str)> {
        let list = self.field(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        list.iter().enumerate().filter_map(|(index, value)| Some((index, value.as_str()?)))
    }
}
