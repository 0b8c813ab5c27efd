//! What the README shows is what the command gives. With UPDATE_EXPECT=1 it is written anew.

use std::path::Path;

/// Compares the part of the README between `<!-- name -->` and the next `<!-- end -->` with a console session.
pub(crate) fn check_block(name: &str, command: &str, printed: &str) {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let text = std::fs::read_to_string(&readme).unwrap();
    let (before, rest) =
        text.split_once(&format!("<!-- {name} -->\n")).expect("the README has a place for this");
    let (_, after) = rest.split_once("<!-- end -->").expect("the place has an end");
    let block = format!("```console\n$ {command}\n{}\n```\n", printed.trim_end());
    let expected = format!("{before}<!-- {name} -->\n{block}<!-- end -->{after}");
    expect_test::expect_file![readme].assert_eq(&expected);
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
    check_block("listing", "quarterdeck list", &String::from_utf8(output.stdout).unwrap());
}

#[test]
fn the_commands_that_the_guides_for_operators_show_exist() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let read = |name| std::fs::read_to_string(docs.join(name)).unwrap();
    let text = read("OPERATIONS.md") + &read("CONFIGURATION.md");
    let commands: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("$ quarterdeck ")).collect();
    assert!(commands.len() > 10);
    for command in commands {
        // Everything before `--help` is parsed, and nothing is done.
        let typed = command.split(" #").next().unwrap().split(" >").next().unwrap();
        let words: Vec<_> = typed.split_whitespace().chain(["--help"]).collect();
        let output = crate::terminal::quarterdeck(Path::new("/"), &words);
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
