//! The effective configuration, for people and for programs.

use serde_json::{Map, Value as Json, json};

use super::origin::Origin;
use super::reader::{Row, Section, What};
use crate::terminal::{plain, titled_table};

/// Every key with its value and where that came from. Secrets are only set, or not.
#[derive(Debug)]
pub(crate) struct Listing {
    pub(super) rows: Vec<Row>,
    pub(super) sections: Vec<Section>,
}

impl Listing {
    pub(super) fn new(rows: Vec<Row>, sections: Vec<Section>) -> Self {
        Self { rows, sections }
    }

    /// The files that secrets were read from, with the keys of those.
    pub(crate) fn secret_files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.rows.iter().filter_map(|row| match (&row.what, &row.origin) {
            (What::Secret { is_set: true, .. }, Origin::SecretFile(path)) => {
                Some((row.key.as_str(), path.as_str()))
            }
            _ => None,
        })
    }

    /// A table.
    pub(crate) fn to_text(&self) -> String {
        let cells = |row: &Row| vec![row.key.clone(), shown(&row.what), plain(&row.origin.to_string())];
        titled_table(&["key", "value", "from"], self.rows.iter().map(cells))
    }

    /// An object by key.
    pub(crate) fn to_json(&self) -> Json {
        let each = |row: &Row| {
            let origin = row.origin.to_string();
            let value = match &row.what {
                What::Setting { value, .. } => json!({ "value": value, "origin": origin }),
                What::Secret { is_set, .. } => json!({ "isSet": is_set, "origin": origin }),
            };
            (row.key.clone(), value)
        };
        json!({ "settings": self.rows.iter().map(each).collect::<Map<_, _>>() })
    }
}

fn shown(what: &What) -> String {
    match what {
        What::Secret { is_set: true, .. } => "set".into(),
        What::Secret { is_set: false, otherwise } => (*otherwise).into(),
        What::Setting { value: Json::Null, .. } => "-".into(),
        What::Setting { value: Json::String(text), .. } => plain(text),
        What::Setting { value: Json::Array(items), .. } if items.is_empty() => "-".into(),
        What::Setting { value: Json::Array(items), .. } => {
            let items: Vec<_> = items.iter().map(|item| plain(item.as_str().unwrap_or_default())).collect();
            items.join(", ")
        }
        What::Setting { value, .. } => value.to_string(),
    }
}
