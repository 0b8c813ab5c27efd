//! From an artifact on disk to tools that can be called. Everything is verified, and all problems are reported at once.

use std::fmt;
use std::fs;
use std::path::Path;

use quarterdeck_contracts::handler::{HandlerFault, HandlerFiles, HandlerToLoad, HostError};
use quarterdeck_contracts::{
    ARTIFACT_FORMAT_VERSION, Artifact, CompiledTool, HandlerKind, artifact_hash, parse_json, sha256,
    tool_hash,
};
use quarterdeck_schema::{Schema, SchemaError};
use serde_json::Value;

use super::snapshot::Header;
use super::{Hosts, LoadedTool, Snapshot};

#[derive(Debug)]
pub struct LoadError {
    pub problems: Vec<LoadProblem>,
}

impl LoadError {
    pub(super) fn one(problem: LoadProblem) -> Self {
        Self { problems: vec![problem] }
    }
}

impl std::error::Error for LoadError {}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{problem}")?;
        }
        Ok(())
    }
}

/// One thing that is wrong, with what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadProblem {
    #[error("cannot read {path}: {reason}; run `quarterdeck build`")]
    Unreadable { path: String, reason: String },
    #[error("{path} is not a registry artifact: {reason}; run `quarterdeck build`")]
    NotAnArtifact { path: String, reason: String },
    #[error(
        "the bundle of artifact and handlers cannot be read: {reason}; make it with `quarterdeck registry activate`"
    )]
    NotABundle { reason: String },
    #[error(
        "the artifact has format version {found}, and this quarterdeck reads {ARTIFACT_FORMAT_VERSION}; run `quarterdeck build`"
    )]
    OtherFormat { found: String },
    /// Its content is not what its hash says.
    #[error("{what} was altered after it was built; run `quarterdeck build`")]
    Altered { what: String },
    /// A handler's file is not what was compiled.
    #[error("{file} {state} since the artifact was built; run `quarterdeck build`")]
    HandlerChanged { file: String, state: &'static str },
    #[error("the {which} of {tool} cannot be compiled: {source}; run `quarterdeck check`")]
    Schema { tool: String, which: &'static str, source: SchemaError },
    /// No host is registered for a handler's kind.
    #[error(
        "{tool} has a handler of kind `{kind}`, which this quarterdeck does not run; use a build that does"
    )]
    NoHost { tool: String, kind: HandlerKind },
    #[error("{tool}: {source}")]
    Handler { tool: String, source: HostError },
}

impl LoadProblem {
    /// Whether a handler cannot run here, in an artifact that is otherwise sound.
    fn is_of_handler(&self) -> bool {
        matches!(self, Self::NoHost { .. } | Self::Handler { .. })
    }

    /// The tool that it is about, if it is about one that was left out.
    pub fn left_out_tool(&self) -> Option<&str> {
        match self {
            Self::NoHost { tool, .. } | Self::Handler { tool, .. } => Some(tool),
            _ => None,
        }
    }

    /// What is wrong, where the tool is named beside it.
    pub fn reason(&self) -> String {
        match self {
            Self::Handler { source, .. } => source.to_string(),
            other => other.to_string(),
        }
    }

    /// What the handler threw, for its author.
    pub fn fault(&self) -> Option<&HandlerFault> {
        match self {
            Self::Handler { source: HostError::FailedToLoad(fault), .. } => Some(fault),
            _ => None,
        }
    }
}

/// Where the bytes of handlers are.
pub(super) enum HandlerSource<'a> {
    Folder(&'a Path),
    Files(&'a HandlerFiles),
    /// Of a bundle: they and its artifact were compared with their hashes when it was made.
    Bundle(&'a HandlerFiles),
}

pub(super) fn from_file(path: &Path, tools: &Path, hosts: &Hosts) -> Result<Snapshot, LoadError> {
    let artifact = read_artifact(path).map_err(LoadError::one)?;
    from_artifact(artifact, &HandlerSource::Folder(tools), hosts, OnUnloadable::LeaveOut)
}

pub(super) fn read_artifact(path: &Path) -> Result<Artifact, LoadProblem> {
    let shown = path.display().to_string();
    let text = fs::read_to_string(path)
        .map_err(|error| LoadProblem::Unreadable { path: shown.clone(), reason: error.to_string() })?;
    let value = parse_json(&text)
        .map_err(|fault| LoadProblem::NotAnArtifact { path: shown.clone(), reason: fault.to_string() })?;
    parse_artifact(value, &shown)
}

pub(super) fn parse_artifact(value: Value, shown: &str) -> Result<Artifact, LoadProblem> {
    // The header comes first, so that "old artifact, new binary" gets the best message.
    let format = value.get("formatVersion").cloned().unwrap_or(Value::Null);
    if format != ARTIFACT_FORMAT_VERSION {
        return Err(LoadProblem::OtherFormat { found: format.to_string() });
    }
    serde_json::from_value(value)
        .map_err(|error| LoadProblem::NotAnArtifact { path: shown.to_owned(), reason: error.to_string() })
}

/// Compares the content with the hash.
pub(super) fn check_artifact(artifact: &Artifact, problems: &mut Vec<LoadProblem>) {
    if artifact_hash(&artifact.response_schema_version, &artifact.tools) != artifact.content_hash {
        problems.push(LoadProblem::Altered { what: "the artifact".into() });
    }
}

/// The same for one tool.
pub(super) fn check_tool(tool: &CompiledTool, problems: &mut Vec<LoadProblem>) {
    if tool_hash(tool) != tool.hash {
        let what = format!("the tool {} in the artifact", tool.metadata.tool_id);
        problems.push(LoadProblem::Altered { what });
    }
}

/// What becomes of a sound artifact when a handler of it cannot run here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnUnloadable {
    /// An operator who activates an artifact means all of it.
    Refuse,
    /// The tool is left out, so that one handler does not take the others down with it.
    LeaveOut,
}

pub(super) fn from_artifact(
    artifact: Artifact,
    source: &HandlerSource<'_>,
    hosts: &Hosts,
    on_unloadable: OnUnloadable,
) -> Result<Snapshot, LoadError> {
    let mut problems = Vec::new();
    if !source.is_checked() {
        check_artifact(&artifact, &mut problems);
    }
    let (mut loaded, mut left_out) = (Vec::new(), Vec::new());
    for tool in artifact.tools {
        match load_tool(tool, source, hosts) {
            Ok(tool) => loaded.push(tool),
            Err(found) => {
                let (of_handlers, others): (Vec<_>, Vec<_>) =
                    found.into_iter().partition(LoadProblem::is_of_handler);
                left_out.extend(of_handlers);
                problems.extend(others);
            }
        }
    }
    // A registry without a tool is of no use, and what is wrong is best said at the start.
    if on_unloadable == OnUnloadable::Refuse || loaded.is_empty() || !problems.is_empty() {
        problems.append(&mut left_out);
    }
    if !problems.is_empty() {
        return Err(LoadError { problems });
    }
    let header = Header {
        version: artifact.version,
        content_hash: artifact.content_hash,
        commit: artifact.git_commit,
    };
    Ok(Snapshot::new(header, loaded, hosts.clone()).without(left_out))
}

fn load_tool(
    tool: CompiledTool,
    source: &HandlerSource<'_>,
    hosts: &Hosts,
) -> Result<LoadedTool, Vec<LoadProblem>> {
    let mut problems = Vec::new();
    let id = tool.metadata.tool_id.to_string();
    if !source.is_checked() {
        check_tool(&tool, &mut problems);
    }
    let mut keep =
        |result: Result<Schema, LoadProblem>| result.map_err(|problem| problems.push(problem)).ok();
    let parameters = keep(compile(&id, "parameters", &tool.json_schema));
    let returns = tool.metadata.returns.as_ref().map(|returns| keep(compile(&id, "returns", returns)));
    let files = source.read(&tool, &mut problems);
    if !problems.is_empty() {
        return Err(problems);
    }
    let to_load = HandlerToLoad { metadata: &tool.metadata, entry: &tool.handler.path, files: &files };
    let Some(host) = hosts.find(&tool.handler.kind) else {
        return Err(vec![LoadProblem::NoHost { tool: id, kind: tool.handler.kind.clone() }]);
    };
    let handler = host.load(to_load).map_err(|source| vec![LoadProblem::Handler { tool: id, source }])?;
    match parameters {
        Some(parameters) => Ok(LoadedTool::new(tool, parameters, returns.flatten(), handler)),
        None => Err(problems),
    }
}

fn compile(tool: &str, which: &'static str, source: &Value) -> Result<Schema, LoadProblem> {
    Schema::compile(source).map_err(|source| LoadProblem::Schema { tool: tool.to_owned(), which, source })
}

impl HandlerSource<'_> {
    /// The files of a tool's handler, each as it was when the artifact was built.
    pub(super) fn read(&self, tool: &CompiledTool, problems: &mut Vec<LoadProblem>) -> HandlerFiles {
        let mut files = HandlerFiles::new();
        for (path, hash) in &tool.handler.files {
            let state = match self.bytes(path) {
                Some(bytes) if self.is_checked() || sha256(&bytes) == *hash => {
                    files.insert(path.clone(), bytes);
                    continue;
                }
                Some(_) => "has changed",
                None => "has gone",
            };
            problems.push(LoadProblem::HandlerChanged { file: path.clone(), state });
        }
        files
    }

    fn bytes(&self, path: &str) -> Option<Vec<u8>> {
        match self {
            Self::Folder(tools) => fs::read(tools.join(path)).ok(),
            Self::Files(files) | Self::Bundle(files) => files.get(path).cloned(),
        }
    }

    /// Whether all hashes are known to hold. To compare them takes longer than the rest of loading.
    fn is_checked(&self) -> bool {
        matches!(self, Self::Bundle(_))
    }
}
