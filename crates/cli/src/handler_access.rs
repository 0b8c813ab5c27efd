//! What handlers may reach: the secrets and private hosts of `[tools.NAME]`, and stand-ins for the network.

use std::collections::BTreeMap;
use std::sync::Arc;

use quarterdeck_contracts::{Artifact, Metadata};
use quarterdeck_host_js::{FetchStandIn, ToolGrants};
use quarterdeck_outbound::{PrivateHost, SecretText};
use quarterdeck_runtime::Snapshot;

use crate::config::McpServers;
use crate::recorded_fetches::RecordedFetches;
use crate::terminal::warn;

/// What an operator grants, by the id of the tool.
pub(crate) type Grants = BTreeMap<String, ToolGrants>;

/// What the hosts of handlers are given.
#[derive(Debug, Clone, Default)]
pub(crate) struct HandlerAccess {
    pub(crate) grants: Grants,
    pub(crate) stand_in: Option<Arc<dyn FetchStandIn>>,
    /// The MCP servers that run imported tools.
    pub(crate) servers: McpServers,
}

impl HandlerAccess {
    pub(crate) fn new(grants: Grants, servers: McpServers) -> Self {
        Self { grants, stand_in: None, servers }
    }
}

/// What handlers may reach in a command without a server.
#[derive(Debug)]
pub(crate) struct LocalAccess {
    pub(crate) grants: Grants,
    /// Opened to every tool, by a flag.
    pub(crate) private_hosts: Vec<PrivateHost>,
    pub(crate) secrets: SecretSource,
    pub(crate) recorded: Arc<RecordedFetches>,
    /// The MCP servers that calls may reach. Examples and cases reach none: they are run by anyone who tries a tool, and
    /// would act at a server that others run.
    pub(crate) servers: McpServers,
}

/// Where the secrets of a command's calls come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SecretSource {
    /// The configuration.
    Configured,
    /// Nowhere: every declared secret has a value that opens nothing. Examples and cases are run by anyone who tries a
    /// tool, with approval, and must not act with an operator's credentials.
    StandIn,
}

impl LocalAccess {
    /// The access of the tools in an artifact.
    pub(crate) fn to_tools(&self, artifact: &Artifact) -> HandlerAccess {
        let tools = artifact.tools.iter().map(|tool| &tool.metadata);
        let grants = tools.map(|metadata| (metadata.tool_id.to_string(), self.to_tool(metadata))).collect();
        HandlerAccess { grants, stand_in: Some(self.recorded.clone()), servers: self.servers.clone() }
    }

    fn to_tool(&self, metadata: &Metadata) -> ToolGrants {
        let mut grants = self.grants.get(metadata.tool_id.as_str()).cloned().unwrap_or_default();
        grants.private_hosts.extend(self.private_hosts.iter().cloned());
        if self.secrets == SecretSource::StandIn {
            let stand_in = |name: &String| (name.clone(), SecretText::from(&*format!("stand-in-for-{name}")));
            grants.secrets = metadata.secrets.keys().map(stand_in).collect();
        }
        grants
    }
}

/// Warns of what is configured for tools and does not fit them.
pub(crate) fn warn_about_grants(snapshot: &Snapshot, grants: &Grants) {
    for line in mismatches(snapshot, grants) {
        warn(&line);
    }
}

fn mismatches(snapshot: &Snapshot, grants: &Grants) -> Vec<String> {
    let mut lines = Vec::new();
    for (id, granted) in grants {
        match snapshot.find(id) {
            Some(tool) => lines.extend(unused(tool.metadata(), granted)),
            None => lines.push(format!("[tools.{id}] is configured, and there is no tool {id}")),
        }
    }
    for metadata in snapshot.tools().map(|tool| tool.metadata()) {
        let id = metadata.tool_id.as_str();
        let is_given = |name: &str| grants.get(id).is_some_and(|granted| granted.secrets.contains_key(name));
        let missing = metadata.secrets.iter().filter(|(name, _)| !is_given(name));
        lines.extend(missing.map(|(name, entry)| {
            let host = &entry.host;
            format!("the secret {name} of {id} is not configured, so its requests to {host} fail; set it under [tools.{id}.secrets]")
        }));
    }
    lines
}

/// What is granted to a tool that does not ask for it.
fn unused(metadata: &Metadata, granted: &ToolGrants) -> Vec<String> {
    let id = metadata.tool_id.as_str();
    let is_reached = |name: &str| metadata.network.iter().any(|host| host.eq_ignore_ascii_case(name));
    let secrets = granted.secrets.keys().filter(|name| !metadata.secrets.contains_key(*name));
    let secrets = secrets.map(|name| {
        format!("[tools.{id}.secrets] has {name}, which `secrets` in the tool's schema.json does not name; it is not used")
    });
    let hosts = granted.private_hosts.iter().filter(|host| !host.name().is_none_or(is_reached));
    let hosts = hosts.map(|host| {
        format!("[tools.{id}] opens {host}, which `network` in the tool's schema.json does not name; it is not reached")
    });
    secrets.chain(hosts).collect()
}
