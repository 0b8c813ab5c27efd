//! Values for keys that do not exist.

use quarterdeck_compiler::nearest;

use super::origin::{Origin, variable_of};
use super::problem::Problem;
use super::raw::{RawValue, SPECIAL_VARIABLES};
use super::reader::{Detail, Reader, Row};
use super::value::Value;

impl Reader {
    /// All keys have been read: what is left is unknown.
    pub(crate) fn reject_unknown(&mut self) {
        let mut refused: Vec<String> = Vec::new();
        for (table, origin) in std::mem::take(&mut self.raw.tables) {
            let is_below = |key: &str| key.strip_prefix(&table).is_some_and(|rest| rest.starts_with('.'));
            let known = self.rows.iter().any(|row| is_below(&row.key))
                || self.open.iter().any(|open| *open == table || is_below(open));
            if !known && !refused.iter().any(|other| table.starts_with(&format!("{other}."))) {
                self.reject_table(&table, origin);
                refused.push(table);
            }
        }
        let overridden = std::mem::take(&mut self.raw.overridden).into_iter();
        let unknown = overridden.filter(|(key, _)| !self.settings().any(|row| row.key == *key));
        let mut unknown: Vec<_> = unknown.collect();
        unknown.extend(std::mem::take(&mut self.raw.keys));
        for (key, RawValue { value, origin }) in unknown {
            if !refused.iter().any(|table| key.starts_with(&format!("{table}."))) {
                self.reject(&key, &value, origin);
            }
        }
    }

    fn reject_table(&mut self, table: &str, origin: Origin) {
        let (message, help) = match self.rows.iter().find(|row| row.key == table) {
            Some(Row { detail: Detail::Setting { takes, .. }, .. }) => {
                (format!("`{table}` is a table; it takes {takes}"), None)
            }
            _ => {
                let near = nearest_key(table, self.sections.iter().map(|section| section.table));
                let key = nearest_key(table, self.settings().map(|row| row.key.as_str()));
                let near = near.map(|near| format!("[{near}]")).or(key.map(|key| format!("`{key}`")));
                (format!("there is no table [{table}]"), near.map(|near| format!("did you mean {near}?")))
            }
        };
        self.problems.push(Problem { origin, message, help });
    }

    fn reject(&mut self, key: &str, value: &Value, origin: Origin) {
        let of_secret = self.secret_named(key, value);
        let (message, help) = match &origin {
            Origin::Variable(_) => {
                let of_keys = self.settings().map(|row| row.key.clone());
                let special = SPECIAL_VARIABLES
                    .iter()
                    .map(|name| name.trim_start_matches("QUARTERDECK_").to_lowercase());
                let known: Vec<_> = of_keys.chain(special).collect();
                let near = nearest_key(key, known.iter().map(String::as_str)).map(|near| {
                    let name = format!("QUARTERDECK_{}", near.to_uppercase());
                    let name =
                        if SPECIAL_VARIABLES.contains(&name.as_str()) { name } else { variable_of(near) };
                    format!("did you mean {name}?")
                });
                (format!("this variable sets nothing: there is no key `{key}`"), of_secret.or(near))
            }
            _ if of_secret.is_some() => {
                (format!("`{key}` is a secret, and secrets do not belong in this file"), of_secret)
            }
            _ if self.sections.iter().any(|section| section.table == key) => {
                (format!("`{key}` is {}; it takes a table", value.describe()), None)
            }
            _ => {
                let near = nearest_key(key, self.settings().map(|row| row.key.as_str()));
                (format!("there is no key `{key}`"), near.map(|near| format!("did you mean `{near}`?")))
            }
        };
        self.problems.push(Problem { origin, message, help });
    }

    fn settings(&self) -> impl Iterator<Item = &Row> + Clone {
        self.rows.iter().filter(|row| matches!(row.detail, Detail::Setting { .. }))
    }

    /// Where the secret belongs, if the key seems to hold one.
    fn secret_named(&self, key: &str, value: &Value) -> Option<String> {
        let known =
            self.rows.iter().find(|row| row.key == key && matches!(row.detail, Detail::Secret { .. }));
        let sounds = ["secret", "token", "password", "api_key", "apikey", "credential", "credentials"];
        let last = key.rsplit('.').next().unwrap_or(key);
        match known {
            Some(row) => Some(row.about.clone()),
            None if value.as_text().is_some() && sounds.iter().any(|word| last.ends_with(word)) => Some(
                "secrets come from the environment or from files; docs/CONFIGURATION.md says which".into(),
            ),
            None => None,
        }
    }
}

/// The key whose last part is most similar, in the same table if there are several: keys are often put into the wrong
/// one.
fn nearest_key<'a>(word: &str, keys: impl Iterator<Item = &'a str> + Clone) -> Option<&'a str> {
    let (table, name) = word.rsplit_once('.').unwrap_or(("", word));
    let split = |key: &'a str| key.rsplit_once('.').unwrap_or(("", key));
    let found = nearest(name, keys.clone().map(|key| split(key).1))?;
    let mut matching = keys.filter(|key| split(key).1 == found);
    matching.clone().find(|key| split(key).0 == table).or_else(|| matching.next())
}
