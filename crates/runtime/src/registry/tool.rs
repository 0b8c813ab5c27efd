//! One tool that can be called.

use std::sync::Arc;

use quarterdeck_contracts::handler::{Handler, ToolFacts};
use quarterdeck_contracts::{Capability, CompiledTool, Metadata};
use quarterdeck_schema::Schema;

use crate::redact::SensitiveArguments;

/// A tool with everything that a call needs, made once.
pub struct LoadedTool {
    compiled: CompiledTool,
    pub(crate) parameters: Arc<Schema>,
    pub(crate) returns: Option<Arc<Schema>>,
    pub(crate) handler: Arc<dyn Handler>,
    pub(crate) facts: Arc<ToolFacts>,
    pub(crate) capabilities: Arc<[Capability]>,
}

impl LoadedTool {
    pub(super) fn new(
        compiled: CompiledTool,
        parameters: Schema,
        returns: Option<Schema>,
        handler: Arc<dyn Handler>,
    ) -> Self {
        let metadata = &compiled.metadata;
        let facts = ToolFacts {
            id: metadata.tool_id.to_string(),
            version: metadata.version.clone(),
            idempotent: metadata.idempotent,
        };
        let capabilities = metadata.effective_capabilities().into();
        let (parameters, returns) = (Arc::new(parameters), returns.map(Arc::new));
        Self { compiled, parameters, returns, handler, facts: Arc::new(facts), capabilities }
    }

    /// What the definition says beside the parameters.
    pub fn metadata(&self) -> &Metadata {
        &self.compiled.metadata
    }

    /// What may not be shown of its arguments.
    pub(crate) fn sensitive(&self) -> SensitiveArguments<'_> {
        SensitiveArguments::of(self.metadata(), &self.compiled.json_schema)
    }

    /// One or two sentences for the model.
    pub fn summary(&self) -> &str {
        &self.compiled.summary
    }

    /// The whole guide, as Markdown.
    pub fn documentation(&self) -> &str {
        &self.compiled.documentation
    }

    /// The tool as the artifact has it.
    pub fn compiled(&self) -> &CompiledTool {
        &self.compiled
    }
}
