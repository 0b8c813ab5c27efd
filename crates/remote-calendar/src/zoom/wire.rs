//! What Zoom's API sends and takes (v2).

use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize)]
pub(super) struct NewMeeting {
    pub(super) topic: String,
    pub(super) r#type: u8,
    #[serde(flatten)]
    pub(super) time: MeetingRequest,
    pub(super) agenda: String,
}

#[derive(Debug, Serialize)]
pub(super) struct MeetingRequest {
    pub(super) start_time: String,
    /// In minutes.
    pub(super) duration: u64,
    pub(super) timezone: &'static str,
}

/// Of a meeting only what attendees may know: `start_url` would make its reader the host.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Meeting {
    pub(super) join_url: String,
    pub(super) agenda: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct MeetingPage {
    pub(super) meetings: Vec<Meeting>,
    pub(super) next_page_token: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ErrorReply {
    pub(super) code: i64,
}
