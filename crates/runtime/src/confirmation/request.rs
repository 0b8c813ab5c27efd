//! Asks the user to approve a call. The request is stored, with the very call that it is about, before it is shown.

use std::sync::Arc;

use quarterdeck_contracts::handler::Precheck;
use quarterdeck_contracts::{
    Commit, ConfirmBy, ConfirmationCode, ConfirmationRequest, ErrorType, Metadata, Mode, Table, ToolError,
};
use serde_json::{Value, json};

use super::REMEMBERED_MS;
use super::expiry::expire_later;
use super::preview::{preview, shown};
use super::row::{ConfirmationRow, Status, index_key};
use super::token::{hash, new_code, new_token};
use crate::clock::epoch_ms;
use crate::envelope::{cancelled, confirmation_required, refusal_error};
use crate::ledger::Entry;
use crate::pipeline::{ToolCall, precheck};
use crate::registry::LoadedTool;
use crate::session::{ClientEvent, ConfirmationMode, PendingConfirmation, SessionCore};

/// Asks the user about a call, which is suspended or answered at once, as the connection has it.
pub(crate) async fn request(core: &Arc<SessionCore>, mut call: ToolCall) {
    let entry = &call.entry.clone();
    let Some(tool) = core.snapshot.find(&entry.tool) else { return };
    let request = match find_equal(core, entry) {
        EqualRequest::Open(request) => Ok(request),
        EqualRequest::TokenLost(old) => check_and_open(core, &call, tool, Some(old)).await,
        EqualRequest::None => check_and_open(core, &call, tool, None).await,
    };
    let mut data = core.lock();
    let error = match request {
        Ok(request) => {
            call.span.record_asked(&request);
            let (call_id, shown) = (entry.call_id.clone(), request.clone());
            core.push_event(&mut data, ClientEvent::Confirmation { call_id, request: shown });
            if data.connection.confirmation_mode == ConfirmationMode::Suspend {
                entry.await_confirmation(Arc::new(request.without_secrets()));
                return;
            }
            confirmation_required(&entry.tool, Some(&request))
        }
        Err(error) => error,
    };
    let response = core.refusal(&entry.tool, error);
    data.replace_with_refusal(entry, &response);
    entry.set_answer(response.clone());
    core.hand_over(&mut data);
    core.save_soon(&mut data);
    drop(data);
    core.shared.metrics.record_refusal(&entry.tool, "confirmation");
    call.audit(core, Some(entry), &response, Some("refused"));
}

/// What is known of a request about an equal call.
enum EqualRequest {
    None,
    Open(ConfirmationRequest),
    /// It is from before a restart: its token is known by its hash alone.
    TokenLost(String),
}

fn find_equal(core: &SessionCore, entry: &Arc<Entry>) -> EqualRequest {
    let mut data = core.lock();
    let suspends = data.connection.confirmation_mode == ConfirmationMode::Suspend;
    let open = data.confirmations.iter_mut().find(|confirmation| {
        confirmation.content == entry.content
            && !confirmation.is_claimed
            && core.shared.is_confirmation_open(&confirmation.hash, confirmation.expires_ms)
    });
    let Some(confirmation) = open else { return EqualRequest::None };
    if let Some(request) = &confirmation.request {
        if suspends {
            confirmation.suspended = Some(entry.clone());
        }
        return EqualRequest::Open(request.clone());
    }
    // The user is asked again, and the old request is void.
    let lost = confirmation.hash.clone();
    data.confirmations.retain(|confirmation| confirmation.hash != lost);
    core.shared.deadlines.close(&lost);
    EqualRequest::TokenLost(lost)
}

/// Asks only for what the handler finds possible.
async fn check_and_open(
    core: &Arc<SessionCore>,
    call: &ToolCall,
    tool: &LoadedTool,
    replaces: Option<String>,
) -> Result<ConfirmationRequest, ToolError> {
    let refusal = match precheck(core, call, tool).await {
        // It may have taken a while.
        Ok(_) if call.entry.is_cancelled() => cancelled(&call.entry.tool),
        Ok(precheck) => return open(core, call, tool.metadata(), precheck, replaces).await,
        Err(refusal) => refusal,
    };
    // An earlier request for the same call is void all the same.
    if let Some(old) = replaces {
        let void = Commit::default()
            .delete(Table::SessionConfirmations, index_key(&core.id, &old))
            .delete(Table::Confirmations, old);
        if let Err(error) = core.commit(void).await {
            tracing::error!(session = %core.id, error = %error, "confirmation could not be withdrawn");
        }
    }
    Err(refusal)
}

async fn open(
    core: &Arc<SessionCore>,
    call: &ToolCall,
    metadata: &Metadata,
    precheck: Precheck,
    replaces: Option<String>,
) -> Result<ConfirmationRequest, ToolError> {
    let entry = &call.entry;
    let token = new_token().map_err(no_randomness)?;
    let code = code_for(core, metadata).map_err(no_randomness)?;
    let hashed = hash(token.expose());
    // The user is shown the time of day; what counts is how much time passes.
    let lifetime = core.shared.policy.confirmation_lifetime;
    let opened_ms = epoch_ms(core.now());
    let request = ConfirmationRequest {
        token: Some(token),
        expires: opened_ms + lifetime.as_millis() as u64,
        tool: entry.tool.to_string(),
        args: call.args.clone(),
        preview: precheck.preview.map_or_else(|| preview(metadata, &call.args), |text| shown(&text)),
        reason: call.confirmation_reason(),
        confirm_by: metadata.confirm_by,
        code,
    };
    core.shared.deadlines.open(&hashed, core.shared.clock.monotonic() + lifetime);
    // The session knows of it before the store does, so that an equal call at the same time does not ask as well.
    {
        let mut data = core.lock();
        let suspends = data.connection.confirmation_mode == ConfirmationMode::Suspend;
        data.confirmations.push(PendingConfirmation {
            call_id: entry.call_id.clone(),
            content: entry.content.clone(),
            suspended: suspends.then(|| entry.clone()),
            request: Some(request.clone()),
            hash: hashed.clone(),
            expires_ms: request.expires,
            is_claimed: false,
            wrong_codes: 0,
        });
    }
    let row = stored_row(core, call, precheck.seen, (opened_ms, request.expires));
    let commit = opening_commit(core, &hashed, &row, replaces);
    if let Err(error) = core.commit_start(commit).await {
        core.lock().remove_confirmation(&hashed);
        core.shared.deadlines.close(&hashed);
        return Err(core.not_started(error));
    }
    core.audit_confirmation("requested", Some(&entry.call_id), Some(&entry.tool));
    expire_later(core, hashed, lifetime);
    Ok(request)
}

/// The code that the user must say, where the tool demands one and it could be said.
fn code_for(core: &SessionCore, metadata: &Metadata) -> Result<Option<ConfirmationCode>, getrandom::Error> {
    let can_be_said = core.mode == Mode::Voice && core.shared.policy.spoken_confirmation.is_allowed;
    if can_be_said && metadata.confirm_by == ConfirmBy::Code { new_code().map(Some) } else { Ok(None) }
}

fn no_randomness(error: getrandom::Error) -> ToolError {
    tracing::error!(error = %error, "no random numbers from the operating system");
    let message = "Approval cannot be requested at the moment.".to_owned();
    refusal_error(ErrorType::Transient, message).retryable()
}

/// Stores a request with its row of the index by session.
fn opening_commit(
    core: &SessionCore,
    hashed: &str,
    row: &ConfirmationRow,
    replaces: Option<String>,
) -> Commit {
    let lifetime = core.shared.policy.confirmation_lifetime;
    let expires = Some(core.now_ms() + lifetime.as_millis() as u64 + REMEMBERED_MS);
    let commit = Commit::default()
        .check(Table::Confirmations, hashed, None)
        .put_until(Table::Confirmations, hashed, json!(row), expires)
        .put_until(Table::SessionConfirmations, index_key(&core.id, hashed), json!({}), expires);
    match replaces {
        Some(old) => commit
            .delete(Table::SessionConfirmations, index_key(&core.id, &old))
            .delete(Table::Confirmations, old),
        None => commit,
    }
}

fn stored_row(
    core: &SessionCore,
    call: &ToolCall,
    seen: Value,
    (opened_ms, expires_ms): (u64, u64),
) -> ConfirmationRow {
    let entry = &call.entry;
    ConfirmationRow {
        session_id: core.id.to_string(),
        client_id: core.client.to_string(),
        mode: core.mode,
        registry_version: core.snapshot.version().to_owned(),
        tool: entry.tool.to_string(),
        args: call.args.clone(),
        seen,
        content: entry.content.to_string(),
        call_id: entry.call_id.to_string(),
        provider_id: entry.provider_id.as_deref().map(str::to_owned),
        key: entry.key().to_string(),
        turn: entry.turn,
        opened_ms: Some(opened_ms),
        expires_ms,
        status: Status::Open,
        span: call.span.context(),
    }
}
