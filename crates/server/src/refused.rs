//! Connections that are refused before anything is read from them: each is told so, and closed.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many are told at the same time. More than these are closed at once, with what the system takes of the answer.
const MAX_REFUSALS: usize = 64;
/// How long one is waited for. A connection that is closed while something is still on its way is reset, and then its
/// client never reads why.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);
/// How much of what it still sends is thrown away.
const MAX_DISCARDED_BYTES: u64 = 64 << 10;

static ANSWER: LazyLock<String> = LazyLock::new(|| {
    let message = "Too many connections from this address. Close some of them and try again.";
    let error = serde_json::json!({ "type": "TRANSIENT", "message": message, "retryable": true });
    let body = serde_json::json!({ "error": error }).to_string();
    format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
         retry-after: 5\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
});

/// Refuses connections.
pub(crate) struct Refusals(Arc<Semaphore>);

impl Default for Refusals {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MAX_REFUSALS)))
    }
}

impl Refusals {
    /// Tells a client that its address has too many connections. Its room among all is given back when it is gone.
    pub(crate) fn refuse(&self, stream: TcpStream, room: OwnedSemaphorePermit) {
        let Ok(permit) = self.0.clone().try_acquire_owned() else {
            // The buffer of a new connection is empty and takes it whole.
            let _ = stream.try_write(ANSWER.as_bytes());
            return;
        };
        tokio::spawn(async move {
            // A client that does not read has been told as well as can be.
            let _ = tokio::time::timeout(REFUSAL_TIMEOUT, tell(stream)).await;
            drop((permit, room));
        });
    }
}

async fn tell(mut stream: TcpStream) -> std::io::Result<()> {
    stream.write_all(ANSWER.as_bytes()).await?;
    stream.shutdown().await?;
    tokio::io::copy(&mut stream.take(MAX_DISCARDED_BYTES), &mut tokio::io::sink()).await?;
    Ok(())
}
