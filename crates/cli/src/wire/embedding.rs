//! The embedding model in use: the one that was installed last.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use quarterdeck_contracts::Embedder;
use quarterdeck_embedding::{DEFAULT_MODEL, Model, find_installed};

use crate::environment;
use crate::terminal::info;

/// The file in the models folder that names the model in use.
const SELECTION_FILE: &str = "selected";

/// The model in use. One that cannot be loaded is reported and not used.
pub(crate) fn embedder() -> Option<Arc<dyn Embedder>> {
    match Model::load(&selected(&environment::models_folder()?)?) {
        Ok(model) => Some(Arc::new(model)),
        Err(error) => {
            info(&format!("the embedding model cannot be used: {error}"));
            None
        }
    }
}

/// Makes an installed model the one in use, and returns its name.
pub(crate) fn select<'a>(models: &Path, folder: &'a Path) -> anyhow::Result<&'a str> {
    let name = folder.file_name().and_then(OsStr::to_str);
    let name = name.with_context(|| format!("rename {} to a UTF-8 name", folder.display()))?;
    let file = models.join(SELECTION_FILE);
    fs::write(&file, name).with_context(|| format!("cannot write {}", file.display()))?;
    Ok(name)
}

/// The folder of the model in use; the default one where none was selected or the selected one is gone.
fn selected(models: &Path) -> Option<PathBuf> {
    let name = fs::read_to_string(models.join(SELECTION_FILE)).unwrap_or_default();
    let is_name = Path::new(&name).file_name() == Some(OsStr::new(&name));
    let folder = is_name.then(|| find_installed(models, &name)).flatten();
    folder.or_else(|| find_installed(models, DEFAULT_MODEL.name))
}
