//! What an imported tool is called here.

use quarterdeck_contracts::ToolId;

use crate::server_config::ServerName;

/// Ids by which agents know a tool. A foreign one must not be mistaken for it, also where there is none.
const RESERVED: [&str; 6] =
    ["describe_tool", "end_voice_session", "ignore_user", "kb_get", "kb_search", "start_voice_session"];

/// Why a tool cannot be imported: a clause for an author.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidImport {
    #[error("its name is empty, longer than 128 bytes, or has characters that cannot be seen")]
    Name,
    #[error("its id `{0}` is taken; rename the folder that has it, or remove that folder")]
    Taken(String),
    #[error(
        "its description has more than {0} bytes, which is too long to review; ask the server's authors for a shorter one"
    )]
    LongDescription(usize),
    #[error("what is published about it has {0} bytes, and at most {1} are taken")]
    TooLarge(usize, usize),
    #[error(
        "its {part} has characters that cannot be seen at {pointer} (shown: {shown}), where making them visible would change what is called"
    )]
    Hidden { part: &'static str, pointer: String, shown: String },
}

/// The id of a tool: its own name, or with the server's before it where that is taken or no id.
///
/// # Errors
///
/// Both are taken.
pub fn tool_id(
    server: &ServerName,
    name: &str,
    is_taken: impl Fn(&str) -> bool,
) -> Result<ToolId, InvalidImport> {
    let is_free = |id: &ToolId| !is_taken(id.as_str());
    let own =
        ToolId::parse(name).ok().filter(|id| !RESERVED.contains(&id.as_str()) && !name.starts_with('_'));
    if let Some(own) = own.filter(is_free) {
        return Ok(own);
    }
    let prefixed = prefixed(server, name);
    let id = ToolId::parse(&prefixed).map_err(|_| InvalidImport::Name)?;
    if is_free(&id) { Ok(id) } else { Err(InvalidImport::Taken(prefixed)) }
}

fn prefixed(server: &ServerName, name: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
    let server = server.as_str().replace('-', "_");
    let mut id = format!("{server}_{}", name.chars().map(plain).collect::<String>().trim_matches('_'));
    id.truncate(ToolId::MAX_LENGTH);
    id
}

/// The name of a tool's folder.
pub fn folder_of(id: &ToolId) -> String {
    id.as_str().replace('_', "-")
}
