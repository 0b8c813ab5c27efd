//! Reads what a server publishes, within limits.

use std::collections::BTreeMap;
use std::sync::Arc;

use rmcp::RoleClient;
use rmcp::model::{ClientRequest, ListToolsRequest, PaginatedRequestParams, ServerResult};
use rmcp::service::Peer;

use crate::foreign;
use crate::published::{PublishedTool, ToolDigest};
use crate::server_config::UpstreamLimits;

const MAX_PAGES: usize = 100;
/// Messages that a whole list may fill.
const MAX_LIST_MESSAGES: usize = 4;
const MAX_REASON_CHARS: usize = 200;

/// A tool as it is published now.
#[derive(Debug, Clone)]
pub(crate) struct LiveTool {
    pub(crate) tool: PublishedTool,
    pub(crate) digest: ToolDigest,
}

/// Everything that a server publishes, by name.
pub(crate) type LiveTools = BTreeMap<String, Arc<LiveTool>>;

/// Reads all pages. Of two tools with one name neither can be told from the other, so that the list is refused.
pub(crate) async fn list(peer: &Peer<RoleClient>, limits: &UpstreamLimits) -> Result<LiveTools, String> {
    let mut tools = LiveTools::new();
    let (mut cursor, mut bytes) = (None, 0_usize);
    for _ in 0..MAX_PAGES {
        let page = page(peer, cursor.clone()).await?;
        for tool in &page.tools {
            let tool = PublishedTool::from(tool);
            bytes += serde_json::to_vec(&tool).map_or(0, |text| text.len());
            let digest = tool.digest();
            let name = tool.name.clone();
            if tools.insert(name.clone(), Arc::new(LiveTool { tool, digest })).is_some() {
                let name = foreign::shorten(&name, MAX_REASON_CHARS);
                return Err(format!("its list has two tools called `{name}`"));
            }
        }
        if tools.len() > limits.max_tools {
            return Err(format!(
                "it publishes more than {} tools; `max_tools` is the limit",
                limits.max_tools
            ));
        }
        if bytes > limits.max_message_bytes.saturating_mul(MAX_LIST_MESSAGES) {
            return Err("its list of tools is too large".to_owned());
        }
        match page.next_cursor {
            None => return Ok(tools),
            next if next == cursor => return Err("its list of tools gives the same page again".to_owned()),
            next => cursor = next,
        }
    }
    Err(format!("its list of tools has more than {MAX_PAGES} pages"))
}

/// One page, asked of the server itself: what the SDK would keep of an earlier list is just what must not be compared.
async fn page(
    peer: &Peer<RoleClient>,
    cursor: Option<String>,
) -> Result<rmcp::model::ListToolsResult, String> {
    let params = PaginatedRequestParams::default().with_cursor(cursor);
    let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
    match peer.send_request(request).await {
        Ok(ServerResult::ListToolsResult(page)) => Ok(page),
        Ok(_) => Err("its answer to tools/list is no list of tools".to_owned()),
        Err(error) => {
            let error = foreign::shorten(&error.to_string(), MAX_REASON_CHARS);
            Err(format!("its tools cannot be listed: {error}"))
        }
    }
}
