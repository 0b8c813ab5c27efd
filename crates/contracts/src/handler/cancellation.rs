//! Tells a handler that its call should stop.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Poll, Waker};

use serde_json::json;

use crate::{ErrorType, ToolError};

/// Why a call should stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelReason {
    /// The user stopped it, interrupted, or has gone.
    Stopped,
    /// The conversation is over.
    SessionEnded,
    /// Its time is nearly up; what it answers before the hard stop still counts.
    Deadline,
}

impl CancelReason {
    /// One sentence for the handler.
    pub fn message(self) -> &'static str {
        match self {
            Self::Stopped => "The call was cancelled.",
            Self::SessionEnded => "The session has ended.",
            Self::Deadline => "The call has reached its deadline.",
        }
    }
}

/// Whether one call should stop. Clones are the same token; it is cancelled once, and for good.
///
/// A handler that watches it can end early and say what it has done. One that does not is stopped all the same where
/// its tool does not write.
#[derive(Debug, Clone, Default)]
pub struct CancellationToken {
    state: Arc<TokenState>,
}

#[derive(Debug, Default)]
struct TokenState {
    /// Set under the lock, so that none who waits is missed; read without it, because each call asks for it many times.
    reason: OnceLock<CancelReason>,
    waiters: Mutex<Waiters>,
}

#[derive(Debug, Default)]
struct Waiters {
    /// Those that wait for it, by the number that each was given.
    waiting: Vec<(u64, Waker)>,
    next_waiter: u64,
}

impl CancellationToken {
    /// Asks the call to stop. The first reason counts; `false` if there was one.
    pub fn cancel(&self, reason: CancelReason) -> bool {
        let waiting = {
            let mut waiters = self.lock();
            if self.state.reason.set(reason).is_err() {
                return false;
            }
            std::mem::take(&mut waiters.waiting)
        };
        waiting.into_iter().for_each(|(_, waker)| waker.wake());
        true
    }

    /// Why the call should stop, if it should.
    pub fn reason(&self) -> Option<CancelReason> {
        self.state.reason.get().copied()
    }

    /// Whether the call should stop.
    pub fn is_cancelled(&self) -> bool {
        self.reason().is_some()
    }

    /// Ends when the call should stop.
    pub async fn cancelled(&self) -> CancelReason {
        let mut waiter = Waiter { token: self, number: None };
        poll_fn(|context| waiter.poll(context.waker())).await
    }

    /// The error of a call that should stop, to be returned with `?` between two steps of the work.
    pub fn check(&self) -> Result<(), ToolError> {
        match self.reason() {
            None => Ok(()),
            Some(CancelReason::Deadline) => {
                let mut error = ToolError::new(ErrorType::Transient, CancelReason::Deadline.message());
                error.retryable = true;
                error.details = Some(json!({ "reason": "deadline" }));
                Err(error)
            }
            Some(reason) => Err(ToolError::new(ErrorType::Cancelled, reason.message())),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiters> {
        self.state.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One wait for a token. It leaves no waker behind when it is dropped, so that a token that is waited for many times
/// stays small.
struct Waiter<'a> {
    token: &'a CancellationToken,
    number: Option<u64>,
}

impl Waiter<'_> {
    fn poll(&mut self, waker: &Waker) -> Poll<CancelReason> {
        let mut waiters = self.token.lock();
        if let Some(reason) = self.token.reason() {
            return Poll::Ready(reason);
        }
        let number = *self.number.get_or_insert_with(|| {
            waiters.next_waiter += 1;
            waiters.next_waiter
        });
        match waiters.waiting.iter_mut().find(|(waiting, _)| *waiting == number) {
            Some((_, known)) => known.clone_from(waker),
            None => waiters.waiting.push((number, waker.clone())),
        }
        Poll::Pending
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.token.lock().waiting.retain(|(waiting, _)| *waiting != number);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::Context;

    use super::*;

    #[test]
    fn the_first_reason_counts_and_wakes_those_that_wait() {
        let token = CancellationToken::default();
        assert!(token.check().is_ok());
        let mut waiting = pin!(token.cancelled());
        let mut context = Context::from_waker(Waker::noop());
        assert!(waiting.as_mut().poll(&mut context).is_pending());
        assert!(token.clone().cancel(CancelReason::SessionEnded));
        assert!(!token.cancel(CancelReason::Stopped));
        assert_eq!(waiting.as_mut().poll(&mut context), Poll::Ready(CancelReason::SessionEnded));
        assert_eq!(token.check().unwrap_err().kind, ErrorType::Cancelled);
    }

    #[test]
    fn a_wait_that_is_given_up_leaves_nothing_behind() {
        let token = CancellationToken::default();
        for _ in 0..3 {
            let mut waiting = pin!(token.cancelled());
            assert!(waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            assert!(waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            assert_eq!(token.lock().waiting.len(), 1);
        }
        assert!(token.lock().waiting.is_empty());
    }
}
