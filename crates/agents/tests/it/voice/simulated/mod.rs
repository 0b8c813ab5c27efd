//! The seven scenarios of a call, with every provider that can be spoken with: the same words, tools and expectations.
//!
//! | scenario | where |
//! |---|---|
//! | a conversation with two tools, one of which writes | `conversation.rs` |
//! | the same, cut everywhere | `cuts.rs`, and `engine_faults.rs` for a pipeline |
//! | half an hour, in which connections end and are lost | `half_an_hour.rs` |
//! | a restart in mid-conversation | `half_an_hour.rs` |
//! | a user who speaks, and barges in | `barge_in.rs` |
//! | interruptions while the model speaks, and while its audio is only still played | `barge_in.rs` |
//! | a user who is blocked, and hears the farewell | `farewell.rs` |

mod barge_in;
mod conversation;
mod cuts;
mod engine_faults;
mod farewell;
mod half_an_hour;
mod providers;

use std::time::Duration;

use quarterdeck_testkit::sound::speech;

use super::harness::{ClientAction, FakeClient, VoiceHarness};
pub(crate) use providers::{gemini as model, scenario};

async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}

/// Everything that the model said.
fn said(received: &str) -> String {
    received.lines().filter_map(|line| line.strip_prefix("model: ")).collect()
}

/// Plays the conversation of `conversation::two_tools` and gives what the client was told. Each turn gets so much time.
async fn converse(harness: &VoiceHarness, client: &FakeClient, time: Duration) -> String {
    for text in ["Good day", "Book the room", "Many thanks"] {
        client.send_text(text).await;
        stay(client, time).await;
    }
    assert_eq!(harness.agent.active_calls(), 1, "the call is on");
    client.received()
}

/// Time passes for a client that plays what it gets and says so now and then.
async fn stay(client: &FakeClient, time: Duration) {
    const REPORT_INTERVAL: Duration = Duration::from_secs(8);
    let end = tokio::time::Instant::now() + time;
    while tokio::time::Instant::now() < end {
        pass(REPORT_INTERVAL.min(time)).await;
        client.send(ClientAction::Drained).await;
    }
}

/// The user speaks for so long, or is silent.
async fn speak(client: &FakeClient, millis: u64, is_loud: bool) {
    let sound = match is_loud {
        true => speech(Duration::from_millis(millis), 0.4, 16_000),
        false => vec![0; 16 * millis as usize],
    };
    for frame in sound.chunks(320) {
        let bytes = frame.iter().flat_map(|sample| sample.to_le_bytes()).collect();
        client.send(ClientAction::Audio(bytes)).await;
        pass(Duration::from_millis(15)).await;
    }
}
