//! What this binary builds and runs handlers with. One more kind of handlers is a line in `inspectors` and in `hosts`,
//! one more capability a line in `capabilities`.

use std::sync::Arc;

use quarterdeck_compiler::{Inspectors, NativeInspector};
use quarterdeck_contracts::handler::{CapabilityProvider, NATIVE_KIND};
use quarterdeck_contracts::{BUILT_IN_CAPABILITIES, CapabilitySpec};
use quarterdeck_host_js::{JS_KIND, JsHost, JsInspector, TS_KIND, TsInspector};
use quarterdeck_host_mcp::{MCP_KIND, McpHost, McpInspector};
use quarterdeck_host_wasm::{FetchConfig, HostConfig, WASM_KIND, WasmHost, WasmInspector};
use quarterdeck_runtime::{Hosts, Images as ImagesCapability, NativeHost};

use crate::config::Images;
use crate::models;

use crate::handler_access::HandlerAccess;

/// What looks at handlers when a folder is built; `mcp` may know the configured servers.
pub(crate) fn inspectors(mcp: McpInspector) -> Inspectors {
    let compiled = quarterdeck_tools::handlers()
        .into_iter()
        .map(|handler| (handler.tool_id.to_owned(), handler.source_hash.to_owned()));
    Inspectors::default()
        .with(JS_KIND, Arc::new(JsInspector))
        .with(MCP_KIND, Arc::new(mcp))
        .with(NATIVE_KIND, Arc::new(NativeInspector::new(compiled)))
        .with(TS_KIND, Arc::new(TsInspector))
        .with(WASM_KIND, Arc::new(WasmInspector))
}

/// What runs handlers, with what they may reach.
pub(crate) fn hosts(access: &HandlerAccess) -> anyhow::Result<Hosts> {
    let HandlerAccess { grants, stand_in, servers } = access.clone();
    let fetch = FetchConfig { grants, stand_in, ..FetchConfig::default() };
    let config = HostConfig { fetch, capabilities: capability_specs(), ..HostConfig::default() };
    let javascript = Arc::new(JsHost::new(config.clone())?);
    Ok(Hosts::default()
        .with(JS_KIND, javascript.clone())
        .with(MCP_KIND, Arc::new(McpHost::new(servers.into_values())))
        .with(NATIVE_KIND, Arc::new(NativeHost::new(quarterdeck_tools::handlers())))
        .with(TS_KIND, javascript)
        .with(WASM_KIND, Arc::new(WasmHost::new(config))))
}

/// What answers for capabilities beyond the built-in ones.
pub(crate) fn capabilities() -> Vec<Arc<dyn CapabilityProvider>> {
    Vec::new()
}

/// The same, and the built-in ones that exist where they are configured.
pub(crate) fn configured_capabilities(images: &Images) -> anyhow::Result<Vec<Arc<dyn CapabilityProvider>>> {
    let mut capabilities = capabilities();
    if let Some(model) = &images.provider {
        let provider = models::image_provider(model)?;
        capabilities.push(Arc::new(ImagesCapability { provider, limits: images.limits }));
    }
    Ok(capabilities)
}

/// Every capability that a tool can declare.
pub(crate) fn capability_specs() -> Vec<CapabilitySpec> {
    let further = capabilities();
    BUILT_IN_CAPABILITIES.iter().copied().chain(further.iter().map(|provider| provider.spec())).collect()
}
