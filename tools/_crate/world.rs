//! What the handlers' own tests stand on. Case files are run by `quarterdeck test`.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Poll, Waker};

use jiff::Timestamp;
use quarterdeck_contracts::handler::Context;
use quarterdeck_testkit::FakeContext;

/// A world at a given time.
pub(crate) fn at(now: &str) -> Arc<dyn Context> {
    let now: Timestamp = now.parse().unwrap_or_else(|error| panic!("{now:?}: {error}"));
    FakeContext::at(now.into())
}

/// The result of a handler that waits for nothing, as one without capabilities does.
pub(crate) fn ready<T>(running: impl Future<Output = T>) -> T {
    match pin!(running).poll(&mut std::task::Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => panic!("a handler without capabilities has nothing to wait for"),
    }
}
