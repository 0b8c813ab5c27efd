//! Between a model and the tools: property names that its provider refuses stand under other names on its side only.

use std::collections::BTreeMap;
use std::sync::Arc;

use quarterdeck_contracts::{
    CallArguments, ChatMessage, ModelCall, ModelMessage, Outcome, PartContent, Provider, Renames,
    ToolResponse,
};
use quarterdeck_runtime::LoadedTool;

/// The tools whose names differ, which are few or none.
#[derive(Debug, Default)]
pub(crate) struct DeclaredNames {
    tools: BTreeMap<String, Renames>,
}

impl DeclaredNames {
    /// Of tools, each as it is declared.
    pub(crate) fn new<'a>(declared: impl Iterator<Item = (&'a LoadedTool, Provider)>) -> Self {
        let renames = declared
            .map(|(tool, form)| (tool.metadata().tool_id.to_string(), Renames::of(tool.compiled(), form)));
        Self { tools: renames.filter(|(_, renames)| !renames.is_empty()).collect() }
    }

    /// A call of the model with the tool's own names.
    pub(crate) fn restore_call(&self, call: &mut ModelCall) {
        if let (Some(renames), CallArguments::Json(arguments)) =
            (self.tools.get(&call.name), &mut call.arguments)
        {
            *arguments = renames.to_original(arguments);
        }
    }

    /// A reply of the model with the tools' own names.
    pub(crate) fn restore_reply(&self, message: &mut ModelMessage) {
        for part in &mut message.parts {
            if let PartContent::Call(call) = &mut part.content {
                self.restore_call(call);
            }
        }
    }

    /// A conversation as the model knows it.
    pub(crate) fn declare(&self, messages: &mut [ChatMessage]) {
        if self.tools.is_empty() {
            return;
        }
        for message in messages {
            match message {
                ChatMessage::User { .. } => {}
                ChatMessage::Model(message) => {
                    for part in &mut message.parts {
                        if let PartContent::Call(ModelCall {
                            name,
                            arguments: CallArguments::Json(arguments),
                            ..
                        }) = &mut part.content
                            && let Some(renames) = self.tools.get(name)
                        {
                            *arguments = renames.to_declared(arguments);
                        }
                    }
                }
                ChatMessage::Tools { results } => {
                    for result in results {
                        if let Some(response) = self.declare_response(&result.name, &result.response) {
                            result.response = response;
                        }
                    }
                }
            }
        }
    }

    /// An answer that speaks of arguments, in the names that the model knows; `None` if it is good as it is.
    pub(crate) fn declare_response(&self, tool: &str, response: &ToolResponse) -> Option<Arc<ToolResponse>> {
        let (renames, Outcome::Failure(error)) = (self.tools.get(tool)?, &response.outcome) else {
            return None;
        };
        let outcome = Outcome::Failure(renames.error_to_declared(error));
        Some(Arc::new(ToolResponse { outcome, ..response.clone() }))
    }
}
