//! How the parts are put together. Only this crate knows all of them.

pub(crate) mod knowledge;

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use quarterdeck_calendar::LocalCalendar;
use quarterdeck_compiler::{Compilation, Options, Tree, compile};
use quarterdeck_runtime::Registry;
use quarterdeck_runtime::audit::AuditLog;
use quarterdeck_store::SqliteStore;

use crate::config::Site;
use crate::{data, environment, handler_kinds, report, store_loss};

pub(crate) use knowledge::{embedder, kb_folder, knowledge, open_file, progress, sources};

/// Compiles a tools folder with every host that this binary has.
pub(crate) fn compile_folder(tools: &Path, deny_lossy: bool) -> anyhow::Result<Compilation> {
    let inspectors = handler_kinds::inspectors();
    let tree = Tree::read(tools, &inspectors)
        .with_context(
            || "point `--tools` at a folder of tool folders, or make one with `quarterdeck new NAME`",
        )
        .map_err(cause_first)?;
    let capabilities = handler_kinds::capability_specs();
    let options = Options::new(inspectors, environment::stamp(tools)?);
    Ok(compile(&tree, &Options { capabilities, deny_lossy, ..options }))
}

/// Compiles a tools folder and loads it, or tells what is wrong with it.
pub(crate) fn load_folder(tools: &Path) -> anyhow::Result<Option<Registry>> {
    let compilation = compile_folder(tools, false)?;
    let Some(artifact) = compilation.artifact else {
        report::problems(&compilation, tools);
        return Ok(None);
    };
    let registry = Registry::from_artifact(artifact, tools, handler_kinds::hosts()?)?;
    registry.lock();
    Ok(Some(registry))
}

/// Runs a future to its end.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(future))
}

/// Puts the advice after the cause, where a reader looks for it.
fn cause_first(error: anyhow::Error) -> anyhow::Error {
    let advice = error.to_string();
    let causes: Vec<_> = error.chain().skip(1).map(ToString::to_string).collect();
    anyhow::anyhow!("{}\nhelp: {advice}", causes.join(": "))
}

/// Opens the store of a data folder, or makes both, for their owner alone.
pub(crate) fn open_store(data: &Path) -> anyhow::Result<Arc<SqliteStore>> {
    Ok(Arc::new(SqliteStore::open(data::store_file(data))?))
}

/// Opens the store of a data folder for someone who only looks: it is not made.
pub(crate) fn find_store(data: &Path) -> anyhow::Result<Arc<SqliteStore>> {
    data::must_exist(&data::store_file(data))?;
    store_loss::refuse_empty(data)?;
    open_store(data)
}

/// Opens the audit trail of a data folder, to go on with it.
pub(crate) async fn open_trail(data: &Path, store: Arc<SqliteStore>) -> anyhow::Result<AuditLog> {
    Ok(AuditLog::open(&data::trail_file(data), data::NODE, store).await?)
}

/// The site's calendars.
pub(crate) fn calendar(site: &Site) -> anyhow::Result<LocalCalendar> {
    Ok(LocalCalendar::from_config(site.calendar.clone())?)
}
