//! The tool folders: compiled, loaded beside what is served, and only then in its place.

use std::path::PathBuf;
use std::sync::Arc;

use quarterdeck_agents::text::TextAgent;
use quarterdeck_compiler::{Compilation, Severity, Style, render};
use quarterdeck_contracts::Artifact;
use quarterdeck_runtime::audit::{AuditEvent, AuditSink};
use quarterdeck_runtime::{Bundle, Clock, SystemClock, VersionAdmin, VersionError};
use serde_json::json;
use tokio::runtime::Handle;

use super::{NotLive, Problem, Source};
use crate::registry::{fingerprint, keep};
use crate::registry_changes::RegistryChanges;
use crate::terminal::info;
use crate::{environment, wire};

pub(crate) struct ToolsSource {
    pub(crate) tools: PathBuf,
    pub(crate) data: PathBuf,
    /// What is served of the folder.
    pub(crate) live: Artifact,
    pub(crate) versions: Arc<VersionAdmin>,
    pub(crate) text: TextAgent,
    pub(crate) audit: Arc<dyn AuditSink>,
    pub(crate) runtime: Handle,
}

impl Source for ToolsSource {
    fn name(&self) -> &'static str {
        "tools"
    }

    fn fingerprint(&self) -> String {
        // A folder that is being moved has none, which is a change like any other.
        fingerprint(&self.tools).unwrap_or_else(|error| error.to_string())
    }

    fn reload(&mut self) -> Result<Vec<String>, NotLive> {
        let before = self.fingerprint();
        let compilation = wire::compile_folder(&self.tools, false)
            .map_err(|error| NotLive::because(format!("{error:#}")))?;
        let Some(artifact) = &compilation.artifact else { return Err(self.problems(&compilation)) };
        if artifact.content_hash == self.live.content_hash {
            return Ok(Vec::new());
        }
        let bundle = Bundle::collect(artifact.clone(), &self.tools).map_err(|_| NotLive::Changing)?;
        if self.fingerprint() != before {
            return Err(NotLive::Changing);
        }
        self.activate(bundle).map_err(|error| NotLive::because(error.to_string()))?;
        let changes = RegistryChanges::between(&self.live, artifact);
        self.print_warnings(&compilation, artifact, &changes);
        self.record(artifact, &changes);
        self.live = artifact.clone();
        keep(artifact, &self.tools, &self.data, &before);
        Ok(changes.to_text(Style::Plain).lines().map(str::to_owned).collect())
    }
}

impl ToolsSource {
    fn activate(&self, bundle: Bundle) -> Result<(), VersionError> {
        self.runtime.block_on(async {
            self.versions.succeed_base(bundle).await?;
            // Those that are idle would hold on to what was replaced.
            self.text.evict_superseded();
            if let Err(error) = self.versions.drop_unheld().await {
                tracing::error!(error = %error, "retired versions could not be looked at");
            }
            Ok(())
        })
    }

    fn record(&self, artifact: &Artifact, changes: &RegistryChanges) {
        let fields = json!({
            "previous": self.live.version,
            "registryVersion": artifact.version,
            "digest": artifact.content_hash,
            "tools": changes.by_tool(),
        });
        if let serde_json::Value::Object(fields) = fields {
            self.audit.record(AuditEvent {
                event: "registry_replaced".into(),
                time: SystemClock.now(),
                fields,
            });
        }
    }

    fn problems(&self, compilation: &Compilation) -> NotLive {
        let folder = self.tools.to_string_lossy();
        let style = environment::style_of_stderr();
        let errors = compilation.diagnostics.iter().filter(|found| found.severity == Severity::Error);
        let problem = |found| Problem {
            plain: render(found, &folder, Style::Plain),
            styled: render(found, &folder, style),
        };
        NotLive::Problems(errors.map(problem).collect())
    }

    /// Prints what is said of the tools that were saved. Of the others it would be said with every save.
    fn print_warnings(&self, compilation: &Compilation, artifact: &Artifact, changes: &RegistryChanges) {
        let changed = changes.by_tool();
        let tools = artifact.tools.iter().filter(|tool| changed.contains_key(tool.metadata.tool_id.as_str()));
        let saved: Vec<_> = tools.filter_map(|tool| tool.handler.path.split('/').next()).collect();
        let is_saved =
            |folder: &Option<String>| folder.as_deref().is_some_and(|folder| saved.contains(&folder));
        let folder = self.tools.to_string_lossy();
        let style = environment::style_of_stderr();
        for found in compilation.diagnostics.iter().filter(|found| is_saved(&found.folder)) {
            info(&format!("{}\n", render(found, &folder, style)));
        }
    }
}
