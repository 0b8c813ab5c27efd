//! The kinds of handlers that this binary builds and runs. One more is a line in each function.

use std::sync::Arc;

use quarterdeck_compiler::{Inspectors, NativeInspector};
use quarterdeck_contracts::handler::NATIVE_KIND;
use quarterdeck_host_js::{HostConfig, JS_KIND, JsHost, JsInspector};
use quarterdeck_runtime::{Hosts, NativeHost};

/// What looks at handlers when a folder is built.
pub(crate) fn inspectors() -> Inspectors {
    let compiled = quarterdeck_tools::handlers()
        .into_iter()
        .map(|handler| (handler.tool_id.to_owned(), handler.source_hash.to_owned()));
    Inspectors::default()
        .with(JS_KIND, Arc::new(JsInspector))
        .with(NATIVE_KIND, Arc::new(NativeInspector::new(compiled)))
}

/// What runs handlers.
pub(crate) fn hosts() -> anyhow::Result<Hosts> {
    Ok(Hosts::default()
        .with(JS_KIND, Arc::new(JsHost::new(HostConfig::default())?))
        .with(NATIVE_KIND, Arc::new(NativeHost::new(quarterdeck_tools::handlers()))))
}
