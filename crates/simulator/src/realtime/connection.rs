//! One connection of a client.

use std::time::Duration;

use quarterdeck_websocket::{CloseCode, Limits, Message, SocketError, WebSocket, receive_upgrade};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, sleep_until, timeout};

use super::RealtimeSimulator;
use super::conversation::Conversation;
use crate::live::DisconnectAfter;

/// Much shorter than the audio of an event.
const EVENT_INTERVAL: Duration = Duration::from_millis(5);
const LIMITS: Limits = Limits { max_message_bytes: 16 << 20 };

/// Serves a client until the connection ends, for whatever reason.
pub(super) async fn serve<S>(simulator: &RealtimeSimulator, stream: S)
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let Ok(pending) = receive_upgrade(stream).await else { return };
    let request = &pending.request;
    let key = request.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
    let (status, what) = if !request.path().ends_with("/realtime") || request.query("model").is_none() {
        ("404 Not Found", "there is no such model")
    } else if key.is_none_or(|key| key.trim().is_empty()) {
        ("401 Unauthorized", "You didn't provide an API key")
    } else {
        let Ok(mut socket) = pending.accept(LIMITS).await else { return };
        let number = {
            let mut report = simulator.report.lock();
            report.connections += 1;
            report.connections
        };
        let disconnect = simulator
            .disconnect
            .filter(|disconnect| disconnect.connection == number)
            .map(|disconnect| disconnect.after);
        let conversation = Conversation::new(simulator.answers.clone(), simulator.report.clone());
        // A client may leave at any time.
        let _ = converse(conversation, &mut socket, disconnect).await;
        return;
    };
    let _ = pending.refuse(status, what).await;
}

/// Exchanges events until either end closes the connection, or it is to be lost.
async fn converse<S>(
    mut conversation: Conversation,
    socket: &mut WebSocket<S>,
    disconnect: Option<DisconnectAfter>,
) -> Result<(), SocketError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut next = Instant::now();
    let (mut sent, mut received) = (0, 0);
    loop {
        for mut event in conversation.out.drain(..) {
            if disconnect == Some(DisconnectAfter::Sent(sent)) {
                return socket.flush().await;
            }
            sent += 1;
            event["event_id"] = format!("event_{sent}").into();
            socket.send_text(&event.to_string());
        }
        socket.flush().await?;
        while let Some(message) = socket.next() {
            if disconnect == Some(DisconnectAfter::Received(received)) {
                return Ok(());
            }
            received += usize::from(matches!(message, Ok(Message::Text(_))));
            match message {
                Ok(Message::Text(text)) => match serde_json::from_str::<Value>(text) {
                    Ok(event) => conversation.handle_event(&event),
                    Err(_) => conversation.handle_event(&Value::Null),
                },
                Ok(Message::Close(..)) => return socket.flush().await,
                Ok(Message::Ping(_) | Message::Pong) => {}
                Ok(Message::Binary(_)) | Err(_) => {
                    let closing = socket.finish(CloseCode::POLICY, "text only");
                    return timeout(Duration::from_secs(1), closing).await.unwrap_or(Ok(()));
                }
            }
        }
        if !conversation.out.is_empty() {
            continue;
        }
        tokio::select! {
            filled = socket.fill() => filled?,
            () = sleep_until(next), if conversation.is_speaking() => {
                conversation.advance();
                next = Instant::now() + EVENT_INTERVAL;
            }
        }
    }
}
