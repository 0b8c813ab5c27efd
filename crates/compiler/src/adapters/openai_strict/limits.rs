//! How large a strict schema may be.

use serde_json::Value;

use crate::adapters::Refusal;

const MAX_PROPERTIES: usize = 5_000;
const MAX_LEVELS: usize = 10;
const MAX_CHARACTERS: usize = 120_000;
const MAX_VALUES: usize = 1_000;
/// An enum of more values than this may have only so many characters.
const LONG_ENUM: usize = 250;
const LONG_ENUM_CHARACTERS: usize = 15_000;

/// What has been counted so far.
#[derive(Debug, Default)]
pub(super) struct SizeCount {
    properties: usize,
    characters: usize,
    values: usize,
    too_deep: Vec<String>,
    too_long: Vec<String>,
}

impl SizeCount {
    pub(super) fn property(&mut self, name: &str) {
        self.properties += 1;
        self.name(name);
    }

    pub(super) fn name(&mut self, name: &str) {
        self.characters += name.chars().count();
    }

    pub(super) fn level(&mut self, level: usize, at: &str) {
        // Only the first level that is too many: all below it are for the same reason.
        if level == MAX_LEVELS + 1 {
            self.too_deep.push(at.to_owned());
        }
    }

    /// The values of an `enum`, or the one of a `const`.
    pub(super) fn values(&mut self, values: &Value, at: &str) {
        let values = values.as_array().map_or(std::slice::from_ref(values), Vec::as_slice);
        let characters: usize =
            values.iter().filter_map(Value::as_str).map(|text| text.chars().count()).sum();
        self.characters += characters;
        self.values += values.len();
        if values.len() > LONG_ENUM && characters > LONG_ENUM_CHARACTERS {
            self.too_long.push(at.to_owned());
        }
    }

    pub(super) fn blockers(&self) -> Vec<Refusal> {
        let whole = [
            (self.properties, MAX_PROPERTIES, "properties"),
            (self.characters, MAX_CHARACTERS, "characters in names and listed values"),
            (self.values, MAX_VALUES, "listed values"),
        ];
        let whole =
            whole.into_iter().filter(|(count, most, _)| count > most).map(|(count, most, what)| Refusal {
                at: String::new(),
                reason: format!("a strict schema has at most {most} {what}; this one has {count}"),
            });
        let deep = self.too_deep.iter().map(|at| Refusal {
            at: at.clone(),
            reason: format!("a strict schema nests at most {MAX_LEVELS} objects"),
        });
        let long = self.too_long.iter().map(|at| Refusal {
            at: at.clone(),
            reason: format!(
                "in a strict schema, more than {LONG_ENUM} values have at most {LONG_ENUM_CHARACTERS} characters"
            ),
        });
        whole.chain(deep).chain(long).collect()
    }
}
