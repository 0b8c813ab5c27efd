//! Wiring of the parts that several commands use.

pub(crate) mod embedding;
pub(crate) mod knowledge;
mod progress;

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use quarterdeck_calendar::{Calendars, LocalCalendar};
use quarterdeck_compiler::{Compilation, Options, Tree, compile};
use quarterdeck_contracts::{Calendar, Store};
use quarterdeck_invitations::InvitationSender;
use quarterdeck_remote_calendar::{CalDavCalendar, GoogleCalendar, WallClock, Zoom};
use quarterdeck_runtime::audit::AuditLog;
use quarterdeck_runtime::{Clock, Registry, SystemClock};
use quarterdeck_store::SqliteStore;

use crate::config::{CalendarBackend, CalendarSettings, LocalConfig};
use crate::handler_access::LocalAccess;
use crate::{data, environment, handler_kinds, report, store_loss};

pub(crate) use embedding::embedder;
pub(crate) use knowledge::{kb_folder, knowledge, open_file, read_sources};
pub(crate) use progress::ProgressLines;

/// Compiles a tools folder with all handler kinds of this binary.
pub(crate) fn compile_folder(tools: &Path, deny_lossy: bool) -> anyhow::Result<Compilation> {
    let inspectors = handler_kinds::inspectors();
    let tree = Tree::read(tools, &inspectors)
        .with_context(
            || "point `--tools` at a folder of tool folders, or create one with `quarterdeck new NAME`",
        )
        .map_err(cause_first)?;
    let capabilities = handler_kinds::capability_specs();
    let options = Options::new(inspectors, environment::stamp(tools)?);
    Ok(compile(&tree, &Options { capabilities, deny_lossy, ..options }))
}

/// Compiles a tools folder and loads it. Problems are printed, and then there is no registry.
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

/// Opens the store of a data folder, or creates both.
pub(crate) fn open_store(data: &Path) -> anyhow::Result<Arc<SqliteStore>> {
    Ok(Arc::new(SqliteStore::open(data::store_file(data))?))
}

/// Opens the store of a data folder for reading commands, which create nothing.
pub(crate) fn find_store(data: &Path) -> anyhow::Result<Arc<SqliteStore>> {
    data::require_file(&data::store_file(data))?;
    store_loss::refuse_empty(data)?;
    open_store(data)
}

pub(crate) async fn open_audit_log(data: &Path, store: Arc<dyn Store>) -> anyhow::Result<AuditLog> {
    Ok(AuditLog::open(&data::audit_file(data), data::NODE, store).await?)
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
