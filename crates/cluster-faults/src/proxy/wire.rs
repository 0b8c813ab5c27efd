//! As much of PostgreSQL's protocol as it takes to see a commit go by. Messages are a letter, a length and a body; only the
//! first one of a client has no letter.

use std::collections::BTreeSet;

/// How a statement calls the function that commits.
const COMMIT: &str = "qd.commit(";
/// No message of interest is longer; of others only the length is read.
const MAX_KEPT_BYTES: usize = 1 << 20;

/// Cuts a stream into messages.
#[derive(Default)]
struct Messages {
    pending: Vec<u8>,
    /// How many bytes of the present message are passed over.
    skipped: usize,
}

impl Messages {
    /// Calls `each` with the letter and body of every message that is whole now. Long ones have no body.
    fn take(&mut self, mut bytes: &[u8], mut each: impl FnMut(u8, &[u8])) {
        let skipped = self.skipped.min(bytes.len());
        self.skipped -= skipped;
        bytes = &bytes[skipped..];
        self.pending.extend_from_slice(bytes);
        let mut at = 0;
        while let Some(head) = self.pending.get(at..at + 5) {
            let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
            let (letter, whole) = (head[0], length.max(4) + 1);
            if whole > MAX_KEPT_BYTES {
                each(letter, &[]);
                let there = (self.pending.len() - at).min(whole);
                self.skipped = whole - there;
                at += there;
                continue;
            }
            let Some(body) = self.pending.get(at + 5..at + whole) else { break };
            each(letter, body);
            at += whole;
        }
        self.pending.drain(..at);
    }
}

/// What a client sends.
#[derive(Default)]
pub(super) struct Requests {
    messages: Messages,
    /// The first message, as long as it is not whole.
    first: Option<Vec<u8>>,
    has_begun: bool,
    /// The prepared statements that commit, by name.
    committing: BTreeSet<Vec<u8>>,
}

impl Requests {
    /// Whether a commit is asked for in these bytes.
    pub(super) fn take(&mut self, bytes: &[u8]) -> bool {
        let mut rest = bytes.to_vec();
        if !self.has_begun {
            let first = self.first.get_or_insert_default();
            first.extend_from_slice(bytes);
            let Some(head) = first.get(..4) else { return false };
            let length = u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize;
            if first.len() < length {
                return false;
            }
            rest = first.split_off(length);
            self.has_begun = true;
        }
        let (committing, mut found) = (&mut self.committing, false);
        self.messages.take(&rest, |letter, body| found |= is_commit(letter, body, committing));
        found
    }
}

/// Whether a message asks for a commit: a plain query, or the use of a statement that was prepared.
fn is_commit(letter: u8, body: &[u8], committing: &mut BTreeSet<Vec<u8>>) -> bool {
    let says_so = |text: &[u8]| {
        let text = String::from_utf8_lossy(text).to_lowercase();
        text.contains(COMMIT) && !text.contains("create ")
    };
    let mut texts = body.split(|byte| *byte == 0);
    match letter {
        b'Q' => says_so(body),
        // Parse: the name of the statement, and its text.
        b'P' => {
            let name = texts.next().unwrap_or_default().to_vec();
            if says_so(texts.next().unwrap_or_default()) {
                committing.insert(name);
            } else {
                committing.remove(&name);
            }
            false
        }
        // Bind: the name of a portal, and that of the statement.
        b'B' => committing.contains(texts.nth(1).unwrap_or_default()),
        _ => false,
    }
}

/// What a server sends.
#[derive(Default)]
pub(super) struct Answers {
    messages: Messages,
}

impl Answers {
    /// Whether the server says in these bytes that it is ready for the next request.
    pub(super) fn take(&mut self, bytes: &[u8]) -> bool {
        let mut is_ready = false;
        self.messages.take(bytes, |letter, _| is_ready |= letter == b'Z');
        is_ready
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(letter: u8, body: &[u8]) -> Vec<u8> {
        let mut bytes = vec![letter];
        bytes.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
        bytes.extend_from_slice(body);
        bytes
    }

    #[test]
    fn a_commit_is_seen_however_its_bytes_arrive() {
        let mut stream = vec![0, 0, 0, 8, 0, 3, 0, 0];
        stream.extend(message(b'P', b"s1\0SELECT * FROM qd.commit($1)\0\0\0"));
        stream.extend(message(b'P', b"s2\0SELECT value FROM qd.rows\0\0\0"));
        stream.extend(message(b'B', b"\0s2\0\0\0"));
        stream.extend(message(b'd', &vec![0; MAX_KEPT_BYTES + 10]));
        stream.extend(message(b'B', b"\0s1\0\0\0"));
        let end = stream.len();
        for size in [1, 3, 7, 1_000, end] {
            let mut requests = Requests::default();
            let seen: Vec<bool> = stream.chunks(size).map(|piece| requests.take(piece)).collect();
            let commits = seen.iter().filter(|is_commit| **is_commit).count();
            assert!(commits == 1 && *seen.last().unwrap(), "{size}: only the last one, when it is whole");
        }
    }

    #[test]
    fn a_server_is_ready_when_it_says_so() {
        let mut stream = message(b'D', b"Z\0\0\0\x05Z");
        let data = stream.len();
        stream.extend(message(b'Z', b"I"));
        let mut answers = Answers::default();
        assert!(!answers.take(&stream[..data]));
        assert!(!answers.take(&stream[data..data + 2]));
        assert!(answers.take(&stream[data + 2..]));
    }
}
