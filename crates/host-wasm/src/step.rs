//! Where a step runs.
//!
//! It begins in the task of its caller: nearly every step takes some microseconds, and to hand it to another thread costs more
//! than it does. One that still computes when its time slice is over, after at most two milliseconds, moves to a thread for
//! blocking work, with the stack that it is on. There the operating system shares the processors out, so that no number of
//! handlers that compute keeps the tasks of the server from running.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::control::Control;
use crate::instance::{CallInstance, StepOutcome};

/// A step in progress.
pub(crate) type Step = Pin<Box<dyn Future<Output = (CallInstance, StepOutcome)> + Send>>;

/// Threads that steps may compute on: of one handler, and of all.
#[derive(Clone)]
pub(crate) struct Threads {
    pub(crate) of_handler: Arc<Semaphore>,
    pub(crate) of_host: Arc<Semaphore>,
}

impl Threads {
    async fn acquire(&self) -> Option<(OwnedSemaphorePermit, OwnedSemaphorePermit)> {
        let of_handler = self.of_handler.clone().acquire_owned().await.ok()?;
        let of_host = self.of_host.clone().acquire_owned().await.ok()?;
        Some((of_handler, of_host))
    }
}

/// Runs a step to its end. `None` if it was stopped before.
pub(crate) async fn run(
    mut step: Step,
    threads: &Threads,
    control: &Arc<Control>,
) -> Option<(CallInstance, StepOutcome)> {
    if let Poll::Ready(done) = poll(&mut step) {
        return Some(done);
    }
    let permits = threads.acquire().await?;
    let (sender, receiver) = oneshot::channel();
    let control = control.clone();
    tokio::task::spawn_blocking(move || {
        let _permits = permits;
        if let Some(done) = compute(step, &control) {
            // A caller that has gone does not want it, and drops the instance here.
            let _ = sender.send(done);
        }
    });
    receiver.await.ok()
}

/// Polls a step until it has ended or its call is over, which is seen after each time slice.
fn compute(mut step: Step, control: &Control) -> Option<(CallInstance, StepOutcome)> {
    while !control.is_over() {
        if let Poll::Ready(done) = poll(&mut step) {
            return Some(done);
        }
    }
    None
}

/// A step waits for nothing but its next time slice, so there is nothing to be woken for.
fn poll(step: &mut Step) -> Poll<(CallInstance, StepOutcome)> {
    step.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}
