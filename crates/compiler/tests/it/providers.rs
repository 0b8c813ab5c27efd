use expect_test::expect;
use quarterdeck_contracts::Provider;
use serde_json::json;

use crate::world::{artifact, check, compile_with, expect_diagnostics, patched, sound};

#[test]
fn every_provider_gets_a_declaration() {
    let tool = artifact(&sound()).tools.remove(0);
    assert_eq!(tool.provider_schemas.keys().copied().collect::<Vec<_>>(), Provider::ALL);
    assert!(tool.lossy.is_empty());
}

#[test]
fn a_provider_that_cannot_take_a_tool_is_left_out_and_the_others_are_not() {
    let files = patched(
        json!({ "parameters": { "anyOf": [{ "properties": { "name": {} }, "required": ["name"] }] } }),
    );
    check(
        &files,
        expect![[r#"
            warning QD0501 greet/schema.json:26:5 `"anyOf"`
              anthropic cannot take this tool: Anthropic takes no `anyOf` at the root of the parameters
              help: change this, or accept that agents on anthropic do not have the tool
            warning QD0222 greet/schema.json:27:7 `{`
              this object admits properties that are not declared
              help: add `"additionalProperties": false`
            warning QD0223 greet/schema.json:29:11 `"name"`
              the parameter `name` has no description
              help: say in one sentence what it is for
        "#]],
    );
    let tool = artifact(&files).tools.remove(0);
    let providers: Vec<_> = tool.provider_schemas.keys().map(|provider| provider.as_str()).collect();
    assert_eq!(providers, ["openai", "openaiCompatible", "geminiNative", "geminiJsonSchema", "mcp"]);
}

#[test]
fn a_name_that_a_provider_refuses_is_renamed_for_it_and_the_loss_report_says_so() {
    let files = patched(json!({
        "parameters": { "properties": { "Content-Type": { "type": "string", "description": "d" } } },
    }));
    check(
        &files,
        expect![[r#"
            fine
        "#]],
    );
    let tool = artifact(&files).tools.remove(0);
    assert_eq!(tool.provider_schemas.keys().copied().collect::<Vec<_>>(), Provider::ALL);
    assert_eq!(tool.lossy.keys().copied().collect::<Vec<_>>(), [Provider::GeminiNative]);
    let loss = &tool.lossy[&Provider::GeminiNative][0];
    assert_eq!(
        (loss.what.as_str(), &loss.at[..]),
        ("property names", &["/properties/Content-Type".to_owned()][..])
    );
    assert_eq!(loss.renamed["Content-Type"], "Content_Type__1");
    let declared = &tool.provider_schemas[&Provider::GeminiNative]["parameters"]["properties"];
    assert!(declared.get("Content_Type__1").is_some(), "{declared}");
}

#[test]
fn what_is_lost_is_recorded_with_a_call_that_shows_it() {
    let files = patched(json!({
        "parameters": { "properties": { "email": { "type": "string", "format": "email", "description": "d" } } },
    }));
    let tool = artifact(&files).tools.remove(0);
    let loss = &tool.lossy[&Provider::GeminiNative][0];
    assert_eq!(loss.what, "format");
    assert_eq!(loss.at, ["/properties/email/format"]);
    assert!(loss.counter_example.is_some());
}

#[test]
fn losses_can_be_denied_and_acknowledged() {
    let email = json!({
        "parameters": { "properties": { "email": { "type": "string", "format": "email", "description": "d" } } },
    });
    expect_diagnostics(
        &compile_with(&patched(email.clone()), true),
        expect![[r#"
        error QD0502 greet/schema.json:27:19 `"email"`
          geminiNative cannot say `format`; it would let {"name":"x","email":"something else"} through
          help: simplify the schema, or add "geminiNative: format" to "acknowledged"
    "#]],
    );
    let mut acknowledged = email;
    acknowledged["acknowledged"] = json!(["geminiNative: format"]);
    expect_diagnostics(
        &compile_with(&patched(acknowledged), true),
        expect![[r#"
        fine
    "#]],
    );
}

#[test]
fn an_acknowledgement_of_nothing_is_noticed() {
    check(
        &patched(json!({ "acknowledged": ["geminiNative: format"] })),
        expect![[r#"
        warning QD0113 greet/schema.json:28:5 `"geminiNative: format"`
          "geminiNative: format" matches nothing that is lost
          help: nothing is lost for any provider: remove it
    "#]],
    );
}

#[test]
fn more_tools_than_gemini_takes_at_once_are_noticed() {
    let files = sound();
    let read = |name: &str| std::fs::read_to_string(files.join(&format!("greet/{name}"))).unwrap();
    let (schema, guide, handler) = (read("schema.json"), read("guide.md"), read("handler.js"));
    let noticed = |count: usize| {
        let texts = (0..count).flat_map(|number| {
            let id = format!("t{number}");
            let schema = schema.replace("\"greet\"", &format!("{id:?}"));
            [("schema.json", schema), ("guide.md", guide.clone()), ("handler.js", handler.clone())]
                .map(|(name, text)| (format!("{id}/{name}"), text))
        });
        let compilation = crate::world::compile_tree(&quarterdeck_compiler::Tree::from_texts(texts), false);
        assert!(compilation.artifact.is_some());
        compilation.diagnostics.iter().any(|problem| problem.rule.code == "QD0503")
    };
    assert!(!noticed(512));
    assert!(noticed(513));
}
