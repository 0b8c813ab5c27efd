//! Counts requests by how they end.

use quarterdeck_runtime::{McpOutcome, Metrics};
use rmcp::ErrorData;
use rmcp::model::CallToolResponse;

use crate::handler::McpHandler;

impl McpHandler {
    /// Answers a request and counts it. One that is given up is counted as well.
    pub(crate) async fn counted<T: Counted>(
        &self,
        method: &'static str,
        answer: impl Future<Output = Result<T, ErrorData>>,
    ) -> Result<T, ErrorData> {
        let metrics = self.shared.parts.orchestrator.metrics();
        let mut count = RequestCount { metrics, method, outcome: McpOutcome::Cancelled };
        let answer = answer.await;
        count.outcome = answer.as_ref().map_or(McpOutcome::Error, Counted::outcome);
        answer
    }
}

/// Counts when it is dropped.
struct RequestCount<'a> {
    metrics: &'a Metrics,
    method: &'static str,
    outcome: McpOutcome,
}

impl Drop for RequestCount<'_> {
    fn drop(&mut self) {
        self.metrics.record_mcp_request(self.method, self.outcome);
    }
}

/// An answer, as it is counted.
pub(crate) trait Counted {
    fn outcome(&self) -> McpOutcome {
        McpOutcome::Ok
    }
}

impl Counted for CallToolResponse {
    fn outcome(&self) -> McpOutcome {
        match self {
            Self::Complete(result) if result.is_error == Some(true) => McpOutcome::ToolError,
            Self::InputRequired(_) => McpOutcome::InputRequired,
            _ => McpOutcome::Ok,
        }
    }
}

macro_rules! counted_as_answered {
    ($($answer:ty),+ $(,)?) => { $(impl Counted for $answer {})+ };
}

counted_as_answered!(
    (),
    rmcp::model::CompleteResult,
    rmcp::model::CustomResult,
    rmcp::model::DiscoverResult,
    rmcp::model::GetPromptResponse,
    rmcp::model::GetTaskResult,
    rmcp::model::InitializeResult,
    rmcp::model::ListPromptsResult,
    rmcp::model::ListResourceTemplatesResult,
    rmcp::model::ListResourcesResult,
    rmcp::model::ListToolsResult,
    rmcp::model::ReadResourceResponse,
);
