//! The pages that are made of the declarations.

use std::path::{Path, PathBuf};

use expect_test::expect_file;

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
    let text = replace(&text, "keys", &listing.to_reference());
    expect_file![page].assert_eq(&replace(&text, "secrets", &listing.to_secrets()));
}

#[test]
fn example_file_holds_the_defaults() {
    let example = Listing::of_defaults().to_example();
    expect_file![root().join("quarterdeck.example.toml")].assert_eq(&example);
    let is_key = |line: &str| line.split_once(" = ").is_some_and(|(name, _)| !name.contains(' '));
    let uncommented: Vec<_> = example
        .lines()
        .map(|line| match line.strip_prefix("# ") {
            Some(key) if is_key(key) && !key.ends_with(" = \"\"") && !key.starts_with("partner") => key,
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
