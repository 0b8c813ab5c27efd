//! One connection past the pool, for what needs one: listening, and transactions of many statements.

use futures_util::stream::{Stream, StreamExt};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::task::JoinHandle;
use tokio_postgres::{AsyncMessage, Client, Connection, Notification, Socket};

/// A listener that is further behind loses the connection, and learns so by that.
const MAX_NOTIFICATIONS: usize = 4_096;

/// A connection that ends with this value.
pub struct Dedicated {
    pub client: Client,
    /// Ends when the connection does.
    pub notifications: mpsc::Receiver<Notification>,
    task: JoinHandle<()>,
}

impl Dedicated {
    pub(crate) fn new<S>(client: Client, mut connection: Connection<Socket, S>) -> Self
    where
        S: tokio_postgres::tls::TlsStream + Send + Unpin + 'static,
    {
        let (sender, notifications) = mpsc::channel(MAX_NOTIFICATIONS);
        let messages = futures_util::stream::poll_fn(move |context| connection.poll_message(context));
        let task = tokio::spawn(forward(messages, sender));
        Self { client, notifications, task }
    }
}

async fn forward(
    messages: impl Stream<Item = Result<AsyncMessage, tokio_postgres::Error>>,
    sender: mpsc::Sender<Notification>,
) {
    let mut messages = std::pin::pin!(messages);
    while let Some(message) = messages.next().await {
        match message {
            Ok(AsyncMessage::Notification(notification)) => {
                if let Err(TrySendError::Full(_)) = sender.try_send(notification) {
                    tracing::warn!("too many notifications are waiting, their connection is closed");
                    return;
                }
            }
            Ok(_) => {}
            Err(error) => {
                tracing::debug!(error = crate::error::describe(&error), "database connection ended");
                return;
            }
        }
    }
}

impl Drop for Dedicated {
    fn drop(&mut self) {
        self.task.abort();
    }
}
