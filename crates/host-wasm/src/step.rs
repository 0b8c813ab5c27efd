//! Where a step runs.
//!
//! It begins in the task of its caller: nearly every step takes some microseconds, and to hand it to another thread costs more
//! than it does. One that still computes when its time slice is over, after at most two milliseconds, moves to a thread for
//! blocking work, with the stack that it is on. There the operating system shares the processors out, so that no number of
//! handlers that compute keeps the tasks of the server from running.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::control::Control;
use crate::ending::Ending;
use crate::instance::{CallInstance, StepOutcome};

/// A step in progress.
pub(crate) type Step = Pin<Box<dyn Future<Output = (CallInstance, StepOutcome)> + Send>>;

/// Threads that steps may compute on: of one handler, and of all.
#[derive(Clone)]
pub struct Threads {
    /// Those that one handler may hold.
    pub of_handler: Arc<Semaphore>,
    /// All that there are.
    pub of_host: Arc<Semaphore>,
}

impl Threads {
    /// Whether the host has gone.
    pub(crate) fn are_closed(&self) -> bool {
        self.of_host.is_closed()
    }

    async fn acquire(&self) -> Option<(OwnedSemaphorePermit, OwnedSemaphorePermit)> {
        let of_handler = self.of_handler.clone().acquire_owned().await.ok()?;
        let of_host = self.of_host.clone().acquire_owned().await.ok()?;
        Some((of_handler, of_host))
    }
}

/// Runs a step to its end, unless it is stopped before.
pub(crate) async fn run(
    mut step: Step,
    threads: &Threads,
    control: &Arc<Control>,
) -> Result<(CallInstance, StepOutcome), Ending> {
    if let Poll::Ready(done) = poll(&mut step)? {
        return Ok(done);
    }
    let permits = threads.acquire().await.ok_or(Ending::Stopped)?;
    let (sender, receiver) = oneshot::channel();
    let (control, threads) = (control.clone(), threads.clone());
    tokio::task::spawn_blocking(move || {
        let _permits = permits;
        // A caller that has gone does not want it, and drops the instance here.
        let _ = sender.send(compute(step, &threads, &control));
    });
    receiver.await.unwrap_or(Err(Ending::Stopped))
}

/// Polls a step until it has ended or its call is over, which is seen after each time slice.
fn compute(
    mut step: Step,
    threads: &Threads,
    control: &Control,
) -> Result<(CallInstance, StepOutcome), Ending> {
    while !control.is_over() && !threads.are_closed() {
        if let Poll::Ready(done) = poll(&mut step)? {
            return Ok(done);
        }
    }
    Err(Ending::Stopped)
}

/// A step waits for nothing but its next time slice, so there is nothing to be woken for. A panic of the runtime's, which the
/// host's functions call, ends the call that met it.
fn poll(step: &mut Step) -> Result<Poll<(CallInstance, StepOutcome)>, Ending> {
    let poll = || step.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    catch_unwind(AssertUnwindSafe(poll)).map_err(|_| {
        Ending::Crashed("the runtime failed while the handler called it; its log says how".into())
    })
}
