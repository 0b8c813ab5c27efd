//! The host of imported tools: one supervised server for each entry of the configuration.

use std::collections::BTreeMap;
use std::sync::Arc;

use quarterdeck_contracts::handler::{Handler, HandlerHost, HandlerToLoad, HostError, HostObserver};
use quarterdeck_contracts::{UpstreamMonitor, UpstreamView};

use crate::binding::{BINDING_FILE, Binding};
use crate::handler::{McpHandler, ToolPolicy, UnconfiguredHandler};
use crate::published_file::{PUBLISHED_FILE, parse_published};
use crate::server_config::{ServerName, UpstreamConfig};
use crate::upstream::{Observers, Pin, Upstream};

/// Runs the tools of MCP servers elsewhere.
///
/// A server is started, or dialled, when the first tool that is bound to it is loaded, and kept. All sessions share its
/// connection. Dropping the host ends the connections and kills the processes.
pub struct McpHost {
    upstreams: BTreeMap<ServerName, Arc<Upstream>>,
    observers: Observers,
}

impl McpHost {
    /// A host of these servers. Nothing is started yet.
    pub fn new(servers: impl IntoIterator<Item = UpstreamConfig>) -> Self {
        let observers = Observers::default();
        let open = |config: UpstreamConfig| {
            (config.name.clone(), Arc::new(Upstream::new(config, observers.clone())))
        };
        let upstreams = servers.into_iter().map(open).collect();
        Self { upstreams, observers }
    }

    /// Stops every server, and returns when the processes are gone.
    pub async fn stop(&self) {
        futures_util::future::join_all(self.upstreams.values().map(|upstream| upstream.stop())).await;
    }
}

impl HandlerHost for McpHost {
    fn load(&self, to_load: HandlerToLoad<'_>) -> Result<Arc<dyn Handler>, HostError> {
        let text =
            |path: &str| to_load.files.get(path).map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        let binding = Binding::parse(&text(to_load.entry).unwrap_or_default())
            .map_err(|error| HostError::Unloadable(format!("{BINDING_FILE}: {error}")))?;
        let policy = Arc::new(ToolPolicy::new(to_load.metadata, binding.server.clone()));
        let Some(upstream) = self.upstreams.get(&binding.server) else {
            return Ok(Arc::new(UnconfiguredHandler { policy }));
        };
        let folder = to_load.entry.strip_suffix(BINDING_FILE).unwrap_or_default();
        let published = text(&format!("{folder}{PUBLISHED_FILE}"));
        let pin = upstream.bind(Pin {
            tool_id: policy.tool_id.clone(),
            name: binding.tool,
            digest: binding.digest,
            published: published.and_then(|text| parse_published(&text).ok()),
        });
        Ok(Arc::new(McpHandler { policy, upstream: upstream.clone(), pin }))
    }

    fn upstreams(&self) -> Option<&dyn UpstreamMonitor> {
        Some(self)
    }

    /// An observer comes when the runtime is there, which a registry may have been loaded without.
    fn observe(&self, observer: Arc<dyn HostObserver>) {
        self.observers.set(observer);
        self.upstreams.values().for_each(|upstream| upstream.start_if_needed());
    }
}

impl UpstreamMonitor for McpHost {
    fn list(&self) -> Vec<UpstreamView> {
        self.upstreams.values().map(|upstream| upstream.view()).collect()
    }
}
