//! An artifact together with the bytes of its handlers: everything that loading it elsewhere takes.

use std::collections::BTreeMap;
use std::path::Path;

use quarterdeck_contracts::handler::HandlerFiles;
use quarterdeck_contracts::{Artifact, parse_json};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::load::{
    HandlerSource, LoadError, LoadProblem, check_artifact, check_tool, parse_artifact, read_artifact,
};

/// The size of a bundle as JSON, at the most.
pub const MAX_BUNDLE_BYTES: usize = 32 << 20;

/// An artifact and its handlers' files. What is in it agrees with the hashes in the artifact.
#[derive(Debug, Clone, PartialEq)]
pub struct Bundle {
    pub(super) artifact: Artifact,
    pub(super) files: HandlerFiles,
}

/// As it travels and is stored. Files are base64, since a handler need not be text.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BundleJson<A> {
    artifact: A,
    files: BTreeMap<String, String>,
}

impl Bundle {
    /// The artifact of a file with the handlers under `tools`.
    pub fn read(artifact: &Path, tools: &Path) -> Result<Self, LoadError> {
        Self::collect(read_artifact(artifact).map_err(LoadError::one)?, tools)
    }

    /// An artifact with the handlers under `tools`, each file read once.
    pub fn collect(artifact: Artifact, tools: &Path) -> Result<Self, LoadError> {
        Self::gather(artifact, &HandlerSource::Folder(tools))
    }

    /// From [`Bundle::to_json`]. Nothing is trusted: every hash is checked.
    pub fn from_json(text: &str) -> Result<Self, LoadError> {
        let value = parse_json(text).map_err(|fault| not_a_bundle(&fault))?;
        Self::from_value(value)
    }

    /// The same for JSON that was parsed.
    pub fn from_value(value: Value) -> Result<Self, LoadError> {
        let json: BundleJson<Value> = serde_json::from_value(value).map_err(|error| not_a_bundle(&error))?;
        let artifact = parse_artifact(json.artifact, "the artifact of the bundle").map_err(LoadError::one)?;
        let mut files = HandlerFiles::new();
        for (path, encoded) in json.files {
            let bytes = base64_simd::STANDARD.decode_to_vec(encoded).map_err(|error| not_a_bundle(&error))?;
            files.insert(path, bytes);
        }
        let bundle = Self::gather(artifact, &HandlerSource::Files(&files))?;
        // What no hash covers is not taken along.
        match files.keys().find(|path| !bundle.files.contains_key(*path)) {
            Some(extra) => Err(not_a_bundle(&format!("no tool of the artifact has the file {extra:?}"))),
            None => Ok(bundle),
        }
    }

    pub fn to_json(&self) -> String {
        let encode = |bytes: &Vec<u8>| base64_simd::STANDARD.encode_to_string(bytes);
        let files = self.files.iter().map(|(path, bytes)| (path.clone(), encode(bytes))).collect();
        let json = BundleJson { artifact: &self.artifact, files };
        serde_json::to_string(&json).expect("an artifact is JSON")
    }

    pub fn artifact(&self) -> &Artifact {
        &self.artifact
    }

    /// The artifact's content hash, which covers its handlers too.
    pub fn digest(&self) -> &str {
        &self.artifact.content_hash
    }

    /// The readable label of the artifact.
    pub fn version(&self) -> &str {
        &self.artifact.version
    }

    fn gather(artifact: Artifact, source: &HandlerSource<'_>) -> Result<Self, LoadError> {
        let mut problems = Vec::new();
        check_artifact(&artifact, &mut problems);
        // The label is covered by no hash, and operators tell versions apart by it.
        if !artifact.content_hash.get(..8).is_some_and(|digits| artifact.version.ends_with(digits)) {
            problems.push(LoadProblem::Altered { what: "the version of the artifact".into() });
        }
        let mut files = HandlerFiles::new();
        for tool in &artifact.tools {
            check_tool(tool, &mut problems);
            files.extend(source.read(tool, &mut problems));
        }
        if problems.is_empty() { Ok(Self { artifact, files }) } else { Err(LoadError { problems }) }
    }
}

fn not_a_bundle(reason: &dyn std::fmt::Display) -> LoadError {
    LoadError::one(LoadProblem::NotABundle { reason: reason.to_string() })
}
