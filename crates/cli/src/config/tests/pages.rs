//! The reference page and the example file, which are generated from the declarations.

use std::path::{Path, PathBuf};

use expect_test::expect_file;

use super::super::reader::{Detail, Row};
use super::super::reference::to_toml;
use super::super::*;
use super::loaded;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn reference_page_has_every_key() {
    let page = root().join("docs/CONFIGURATION.md");
    let text = std::fs::read_to_string(&page).unwrap();
    let replace = |text: &str, name: &str, part: &str| {
        let (before, rest) = text.split_once(&format!("<!-- {name} -->\n")).unwrap();
        let (_, after) = rest.split_once("<!-- end -->").unwrap();
        format!("{before}<!-- {name} -->\n{part}<!-- end -->{after}")
    };
    let listing = Listing::of_defaults();
    let text = replace(&text, "keys", &reference(&listing));
    expect_file![page].assert_eq(&replace(&text, "secrets", &secrets(&listing)));
}

#[test]
fn example_file_holds_the_defaults() {
    let example = Listing::of_defaults().to_example();
    expect_file![root().join("quarterdeck.example.toml")].assert_eq(&example);
    let is_key = |line: &str| line.split_once(" = ").is_some_and(|(name, _)| !name.contains(' '));
    // Keys of tables that have no defaults.
    let is_example = |line: &str| {
        ["partner", "private_hosts", "secrets.", "command", "args", "env."]
            .iter()
            .any(|key| line.starts_with(key))
    };
    let uncommented: Vec<_> = example
        .lines()
        .map(|line| match line.strip_prefix("# ") {
            Some(key) if is_key(key) && !key.ends_with(" = \"\"") && !is_example(key) => key,
            _ => line,
        })
        .collect();
    let values = |loaded: &LoadedConfig| {
        let rows = loaded.listing.to_json()["settings"].as_object().unwrap().clone();
        rows.into_iter().map(|(key, row)| (key, row["value"].clone())).collect::<Vec<_>>()
    };
    // The folder of instructions is the one key whose default need not be there.
    let text = uncommented.join("\n").replace("folder = \"prompts\"", "");
    // Who says how tokens are signed believes that they are.
    let text = text.replace("algorithm = \"HS256\"", "");
    assert!(text.lines().filter(|line| is_key(line)).count() > 50);
    assert_eq!(values(&loaded(&text, &[])), values(&loaded("", &[])));
}

/// The tables of the reference page.
fn reference(listing: &Listing) -> String {
    let mut text = String::new();
    for (section, rows) in listing.by_section() {
        text += &format!("### `[{}]`\n\n{}\n\n", section.table, section.about);
        let settings: Vec<_> = rows.iter().filter_map(setting).collect();
        if let Some(open) = section.open {
            text += &format!("{}\n\n", open.form);
            continue;
        }
        text += "| key | default | takes | what it is |\n| --- | --- | --- | --- |\n";
        text.extend(settings);
        text += "\n";
    }
    text
}

fn setting(row: &Row) -> Option<String> {
    let Detail::Setting { default, takes, .. } = &row.detail else { return None };
    let name = row.key.rsplit('.').next().unwrap_or_default();
    let default = if default.is_null() { String::new() } else { format!("`{}`", to_toml(default)) };
    let cell = |text: &str| text.replace('|', "\\|").replace('<', "&lt;");
    Some(format!("| `{name}` | {default} | {} | {} |\n", cell(takes), cell(&row.about)))
}

fn secrets(listing: &Listing) -> String {
    let secrets = listing.rows.iter().filter(|row| matches!(row.detail, Detail::Secret { .. }));
    let lines = secrets.map(|row| format!("| `{}` | {} |\n", row.key, row.about));
    format!("| secret | where it comes from |\n| --- | --- |\n{}", lines.collect::<String>())
}
