//! What the simulator has seen, and the client's faults.

use serde_json::Value;

/// Entries of each kind, and bytes in all. A simulator that runs for months must not grow.
const MAX_ENTRIES: usize = 4_096;
const MAX_REPORT_BYTES: usize = 8 << 20;
const MAX_TEXT_BYTES: usize = 2_000;
const MAX_ANSWERS_PER_CALL: usize = 16;

/// What has happened on all connections so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// Connections that asked for a path that is served, refused ones included.
    pub connections: usize,
    /// Turns that were completed without being interrupted.
    pub turns: usize,
    /// Turns that were interrupted.
    pub interruptions: usize,
    /// Connections that resumed with a handle.
    pub resumptions: usize,
    /// The calls, in the order in which they were made. A call that is made again is there again.
    pub calls: Vec<CallReport>,
    /// Faults of the client.
    pub faults: Vec<String>,
    /// What was said and written to the simulator, in order: texts as they came, speech as `(speech, 1.2 s)`.
    pub heard: Vec<String>,
    /// Bytes of received audio, without base64.
    pub audio_bytes: u64,
    /// How many entries were left out of the lists because they were full.
    pub left_out: usize,
    /// Bytes of recorded texts.
    written: usize,
}

/// A call that the simulator has made.
#[derive(Debug, Clone, PartialEq)]
pub struct CallReport {
    pub id: Option<String>,
    /// The tool.
    pub name: String,
    /// The arguments; null when there were none.
    pub args: Value,
    /// The `response` of every answer, in order.
    pub answers: Vec<Value>,
    /// Whether it was cancelled.
    pub was_cancelled: bool,
    /// On which connection it was made, counted from 1.
    pub connection: usize,
}

impl Report {
    pub(super) fn fault(&mut self, connection: usize, what: &str) {
        let line = format!("connection {connection}: {what}");
        keep(&mut self.faults, line, &mut self.left_out);
    }

    pub(super) fn heard(&mut self, text: &str) {
        let text = &text[..text.floor_char_boundary(MAX_TEXT_BYTES)];
        if self.has_space(text.len()) {
            keep(&mut self.heard, text.to_owned(), &mut self.left_out);
        }
    }

    /// Returns the index of the call, unless the report is full.
    pub(super) fn call(&mut self, call: CallReport) -> Option<usize> {
        let has_space = self.has_space(call.name.len() + call.args.to_string().len());
        (has_space && keep(&mut self.calls, call, &mut self.left_out)).then(|| self.calls.len() - 1)
    }

    pub(super) fn answer(&mut self, place: usize, response: Value) {
        let has_space = self.has_space(response.to_string().len());
        match self.calls.get_mut(place) {
            Some(call) if has_space && call.answers.len() < MAX_ANSWERS_PER_CALL => {
                call.answers.push(response)
            }
            _ => self.left_out += 1,
        }
    }

    pub(super) fn cancel(&mut self, place: usize) {
        if let Some(call) = self.calls.get_mut(place) {
            call.was_cancelled = true;
        }
    }

    fn has_space(&mut self, bytes: usize) -> bool {
        let has_space = self.written + bytes <= MAX_REPORT_BYTES;
        match has_space {
            true => self.written += bytes,
            false => self.left_out += 1,
        }
        has_space
    }
}

fn keep<T>(list: &mut Vec<T>, entry: T, left_out: &mut usize) -> bool {
    let has_space = list.len() < MAX_ENTRIES;
    match has_space {
        true => list.push(entry),
        false => *left_out += 1,
    }
    has_space
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_stays_within_its_limits() {
        let mut report = Report::default();
        let call = CallReport {
            id: None,
            name: "a".into(),
            args: Value::Null,
            answers: Vec::new(),
            was_cancelled: false,
            connection: 1,
        };
        let place = report.call(call).unwrap();
        for _ in 0..10_000 {
            report.fault(1, "something");
            report.heard(&"é".repeat(4_000));
            report.answer(place, Value::String("x".repeat(1_000)));
        }
        assert_eq!((report.faults.len(), report.calls[0].answers.len()), (MAX_ENTRIES, MAX_ANSWERS_PER_CALL));
        let heard: usize = report.heard.iter().map(String::len).sum();
        assert!(report.heard[0].len() == MAX_TEXT_BYTES && heard <= MAX_REPORT_BYTES);
        assert!(report.left_out > 20_000);
    }
}
