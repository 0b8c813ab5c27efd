//! Calls that are approved on a page of ours, because their client cannot ask its user.
//!
//! The link to the page goes through the model's hands, so it approves nothing by itself: the page takes a decision from
//! the client's own user or from this machine. The decision waits here until the client makes the call again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quarterdeck_contracts::{ConfirmationAnswer, ConfirmationRequest, sha256};
use quarterdeck_runtime::{ConfirmationId, OpenConfirmation};

/// How many calls may wait for a decision.
const MAX_APPROVALS: usize = 10_000;
const MAX_APPROVALS_PER_CLIENT: usize = 64;
/// How many hexadecimal digits name an approval.
const ID_DIGITS: usize = 32;

/// Where the pages are; a transport puts it into the extensions of a request, unless the operator has turned them off.
#[derive(Debug, Clone)]
pub struct ApprovalPages {
    /// Without a slash at its end.
    pub base_url: String,
}

/// Who decides, as the server has found out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Approver<'a> {
    /// A client that has shown who it is, by its id.
    Client(&'a str),
    /// A browser on the machine of the server, which no other machine can reach.
    ThisMachine,
}

/// A call that waits for a decision, as a page shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct ApprovalView {
    /// What would be done. It holds no token.
    pub request: ConfirmationRequest,
    /// What was decided already.
    pub decision: Option<ConfirmationAnswer>,
}

/// Why a decision is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ApprovalError {
    #[error("This link has expired, or was never valid. Make the call again to get a new one.")]
    NotFound,
    #[error("Only the user of the client that made the call may see it and decide.")]
    NotAllowed,
    #[error("This was decided before.")]
    Decided,
}

/// The calls of all clients that wait for a decision on a page.
#[derive(Default)]
pub(crate) struct Approvals {
    by_id: Mutex<HashMap<String, Approval>>,
}

struct Approval {
    client: String,
    /// Where the call was made, for the audit log.
    session: String,
    call_id: Arc<str>,
    request: ConfirmationRequest,
    decision: Option<ConfirmationAnswer>,
}

/// What was decided, and about which call of which session.
#[derive(Debug, PartialEq)]
pub(crate) struct DecidedApproval {
    pub(crate) view: ApprovalView,
    pub(crate) session: String,
    pub(crate) call_id: Arc<str>,
}

impl Approvals {
    /// Lets a confirmation of a client's session be decided on its page, and names the page; `None` if too many wait. Asked
    /// again, it is the same page.
    pub(crate) fn offer(
        &self,
        (client, session): (&str, &str),
        open: &OpenConfirmation,
        now_ms: u64,
    ) -> Option<String> {
        let id = page_id(&open.id);
        let mut approvals = self.lock();
        approvals.retain(|_, approval| now_ms < approval.request.expires);
        if !approvals.contains_key(&id) {
            let of_client = approvals.values().filter(|approval| approval.client == client).count();
            if approvals.len() >= MAX_APPROVALS || of_client >= MAX_APPROVALS_PER_CLIENT {
                return None;
            }
            let request = open.request.clone().without_secrets();
            let (client, session) = (client.to_owned(), session.to_owned());
            let approval =
                Approval { client, session, call_id: open.call_id.clone(), request, decision: None };
            approvals.insert(id.clone(), approval);
        }
        Some(id)
    }

    /// Takes the decision about a confirmation, if there is one. It is gone then.
    pub(crate) fn take_decision(&self, id: &ConfirmationId) -> Option<ConfirmationAnswer> {
        let id = page_id(id);
        let mut approvals = self.lock();
        let decision = approvals.get(&id)?.decision?;
        approvals.remove(&id);
        Some(decision)
    }

    pub(crate) fn find(
        &self,
        id: &str,
        approver: Option<Approver<'_>>,
        now_ms: u64,
    ) -> Result<ApprovalView, ApprovalError> {
        let approvals = self.lock();
        let approval = approvals.get(id).filter(|approval| now_ms < approval.request.expires);
        let approval = approval.ok_or(ApprovalError::NotFound)?;
        approval.check(approver)?;
        Ok(ApprovalView { request: approval.request.clone(), decision: approval.decision })
    }

    pub(crate) fn decide(
        &self,
        id: &str,
        approver: Option<Approver<'_>>,
        decision: ConfirmationAnswer,
        now_ms: u64,
    ) -> Result<DecidedApproval, ApprovalError> {
        let mut approvals = self.lock();
        let approval = approvals.get_mut(id).filter(|approval| now_ms < approval.request.expires);
        let approval = approval.ok_or(ApprovalError::NotFound)?;
        approval.check(approver)?;
        // An approval can be taken back until the call is made again; a refusal cannot be turned.
        if approval.decision == Some(ConfirmationAnswer::Deny) {
            return Err(ApprovalError::Decided);
        }
        approval.decision = Some(decision);
        let view = ApprovalView { request: approval.request.clone(), decision: approval.decision };
        Ok(DecidedApproval { view, session: approval.session.clone(), call_id: approval.call_id.clone() })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Approval>> {
        self.by_id.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Approval {
    fn check(&self, approver: Option<Approver<'_>>) -> Result<(), ApprovalError> {
        match approver {
            Some(Approver::ThisMachine) => Ok(()),
            Some(Approver::Client(client)) if client == self.client => Ok(()),
            Some(Approver::Client(_)) | None => Err(ApprovalError::NotAllowed),
        }
    }
}

/// Names the page of a confirmation, and does not reveal its id.
fn page_id(id: &ConfirmationId) -> String {
    let mut digest = sha256(format!("approval\n{}", id.as_str()).as_bytes());
    digest.truncate(ID_DIGITS);
    digest
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use quarterdeck_contracts::ConfirmBy;
    use serde_json::json;

    use super::*;

    const NOW_MS: u64 = 1_760_000_000_000;
    const APPROVE: ConfirmationAnswer = ConfirmationAnswer::Approve;
    const DENY: ConfirmationAnswer = ConfirmationAnswer::Deny;
    const ANN: Option<Approver<'_>> = Some(Approver::Client("ann"));

    fn open(number: usize) -> OpenConfirmation {
        OpenConfirmation {
            id: ConfirmationId::parse(&format!("{number:064x}")).unwrap(),
            call_id: "m1".into(),
            content: "pay\n{}".into(),
            request: ConfirmationRequest {
                token: None,
                expires: NOW_MS + 1_000,
                tool: "pay".into(),
                args: json!({ "what": "rent" }),
                preview: "Pay the rent.".into(),
                reason: None,
                confirm_by: ConfirmBy::Any,
                code: None,
            },
            time_left: Duration::from_secs(1),
        }
    }

    #[test]
    fn a_decision_of_the_client_or_of_this_machine_is_taken_once() {
        let approvals = Approvals::default();
        for (approver, decision) in [(ANN, APPROVE), (Some(Approver::ThisMachine), DENY)] {
            let id = approvals.offer(("ann", "ses_1"), &open(1), NOW_MS).unwrap();
            assert_eq!(
                approvals.offer(("ann", "ses_1"), &open(1), NOW_MS).unwrap(),
                id,
                "asked again, the same page"
            );
            assert_eq!(approvals.take_decision(&open(1).id), None);
            assert_eq!(approvals.find(&id, approver, NOW_MS).unwrap().request.preview, "Pay the rent.");
            let decided = approvals.decide(&id, approver, decision, NOW_MS).unwrap();
            assert_eq!(
                (decided.view.decision, &*decided.session, &*decided.call_id),
                (Some(decision), "ses_1", "m1")
            );
            assert_eq!(approvals.take_decision(&open(2).id), None, "it is for one call");
            assert_eq!(approvals.take_decision(&open(1).id), Some(decision));
            assert_eq!(approvals.take_decision(&open(1).id), None);
            assert_eq!(approvals.find(&id, approver, NOW_MS), Err(ApprovalError::NotFound));
        }
    }

    #[test]
    fn another_client_neither_sees_nor_decides() {
        let approvals = Approvals::default();
        let id = approvals.offer(("ann", "ses_1"), &open(1), NOW_MS).unwrap();
        for stranger in [None, Some(Approver::Client("bob")), Some(Approver::Client(""))] {
            assert_eq!(approvals.find(&id, stranger, NOW_MS), Err(ApprovalError::NotAllowed));
            assert_eq!(approvals.decide(&id, stranger, APPROVE, NOW_MS), Err(ApprovalError::NotAllowed));
        }
        assert_eq!(approvals.find("0", ANN, NOW_MS), Err(ApprovalError::NotFound));
        assert_eq!(approvals.find(open(1).id.as_str(), ANN, NOW_MS), Err(ApprovalError::NotFound));
        assert_eq!(approvals.take_decision(&open(1).id), None);
    }

    #[test]
    fn an_approval_can_be_taken_back_and_a_refusal_cannot() {
        let approvals = Approvals::default();
        let id = approvals.offer(("ann", "ses_1"), &open(1), NOW_MS).unwrap();
        assert!(approvals.decide(&id, ANN, APPROVE, NOW_MS).is_ok());
        assert!(approvals.decide(&id, ANN, DENY, NOW_MS).is_ok());
        assert_eq!(approvals.decide(&id, ANN, APPROVE, NOW_MS), Err(ApprovalError::Decided));
        assert_eq!(approvals.take_decision(&open(1).id), Some(DENY));
    }

    #[test]
    fn what_has_expired_is_not_decided_and_takes_no_room() {
        let approvals = Approvals::default();
        let id = approvals.offer(("ann", "ses_1"), &open(1), NOW_MS).unwrap();
        let late = NOW_MS + 1_000;
        assert_eq!(approvals.find(&id, ANN, late), Err(ApprovalError::NotFound));
        assert_eq!(approvals.decide(&id, ANN, APPROVE, late), Err(ApprovalError::NotFound));
        for number in 2..2 + MAX_APPROVALS_PER_CLIENT {
            assert!(
                number > MAX_APPROVALS_PER_CLIENT
                    || approvals.offer(("ann", "ses_1"), &open(number), NOW_MS).is_some()
            );
        }
        assert_eq!(
            approvals.offer(("ann", "ses_1"), &open(1_000), NOW_MS),
            None,
            "as many as one client may have"
        );
        assert!(approvals.offer(("bob", "ses_2"), &open(1_001), NOW_MS).is_some());
        let mut later = open(1_002);
        later.request.expires = late + 1_000;
        assert!(approvals.offer(("ann", "ses_1"), &later, late).is_some());
        assert_eq!(approvals.lock().len(), 1);
    }
}
