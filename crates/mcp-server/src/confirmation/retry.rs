//! Asks the user through a client without a handshake: the result of the call is a question, and the call comes again
//! with the answer.

use std::collections::BTreeMap;
use std::sync::Arc;

use quarterdeck_runtime::{OpenConfirmation, Session, call_content};
use rmcp::RoleServer;
use rmcp::model::{CallToolRequestParams, CallToolResponse, ErrorData, InputRequest, InputRequiredResult};
use rmcp::service::RequestContext;
use serde_json::Value;

use super::seal::{Binding, StateError};
use super::{question, refusal};
use crate::call::RunningCall;
use crate::handler::McpHandler;
use crate::session::McpSession;

impl McpHandler {
    /// The question as the result of a call.
    pub(super) fn input_required(&self, session: &Session, open: &OpenConfirmation) -> CallToolResponse {
        let bound = Binding { client: session.client(), session: session.id(), content: &open.content };
        let states = &self.shared.confirmations.states;
        let Some(state) = states.seal(bound, &open.id, open.request.expires) else {
            let tool = &open.request.tool;
            return self.refuse(session, tool, refusal::cannot_ask(tool));
        };
        let form = InputRequest::Elicitation(question::form(&open.request));
        let requests = BTreeMap::from([(question::FIELD.to_owned(), form)]);
        InputRequiredResult::new(Some(requests), Some(state)).into()
    }

    /// Takes a call that comes again with the state of a question. Nothing runs but the very call that was asked about.
    pub(crate) async fn retry(
        &self,
        session: Arc<McpSession>,
        params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
        state: &str,
    ) -> Result<CallToolResponse, ErrorData> {
        let CallToolRequestParams { name, arguments, input_responses, .. } = params;
        let content = call_content(&name, &arguments.map_or(Value::Null, Value::Object));
        let core = session.session();
        let bound = Binding { client: core.client(), session: core.id(), content: &content };
        let now_ms = self.shared.parts.orchestrator.now_ms();
        let sealed = self.shared.confirmations.states.open(bound, state, now_ms);
        let open = match sealed {
            // One that is not open any more was used, or is being used at this moment.
            Ok(id) => core.open_confirmation_by_id(&id).ok_or(StateError::Invalid),
            // What was not sealed here for this call is a fault of the protocol, and no answer of a user.
            Err(StateError::Invalid) => {
                core.audit_invalid_confirmation(&name);
                return Err(refusal::not_sealed_here());
            }
            Err(error) => Err(error),
        };
        let open = match open {
            Ok(open) => open,
            Err(error) => {
                core.audit_invalid_confirmation(&name);
                return Ok(self.refuse(&core, &name, refusal::invalid(error)));
            }
        };
        match question::decision_in(input_responses.as_ref()) {
            Some(decision) => {
                let call = RunningCall { session, id: open.call_id.clone(), context, notes: Vec::new() };
                self.resolve(call, &open, decision).await
            }
            None => Ok(self.input_required(&core, &open)),
        }
    }
}
