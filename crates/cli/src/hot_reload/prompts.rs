//! The instructions that an operator may change.

use std::path::PathBuf;

use quarterdeck_agents::Prompts;
use quarterdeck_agents::text::TextAgent;
use quarterdeck_agents::voice::VoiceAgent;

use super::{NotLive, Problem, Source};
use crate::prompts::{PROMPT_FILES, load};
use crate::registry::file_line;

pub(crate) struct PromptsSource {
    pub(crate) folder: PathBuf,
    pub(crate) live: Prompts,
    pub(crate) text: TextAgent,
    pub(crate) voice: VoiceAgent,
}

impl Source for PromptsSource {
    fn name(&self) -> &'static str {
        "prompts"
    }

    fn fingerprint(&self) -> String {
        PROMPT_FILES.map(|name| file_line(&self.folder.join(name))).join("\n")
    }

    fn reload(&mut self) -> Result<Vec<String>, NotLive> {
        let before = self.fingerprint();
        let built_in = Prompts::default();
        let loaded = load(Some(&self.folder)).map_err(|error| NotLive::because(format!("{error:#}")))?;
        if self.fingerprint() != before {
            return Err(NotLive::Changing);
        }
        let (mut changes, mut problems) = (Vec::new(), Vec::new());
        let texts = [
            (&self.live.core, &loaded.core, &built_in.core),
            (&self.live.voice, &loaded.voice, &built_in.voice),
        ];
        for (name, (was, is, built_in)) in PROMPT_FILES.into_iter().zip(texts) {
            let path = self.folder.join(name);
            if was == is {
                continue;
            }
            if is.trim().is_empty() {
                problems.push(format!("{} is empty; write the instructions into it", path.display()));
            } else if is == built_in && !path.is_file() {
                // Some editors remove a file before they write it again.
                let help = "put it back, or start again to use the built-in instructions";
                problems.push(format!("{} is gone; {help}", path.display()));
            } else {
                changes.push(format!("~ {} changed", path.display()));
            }
        }
        if !problems.is_empty() {
            return Err(NotLive::Problems(problems.into_iter().map(Problem::new).collect()));
        }
        self.text.set_prompts(loaded.clone());
        self.voice.set_prompts(loaded.clone());
        self.live = loaded;
        Ok(changes)
    }
}
