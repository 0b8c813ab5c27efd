//! What the simulator has seen, and what it has to complain about.

use serde_json::Value;

/// How much of each kind is written down. A simulator that runs for months must not grow.
const MOST: usize = 4_096;

/// What has happened on all connections so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// Connections that asked for a path that is served, refused ones included.
    pub connections: usize,
    /// Turns that were completed without being interrupted.
    pub turns: usize,
    /// Turns that were interrupted.
    pub interruptions: usize,
    /// Connections that went on with a handle.
    pub resumptions: usize,
    /// The calls, in the order in which they were made. A call that is made again is there again.
    pub calls: Vec<CallReport>,
    /// What the client has done that it must not do.
    pub faults: Vec<String>,
    /// What was said and written to the simulator, in order: texts as they came, speech as `(speech, 1.2 s)`.
    pub heard: Vec<String>,
    /// How many bytes of audio came in, before base64.
    pub audio_bytes: u64,
    /// How many entries were left out of the lists because they were full.
    pub left_out: usize,
}

/// A call that the simulator has made.
#[derive(Debug, Clone, PartialEq)]
pub struct CallReport {
    /// Its id, if it had one.
    pub id: Option<String>,
    /// The tool.
    pub name: String,
    /// The arguments; null when there were none.
    pub args: Value,
    /// The `response` of every answer, in order.
    pub answers: Vec<Value>,
    /// Whether it was taken back.
    pub was_cancelled: bool,
    /// On which connection it was made, counted from 1.
    pub connection: usize,
}

impl Report {
    pub(super) fn fault(&mut self, connection: usize, what: &str) {
        let line = format!("connection {connection}: {what}");
        keep(&mut self.faults, line, &mut self.left_out);
    }

    pub(super) fn heard(&mut self, text: String) {
        keep(&mut self.heard, text, &mut self.left_out);
    }

    /// Where the call stands, unless there was no more room.
    pub(super) fn call(&mut self, call: CallReport) -> Option<usize> {
        keep(&mut self.calls, call, &mut self.left_out).then(|| self.calls.len() - 1)
    }
}

fn keep<T>(list: &mut Vec<T>, entry: T, left_out: &mut usize) -> bool {
    let has_room = list.len() < MOST;
    if has_room {
        list.push(entry);
    } else {
        *left_out += 1;
    }
    has_room
}
