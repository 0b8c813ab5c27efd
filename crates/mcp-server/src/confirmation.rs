//! Asks the user to approve a call. What a model can send never approves one.
//!
//! | the client | how its user is asked | file |
//! | --- | --- | --- |
//! | has shaken hands and can elicit | a request to the client, while the call waits | `elicit.rs` |
//! | is of 2026-07-28 or later and can elicit | the result is a question, and the call comes again with the answer | `retry.rs` |
//! | cannot ask | a page of ours, and the call comes again | `approvals.rs` |
//!
//! None of them ever holds the token of a confirmation.

mod approvals;
mod elicit;
mod open_questions;
mod question;
mod refusal;
mod retry;
mod seal;

use quarterdeck_contracts::{ConfirmationAnswer, ConfirmationRequest, ErrorType, Outcome, ToolError};
use quarterdeck_runtime::{Answer, OpenConfirmation, Session};
use rmcp::RoleServer;
use rmcp::model::{CallToolResponse, ErrorData};
use rmcp::service::RequestContext;

#[cfg(feature = "fuzzing")]
pub use seal::opens_as_state;

pub use approvals::{ApprovalError, ApprovalPages, ApprovalView, Approver};

use crate::call::RunningCall;
use crate::caller::McpCaller;
use crate::handler::McpHandler;
use crate::result;
use crate::server::McpServer;
use approvals::Approvals;
use open_questions::OpenQuestions;
use seal::RequestStates;

/// What is kept about questions to users.
pub(crate) struct Confirmations {
    states: RequestStates,
    approvals: Approvals,
    questions: OpenQuestions,
}

/// How the user of a client is asked.
enum AskingWay {
    Elicitation,
    InputRequired,
    /// On a page under this address.
    Page(String),
    None,
}

impl Confirmations {
    pub(crate) fn new() -> Self {
        Self {
            states: RequestStates::new(),
            approvals: Approvals::default(),
            questions: OpenQuestions::default(),
        }
    }
}

/// What the user is asked before the call that has this answer may run.
pub(crate) fn asked(answer: &Answer) -> Option<&ConfirmationRequest> {
    match &answer.response.outcome {
        Outcome::Failure(error) if error.kind == ErrorType::ConfirmationRequired => {
            error.confirmation_request.as_deref()
        }
        _ => None,
    }
}

impl McpHandler {
    /// Asks the user about a call that was answered with a request for approval.
    pub(crate) async fn confirm(
        &self,
        call: RunningCall,
        answer: Answer,
    ) -> Result<CallToolResponse, ErrorData> {
        let session = call.session.session();
        let open = asked(&answer).and_then(|asked| session.find_open_confirmation(asked));
        let tool = answer.name.clone();
        // What the client gets instead is what comes of the question.
        answer.mark_delivered();
        let Some(open) = open else { return Ok(self.refuse(&session, &tool, refusal::lapsed(&tool))) };
        if let Some(decision) = self.shared.confirmations.approvals.take_decision(&open.id) {
            return self.resolve(call, &open, decision).await;
        }
        match self.asking_way(&call.context)? {
            AskingWay::Elicitation => {
                let Some(_question) = self.shared.confirmations.questions.open(session.client()) else {
                    return Ok(self.refuse(&session, &tool, refusal::too_many(&tool)));
                };
                match elicit::elicit(&call.context, &open.request, open.time_left).await {
                    Some(decision) => self.resolve(call, &open, decision).await,
                    None => Ok(self.refuse(&session, &tool, refusal::lapsed(&tool))),
                }
            }
            AskingWay::InputRequired => Ok(self.input_required(&session, &open)),
            AskingWay::Page(base) => {
                let (now_ms, owner) =
                    (self.shared.parts.orchestrator.now_ms(), (session.client(), session.id()));
                match self.shared.confirmations.approvals.offer(owner, &open, now_ms) {
                    Some(page) => {
                        let refusal = refusal::approve_at(&open, &format!("{base}/{page}"));
                        Ok(self.refuse(&session, &tool, refusal))
                    }
                    None => Ok(self.refuse(&session, &tool, refusal::too_many(&tool))),
                }
            }
            AskingWay::None => Ok(self.refuse(&session, &tool, refusal::cannot_ask(&tool))),
        }
    }

    /// Does what the user has decided. The call runs at most once, also if others decide at the same time.
    async fn resolve(
        &self,
        call: RunningCall,
        open: &OpenConfirmation,
        decision: ConfirmationAnswer,
    ) -> Result<CallToolResponse, ErrorData> {
        let call = RunningCall { id: open.call_id.clone(), ..call };
        let session = call.session.session();
        let answer = call.wait_for(session.resolve_confirmation_by_id(&open.id, decision)).await;
        self.conclude(call, answer).await
    }

    fn refuse(&self, session: &Session, tool: &str, error: ToolError) -> CallToolResponse {
        let now = self.shared.parts.orchestrator.now();
        result::of(&session.snapshot().refuse(tool, error, now)).into()
    }

    fn asking_way(&self, context: &RequestContext<RoleServer>) -> Result<AskingWay, ErrorData> {
        let is_handshake = context.protocol_version().is_none_or(|version| version.has_initialize());
        let has_session = self.handshake.slot().is_some();
        // A client that is another one with each request never comes back with an answer of its own.
        let is_lasting = has_session || !matches!(self.caller(context)?, McpCaller::Unknown(_));
        Ok(match can_elicit(context) {
            true if is_handshake && has_session => AskingWay::Elicitation,
            true if !is_handshake && is_lasting => AskingWay::InputRequired,
            _ => match self.approval_pages(context)? {
                Some(base) => AskingWay::Page(base),
                None => AskingWay::None,
            },
        })
    }

    /// Where the client's user can decide, if it is known who that is.
    fn approval_pages(&self, context: &RequestContext<RoleServer>) -> Result<Option<String>, ErrorData> {
        let is_on = self.shared.parts.settings.approval_pages;
        if !is_on || matches!(self.caller(context)?, McpCaller::Unknown(_)) {
            return Ok(None);
        }
        let parts = context.extensions.get::<http::request::Parts>();
        let pages = parts.and_then(|parts| parts.extensions.get::<ApprovalPages>());
        Ok(pages.map(|pages| pages.base_url.clone()))
    }
}

impl McpServer {
    /// What a page shows to someone who opens the link of a call that waits for approval.
    pub fn find_approval(
        &self,
        id: &str,
        approver: Option<Approver<'_>>,
    ) -> Result<ApprovalView, ApprovalError> {
        let now_ms = self.shared.parts.orchestrator.now_ms();
        self.shared.confirmations.approvals.find(id, approver, now_ms)
    }

    /// Takes a decision that was made on a page. It counts when the client makes the call again.
    pub fn decide_approval(
        &self,
        id: &str,
        approver: Option<Approver<'_>>,
        decision: ConfirmationAnswer,
    ) -> Result<ApprovalView, ApprovalError> {
        let orchestrator = &self.shared.parts.orchestrator;
        let approvals = &self.shared.confirmations.approvals;
        let decided = approvals.decide(id, approver, decision, orchestrator.now_ms())?;
        if let Some(session) = orchestrator.find(&decided.session) {
            session.audit_page_decision(&decided.call_id, &decided.view.request.tool, decision);
        }
        Ok(decided.view)
    }
}

/// Whether a client can show its user a form.
fn can_elicit(context: &RequestContext<RoleServer>) -> bool {
    let elicitation = context.client_capabilities().and_then(|capabilities| capabilities.elicitation);
    // Without a mode it means forms, as it did before there were modes.
    elicitation.is_some_and(|elicitation| elicitation.form.is_some() || elicitation.url.is_none())
}
