//! When somebody wants the program to end.

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Listens for Ctrl-C and SIGTERM, from the moment it is made: before anybody is told that the program is there.
pub(crate) struct Stopping {
    #[cfg(unix)]
    signals: Option<(Signal, Signal)>,
}

impl Stopping {
    pub(crate) fn listen() -> Self {
        Self {
            #[cfg(unix)]
            signals: signal(SignalKind::interrupt()).ok().zip(signal(SignalKind::terminate()).ok()),
        }
    }

    /// Waits until somebody wants the program to end.
    pub(crate) async fn asked(mut self) {
        #[cfg(unix)]
        if let Some((interrupt, terminate)) = &mut self.signals {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            return;
        }
        let _ = tokio::signal::ctrl_c().await;
    }
}
