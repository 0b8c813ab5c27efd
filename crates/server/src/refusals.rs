//! Refuses connections before anything is read from them: each gets a 503 and is closed.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Refusals sent at the same time. Further connections are closed at once, with what the socket buffer takes.
const MAX_REFUSALS: usize = 64;
/// How long to wait for one. A connection closed while input is on its way is reset, and its client never reads the
/// refusal.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);
/// Input read and discarded after the refusal.
const MAX_DISCARDED_BYTES: u64 = 64 << 10;

static RESPONSE: LazyLock<String> = LazyLock::new(|| {
    let message = "Too many connections from this address. Close some and try again.";
    let error = serde_json::json!({ "type": "TRANSIENT", "message": message, "retryable": true });
    let body = serde_json::json!({ "error": error }).to_string();
    format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
         retry-after: 5\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
});

pub(crate) struct Refusals(Arc<Semaphore>);

impl Default for Refusals {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MAX_REFUSALS)))
    }
}

impl Refusals {
    /// Refuses a connection and releases its slot when it is closed.
    pub(crate) fn refuse(&self, stream: TcpStream, slot: OwnedSemaphorePermit) {
        let Ok(permit) = self.0.clone().try_acquire_owned() else {
            // The empty buffer of a new connection takes the whole response.
            let _ = stream.try_write(RESPONSE.as_bytes());
            return;
        };
        tokio::spawn(async move {
            // A client that does not read in time misses the response.
            let _ = tokio::time::timeout(REFUSAL_TIMEOUT, send_refusal(stream)).await;
            drop((permit, slot));
        });
    }
}

async fn send_refusal(mut stream: TcpStream) -> std::io::Result<()> {
    stream.write_all(RESPONSE.as_bytes()).await?;
    stream.shutdown().await?;
    tokio::io::copy(&mut stream.take(MAX_DISCARDED_BYTES), &mut tokio::io::sink()).await?;
    Ok(())
}
