//! Notices that files have changed since they were loaded, in a server that does not follow them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use quarterdeck_contracts::sha256;

use crate::config::Folders;
use crate::prompts::PROMPT_FILES;
use crate::registry::{file_line, fingerprint, source_files};
use crate::terminal::warn;

const INTERVAL: Duration = Duration::from_secs(3);
/// When the content is read for the first time: not while the server starts.
const FIRST_LOOK_DELAY: Duration = Duration::from_millis(500);
/// Of a file that is larger, size and time count instead of its content.
const MAX_READ_BYTES: u64 = 4 << 20;

/// What is served of the folders, to be compared with what they hold.
pub(crate) struct NewerFiles {
    tools: PathBuf,
    files: Vec<PathBuf>,
    /// Names, sizes and times at the last look.
    seen: String,
    /// The content that is served, once it was read: at the first look, if nothing has changed until then.
    served: Option<String>,
    /// The content that was reported last.
    reported: Option<String>,
}

impl NewerFiles {
    /// Takes what is in the folders as what is served.
    pub(crate) fn served_now(folders: &Folders, configuration: &Path) -> Self {
        let prompts = folders.prompts.iter().flat_map(|folder| PROMPT_FILES.map(|name| folder.join(name)));
        let files = prompts.chain([configuration.to_owned()]).collect();
        let mut newer =
            Self { tools: folders.tools.clone(), files, seen: String::new(), served: None, reported: None };
        newer.seen = newer.times();
        newer
    }

    /// Looks every now and then, and reports each change once.
    pub(crate) async fn report(self) {
        let mut newer = self;
        let mut delay = FIRST_LOOK_DELAY;
        loop {
            tokio::time::sleep(delay).await;
            delay = INTERVAL;
            let looked = tokio::task::spawn_blocking(move || (newer.look(), newer)).await;
            let Ok((message, looked)) = looked else { return };
            newer = looked;
            if let Some(message) = message {
                warn(&message);
            }
        }
    }

    /// What there is to say about the files as they are now.
    fn look(&mut self) -> Option<String> {
        let times = self.times();
        if times == self.seen {
            if self.served.is_none() && self.reported.is_none() {
                self.served = Some(self.content());
            }
            return None;
        }
        self.seen = times;
        let content = self.content();
        if self.served.as_ref() == Some(&content) {
            self.reported = None;
            return None;
        }
        if self.reported.as_ref() == Some(&content) {
            return None;
        }
        self.reported = Some(content);
        let tools = self.tools.display();
        Some(format!(
            "files have changed since they were loaded, and are not served: start again to take them, or with `quarterdeck \
             serve --watch` to take every save. Tools alone, without a restart: `quarterdeck build`, then `quarterdeck \
             registry activate DIGEST --artifact {tools}/tool_registry.json`"
        ))
    }

    fn times(&self) -> String {
        let tools = fingerprint(&self.tools).unwrap_or_else(|error| error.to_string());
        let files = self.files.iter().map(|file| file_line(file));
        std::iter::once(tools).chain(files).collect::<Vec<_>>().join("\n")
    }

    fn content(&self) -> String {
        let sources = source_files(&self.tools).unwrap_or_default();
        let mut lines: Vec<_> = sources.iter().chain(&self.files).map(|file| content_line(file)).collect();
        lines.sort();
        sha256(lines.join("\n").as_bytes())
    }
}

fn content_line(path: &Path) -> String {
    let is_small = fs::metadata(path).is_ok_and(|metadata| metadata.len() <= MAX_READ_BYTES);
    match fs::read(path) {
        Ok(bytes) if is_small => format!("{} {}", path.display(), sha256(&bytes)),
        _ => file_line(path),
    }
}

#[cfg(test)]
mod tests {
    use quarterdeck_runtime::AllowedDigests;
    use quarterdeck_testkit::tree;

    use super::*;
    use crate::config::ArtifactRule;

    #[test]
    fn a_change_is_reported_once_and_a_touched_file_not_at_all() {
        let files = tree("//- tools/a/schema.json\n{}\n//- prompts/core.md\nBe kind.\n");
        let folders = Folders {
            tools: files.path().join("tools"),
            kb: files.path().join("kb"),
            max_passages_in_memory: 0,
            data: files.path().join("data"),
            prompts: Some(files.path().join("prompts")),
            artifact: ArtifactRule::Compiled,
            allowed: AllowedDigests::Any,
        };
        let mut newer = NewerFiles::served_now(&folders, &files.path().join("quarterdeck.toml"));
        assert_eq!(newer.look(), None);
        let touch = |path: &str| {
            let file = fs::OpenOptions::new().append(true).open(files.path().join(path)).unwrap();
            file.set_modified(std::time::UNIX_EPOCH + Duration::from_secs(1_000)).unwrap();
        };
        touch("tools/a/schema.json");
        assert_eq!(newer.look(), None, "the content is the same");

        for path in ["tools/a/schema.json", "tools/b/guide.md", "prompts/core.md", "quarterdeck.toml"] {
            files.write(path, "{ \"changed\": true }");
            let said = newer.look();
            assert!(said.is_some_and(|said| said.contains("serve --watch")), "{path}");
            assert_eq!(newer.look(), None, "{path} was reported");
            touch(path);
            assert_eq!(newer.look(), None, "{path} is still the same");
        }
        files.write("tools/tool_registry.json", "{}");
        assert_eq!(newer.look(), None, "what a build writes is no source");
    }
}
