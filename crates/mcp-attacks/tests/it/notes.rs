//! What a hostile server wrote down.

use std::path::PathBuf;

use serde_json::Value;

/// The file with a server's notes, which several processes of it share.
#[derive(Debug, Clone)]
pub(crate) struct Notes(pub(crate) PathBuf);

impl Notes {
    /// What came in an event, in order of arrival.
    pub(crate) fn of(&self, event: &str) -> Vec<Value> {
        self.events(event).map(|mut note| note["what"].take()).collect()
    }

    pub(crate) fn count(&self, event: &str) -> usize {
        self.events(event).count()
    }

    /// The processes of the server, in the order in which they were started.
    pub(crate) fn processes(&self) -> Vec<u32> {
        self.events("start").map(|note| u32::try_from(note["pid"].as_u64().unwrap()).unwrap()).collect()
    }

    /// What the calls were about, in order of arrival, over stdio.
    pub(crate) fn calls(&self) -> Vec<String> {
        self.of("tools/call").iter().map(about).collect()
    }

    fn events(&self, event: &str) -> impl Iterator<Item = Value> {
        let text = std::fs::read(&self.0).unwrap_or_default();
        let notes: Vec<Value> = String::from_utf8_lossy(&text)
            .lines()
            // A server that is killed may leave half a line.
            .filter_map(|line| serde_json::from_str(line).ok())
            .filter(|note: &Value| note["event"] == event)
            .collect();
        notes.into_iter()
    }
}

fn about(call: &Value) -> String {
    let params = if call["http"].is_string() { &call["body"]["params"] } else { call };
    params["arguments"]["what"].as_str().unwrap().to_owned()
}

/// Whether a process is there and is not merely waiting to be reaped.
pub(crate) fn is_running(process: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{process}/stat")) else { return false };
    let state = stat.rsplit(')').next().and_then(|rest| rest.trim_start().chars().next());
    !matches!(state, None | Some('Z' | 'X'))
}
