//! All keys, as a page for readers and as a file to begin with.

use std::fmt::Write;

use serde_json::Value as Json;

use super::Config;
use super::listing::Listing;
use super::raw::{RawConfig, Variables};
use super::reader::{Detail, Reader, Row, Section};

impl Listing {
    /// Every key there is, with its default: what a site has that says nothing.
    pub(crate) fn of_defaults() -> Self {
        let mut reader = Reader::new(RawConfig::default(), Variables::default());
        Config::read(&mut reader);
        Self::new(reader.rows, reader.sections)
    }

    /// A file to begin with, in which everything is the default and commented out.
    pub(crate) fn to_example(&self) -> String {
        let mut text = String::from(
            "# The configuration of Quarterdeck. Every key has a default, which is the one shown here.\n\
             # docs/CONFIGURATION.md has all of them; `quarterdeck config` shows what is in effect, and why.\n",
        );
        for (section, rows) in self.by_section() {
            let _ = write!(text, "\n{}[{}]\n", comment(section.about), section.table);
            for row in rows {
                if let Detail::Setting { default, takes, .. } = &row.detail {
                    let name = row.key.rsplit('.').next().unwrap_or_default();
                    text.push_str(&comment(&format!("{}. Takes {takes}.", row.about)));
                    let _ = writeln!(text, "# {name} = {}", written(default));
                }
            }
            if section.table == "auth.api_keys" {
                text.push_str("# partner = \"secrets/partner\"\n");
            }
        }
        text
    }

    /// The tables of the reference page.
    pub(crate) fn to_reference(&self) -> String {
        let mut text = String::new();
        for (section, rows) in self.by_section() {
            let _ = write!(text, "### `[{}]`\n\n{}\n\n", section.table, section.about);
            let settings: Vec<_> = rows.iter().filter_map(setting).collect();
            if settings.is_empty() {
                text.push_str(
                    "`NAME = \"FILE\"` for each key; or a variable `QUARTERDECK_API_KEY_<NAME>`.\n\n",
                );
                continue;
            }
            text.push_str("| key | default | takes | what it is |\n| --- | --- | --- | --- |\n");
            text.extend(settings);
            text.push('\n');
        }
        text
    }

    /// The table of secrets.
    pub(crate) fn to_secrets(&self) -> String {
        let secrets = self.rows.iter().filter(|row| matches!(row.detail, Detail::Secret { .. }));
        let lines = secrets.map(|row| format!("| `{}` | {} |\n", row.key, row.about));
        format!("| secret | where it comes from |\n| --- | --- |\n{}", lines.collect::<String>())
    }

    fn by_section(&self) -> impl Iterator<Item = (&Section, &[Row])> {
        let ends = self.sections.iter().skip(1).map(|next| next.from).chain([self.rows.len()]);
        self.sections.iter().zip(ends).map(|(section, end)| (section, &self.rows[section.from..end]))
    }
}

fn setting(row: &Row) -> Option<String> {
    let Detail::Setting { default, takes, .. } = &row.detail else { return None };
    let name = row.key.rsplit('.').next().unwrap_or_default();
    let default = if default.is_null() { String::new() } else { format!("`{}`", written(default)) };
    let cell = |text: &str| text.replace('|', "\\|").replace('<', "&lt;");
    Some(format!("| `{name}` | {default} | {} | {} |\n", cell(takes), cell(&row.about)))
}

/// Lines of a comment.
fn comment(text: &str) -> String {
    const MAX_CHARS: usize = 110;
    let mut lines = vec![String::from("#")];
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= MAX_CHARS => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(format!("# {word}")),
        }
    }
    lines.join("\n") + "\n"
}

/// A value as TOML. What has no default has an empty place to be filled.
fn written(value: &Json) -> String {
    match value {
        Json::Null => "\"\"".into(),
        Json::Array(items) => {
            let items: Vec<_> = items.iter().map(written).collect();
            format!("[{}]", items.join(", "))
        }
        other => other.to_string(),
    }
}
