//! Looks at folders that are bound to a tool elsewhere, without asking the server.

use std::collections::BTreeSet;

use quarterdeck_contracts::handler::{
    FileType, Finding, FindingKind, HandlerSource, Inspection, Inspector, Position,
};
use quarterdeck_json_fields::FieldError;

use crate::binding::{BINDING_FILE, Binding};
use crate::published_file::{PUBLISHED_FILE, parse_published};
use crate::server_config::ServerName;

/// The inspector of the kind `mcp`.
#[derive(Debug, Default)]
pub struct McpInspector {
    /// The servers of the configuration, where it is known.
    servers: Option<BTreeSet<ServerName>>,
}

impl McpInspector {
    /// One that knows the configuration, and warns of servers that are not in it.
    pub fn with_servers(servers: impl IntoIterator<Item = ServerName>) -> Self {
        Self { servers: Some(servers.into_iter().collect()) }
    }

    fn unknown_server(&self, binding: &Binding) -> Option<String> {
        let servers = self.servers.as_ref().filter(|servers| !servers.contains(&binding.server))?;
        let known: Vec<_> = servers.iter().map(ServerName::as_str).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        Some(format!("the server `{}` is not configured; configured: {known}", binding.server))
    }
}

impl Inspector for McpInspector {
    fn entry_file(&self) -> &'static str {
        BINDING_FILE
    }

    fn file_types(&self) -> &'static [FileType] {
        const { &[FileType::text("json")] }
    }

    fn inspect(&self, source: HandlerSource<'_>) -> Inspection {
        let mut found = Findings { entry: source.entry, findings: Vec::new() };
        let folder = source.entry.strip_suffix(BINDING_FILE).unwrap_or_default();
        let published_path = format!("{folder}{PUBLISHED_FILE}");
        let text = |path: &str| source.files.get(path).map(|bytes| String::from_utf8_lossy(bytes));
        let entry = text(source.entry).unwrap_or_default();
        let published = text(&published_path);
        match Binding::parse(&entry) {
            Err(error) => found.invalid(source.entry, &error),
            Ok(binding) => {
                if let Some(message) = self.unknown_server(&binding) {
                    let position = position_of(&entry, "server");
                    found.push(FindingKind::UnknownServer, source.entry, position, message);
                }
                match published.as_deref().map(parse_published) {
                    Some(Err(error)) => found.invalid(&published_path, &error),
                    Some(Ok(tool)) if tool.name != binding.tool || tool.digest() != binding.digest => {
                        let message = format!(
                            "{PUBLISHED_FILE} is not what the digest pins: it has the digest {} and is about `{}`",
                            tool.digest(),
                            quarterdeck_contracts::visible_line(&tool.name)
                        );
                        found.push(
                            FindingKind::Binding,
                            source.entry,
                            position_of(&entry, "digest"),
                            message,
                        );
                    }
                    _ => {}
                }
            }
        }
        let published = published.map(|_| published_path);
        let files = [source.entry.to_owned()].into_iter().chain(published).collect();
        Inspection { files, findings: found.findings }
    }
}

struct Findings<'a> {
    entry: &'a str,
    findings: Vec<Finding>,
}

impl Findings<'_> {
    fn push(&mut self, kind: FindingKind, file: &str, position: Option<Position>, message: String) {
        self.findings.push(Finding { kind, file: file.to_owned(), position, message });
    }

    fn invalid(&mut self, file: &str, error: &FieldError) {
        let position = Position { line: error.line, column: 1 };
        let name = if file == self.entry { BINDING_FILE } else { PUBLISHED_FILE };
        // The field of a fault in the whole file is the file itself.
        let field = if error.field == name { String::new() } else { format!("`{}` ", error.field) };
        self.push(FindingKind::Binding, file, Some(position), format!("{field}{}", error.problem));
    }
}

/// Where a field of a binding stands. Its values cannot hold a quotation mark, so the first quoted occurrence that a colon
/// follows is the key.
fn position_of(text: &str, key: &str) -> Option<Position> {
    let quoted = format!("\"{key}\"");
    let is_key = |at: usize| text[at + quoted.len()..].trim_start().starts_with(':');
    let at = text.match_indices(&quoted).map(|(at, _)| at).find(|at| is_key(*at))?;
    Some(Position::of(text, at))
}

#[cfg(test)]
mod tests {
    use quarterdeck_contracts::handler::HandlerFiles;
    use serde_json::json;

    use super::*;
    use crate::published::PublishedTool;
    use crate::published_file::published_to_text;

    fn tool() -> PublishedTool {
        serde_json::from_value(json!({ "name": "now", "inputSchema": { "type": "object" } })).unwrap()
    }

    fn binding() -> String {
        let server = ServerName::parse("time").unwrap();
        Binding { server, tool: "now".into(), digest: tool().digest() }.to_text()
    }

    fn inspect(inspector: &McpInspector, binding: &str, published: Option<&str>) -> Inspection {
        let mut files =
            HandlerFiles::from([("now/handler.mcp.json".to_owned(), binding.as_bytes().to_vec())]);
        files.extend(published.map(|text| ("now/published.json".to_owned(), text.as_bytes().to_vec())));
        inspector.inspect(HandlerSource { entry: "now/handler.mcp.json", files: &files })
    }

    #[test]
    fn a_sound_binding_is_made_of_its_files() {
        let published = published_to_text(&tool());
        let inspection = inspect(&McpInspector::default(), &binding(), Some(&published));
        assert_eq!(inspection.findings, []);
        assert_eq!(inspection.files, ["now/handler.mcp.json", "now/published.json"]);
        let alone = inspect(&McpInspector::default(), &binding(), None);
        assert_eq!((alone.findings.len(), alone.files.len()), (0, 1));
    }

    #[test]
    fn a_server_that_is_not_configured_is_warned_of_where_the_configuration_is_known() {
        let known = McpInspector::with_servers([ServerName::parse("files").unwrap()]);
        let [finding] = &inspect(&known, &binding(), None).findings[..] else { panic!() };
        assert_eq!(finding.kind, FindingKind::UnknownServer);
        assert_eq!(finding.message, "the server `time` is not configured; configured: files");
        assert_eq!(finding.position, Some(Position { line: 2, column: 3 }));
    }

    #[test]
    fn a_published_form_that_was_edited_is_not_what_the_digest_pins() {
        let mut edited = tool();
        edited.description = Some("Harmless.".into());
        let published = published_to_text(&edited);
        let [finding] = &inspect(&McpInspector::default(), &binding(), Some(&published)).findings[..] else {
            panic!()
        };
        assert_eq!(finding.kind, FindingKind::Binding);
        assert_eq!(finding.position, Some(Position { line: 4, column: 3 }));
        assert!(
            finding.message.starts_with("published.json is not what the digest pins"),
            "{}",
            finding.message
        );
    }

    #[test]
    fn mistakes_are_placed_in_their_file() {
        let inspection =
            inspect(&McpInspector::default(), "{\n  \"server\": \"time\",\n  \"tool\": 7\n}", None);
        assert_eq!(inspection.findings[0].position, Some(Position { line: 3, column: 1 }));
        assert_eq!(inspection.findings[0].message, "`tool` must be a text, is a number");
        let inspection = inspect(&McpInspector::default(), &binding(), Some("{"));
        assert_eq!(inspection.findings[0].file, "now/published.json");
    }
}
