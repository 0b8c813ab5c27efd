//! `docs/SECURITY.md` promises nothing that no test holds.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

/// The promises of the page: every item of a list, as one line, but for those that say what is not promised.
fn promises(page: &str) -> Vec<String> {
    let (page, _) = page.split_once("\n## What is weaker than it looks\n").unwrap();
    let mut promises: Vec<String> = Vec::new();
    let mut in_item = false;
    for line in page.lines() {
        if let Some(begun) = line.strip_prefix("- ") {
            promises.push(begun.to_owned());
            in_item = true;
        } else if let (Some(more), Some(last), true) = (line.strip_prefix("  "), promises.last_mut(), in_item)
        {
            last.push(' ');
            last.push_str(more);
        } else {
            in_item = false;
        }
    }
    promises
}

/// Names that stand in backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Every function with `#[test]`, `#[tokio::test]` or inside `proptest!` is a `fn` in a file of tests; so are helpers, which
/// is why the attribute is looked for as well, a few lines above.
fn tests_below(folder: &Path, found: &mut HashSet<String>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            tests_below(&path, found);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let lines: Vec<_> = text.lines().map(str::trim).collect();
            for (index, line) in lines.iter().enumerate() {
                let name = line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ");
                let Some((name, _)) = name.and_then(|name| name.split_once('(')) else { continue };
                let above = &lines[index.saturating_sub(4)..index];
                if above.iter().any(|line| line.starts_with("#[test") || line.starts_with("#[tokio::test")) {
                    found.insert(name.to_owned());
                }
            }
        }
    }
}

#[test]
fn every_promise_of_the_security_page_names_tests_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("docs/SECURITY.md")).unwrap();
    let mut tests = HashSet::new();
    tests_below(&root.join("crates"), &mut tests);
    let promises = promises(&page);
    assert!(promises.len() > 30, "the page is read as it is written: {}", promises.len());
    let mut faults = Vec::new();
    for promise in promises {
        let Some((printed, held_by)) = promise.split_once(" Tests: ") else {
            faults.push(format!("no test: {promise}"));
            continue;
        };
        assert!(quoted(held_by).count() > 0, "{printed}");
        faults.extend(
            quoted(held_by).filter(|name| !tests.contains(*name)).map(|name| format!("no such test: {name}")),
        );
    }
    assert!(faults.is_empty(), "{faults:#?}");
}
