//! One tool that can be called.

use std::sync::Arc;

use quarterdeck_contracts::handler::{Handler, ToolFacts};
use quarterdeck_contracts::{Capability, CompiledTool, Metadata};
use quarterdeck_schema::Schema;

use crate::gates::reads_foreign_text;
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
            id: metadata.tool_id.as_str().into(),
            version: metadata.version.as_str().into(),
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

    /// Whether the result of a call holds text that neither the user nor this server wrote.
    pub(crate) fn reads_foreign_text(&self) -> bool {
        self.handler.has_foreign_text() || reads_foreign_text(self.metadata())
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

#[cfg(test)]
mod tests {
    use quarterdeck_contracts::HandlerAnswer;
    use quarterdeck_contracts::handler::{BoxFuture, Context, HostError, Limits};
    use serde_json::{Value, json};

    use super::*;

    /// A handler somewhere else, or here.
    struct Elsewhere(bool);

    impl Handler for Elsewhere {
        fn run(
            &self,
            _: Value,
            _: Arc<dyn Context>,
            _: Limits,
        ) -> BoxFuture<Result<HandlerAnswer, HostError>> {
            Box::pin(std::future::ready(Ok(HandlerAnswer::success(Value::Null))))
        }

        fn has_foreign_text(&self) -> bool {
            self.0
        }
    }

    #[test]
    fn what_a_handler_elsewhere_answers_is_foreign_text_whatever_the_definition_says() {
        let schema = json!({ "type": "object", "properties": {} });
        let reads = |handler: Elsewhere| {
            let compiled = serde_json::from_value(json!({
                "toolId": "sum", "version": "1.0.0", "description": "d", "category": "action",
                "sideEffects": "writes", "idempotent": false, "requiresConfirmation": true,
                "allowedModes": ["text"], "latencyBudgetMs": 800, "jsonSchema": schema, "providerSchemas": {},
                "summary": "", "documentation": "", "hash": "",
                "handler": { "kind": "mcp", "path": "sum/handler.mcp.json", "files": {} },
            }));
            let parameters = Schema::compile(&schema).unwrap();
            LoadedTool::new(compiled.unwrap(), parameters, None, Arc::new(handler)).reads_foreign_text()
        };
        assert!(reads(Elsewhere(true)));
        assert!(!reads(Elsewhere(false)));
    }
}
