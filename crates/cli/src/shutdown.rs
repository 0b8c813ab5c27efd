//! When the program is asked to end.

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Listens for Ctrl-C and SIGTERM from the moment it is made, which is before the program announces itself.
pub(crate) struct ShutdownSignal {
    #[cfg(unix)]
    signals: Option<(Signal, Signal)>,
}

impl ShutdownSignal {
    pub(crate) fn listen() -> Self {
        Self {
            #[cfg(unix)]
            signals: signal(SignalKind::interrupt()).ok().zip(signal(SignalKind::terminate()).ok()),
        }
    }

    pub(crate) async fn wait(mut self) {
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
