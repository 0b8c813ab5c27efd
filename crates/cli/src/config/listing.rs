//! The effective configuration, as text and as JSON.

use serde_json::{Map, Value as Json, json};

use super::origin::Origin;
use super::reader::{Detail, Row, Section};
use crate::terminal::{plain, titled_table};

/// Every key with its value and its origin. Of a secret only whether it is set.
#[derive(Debug)]
pub(crate) struct Listing {
    pub(super) rows: Vec<Row>,
    pub(super) sections: Vec<Section>,
}

impl Listing {
    pub(super) fn new(rows: Vec<Row>, sections: Vec<Section>) -> Self {
        Self { rows, sections }
    }

    /// Keys and files of the secrets that were read from files.
    pub(crate) fn secret_files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.rows.iter().filter_map(|row| match (&row.detail, &row.origin) {
            (Detail::Secret { is_set: true, .. }, Origin::SecretFile(path)) => {
                Some((row.key.as_str(), path.as_str()))
            }
            _ => None,
        })
    }

    pub(crate) fn to_text(&self) -> String {
        let cells = |row: &Row| vec![row.key.clone(), show(&row.detail), plain(&row.origin.to_string())];
        titled_table(&["key", "value", "from"], self.rows.iter().map(cells))
    }

    pub(crate) fn to_json(&self) -> Json {
        let each = |row: &Row| {
            let origin = row.origin.to_string();
            let value = match &row.detail {
                Detail::Setting { value, .. } => json!({ "value": value, "origin": origin }),
                Detail::Secret { is_set, .. } => json!({ "isSet": is_set, "origin": origin }),
            };
            (row.key.clone(), value)
        };
        json!({ "settings": self.rows.iter().map(each).collect::<Map<_, _>>() })
    }
}

fn show(detail: &Detail) -> String {
    match detail {
        Detail::Secret { is_set: true, .. } => "set".into(),
        Detail::Secret { is_set: false, fallback } => (*fallback).into(),
        Detail::Setting { value: Json::Null, .. } => "-".into(),
        Detail::Setting { value: Json::String(text), .. } => plain(text),
        Detail::Setting { value: Json::Array(items), .. } if items.is_empty() => "-".into(),
        Detail::Setting { value: Json::Array(items), .. } => {
            let items: Vec<_> = items.iter().map(|item| plain(item.as_str().unwrap_or_default())).collect();
            items.join(", ")
        }
        Detail::Setting { value, .. } => value.to_string(),
    }
}
