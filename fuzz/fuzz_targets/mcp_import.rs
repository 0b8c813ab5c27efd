//! Any JSON as what an MCP server publishes: a folder whose files can be seen and read again, or a reason why not.
#![no_main]

use libfuzzer_sys::fuzz_target;
use quarterdeck_contracts::visible;
use quarterdeck_host_mcp::{Binding, Import, PublishedTool, ServerName, difference, parse_published, tool_id, update_folder};

fuzz_target!(|data: &str| {
    let _ = (Binding::parse(data), parse_published(data));
    let Ok(tool) = serde_json::from_str::<PublishedTool>(data) else { return };
    let server = ServerName::parse("fuzz").expect("a name");
    let Ok(id) = tool_id(&server, &tool.name, |_| false) else { return };
    let import = Import { server: &server, tool: &tool, id: &id, editor_schema: None };
    let Ok(folder) = import.to_folder() else { return };
    let file = |name: &str| folder.files.iter().find(|(each, _)| *each == name).map(|(_, text)| text.as_str()).expect("a file");
    assert!(folder.files.iter().all(|(_, text)| text.lines().all(|line| visible(line) == line)));
    let binding = Binding::parse(file("handler.mcp.json")).expect("what we write is a binding");
    let published = parse_published(file("published.json")).expect("what we write is a published tool");
    assert_eq!(published.digest(), binding.digest);
    let mut changed = tool.clone();
    changed.description = Some("Changed.".into());
    let import = Import { tool: &changed, ..import };
    let update = update_folder(&import, Some(&tool), (file("schema.json"), file("guide.md")));
    assert!(update.is_ok());
    assert_eq!(difference(&tool, &changed).is_none(), tool.digest() == changed.digest());
});
