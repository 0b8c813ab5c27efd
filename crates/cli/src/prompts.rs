//! The agents' instructions in a folder, in the place of the built-in ones.

use std::path::Path;

use anyhow::Context;
use quarterdeck_agents::Prompts;

/// The files of the texts in [`Prompts`], in the order of its fields.
pub(crate) const PROMPT_FILES: [&str; 2] = ["core.md", "voice-behavior.md"];

/// The instructions of a folder; the built-in ones where it has no file.
pub(crate) fn load(folder: Option<&Path>) -> anyhow::Result<Prompts> {
    let mut prompts = Prompts::default();
    for (name, prompt) in PROMPT_FILES.into_iter().zip([&mut prompts.core, &mut prompts.voice]) {
        if let Some(path) = folder.map(|folder| folder.join(name)).filter(|path| path.is_file()) {
            *prompt =
                std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        }
    }
    Ok(prompts)
}
