//! Kinds of handlers are registered: the registry knows none by name.

use std::sync::{Arc, Mutex};

use quarterdeck_contracts::handler::{Handler, HandlerFiles, HandlerHost, HandlerToLoad, HostError};
use quarterdeck_contracts::{Artifact, HandlerKind, artifact_hash, sha256, tool_hash};
use quarterdeck_runtime::{Hosts, Registry};
use quarterdeck_testkit::Tree;

use crate::probe_tool::{built, compiled};

const TOY_KIND: HandlerKind = HandlerKind::new("toy");
const MODULE: &[u8] = b"\0toy\xff\xfe";

/// Keeps what it was given, and loads nothing.
#[derive(Default)]
struct ToyHost(Mutex<HandlerFiles>);

impl HandlerHost for ToyHost {
    fn load(&self, handler: HandlerToLoad<'_>) -> Result<Arc<dyn Handler>, HostError> {
        self.0.lock().unwrap().clone_from(handler.files);
        Err(HostError::Unloadable(format!("{} is a toy", handler.entry)))
    }
}

fn toy(files: &Tree) -> Artifact {
    let mut artifact = compiled(files);
    files.write("probe/handler.toy", MODULE);
    let tool = &mut artifact.tools[0];
    tool.handler.kind = TOY_KIND;
    tool.handler.path = "probe/handler.toy".into();
    tool.handler.files = [("probe/handler.toy".to_owned(), sha256(MODULE))].into();
    tool.hash = tool_hash(tool);
    artifact.content_hash = artifact_hash(&artifact.response_schema_version, &artifact.tools);
    artifact
}

#[test]
fn kind_without_a_host_is_refused_with_its_name() {
    let files = built();
    let refused = Registry::from_artifact(toy(&files), files.path(), Hosts::default()).err().unwrap();
    assert_eq!(
        refused.to_string(),
        "probe has a handler of kind `toy`, which this quarterdeck does not run; use a build that does"
    );
}

#[test]
fn host_of_a_registered_kind_gets_the_files_as_bytes() {
    let files = built();
    let host = Arc::new(ToyHost::default());
    let hosts = Hosts::default().with(TOY_KIND, host.clone());
    let refused = Registry::from_artifact(toy(&files), files.path(), hosts).err().unwrap();
    assert_eq!(refused.to_string(), "probe: the handler cannot be loaded: probe/handler.toy is a toy");
    assert_eq!(*host.0.lock().unwrap(), [("probe/handler.toy".to_owned(), MODULE.to_vec())].into());
}
