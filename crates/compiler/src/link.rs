//! Sound tools become one artifact.

use quarterdeck_contracts::{
    ARTIFACT_FORMAT_VERSION, Artifact, CompiledTool, RESPONSE_SCHEMA_VERSION, artifact_hash, tool_hash,
};

use crate::Stamp;
use crate::compile::CheckedTool;

pub(crate) fn link(tools: Vec<CheckedTool>, stamp: &Stamp) -> Artifact {
    let mut tools: Vec<_> = tools.into_iter().map(compiled).collect();
    tools.sort_by(|a, b| a.metadata.tool_id.cmp(&b.metadata.tool_id));
    let content_hash = artifact_hash(RESPONSE_SCHEMA_VERSION, &tools);
    Artifact {
        format_version: ARTIFACT_FORMAT_VERSION,
        version: format!("1.0.{}", &content_hash[..8]),
        content_hash,
        git_commit: stamp.commit.clone(),
        build_timestamp: stamp.timestamp.clone(),
        response_schema_version: RESPONSE_SCHEMA_VERSION.to_owned(),
        tools,
    }
}

fn compiled(tool: CheckedTool) -> CompiledTool {
    let mut compiled = CompiledTool {
        metadata: tool.definition.metadata,
        json_schema: tool.definition.parameters,
        provider_schemas: tool.declarations,
        lossy: tool.losses,
        summary: tool.documentation.summary,
        documentation: tool.documentation.text,
        handler: tool.handler,
        hash: String::new(),
    };
    compiled.hash = tool_hash(&compiled);
    compiled
}
