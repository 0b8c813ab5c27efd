//! `serve --watch`: which files are followed, and for which parts of the server.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use quarterdeck_runtime::{AllowedDigests, Bundle, Registry, VersionAdmin};
use quarterdeck_server::{AuditFeed, WatchFeed};
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::task::JoinSet;

use super::{Agents, update_knowledge};
use crate::arguments::serve::ServeOptions;
use crate::config::{self, ArtifactRule, Config, Folders, Listing};
use crate::folder_watcher::FolderWatcher;
use crate::hot_reload::{
    ConfigurationSource, Followed, KnowledgeHome, KnowledgeSource, PromptsSource, Report, StopFlag,
    ToolsSource, follow,
};
use crate::newer_files::NewerFiles;
use crate::terminal::info;
use crate::wire::{ProgressLines, ServedKnowledge};

/// What a server does when a file that it serves has changed.
pub(super) enum OnChange {
    Follow(Watching),
    Report(NewerFiles),
}

/// What is followed, as it was at the start.
pub(super) struct Watching {
    options: ServeOptions,
    configuration: PathBuf,
    settings: Value,
}

/// The parts of a server that take what was saved.
pub(super) struct Served {
    pub(super) bundle: Bundle,
    pub(super) registry: Arc<Registry>,
    pub(super) versions: Arc<VersionAdmin>,
    pub(super) agents: Agents,
    pub(super) knowledge: Option<ServedKnowledge>,
    pub(super) feed: Arc<AuditFeed>,
    pub(super) watch: Option<WatchFeed>,
    pub(super) lines: ProgressLines,
}

impl OnChange {
    /// What pages are told by, if files are followed.
    pub(super) fn open_feed(&self, registry: &Registry) -> Option<WatchFeed> {
        matches!(self, Self::Follow(_)).then(|| WatchFeed::new(registry.snapshot().version()))
    }

    /// Follows the files, or looks at them every now and then. The flag stops what is not among the tasks.
    pub(super) fn start(
        self,
        config: &Config,
        served: Served,
        tasks: &mut JoinSet<()>,
    ) -> anyhow::Result<StopFlag> {
        let stop = StopFlag::default();
        match self {
            Self::Follow(watching) => watching.follow(config, served, &stop, tasks)?,
            Self::Report(newer) => {
                // A locked server never reads the folder.
                if config.folders.artifact == ArtifactRule::Compiled {
                    tasks.spawn(newer.report());
                }
                if let Some(knowledge) = served.knowledge {
                    tasks.spawn(update_knowledge(knowledge, config.folders.clone(), served.lines));
                }
            }
        }
        Ok(stop)
    }
}

impl Watching {
    /// Fails where the configuration says that the folder is not what counts.
    pub(super) fn new(options: &ServeOptions, config: &Config, listing: &Listing) -> anyhow::Result<Self> {
        let is_fixed = config.folders.artifact != ArtifactRule::Compiled
            || config.folders.allowed != AllowedDigests::Any;
        anyhow::ensure!(
            !is_fixed,
            "`--watch` serves whatever is saved in the tools folder, and this server is locked to certain artifacts\n\
             help: leave `--watch` out, or `--locked`, `--artifact-digest` and `--allow-digests` with their keys under \
             `tools`"
        );
        Ok(Self {
            options: options.clone(),
            configuration: config::file_of(options),
            settings: listing.to_json(),
        })
    }

    /// Follows the files until the server stops. The records have a thread of their own: to index them may take a while.
    fn follow(
        self,
        config: &Config,
        served: Served,
        stop: &StopFlag,
        tasks: &mut JoinSet<()>,
    ) -> anyhow::Result<()> {
        let Served { bundle, registry, versions, agents, knowledge, feed: audit, watch, lines } = served;
        let folders = &config.folders;
        let report = Report::new(watch, registry);
        if let Some(knowledge) = knowledge {
            let base = knowledge.base.clone();
            let home = knowledge_home(knowledge, folders, &lines, tasks);
            // A base in a database needs no folder.
            if folders.kb.is_dir() {
                let watcher = FolderWatcher::new(&[&folders.kb], &[]);
                let source = KnowledgeSource::new(folders.kb.clone(), home, base, lines);
                follow(vec![Followed::from_nothing(source)], watcher, report.clone(), stop.clone())?;
            }
        }
        let prompts = folders.prompts.as_deref();
        let mut watched: Vec<&Path> = vec![&folders.tools];
        watched.extend(prompts);
        let watcher = FolderWatcher::new(&watched, &[&self.configuration]);
        info(&self.describe(&watched, folders.kb.is_dir().then_some(&*folders.kb)));
        let mut sources = vec![Followed::from_now(ToolsSource {
            tools: folders.tools.clone(),
            data: folders.data.clone(),
            live: bundle.artifact().clone(),
            versions,
            text: agents.text.clone(),
            audit,
            runtime: Handle::current(),
        })];
        if let Some(folder) = prompts {
            let (folder, live) = (folder.to_owned(), agents.prompts);
            let source = PromptsSource { folder, live, text: agents.text, voice: agents.voice };
            sources.push(Followed::from_now(source));
        }
        let Self { options, configuration: file, settings: started_with } = self;
        let page = config.server.settings.page.clone();
        sources.push(Followed::from_now(ConfigurationSource { file, options, started_with, page }));
        follow(sources, watcher, report, stop.clone())
    }

    fn describe(&self, folders: &[&Path], kb: Option<&Path>) -> String {
        let followed = folders.iter().copied().chain(kb).chain([&*self.configuration]);
        let names: Vec<_> = followed.map(|path| path.display().to_string()).collect();
        format!("  watch     {}: what you save is live with the next message", names.join(", "))
    }
}

/// Where records that are saved go. A base in a database is loaded from there, by a task as on any other node.
fn knowledge_home(
    knowledge: ServedKnowledge,
    folders: &Folders,
    lines: &ProgressLines,
    tasks: &mut JoinSet<()>,
) -> KnowledgeHome {
    let ServedKnowledge { base, followed } = knowledge;
    let Some(followed) = followed else { return KnowledgeHome::File(folders.data.clone()) };
    let (shared, store) = (followed.shared.clone(), followed.store.clone());
    tasks.spawn(followed.run(base, folders.kb.as_path().into(), lines.clone()));
    KnowledgeHome::Database { shared, store, runtime: Handle::current() }
}
