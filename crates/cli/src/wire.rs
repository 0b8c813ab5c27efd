//! Wiring of the parts that several commands use.

pub(crate) mod embedding;
pub(crate) mod knowledge;
mod progress;
mod shared_knowledge;
pub(crate) mod speech;
mod stores;

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use quarterdeck_calendar::{Calendars, LocalCalendar};
use quarterdeck_compiler::{Compilation, Options, Tree, compile};
use quarterdeck_contracts::{Calendar, Store};
use quarterdeck_host_mcp::McpInspector;
use quarterdeck_invitations::InvitationSender;
use quarterdeck_remote_calendar::{CalDavCalendar, GoogleCalendar, WallClock, Zoom};
use quarterdeck_runtime::audit::{AuditLog, AuditLogParts};
use quarterdeck_runtime::{Clock, Registry, SystemClock};
use quarterdeck_store::SealedStore;

use crate::config::{AuditConfig, CalendarBackend, CalendarSettings, LocalConfig, McpServers};
use crate::handler_access::LocalAccess;
use crate::node_data::NodeData;
use crate::store_url::StoreUrl;
use crate::{data, environment, handler_kinds, report, store_loss};

pub(crate) use embedding::embedder;
pub(crate) use knowledge::{find_knowledge, kb_folder, knowledge, open_file, read_sources};
pub(crate) use progress::ProgressLines;
pub(crate) use shared_knowledge::{FollowedKnowledge, ServedKnowledge, SharedKnowledge};
pub(crate) use stores::{
    create_store, database, find_url, migrate_database, open_store, require_schema, vacuum_database,
};

/// Compiles a tools folder with all handler kinds of this binary.
pub(crate) fn compile_folder(tools: &Path, deny_lossy: bool) -> anyhow::Result<Compilation> {
    compile_with(tools, deny_lossy, McpInspector::default())
}

/// The same, and warns of MCP servers that are not configured.
pub(crate) fn compile_configured(
    tools: &Path,
    deny_lossy: bool,
    servers: &McpServers,
) -> anyhow::Result<Compilation> {
    compile_with(tools, deny_lossy, McpInspector::with_servers(servers.keys().cloned()))
}

fn compile_with(tools: &Path, deny_lossy: bool, mcp: McpInspector) -> anyhow::Result<Compilation> {
    let inspectors = handler_kinds::inspectors(mcp);
    let tree = Tree::read(tools, &inspectors)
        .with_context(
            || "point `--tools` at a folder of tool folders, or create one with `quarterdeck new NAME`",
        )
        .map_err(cause_first)?;
    let capabilities = handler_kinds::capability_specs();
    let options = Options::new(inspectors, environment::stamp(tools)?);
    Ok(compile(&tree, &Options { capabilities, deny_lossy, ..options }))
}

/// Compiles a tools folder and loads it. Problems are printed, and then there is no registry. Tools that cannot run are left
/// out, which is for the caller to say.
pub(crate) fn load_folder(tools: &Path, access: &LocalAccess) -> anyhow::Result<Option<Registry>> {
    let compilation = compile_folder(tools, false)?;
    let Some(artifact) = compilation.artifact else {
        report::problems(&compilation, tools);
        return Ok(None);
    };
    let hosts = handler_kinds::hosts(&access.to_tools(&artifact))?;
    let registry = Registry::from_artifact(artifact, tools, hosts)?;
    registry.lock();
    Ok(Some(registry))
}

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(future))
}

/// Puts the advice after the cause.
fn cause_first(error: anyhow::Error) -> anyhow::Error {
    let advice = error.to_string();
    let causes: Vec<_> = error.chain().skip(1).map(ToString::to_string).collect();
    anyhow::anyhow!("{}\nhelp: {advice}", causes.join(": "))
}

/// Opens the store of a node for commands that only read: they create nothing.
pub(crate) async fn find_store(node: &NodeData) -> anyhow::Result<Arc<dyn Store>> {
    if let StoreUrl::Sqlite(file) = &node.url {
        data::require_file(file)?;
    }
    store_loss::refuse_empty(node)?;
    let engine = find_url(&node.url, &node.config).await?;
    Ok(Arc::new(SealedStore::new(engine, node.config.keys.clone())))
}

/// The store of a server, with its rows of conversations encrypted where there is a key. Refuses one that needs another key.
pub(crate) async fn seal_for_server(
    engine: Arc<dyn Store>,
    node: &NodeData,
) -> anyhow::Result<Arc<dyn Store>> {
    let sealed = SealedStore::open(engine, node.config.keys.clone()).await;
    Ok(Arc::new(sealed.with_context(|| format!("the store {} cannot be used", node.url))?))
}

pub(crate) async fn open_audit_log(node: &NodeData, store: Arc<dyn Store>) -> anyhow::Result<AuditLog> {
    open_audit_chain(node, &node.audit_file(), &node.chain, store).await
}

/// Opens a trail under the name of its chain.
pub(crate) async fn open_audit_chain(
    node: &NodeData,
    path: &Path,
    chain: &str,
    store: Arc<dyn Store>,
) -> anyhow::Result<AuditLog> {
    let (clock, AuditConfig { keep_in_store, segments }) = (Arc::new(SystemClock), node.config.audit.clone());
    let parts = AuditLogParts { path, node: chain, store, clock, keep_in_store, segments };
    Ok(AuditLog::open_with(parts).await?)
}

/// The calendars in our own store.
pub(crate) fn calendar(config: &LocalConfig) -> anyhow::Result<LocalCalendar> {
    Ok(LocalCalendar::from_config(config.calendar.calendars.clone())?)
}

/// Every configured calendar, each with its backend. Invitations are sent by a server alone, which has an outbox.
pub(crate) fn calendars(
    settings: &CalendarSettings,
    invitations: Option<&InvitationSender>,
) -> anyhow::Result<Calendars> {
    let mut builder = Calendars::builder(settings.calendars.clone())?;
    for (name, backend) in &settings.backends {
        let backend: Arc<dyn Calendar> = match backend {
            CalendarBackend::CalDav(config) => Arc::new(CalDavCalendar::new(config.clone())?),
            CalendarBackend::Google(config) => Arc::new(GoogleCalendar::new(config, wall_clock())?),
        };
        builder = builder.calendar(name, backend);
    }
    if let Some(zoom) = &settings.zoom {
        builder = builder.conferences(Arc::new(Zoom::new(zoom, wall_clock())?));
    }
    if let Some(invitations) = invitations {
        builder = builder.notifier(Arc::new(invitations.notifier()));
    }
    Ok(builder.build())
}

/// What sends the invitations in a store's outbox, if a mail server is configured.
pub(crate) fn invitations(
    settings: &CalendarSettings,
    store: Arc<dyn Store>,
) -> anyhow::Result<Option<InvitationSender>> {
    let sender = settings.smtp.as_ref().map(|smtp| InvitationSender::new(smtp, store, wall_clock()));
    Ok(sender.transpose()?)
}

fn wall_clock() -> WallClock {
    Arc::new(|| SystemClock.now())
}
