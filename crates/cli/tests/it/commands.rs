use std::fs;

use expect_test::expect;
use quarterdeck_testkit::{Tree, tree};
use serde_json::json;

use crate::terminal::{check, quarterdeck, stdout_json};

fn with_scaffold() -> Tree {
    let files = tree("");
    assert!(quarterdeck(files.path(), &["new", "word-count"]).status.success());
    files
}

#[test]
fn build_writes_the_artifact_and_says_what_is_in_it() {
    let files = with_scaffold();
    check(
        files.path(),
        &["build"],
        expect![[r#"
            exit 0
            --- stdout
            ok    word_count  0.1.0  229 tokens

            registry 1.0.685471bd (commit none) written to tools/tool_registry.json
            digest 685471bdba0e02192c540ac2a2f4d307251458f5f08c7aa90351251641feefed
            1 tool, 0 errors, 0 warnings
            --- stderr
        "#]],
    );
    let artifact: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(files.join("tools/tool_registry.json")).unwrap()).unwrap();
    assert_eq!(artifact["buildTimestamp"], "2026-01-13T09:00:00Z");
    assert_eq!(artifact["gitCommit"], json!(null));
}

#[test]
fn a_build_that_fails_leaves_the_artifact_untouched() {
    let files = with_scaffold();
    assert!(quarterdeck(files.path(), &["build"]).status.success());
    let before = fs::read(files.join("tools/tool_registry.json")).unwrap();
    files.write("tools/word-count/handler.js", "export const nothing = 1;");
    check(
        files.path(),
        &["build"],
        expect![[r#"
        exit 1
        --- stdout
        fail  word-count      1 error

        no registry: tools/tool_registry.json was left as it was
        1 tool, 1 error, 0 warnings; `quarterdeck explain CODE` tells more about each
        --- stderr
        error[QD0402 no-execute]: the handler does not export `execute`
        --> tools/word-count/handler.js
         = help: export an `execute` function, as `tools/README.md` shows

    "#]],
    );
    assert_eq!(fs::read(files.join("tools/tool_registry.json")).unwrap(), before);
}

#[test]
fn the_same_tree_in_two_places_gives_the_same_bytes() {
    let (here, there) = (with_scaffold(), with_scaffold());
    for files in [&here, &there] {
        assert!(quarterdeck(files.path(), &["build"]).status.success());
    }
    let read = |files: &Tree| fs::read(files.join("tools/tool_registry.json")).unwrap();
    assert_eq!(read(&here), read(&there));
}

#[test]
fn the_commit_is_recorded_in_a_repository() {
    let files = with_scaffold();
    let git = |arguments: &[&str]| {
        let mut command = std::process::Command::new("git");
        command.args(["-c", "user.name=t", "-c", "user.email=t@example.com"]).args(arguments);
        assert!(command.current_dir(files.path()).output().unwrap().status.success(), "git {arguments:?}");
    };
    git(&["init", "-q"]);
    git(&["add", "."]);
    git(&["commit", "-qm", "first"]);
    let output = quarterdeck(files.path(), &["build", "--format", "json"]);
    let commit = stdout_json(&output)["gitCommit"].as_str().unwrap().to_owned();
    assert_eq!(commit.len(), 8);
}

#[test]
fn check_writes_nothing() {
    let files = with_scaffold();
    check(
        files.path(),
        &["check"],
        expect![[r#"
        exit 0
        --- stdout
        ok    word_count  0.1.0  229 tokens

        1 tool, 0 errors, 0 warnings
        --- stderr
    "#]],
    );
    assert!(!files.join("tools/tool_registry.json").exists());
}

#[test]
fn problems_are_also_data() {
    let files = with_scaffold();
    files.write("tools/word-count/handler.js", "export const nothing = 1;");
    let output = quarterdeck(files.path(), &["check", "--format", "json"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stderr.is_empty());
    let report = stdout_json(&output);
    assert_eq!(report["ok"], false);
    assert_eq!(report["errors"], 1);
    assert_eq!(
        report["diagnostics"],
        json!([{
            "code": "QD0402", "rule": "no-execute", "severity": "error", "tool": "word-count",
            "file": "word-count/handler.js", "message": "the handler does not export `execute`",
            "help": "export an `execute` function, as `tools/README.md` shows",
        }])
    );
}

#[test]
fn a_place_in_a_text_has_lines_and_columns() {
    let files = with_scaffold();
    let path = "tools/word-count/schema.json";
    let text = fs::read_to_string(files.join(path)).unwrap();
    files.write(path, text.replace("\"utility\"", "\"utilities\""));
    let report = stdout_json(&quarterdeck(files.path(), &["check", "--format", "json"]));
    let diagnostic = &report["diagnostics"][0];
    assert_eq!(
        [&diagnostic["line"], &diagnostic["column"], &diagnostic["endLine"], &diagnostic["endColumn"]],
        [6, 15, 6, 26]
    );
}

#[test]
fn list_shows_what_tools_demand_and_cost() {
    check(
        with_scaffold().path(),
        &["list"],
        expect![[r#"
        exit 0
        --- stdout
        tool        version  category  modes        side effects  confirm  budget  declaration  guide
        word_count  0.1.0    utility   text, voice  none          no       500 ms  114 tokens   115 tokens
        --- stderr
    "#]],
    );
}

#[test]
fn describe_shows_what_a_provider_sees() {
    check(
        with_scaffold().path(),
        &["describe", "word-count", "--provider", "geminiNative"],
        expect![[r#"
        exit 0
        --- stdout
        {
          "name": "word_count",
          "description": "Word count: counts the words of a text. Replace this with what your tool does and when to use it.",
          "parameters": {
            "type": "OBJECT",
            "properties": {
              "text": {
                "type": "STRING",
                "description": "The text to count.",
                "minLength": 1,
                "maxLength": 1000
              },
              "unit": {
                "type": "STRING",
                "description": "What to count.",
                "enum": [
                  "words",
                  "characters"
                ]
              }
            },
            "required": [
              "text"
            ]
          }
        }
        --- stderr
    "#]],
    );
}

#[test]
fn describe_shows_everything() {
    let output = quarterdeck(with_scaffold().path(), &["describe", "word_count"]);
    let text = String::from_utf8(output.stdout).unwrap();
    for part in
        ["word_count 0.1.0", "contract", "timeoutMs: 2500", "parameters", "returns", "guide", "providers"]
    {
        assert!(text.contains(part), "{part}");
    }
}

#[test]
fn a_name_that_is_nearly_right_gets_a_hint() {
    let files = with_scaffold();
    check(
        files.path(),
        &["describe", "word-cuont"],
        expect![[r#"
        exit 2
        --- stdout
        --- stderr
        error: there is no tool word-cuont; did you mean word_count?
    "#]],
    );
    check(
        files.path(),
        &["describe", "word-count", "--provider", "gemini"],
        expect![[r#"
        exit 2
        --- stdout
        --- stderr
        error: there is no provider gemini; there are openai, openaiStrict, openaiCompatible, geminiNative, geminiJsonSchema, anthropic, mcp
    "#]],
    );
    check(
        files.path(),
        &["explain", "QD0014"],
        expect![[r#"
            exit 2
            --- stdout
            --- stderr
            error: there is no rule QD0014; did you mean QD0114? (`quarterdeck explain` lists them all)
        "#]],
    );
}

#[test]
fn explain_tells_why_a_rule_exists() {
    check(
        tree("").path(),
        &["explain", "retrieval-writes"],
        expect![[r#"
        exit 0
        --- stdout
        QD0104 retrieval-writes (error)

        A retrieval tool looks things up and changes nothing: models may call it freely, in parallel, and again. Set `sideEffects` to `read_only`, or the category to `action`.
        --- stderr
    "#]],
    );
}

#[test]
fn diff_says_whether_callers_break() {
    let files = with_scaffold();
    assert!(quarterdeck(files.path(), &["build", "--out", "old.json"]).status.success());
    let path = "tools/word-count/schema.json";
    let text = fs::read_to_string(files.join(path)).unwrap();
    files.write(path, text.replace("[\"words\", \"characters\"]", "[\"words\"]").replace("500", "400"));
    files.write("tools/word-count/guide.md", "# Word count\n\nCounts the words of a text someone gave.\n");
    assert!(quarterdeck(files.path(), &["build", "--out", "new.json"]).status.success());
    check(
        files.path(),
        &["diff", "old.json", "new.json"],
        expect![[r#"
            exit 1
            --- stdout
            1.0.685471bd → 1.0.4d682876

            word_count
              breaks   unit: no longer takes "characters"
                       accepted before, refused now: {"text":"x","unit":"characters"}
              changes  `latencyBudgetMs` was 500 and is 400
              changes  the documentation changed
              changes  the version goes from 0.1.0 to 0.1.0; a breaking change wants a new major version

            1 change breaks callers
            --- stderr
        "#]],
    );
    check(
        files.path(),
        &["diff", "old.json", "old.json"],
        expect![[r#"
            exit 0
            --- stdout
            1.0.685471bd → 1.0.685471bd
            no difference
            --- stderr
        "#]],
    );
    let report =
        stdout_json(&quarterdeck(files.path(), &["diff", "old.json", "new.json", "--format", "json"]));
    assert_eq!(report["breaking"], true);
}

#[test]
fn diff_refuses_what_is_not_an_artifact() {
    let files = tree("//- old.json\n{ \"formatVersion\": 2 }\n//- text.json\nhello");
    check(
        files.path(),
        &["diff", "old.json", "old.json"],
        expect![[r#"
        exit 2
        --- stdout
        --- stderr
        error: old.json has format version 2, and this quarterdeck reads 1; build it again with `quarterdeck build`
    "#]],
    );
    check(
        files.path(),
        &["diff", "text.json", "old.json"],
        expect![[r#"
        exit 2
        --- stdout
        --- stderr
        error: text.json is not a registry artifact: expected value at line 1 column 1
    "#]],
    );
    check(
        files.path(),
        &["diff", "gone.json", "old.json"],
        expect![[r#"
        exit 2
        --- stdout
        --- stderr
        error: cannot read gone.json: No such file or directory (os error 2)
    "#]],
    );
}

#[test]
fn a_tools_folder_that_is_not_there_is_told_with_a_way_out() {
    check(
        tree("").path(),
        &["build"],
        expect![[r#"
            exit 2
            --- stdout
            --- stderr
            error: cannot read the tools folder tools: No such file or directory (os error 2)
            help: point `--tools` at a folder of tool folders, or create one with `quarterdeck new NAME`
        "#]],
    );
    check(
        tree("//- tools/readme.txt\n").path(),
        &["build"],
        expect![[r#"
        exit 1
        --- stdout

        no registry: tools/tool_registry.json was left as it was
        0 tools, 1 error, 0 warnings; `quarterdeck explain CODE` tells more about each
        --- stderr
        error[QD0001 no-tools]: there are no tools in the tools folder
         |
         = help: make a first one with `quarterdeck new my-tool`, or point `--tools` at another folder

    "#]],
    );
}

#[test]
fn an_artifact_that_cannot_be_written_is_told() {
    check(
        with_scaffold().path(),
        &["build", "--out", "gone/registry.json"],
        expect![[r#"
            exit 2
            --- stdout
            --- stderr
            error: cannot write gone/registry.json: there is no folder gone
        "#]],
    );
}

#[test]
fn a_bad_build_time_is_told() {
    let files = with_scaffold();
    let output = crate::terminal::command(files.path())
        .env("SOURCE_DATE_EPOCH", "soon")
        .arg("build")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("set it to whole seconds since 1970"));
}

#[test]
fn completions_exist_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = quarterdeck(tree("").path(), &["completions", shell]);
        assert!(output.status.success());
        assert!(String::from_utf8(output.stdout).unwrap().contains("describe"), "{shell}");
    }
}

#[test]
fn every_command_has_help_with_an_example() {
    for command in
        ["build", "check", "new", "list", "describe", "diff", "call", "test", "explain", "completions"]
    {
        let output = quarterdeck(tree("").path(), &[command, "--help"]);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains(&format!("Example:\n  quarterdeck {command}")), "{command}: {text}");
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_not_an_error() {
    let files = with_scaffold();
    let script = format!("{} describe word-count | head -n 1", env!("CARGO_BIN_EXE_quarterdeck"));
    let output = std::process::Command::new("bash")
        .args(["-o", "pipefail", "-c", &script])
        .current_dir(files.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty());
}

#[test]
fn colours_are_for_terminals_only() {
    let files = with_scaffold();
    files.write("tools/word-count/handler.js", "export const nothing = 1;");
    let output = quarterdeck(files.path(), &["check"]);
    assert!(!output.stderr.contains(&0x1b));
    assert!(!output.stdout.contains(&0x1b));
}
