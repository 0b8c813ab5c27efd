use proptest::prelude::*;
use serde_json::json;

use super::*;

fn published() -> PublishedTool {
    serde_json::from_value(json!({
        "name": "create_issue",
        "title": "Create an issue",
        "description": "Opens an issue in a repository.",
        "inputSchema": {
            "type": "object",
            "properties": { "title": { "type": "string" }, "labels": { "type": "array", "maxItems": 10 } },
            "required": ["title"]
        },
        "outputSchema": { "type": "object", "properties": { "number": { "type": "integer" } } },
        "annotations": { "readOnlyHint": false, "destructiveHint": false }
    }))
    .unwrap()
}

#[test]
fn every_change_of_a_published_part_changes_the_digest() {
    let pinned = published().digest();
    type Change = fn(&mut PublishedTool);
    let changes: [(&str, Change); 12] = [
        ("name", |tool| tool.name.push('s')),
        ("title", |tool| tool.title = Some("Create an Issue".into())),
        ("no title", |tool| tool.title = None),
        ("description", |tool| tool.description = Some("Opens an issue in a repository. ".into())),
        ("no description", |tool| tool.description = None),
        ("an empty description", |tool| tool.description = Some(String::new())),
        ("a property", |tool| tool.input_schema["properties"]["title"]["maxLength"] = json!(80)),
        ("the order of a list", |tool| tool.input_schema["required"] = json!(["labels", "title"])),
        ("output", |tool| tool.output_schema = Some(Map::new())),
        ("no output", |tool| tool.output_schema = None),
        ("a hint", |tool| tool.annotations = json!({ "readOnlyHint": true }).as_object().cloned()),
        ("no hints", |tool| tool.annotations = None),
    ];
    let mut seen = vec![pinned];
    for (what, change) in changes {
        let mut tool = published();
        change(&mut tool);
        let digest = tool.digest();
        assert!(!seen.contains(&digest), "{what}");
        seen.push(digest);
    }
}

#[test]
fn order_of_keys_and_spelling_of_numbers_do_not_change_the_digest() {
    let mut tool = published();
    tool.input_schema = serde_json::from_str(
        r#"{ "required": ["title"], "properties": { "labels": { "maxItems": 10.0, "type": "array" },
             "title": { "type": "string" } }, "type": "object" }"#,
    )
    .unwrap();
    tool.annotations = json!({ "destructiveHint": false, "readOnlyHint": false }).as_object().cloned();
    assert_eq!(tool.digest(), published().digest());
}

#[test]
fn icons_and_meta_are_not_pinned() {
    let mut entry = serde_json::to_value(published()).unwrap();
    entry["_meta"] = json!({ "build": 7 });
    entry["icons"] = json!([{ "src": "https://example.com/i.png" }]);
    let tool: rmcp::model::Tool = serde_json::from_value(entry).unwrap();
    assert_eq!(PublishedTool::from(&tool).digest(), published().digest());
}

#[test]
fn a_digest_is_the_algorithm_and_its_digits() {
    let digest = published().digest();
    assert_eq!(ToolDigest::parse(digest.as_str()), Ok(digest.clone()));
    assert_eq!(digest.short().len(), 19);
    let digits = &digest.as_str()[7..];
    for wrong in [
        digits,
        "sha256:",
        "",
        &digest.as_str().to_uppercase(),
        &format!("{digest}0"),
        &format!("md5:{digits}"),
    ] {
        assert_eq!(ToolDigest::parse(wrong), Err(InvalidDigest), "{wrong}");
    }
}

proptest! {
    #[test]
    fn two_tools_have_one_digest_only_if_they_are_equal(
        names in prop::array::uniform2("[ab]{1,2}"),
        titles in prop::array::uniform2(prop::option::of("[ab]{0,1}")),
        descriptions in prop::array::uniform2(prop::option::of("[ab\"]{0,2}")),
        hints in prop::array::uniform2(prop::option::of(any::<bool>())),
    ) {
        let tool = |nth: usize| PublishedTool {
            name: names[nth].clone(),
            title: titles[nth].clone(),
            description: descriptions[nth].clone(),
            input_schema: Map::new(),
            output_schema: None,
            annotations: hints[nth].map(|hint| Map::from_iter([("readOnlyHint".to_owned(), hint.into())])),
        };
        prop_assert_eq!(tool(0).digest() == tool(1).digest(), tool(0) == tool(1));
    }
}
