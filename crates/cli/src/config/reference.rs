//! All keys, as an example file. The reference page is made by a test, `tests/pages.rs`.

use std::fmt::Write;

use serde_json::Value as Json;

use super::Config;
use super::listing::Listing;
use super::raw::{RawConfig, Variables};
use super::reader::{Detail, Reader, Row, Section};

impl Listing {
    /// Every key with its default.
    pub(crate) fn of_defaults() -> Self {
        let mut reader = Reader::new(RawConfig::default(), Variables::default());
        Config::read(&mut reader);
        Self::new(reader.rows, reader.sections)
    }

    /// An example file in which every key has its default and is commented out.
    pub(crate) fn to_example(&self) -> String {
        let mut text = String::from(
            "# The configuration of Quarterdeck. Every key has a default, which is the one shown here.\n\
             # docs/CONFIGURATION.md has all of them; `quarterdeck config` shows what is in effect, and why.\n",
        );
        for (section, rows) in self.by_section() {
            let _ = write!(text, "\n{}", comment(section.about));
            if !section.open.is_some_and(|open| open.is_template) {
                let _ = writeln!(text, "[{}]", section.table);
            }
            for row in rows {
                if let Detail::Setting { default, takes, .. } = &row.detail {
                    let name = row.key.rsplit('.').next().unwrap_or_default();
                    text.push_str(&comment(&format!("{}. Takes {takes}.", row.about)));
                    let _ = writeln!(text, "# {name} = {}", to_toml(default));
                }
            }
            for line in section.open.iter().flat_map(|open| open.example.lines()) {
                let _ = writeln!(text, "# {line}");
            }
        }
        text
    }

    pub(super) fn by_section(&self) -> impl Iterator<Item = (&Section, &[Row])> {
        let ends = self.sections.iter().skip(1).map(|next| next.from).chain([self.rows.len()]);
        self.sections.iter().zip(ends).map(|(section, end)| (section, &self.rows[section.from..end]))
    }
}

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

/// A value as TOML. A key without a default gets an empty text to fill in.
pub(super) fn to_toml(value: &Json) -> String {
    match value {
        Json::Null => "\"\"".into(),
        Json::Array(items) => {
            let items: Vec<_> = items.iter().map(to_toml).collect();
            format!("[{}]", items.join(", "))
        }
        other => other.to_string(),
    }
}
