//! One client.

use std::time::Duration;

use quarterdeck_websocket::{CloseCode, Limits, Message, SocketError, WebSocket, receive_upgrade};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, sleep_until, timeout};

use super::RealtimeSimulator;
use super::conversation::Conversation;
use crate::live::DisconnectAfter;

/// How fast events come: much faster than what is in them is spoken.
const PACE: Duration = Duration::from_millis(5);
/// The largest message that a client may send.
const LARGEST: Limits = Limits { message: 16 << 20 };

/// Serves a client until it is gone. What goes wrong on the way is its end.
pub(super) async fn serve<S>(simulator: &RealtimeSimulator, stream: S)
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let Ok(waiting) = receive_upgrade(stream).await else { return };
    let request = &waiting.request;
    let key = request.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
    let (status, what) = if !request.path().ends_with("/realtime") || request.query("model").is_none() {
        ("404 Not Found", "there is no such model")
    } else if key.is_none_or(|key| key.trim().is_empty()) {
        ("401 Unauthorized", "You didn't provide an API key")
    } else {
        let Ok(mut socket) = waiting.accept(LARGEST).await else { return };
        let number = {
            let mut report = simulator.report.open();
            report.connections += 1;
            report.connections
        };
        let cut = simulator.cut.filter(|cut| cut.connection == number).map(|cut| cut.after);
        let conversation = Conversation::new(simulator.answers.clone(), simulator.report.clone());
        // A client that is gone is no trouble of ours.
        let _ = talk(conversation, &mut socket, cut).await;
        return;
    };
    let _ = waiting.refuse(status, what).await;
}

/// Talks until either end has had enough, or the connection is to be cut.
async fn talk<S>(
    mut conversation: Conversation,
    socket: &mut WebSocket<S>,
    cut: Option<DisconnectAfter>,
) -> Result<(), SocketError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut next = Instant::now();
    let (mut sent, mut received) = (0, 0);
    loop {
        for mut event in conversation.out.drain(..) {
            if cut == Some(DisconnectAfter::Sent(sent)) {
                return socket.flush().await;
            }
            sent += 1;
            event["event_id"] = format!("event_{sent}").into();
            socket.send_text(&event.to_string());
        }
        socket.flush().await?;
        while let Some(message) = socket.next() {
            if cut == Some(DisconnectAfter::Received(received)) {
                return Ok(());
            }
            received += usize::from(matches!(message, Ok(Message::Text(_))));
            match message {
                Ok(Message::Text(text)) => match serde_json::from_str::<Value>(text) {
                    Ok(event) => conversation.take(&event),
                    Err(_) => conversation.take(&Value::Null),
                },
                Ok(Message::Close(..)) => return socket.flush().await,
                Ok(Message::Ping(_) | Message::Pong) => {}
                Ok(Message::Binary(_)) | Err(_) => {
                    let goodbye = socket.finish(CloseCode::POLICY, "text only");
                    return timeout(Duration::from_secs(1), goodbye).await.unwrap_or(Ok(()));
                }
            }
        }
        if !conversation.out.is_empty() {
            continue;
        }
        tokio::select! {
            filled = socket.fill() => filled?,
            () = sleep_until(next), if conversation.is_speaking() => {
                conversation.go_on();
                next = Instant::now() + PACE;
            }
        }
    }
}
