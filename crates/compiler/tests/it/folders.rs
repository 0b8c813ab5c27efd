use expect_test::expect;
use quarterdeck_testkit::tree;

use crate::world::{SOUND, artifact, check, compile_files, sound};

#[test]
fn folders_that_begin_with_an_underscore_or_a_dot_and_plain_files_are_not_tools() {
    let files = sound();
    files.write("_shared/notes.md", "not a tool");
    files.write(".git/config", "not a tool");
    files.write("README.md", "not a tool");
    check(
        &files,
        expect![[r#"
        fine
    "#]],
    );
}

#[test]
fn a_folder_without_its_files_is_told_what_is_missing() {
    check(
        &tree("//- empty/notes.txt\nhello"),
        expect![[r#"
        error QD0002 empty
          `guide.md` is missing
          help: write one: a `#` heading, one or two sentences, then Examples
        error QD0002 empty
          `schema.json` is missing
          help: write one (see `tools/README.md`), or rename the folder to begin with `_` if it is not a tool
        error QD0002 empty
          there is no handler
          help: write `handler.js` or `handler.rs`; `quarterdeck new` makes one that runs
    "#]],
    );
}

#[test]
fn two_folders_with_one_id_are_an_error() {
    let files = tree(&SOUND.replace("greet/", "say-hello/").replace("\"greet\"", "\"say_hello\""));
    for name in ["schema.json", "guide.md", "handler.js"] {
        let text = std::fs::read_to_string(files.join(&format!("say-hello/{name}"))).unwrap();
        files.write(&format!("say_hello/{name}"), text);
    }
    check(
        &files,
        expect![[r#"
            error QD0010 say_hello
              `say_hello` and `say-hello` both stand for the tool `say_hello`
              help: rename one of the two folders
            warning QD0118 say_hello/schema.json:4:18 `"Greets someone by name."`
              the description is nearly that of `say_hello`
              help: say in each what it does that the other does not
        "#]],
    );
}

#[test]
fn a_folder_whose_name_cannot_be_called_is_an_error() {
    check(
        &tree(&SOUND.replace("greet/", "7-greet!/").replace("\"greet\"", "\"_7_greet\"")),
        expect![[r#"
        error QD0011 7-greet!
          the folder `7-greet!` cannot name a tool: a tool id begins with a letter or an underscore, not with '7'
          help: rename the folder: letters, digits, dashes and underscores, a letter first
    "#]],
    );
}

#[test]
fn problems_of_all_tools_are_told_in_one_run() {
    let files =
        tree(&format!("{SOUND}{}", SOUND.replace("greet", "farewell").replace("\"none\"", "\"nothing\"")));
    files.write("greet/handler.js", "export const nothing = 1;");
    check(
        &files,
        expect![[r#"
        error QD0103 farewell/schema.json:6:18 `"nothing"`
          sideEffects must be one of "none", "read_only", "writes" (got "nothing")
          help: see `sideEffects` in `tools/README.md`
        error QD0402 greet/handler.js
          the handler does not export `execute`
          help: export an `execute` function, as `tools/README.md` shows
    "#]],
    );
    let reports: Vec<_> = compile_files(&files)
        .tools
        .into_iter()
        .map(|tool| (tool.folder, tool.errors, tool.warnings))
        .collect();
    assert_eq!(reports, [("farewell".into(), 1, 0), ("greet".into(), 1, 0)]);
}

#[test]
fn tools_that_a_model_would_confuse_are_noticed() {
    let files = tree(&format!("{SOUND}{}", SOUND.replace("greet", "welcome")));
    check(
        &files,
        expect![[r#"
            warning QD0118 welcome/schema.json:4:18 `"Greets someone by name."`
              the description is nearly that of `greet`
              help: say in each what it does that the other does not
        "#]],
    );
}

#[test]
fn tools_are_sorted_by_id() {
    let other =
        SOUND.replace("greet", "apologise").replace("Greets someone by name", "Says sorry for a mistake");
    let files = tree(&format!("{SOUND}{other}"));
    let ids: Vec<_> =
        artifact(&files).tools.into_iter().map(|tool| tool.metadata.tool_id.to_string()).collect();
    assert_eq!(ids, ["apologise", "greet"]);
}
