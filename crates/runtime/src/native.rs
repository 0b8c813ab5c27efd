//! The host of handlers that are compiled into the binary.

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use futures_util::FutureExt;
use futures_util::future::poll_immediate;
use quarterdeck_contracts::handler::{
    BoxFuture, Context, Handler, HandlerHost, HandlerToLoad, HostError, Limits, NativeHandler, Precheck,
    PrecheckAnswer,
};
use quarterdeck_contracts::{HandlerAnswer, native_source_hash};
use serde_json::Value;

/// Runs the Rust handlers of one binary. A panic ends the call, not the process.
///
/// A native handler is trusted code: it is stopped at its deadline where it waits, but one that computes without end
/// holds its thread.
pub struct NativeHost {
    handlers: BTreeMap<&'static str, Arc<NativeHandler>>,
}

impl NativeHost {
    /// From the table that the build made.
    pub fn new(handlers: impl IntoIterator<Item = NativeHandler>) -> Self {
        Self { handlers: handlers.into_iter().map(|handler| (handler.tool_id, Arc::new(handler))).collect() }
    }
}

impl HandlerHost for NativeHost {
    fn load(&self, to_load: HandlerToLoad<'_>) -> Result<Arc<dyn Handler>, HostError> {
        let id = to_load.metadata.tool_id.as_str();
        let Some(handler) = self.handlers.get(id) else {
            return Err(HostError::Unloadable(
                "its handler.rs is not compiled into this binary; run `cargo build` and use the new binary"
                    .into(),
            ));
        };
        let folder = to_load.entry.split_inclusive('/').next().unwrap_or("");
        let on_disk = native_source_hash(
            to_load.files.iter().map(|(path, bytes)| (path.strip_prefix(folder).unwrap_or(path), bytes)),
        );
        if on_disk != handler.source_hash {
            return Err(HostError::Unloadable(
                "its handler.rs is not the one that this binary was built with; run `cargo build` and use the new binary"
                    .into(),
            ));
        }
        Ok(Arc::new(Loaded(handler.clone())))
    }
}

struct Loaded(Arc<NativeHandler>);

impl Handler for Loaded {
    fn run(
        &self,
        args: Value,
        context: Arc<dyn Context>,
        limits: Limits,
    ) -> BoxFuture<Result<HandlerAnswer, HostError>> {
        let handler = self.0.clone();
        Box::pin(guarded(async move { handler.run(args, context).await }, limits))
    }

    fn precheck(
        &self,
        args: Value,
        context: Arc<dyn Context>,
        limits: Limits,
    ) -> Option<BoxFuture<Result<PrecheckAnswer, HostError>>> {
        let handler = self.0.clone();
        let checking = async move {
            match handler.precheck(args, context) {
                Some(checking) => checking.await,
                None => Ok(Precheck::default()),
            }
        };
        self.0.has_precheck().then(|| Box::pin(guarded(checking, limits)) as _)
    }
}

/// Runs to the deadline. A panic ends the call.
async fn guarded<T>(running: impl Future<Output = T>, limits: Limits) -> Result<T, HostError> {
    // The first poll runs inside the guard too: a handler may panic before it first waits.
    let mut running = pin!(AssertUnwindSafe(running).catch_unwind());
    let started = Instant::now();
    let ended = match poll_immediate(running.as_mut()).await {
        // Most end at the first poll, which saves a timer.
        Some(ended) => Ok(ended),
        None => {
            let time_left = limits.timeout.saturating_sub(started.elapsed());
            tokio::time::timeout(time_left, running).await
        }
    };
    match ended {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(panic)) => Err(HostError::Crashed(describe(&*panic))),
        Err(_) => Err(HostError::TimedOut { limit_ms: limits.timeout.as_millis() as u64, computing: false }),
    }
}

fn describe(panic: &(dyn Any + Send)) -> String {
    let text =
        panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("panicked: {}", text.unwrap_or("without a message"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_a_handler_computes_before_it_first_waits_counts_towards_its_deadline() {
        const TIMEOUT: Duration = Duration::from_millis(100);
        const COMPUTES: Duration = Duration::from_millis(60);
        let handler = async {
            std::thread::sleep(COMPUTES);
            std::future::pending::<()>().await;
        };
        let began = tokio::time::Instant::now();
        let ended = guarded(handler, Limits { timeout: TIMEOUT }).await;
        assert!(matches!(ended, Err(HostError::TimedOut { .. })), "{ended:?}");
        // The paused clock moves only while the handler waits. It counts whole milliseconds.
        assert!(began.elapsed() <= TIMEOUT - COMPUTES + Duration::from_millis(1), "{:?}", began.elapsed());
    }
}
