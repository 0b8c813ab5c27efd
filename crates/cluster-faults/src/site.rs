//! What every node serves: two tools that write to the outside world, one of which the user has to approve.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde_json::json;

/// The folders of a site.
pub(crate) struct Site {
    folder: tempfile::TempDir,
}

impl Site {
    /// A site whose tools write to the service at this address.
    pub(crate) fn new(outside: SocketAddr) -> Self {
        let site = Self { folder: tempfile::tempdir().unwrap() };
        for tool in ["book", "pay"] {
            write_tool(&site.path("tools"), tool, outside.port());
        }
        let grants = ["book", "pay"]
            .map(|tool| format!("[tools.{tool}]\nprivate_hosts = [\"localhost:{}\"]\n", outside.port()));
        std::fs::write(site.path("quarterdeck.toml"), grants.concat()).unwrap();
        site
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// The effect outside comes first. What is stored is committed together with the record of the call.
const HANDLER: &str = r#"
export async function execute({ args, context }) {
  const answer = await fetch('http://localhost:PORT/effects', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ key: args.what, session: context.session.id }),
  });
  const { receipt } = await answer.json();
  await context.store.put(args.what, { receipt });
  return { ok: true, data: { did: args.what, receipt } };
}
"#;

fn write_tool(tools: &Path, id: &str, port: u16) {
    let definition = json!({
        "toolId": id, "version": "1.0.0", "description": "Does it.", "category": "action",
        "sideEffects": "writes", "idempotent": false, "requiresConfirmation": id == "pay",
        "allowedModes": ["text", "voice"], "latencyBudgetMs": 2_000, "timeoutMs": 20_000,
        "capabilities": ["store"], "network": ["localhost"],
        "parameters": {
            "type": "object", "additionalProperties": false, "required": ["what"],
            "properties": { "what": { "type": "string", "description": "What." } },
        },
    });
    let folder = tools.join(id);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("schema.json"), definition.to_string()).unwrap();
    std::fs::write(folder.join("guide.md"), "# Tool\n\nDoes it. Use it when it is asked for.\n").unwrap();
    std::fs::write(folder.join("handler.js"), HANDLER.replace("PORT", &port.to_string())).unwrap();
}
