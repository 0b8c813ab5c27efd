//! A transcript that comes as server-sent events: `transcript.text.delta` while it is made, and `transcript.text.done`.

use quarterdeck_contracts::Transcript;
use serde_json::Value;

use super::transcription::transcript_of;
use crate::Fault;
use crate::sse::{Decoder, Event};

/// The whole transcript with all its probabilities is one event.
const MAX_EVENT_BYTES: usize = 1 << 20;

/// Takes bytes of any size. What it keeps is no more than the response that they are of.
#[derive(Debug)]
pub struct TranscriptReader {
    decoder: Decoder,
    words: String,
    /// What the stream has come to.
    end: Option<Result<Transcript, Fault>>,
}

impl Default for TranscriptReader {
    fn default() -> Self {
        Self { decoder: Decoder::new(MAX_EVENT_BYTES), words: String::new(), end: None }
    }
}

impl TranscriptReader {
    /// Returns whether the transcript is complete, so that nothing else need be waited for.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<bool, Fault> {
        let Self { decoder, words, end } = self;
        let fed = decoder.feed(bytes, |event| take(event, words, end));
        fed.map_err(|error| Fault::garbled(error.to_string()))?;
        Ok(self.end.is_some())
    }

    /// The transcript. A stream that ends before it is complete has been cut.
    pub fn finish(mut self) -> Result<Transcript, Fault> {
        let Self { decoder, words, end } = &mut self;
        let fed = decoder.end(|event| take(event, words, end));
        fed.map_err(|error| Fault::garbled(error.to_string()))?;
        self.end.unwrap_or_else(|| Err(Fault::cut("the transcript ends in the middle")))
    }
}

fn take(event: Event<'_>, words: &mut String, end: &mut Option<Result<Transcript, Fault>>) {
    if end.is_some() {
        return;
    }
    // Some servers end like a chat, without an event of the whole.
    if event.data.trim() == "[DONE]" {
        let text = std::mem::take(words).trim().to_owned();
        *end = Some(Ok(Transcript { text, confidence: None }));
        return;
    }
    if let Some(fault) = Fault::from_body(event.data.as_bytes()) {
        *end = Some(Err(fault));
        return;
    }
    let Ok(value) = serde_json::from_str::<Value>(event.data) else {
        *end = Some(Err(Fault::garbled("an event is not JSON")));
        return;
    };
    match value["type"].as_str() {
        Some("transcript.text.delta") => words.push_str(value["delta"].as_str().unwrap_or_default()),
        Some("transcript.text.done") => *end = Some(whole(&value, words)),
        // Providers add events without notice.
        _ => {}
    }
}

/// Some servers leave the text of the whole empty.
fn whole(event: &Value, words: &str) -> Result<Transcript, Fault> {
    let transcript = transcript_of(event)?;
    let text = if transcript.text.is_empty() { words.trim().to_owned() } else { transcript.text };
    Ok(Transcript { text, ..transcript })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use quarterdeck_contracts::ChatErrorKind;

    use super::*;

    const STREAM: &str = "data: {\"type\":\"transcript.text.delta\",\"delta\":\"Wer baute\",\"logprobs\":[]}\n\n\
        data: {\"type\":\"transcript.text.delta\",\"delta\":\" die Fram?\"}\n\n\
        data: {\"type\":\"transcript.text.segment\",\"text\":\"never mind\"}\n\n\
        data: {\"type\":\"transcript.text.done\",\"text\":\"Wer baute die Fram?\",\"logprobs\":[{\"logprob\":0.0}],\"usage\":{}}\n\n";

    fn read(stream: &str, piece: usize) -> Result<Transcript, ChatErrorKind> {
        let mut reader = TranscriptReader::default();
        for piece in stream.as_bytes().chunks(piece) {
            if reader.feed(piece).map_err(|fault| fault.kind)? {
                break;
            }
        }
        reader.finish().map_err(|fault| fault.kind)
    }

    #[test]
    fn the_whole_counts_and_not_its_pieces() {
        let transcript = Transcript { text: "Wer baute die Fram?".into(), confidence: Some(1.0) };
        assert_eq!(read(STREAM, 1_000), Ok(transcript));
        let other = STREAM.replace("\"text\":\"Wer baute die Fram?\"", "\"text\":\" Wer baute die Fram \"");
        assert_eq!(read(&other, 1_000).map(|it| it.text), Ok("Wer baute die Fram".into()));
    }

    #[test]
    fn pieces_count_where_the_whole_is_left_out() {
        let delta = "data: {\"type\":\"transcript.text.delta\",\"delta\":\" Aye\"}\n\n";
        for end in ["data: [DONE]\n\n", "data: {\"type\":\"transcript.text.done\",\"text\":\"\"}"] {
            assert_eq!(read(&format!("{delta}{end}"), 7).map(|it| it.text), Ok("Aye".into()), "{end}");
        }
    }

    #[test]
    fn streams_that_are_cut_garbled_or_an_error_are_no_transcript() {
        let cut = &STREAM[..STREAM.find("data: {\"type\":\"transcript.text.done").unwrap()];
        for (stream, kind) in [
            (cut, ChatErrorKind::Cut),
            ("", ChatErrorKind::Cut),
            ("data: {\"type\":\n\n", ChatErrorKind::Garbled),
            ("data: {\"type\":\"transcript.text.done\"}\n\n", ChatErrorKind::Garbled),
            (
                "data: {\"error\":{\"message\":\"slow down\",\"code\":\"rate_limit_exceeded\"}}\n\n",
                ChatErrorKind::RateLimited,
            ),
        ] {
            assert_eq!(read(stream, 100), Err(kind), "{stream}");
        }
    }

    proptest! {
        #[test]
        fn it_makes_no_difference_where_chunks_are_cut(piece in 1_usize..200) {
            prop_assert_eq!(read(STREAM, piece), read(STREAM, STREAM.len()));
        }
    }
}
