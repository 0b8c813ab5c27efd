//! One `tools/call`, from its request to its result.

mod begun;
mod keys;
mod progress;

use std::sync::Arc;

use quarterdeck_runtime::{Answer, Reply};
use rmcp::RoleServer;
use rmcp::model::{CallToolRequestParams, CallToolResponse, ErrorData};
use rmcp::service::RequestContext;
use serde_json::{Value, json};

use crate::confirmation;
use crate::handler::McpHandler;
use crate::result;
use crate::session::{McpSession, RequestedCall, SubmittedCall};
use begun::Begun;
pub(crate) use begun::BegunCall;
use keys::CallKeys;
use progress::Progress;

/// What happened since the turn before, for a client that shows it to its model.
const NOTES_KEY: &str = "quarterdeck/notes";

/// A call that was submitted, with what its answer needs.
pub(crate) struct RunningCall {
    pub(crate) session: Arc<McpSession>,
    pub(crate) id: Arc<str>,
    pub(crate) context: RequestContext<RoleServer>,
    /// What happened since the turn before without the model's seeing it.
    pub(crate) notes: Vec<String>,
}

impl McpHandler {
    pub(crate) async fn call(
        &self,
        mut params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if let Some(begun) = context.extensions.get::<BegunCall>().and_then(BegunCall::take) {
            return self.go_on(begun, context).await;
        }
        let keys = CallKeys::of(&context.meta)?;
        let session = match self.session(&context).await {
            Ok(session) => session,
            Err(fault) => match fault.refusal() {
                Some(refusal) => return Ok(result::failure(&refusal).into()),
                None => return Err(fault.into()),
            },
        };
        if !session.offers(&params.name) {
            return Err(unknown_tool(&params.name));
        }
        if let Some(state) = params.request_state.take() {
            return Box::pin(self.retry(session, params, context, &state)).await;
        }
        let submitted = session.submit(RequestedCall {
            name: params.name.into_owned(),
            args: params.arguments.map_or(Value::Null, Value::Object),
            stable_id: keys.stable_id,
            turn: keys.turn,
            parent: keys.parent,
        });
        self.go_on(Begun { session, submitted, answer: None }, context).await
    }

    /// Takes a call that was handed over to its result.
    async fn go_on(
        &self,
        begun: Begun,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Begun { session, submitted: SubmittedCall { id, mut batch, notes }, answer } = begun;
        let call = RunningCall { session, id, context, notes };
        let answer = match answer {
            Some(answer) => Some(answer),
            None => call.wait_for(batch.next()).await.and_then(Reply::into_answer),
        };
        match answer {
            Some(answer) => self.finish(call, answer).await,
            None => Err(ErrorData::internal_error(
                "The call has no answer. Look before you repeat a write.",
                None,
            )),
        }
    }

    /// The result of a call, or what its client has to do first.
    async fn finish(&self, call: RunningCall, answer: Answer) -> Result<CallToolResponse, ErrorData> {
        call.session.pass_on();
        // What few calls need is not part of what every call carries.
        if confirmation::asked(&answer).is_some() {
            return Box::pin(self.confirm(call, answer)).await;
        }
        if answer.response.meta.background_task_id.is_some() {
            return Box::pin(self.conclude(call, answer)).await;
        }
        Ok(call.deliver(answer))
    }
}

impl RunningCall {
    /// Waits for what comes of the call, and meanwhile passes on what happens and what the client takes back.
    pub(crate) async fn wait_for<F: Future>(&self, outcome: F) -> F::Output {
        // What does not wait has its answer at once; nothing else is set up for it.
        let mut outcome = std::pin::pin!(outcome);
        if let Some(outcome) = futures_util::FutureExt::now_or_never(outcome.as_mut()) {
            return outcome;
        }
        let mut progress = Progress::of(self);
        let mut is_cancelled = false;
        let outcome = loop {
            tokio::select! {
                outcome = &mut outcome => break outcome,
                () = progress.pass_on(self) => {}
                () = self.context.ct.cancelled(), if !is_cancelled => {
                    is_cancelled = true;
                    self.session.session().cancel(&[&*self.id]);
                }
            }
        };
        progress.finish(self).await;
        outcome
    }

    /// Hands over an answer. One whose client has gone is kept: a write that is repeated is answered from the record.
    pub(crate) fn deliver(&self, answer: Answer) -> CallToolResponse {
        let result = result_of(&answer, &self.notes);
        if !self.context.ct.is_cancelled() {
            answer.mark_delivered();
        }
        result
    }
}

/// Whether the user has to be asked first, or the work goes on in the background.
fn needs_more(answer: &Answer) -> bool {
    confirmation::asked(answer).is_some() || answer.response.meta.background_task_id.is_some()
}

fn result_of(answer: &Answer, notes: &[String]) -> CallToolResponse {
    let mut result = result::of(&answer.response);
    if !notes.is_empty() {
        let meta = result.meta.get_or_insert_default();
        meta.insert(NOTES_KEY.to_owned(), json!(notes));
    }
    result.into()
}

fn unknown_tool(name: &str) -> ErrorData {
    let shown: String = name.chars().take(100).collect();
    ErrorData::invalid_params(
        format!("There is no tool `{shown}`. `tools/list` names those that there are."),
        None,
    )
}
