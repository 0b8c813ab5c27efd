use expect_test::expect;
use quarterdeck_testkit::Tree;

use crate::world::{artifact, check, compile_files, sound};

fn guide(text: &str) -> Tree {
    let files = sound();
    files.write("greet/guide.md", text);
    files
}

#[test]
fn the_summary_is_the_first_line_that_is_not_a_heading() {
    let tool = artifact(&sound()).tools.remove(0);
    assert_eq!(tool.summary, "Greets someone by name. Use it when a conversation begins.");
    assert!(tool.documentation.starts_with("# Greet\n"));
}

#[test]
fn a_guide_without_text_has_no_summary() {
    check(
        &guide("# Greet\n\n## Examples\n"),
        expect![[r#"
        error QD0301 greet/guide.md
          the guide has no summary
          help: write one or two sentences under the heading: what the tool does, when to use it
    "#]],
    );
    check(
        &guide(""),
        expect![[r#"
        error QD0301 greet/guide.md
          the guide has no summary
          help: write one or two sentences under the heading: what the tool does, when to use it
        warning QD0308 greet/guide.md:1:1 ``
          the guide does not begin with a heading
          help: begin with `# Title`
    "#]],
    );
}

#[test]
fn a_guide_begins_with_a_heading() {
    check(
        &guide("Greets people when they come in.\n"),
        expect![[r#"
        warning QD0308 greet/guide.md:1:1 `G`
          the guide does not begin with a heading
          help: begin with `# Title`
    "#]],
    );
}

#[test]
fn a_guide_that_begins_with_a_wide_character_is_shown() {
    let diagnostics = compile_files(&guide("é\n")).diagnostics;
    let no_heading = diagnostics.iter().find(|diagnostic| diagnostic.rule.code == "QD0308").unwrap();
    let shown = quarterdeck_compiler::render(no_heading, "tools", quarterdeck_compiler::Style::Plain);
    assert!(shown.contains("1 | é"), "{shown}");
}

#[test]
fn a_summary_is_short_and_says_something() {
    check(
        &guide(&format!("# Greet\n\n{}\n", "Greets people. ".repeat(20))),
        expect![[r#"
        warning QD0302 greet/guide.md:3:1 `Greets people. Greets people. Greets people. Greets people. Greets people. Greets people. Greets people. Greets people. Greets people. Greets people. Greets people. Greets people. Greets people. Greets people. Greets people. Greets people. Greets people. Greets people. Greets people. Greets people. `
          the summary has 299 characters
          help: keep it to 250; break the line after the first sentence or two
    "#]],
    );
    check(
        &guide("# Greet\n\nThe greet tool.\n"),
        expect![[r#"
        warning QD0306 greet/guide.md:3:1 `The greet tool.`
          the summary only repeats the tool's name
          help: say what the tool does and when to use it
    "#]],
    );
}

#[test]
fn a_long_guide_is_noticed() {
    check(
        &guide(&format!("# Greet\n\nGreets people kindly.\n\n{}", "More words here.\n".repeat(400))),
        expect![[r#"
        warning QD0307 greet/guide.md
          the documentation takes about 1708 tokens of every conversation
          help: shorten it to 1,500; move what only tool authors need to another file
    "#]],
    );
}

#[test]
fn an_example_that_the_tool_would_refuse_is_an_error() {
    check(
        &guide(
            "# Greet\n\nGreets people kindly.\n\n## Examples\n\n```json\n{ \"nam\": \"Fridtjof\" }\n```\n",
        ),
        expect![[r#"
            error QD0304 greet/guide.md:8:1 `{ "nam": "Fridtjof" }`
              the tool would refuse this example: name is required; unknown parameter "nam"; did you mean "name"?
              help: correct the example or the schema; put “Response:” above a block that shows an answer
        "#]],
    );
}

#[test]
fn an_example_that_is_not_json_is_an_error() {
    check(
        &guide("# Greet\n\nGreets people kindly.\n\n## Examples\n\n```json\n{ name: 'x' }\n```\n"),
        expect![[r#"
            error QD0303 greet/guide.md:8:3 `n`
              the example is not JSON: key must be a string
              help: an example is the arguments of a call, as JSON; mark anything else as `text`
        "#]],
    );
}

#[test]
fn answers_other_languages_and_other_sections_are_not_example_calls() {
    check(
        &guide(
            r#"# Greet

Greets people kindly.

```json
{ "not": "under examples" }
```

## Examples

### With a name

```json
{ "name": "Fridtjof" }
```

Response:

```json
{ "greeting": "Hello" }
```

**Result** when it goes wrong

~~~json
["anything"]
~~~

```json
{ "ok": true, "data": null }
```

```js
{ not: json }
```

## Watch Out

```json
{ "also": "elsewhere" }
```
"#,
        ),
        expect![[r#"
            fine
        "#]],
    );
}

const OLDER: &str = r#"
    //- greet/doc_summary.md
    Greets someone by name when a conversation begins.
    //- greet/doc.md
    # greet

    ## Summary
    Greets.
    ## Preconditions
    None.
    ## Postconditions
    None.
    ## Invariants (always)
    None.
    ## Failure Modes
    None.
    ## Examples
    ```json
    { "name": "Fridtjof" }
    ```
    ## Common Mistakes
    None.
    ## Notes
    More sections are fine.
"#;

fn older(description: &str) -> Tree {
    let files = sound();
    std::fs::remove_file(files.join("greet/guide.md")).unwrap();
    let older = quarterdeck_testkit::tree(description);
    for name in ["doc_summary.md", "doc.md"] {
        if let Ok(text) = std::fs::read_to_string(older.join(&format!("greet/{name}"))) {
            files.write(&format!("greet/{name}"), text);
        }
    }
    files
}

#[test]
fn the_older_form_builds_unchanged() {
    let files = older(OLDER);
    check(
        &files,
        expect![[r#"
        fine
    "#]],
    );
    let tool = artifact(&files).tools.remove(0);
    assert_eq!(tool.summary, "Greets someone by name when a conversation begins.");
    assert!(tool.documentation.contains("More sections are fine."));
}

#[test]
fn the_older_form_has_all_its_sections_and_both_files() {
    check(
        &older(&OLDER.replace("## Failure Modes", "## Failures")),
        expect![[r#"
        error QD0305 greet/doc.md
          `doc.md` has no section “Failure Modes”
          help: add a heading `## Failure Modes`
    "#]],
    );
    check(
        &older("//- greet/doc.md\n# greet"),
        expect![[r#"
        error QD0002 greet
          `doc_summary.md` is missing
          help: the older form has both files; or write a `guide.md` instead of them
    "#]],
    );
}

/// In `guide.md` the summary is a line of a longer text, and one that is too long only warns.
#[test]
fn a_doc_summary_over_250_characters_is_an_error() {
    let with_summary = |length: usize| {
        let summary = "Greets a visitor by name. ".chars().cycle().take(length).collect::<String>();
        let files = older(OLDER);
        files.write("greet/doc_summary.md", format!("  {}é\n", summary.replace('\n', " ")));
        files
    };
    check(
        &with_summary(249),
        expect![[r#"
            fine
        "#]],
    );
    let compilation = compile_files(&with_summary(250));
    assert!(compilation.artifact.is_none());
    let [long] = &compilation.diagnostics[..] else { panic!("{:?}", compilation.diagnostics) };
    assert_eq!((long.rule.code, long.message.as_str()), ("QD0328", "`doc_summary.md` has 251 characters"));
}

#[test]
fn examples_of_the_older_form_only_warn() {
    check(
        &older(&OLDER.replace("\"name\"", "\"nome\"")),
        expect![[r#"
        warning QD0304 greet/doc.md:15:1 `{ "nome": "Fridtjof" }`
          the tool would refuse this example: name is required; unknown parameter "nome"; did you mean "name"?
          help: correct the example or the schema; put “Response:” above a block that shows an answer
    "#]],
    );
}

#[test]
fn both_forms_at_once_are_an_error() {
    let files = older(OLDER);
    files.write("greet/guide.md", "# Greet\n\nGreets people kindly.\n");
    check(
        &files,
        expect![[r#"
        error QD0009 greet
          the tool has both `guide.md` and the older `doc.md` or `doc_summary.md`
          help: keep `guide.md` and remove the others
    "#]],
    );
}
