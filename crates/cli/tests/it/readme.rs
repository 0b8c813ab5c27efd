//! What the pages show is what the command gives. With UPDATE_EXPECT=1 they are written anew.

use std::path::Path;

/// Compares the part of a page between `<!-- name -->` and the next `<!-- end -->` with a console session.
pub(crate) fn check_block(page: &str, name: &str, command: &str, printed: &str) {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(page);
    let text = std::fs::read_to_string(&page).unwrap();
    let (before, rest) =
        text.split_once(&format!("<!-- {name} -->\n")).expect("the page has a place for this");
    let (_, after) = rest.split_once("<!-- end -->").expect("the place has an end");
    let block = format!("```console\n$ {command}\n{}\n```\n", printed.trim_end());
    let expected = format!("{before}<!-- {name} -->\n{block}<!-- end -->{after}");
    expect_test::expect_file![page].assert_eq(&expected);
}

#[test]
fn the_listing_is_that_of_the_built_in_tools() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = crate::terminal::quarterdeck(&root, &["list"]);
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "",
        "the built-in tools have nothing to complain about"
    );
    check_block(
        "docs/COMMANDS.md",
        "listing",
        "quarterdeck list",
        &String::from_utf8(output.stdout).unwrap(),
    );
}

#[test]
fn the_readme_is_short_enough_to_be_read() {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let words = std::fs::read_to_string(readme).unwrap().split_whitespace().count();
    assert!(words <= 900, "{words} words; move something to docs/");
}

#[test]
fn the_commands_that_the_pages_show_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let docs = std::fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let pages = docs.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    let pages = pages.chain([root.join("README.md"), root.join("tools/README.md")]);
    let text: String = pages.map(|page| std::fs::read_to_string(page).unwrap()).collect();
    let commands: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("$ quarterdeck ")).collect();
    assert!(commands.len() > 10);
    for command in commands {
        // Everything before `--help` is parsed, and nothing is done.
        let typed = command.split(" #").next().unwrap().split(" >").next().unwrap();
        let words = shell_words(typed);
        let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
        // What stands after `--` belongs to another program.
        let ours = words.iter().position(|word| *word == "--").unwrap_or(words.len());
        words.insert(ours, "--help");
        let output = crate::terminal::quarterdeck(Path::new("/"), &words);
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

/// The words of a command as a shell would see them: quotes keep a word together.
fn shell_words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for character in command.chars() {
        let word = words.last_mut().unwrap();
        match (quote, character) {
            (Some(open), _) if open == character => quote = None,
            (None, '"' | '\'') => quote = Some(character),
            (None, ' ') if word.is_empty() => {}
            (None, ' ') => words.push(String::new()),
            _ => word.push(character),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}
