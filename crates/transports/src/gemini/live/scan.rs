//! The hot path: messages with one piece of audio and nothing else.

use base64_simd::STANDARD;
use memchr::memchr;

use crate::live::holds_whole_samples;

const MIME_TYPE: &[u8] = br#""audio/pcm;rate=24000""#;

/// The base64 of a message with one piece of audio at our rate and nothing else, found without a parser or a copy. `None`
/// for every other message, which the parser reads.
pub fn scan(message: &[u8]) -> Option<&str> {
    let mut rest = Rest(message);
    rest.eat(b"{")?.member(b"serverContent")?.eat(b"{")?.member(b"modelTurn")?.eat(b"{")?;
    let has_role = rest.role().is_some();
    if has_role {
        rest.eat(b",")?;
    }
    rest.member(b"parts")?.eat(b"[")?.eat(b"{")?.member(b"inlineData")?.eat(b"{")?;
    let data = if rest.member(b"mimeType").is_some() {
        rest.eat(MIME_TYPE)?.eat(b",")?.member(b"data")?;
        rest.plain_text()?
    } else {
        let data = rest.member(b"data")?.plain_text()?;
        rest.eat(b",")?.member(b"mimeType")?.eat(MIME_TYPE)?;
        data
    };
    rest.eat(b"}")?.eat(b"}")?.eat(b"]")?;
    if !has_role && rest.eat(b",").is_some() {
        rest.role()?;
    }
    rest.eat(b"}")?.eat(b"}")?.eat(b"}")?;
    if !rest.is_over() {
        return None;
    }
    STANDARD.check(data).ok()?;
    let text = std::str::from_utf8(data).ok()?;
    holds_whole_samples(text).then_some(text)
}

/// The unread rest of a message. A method that fails consumes nothing.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    /// Takes a token, with the white space before it.
    fn eat(&mut self, token: &[u8]) -> Option<&mut Self> {
        self.0 = skip_space(self.0).strip_prefix(token)?;
        Some(self)
    }

    /// Takes `"name":`.
    fn member(&mut self, name: &[u8]) -> Option<&mut Self> {
        let named = skip_space(self.0).strip_prefix(b"\"")?.strip_prefix(name)?.strip_prefix(b"\"")?;
        self.0 = skip_space(named).strip_prefix(b":")?;
        Some(self)
    }

    /// Takes the role, which is not needed.
    fn role(&mut self) -> Option<&mut Self> {
        let mut ahead = Rest(self.0);
        ahead.member(b"role")?.eat(br#""model""#)?;
        self.0 = ahead.0;
        Some(self)
    }

    /// Takes a text in quotes. Escapes are left in it; base64 has none.
    fn plain_text(&mut self) -> Option<&'a [u8]> {
        let text = skip_space(self.0).strip_prefix(b"\"")?;
        let (text, rest) = text.split_at(memchr(b'"', text)?);
        self.0 = &rest[1..];
        Some(text)
    }

    fn is_over(&self) -> bool {
        skip_space(self.0).is_empty()
    }
}

/// JSON's white space, which is less than ASCII's.
fn skip_space(bytes: &[u8]) -> &[u8] {
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
    let length = bytes.iter().position(|byte| !is_space(byte)).unwrap_or(bytes.len());
    &bytes[length..]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use quarterdeck_contracts::{Audio, LiveEvent};
    use serde_json::json;

    use super::super::ServerMessages;
    use super::*;

    /// Bytes that mean something in JSON or in base64, and some that nearly do.
    const MEANINGFUL: &[u8] = b"{}[]\",:\\= \n/+_-\x0bu0A";

    /// What the parser makes of a message.
    fn parsed(message: &[u8]) -> Vec<LiveEvent<'static>> {
        let mut messages = ServerMessages::default();
        messages.take(message);
        std::iter::from_fn(|| messages.next_event()).collect()
    }

    fn heard(data: &str) -> Vec<LiveEvent<'static>> {
        vec![LiveEvent::Audio(Audio::Base64(data.to_owned().into()))]
    }

    /// Messages as a provider may write them, with the samples in them.
    fn message() -> impl Strategy<Value = (String, String)> {
        let samples = prop::collection::vec(any::<[u8; 2]>(), 1..40);
        (samples, 0..3, any::<bool>(), any::<bool>()).prop_map(|(samples, role, data_first, is_pretty)| {
            let data = STANDARD.encode_to_string(samples.concat());
            let blob = if data_first {
                json!({"data": data, "mimeType": "audio/pcm;rate=24000"})
            } else {
                json!({"mimeType": "audio/pcm;rate=24000", "data": data})
            };
            let parts = json!([{"inlineData": blob}]);
            let turn = match role {
                0 => json!({"parts": parts}),
                1 => json!({"role": "model", "parts": parts}),
                _ => json!({"parts": parts, "role": "model"}),
            };
            let message = json!({"serverContent": {"modelTurn": turn}});
            let text = if is_pretty { format!("{message:#}\n") } else { message.to_string() };
            (text, data)
        })
    }

    proptest! {
        #[test]
        fn one_piece_of_audio_is_found_however_it_is_written((text, data) in message()) {
            prop_assert_eq!(scan(text.as_bytes()), Some(data.as_str()));
            prop_assert_eq!(parsed(text.as_bytes()), heard(&data));
        }

        #[test]
        fn what_is_found_is_what_the_parser_finds(
            (text, _) in message(),
            edits in prop::collection::vec((any::<prop::sample::Index>(), 0..3, any::<u8>()), 1..4),
        ) {
            let mut bytes = text.into_bytes();
            for (place, kind, byte) in edits {
                let place = place.index(bytes.len());
                // Of the bytes that mean something in JSON there should be enough.
                let byte = if byte < 128 { MEANINGFUL[usize::from(byte) % MEANINGFUL.len()] } else { byte };
                match kind {
                    0 => bytes[place] = byte,
                    1 => bytes.insert(place, byte),
                    _ => {
                        bytes.remove(place);
                    }
                }
            }
            if let Some(data) = scan(&bytes) {
                prop_assert_eq!(parsed(&bytes), heard(data));
            }
        }
    }

    #[test]
    fn what_is_only_nearly_one_piece_of_audio_is_left_to_the_parser() {
        let frame = |part: &str| format!(r#"{{"serverContent":{{"modelTurn":{{"parts":[{part}]}}}}}}"#);
        let audio = |data: &str, mime: &str| {
            frame(&format!(r#"{{"inlineData":{{"mimeType":"{mime}","data":"{data}"}}}}"#))
        };
        assert!(scan(audio("AQI=", "audio/pcm;rate=24000").as_bytes()).is_some());
        for nearly in [
            audio("AQI=", "audio/pcm;rate=16000"),
            audio("AQI=", "audio/pcm"),
            audio("", "audio/pcm;rate=24000"),
            // Half a sample.
            audio("AQID", "audio/pcm;rate=24000"),
            audio("AQI", "audio/pcm;rate=24000"),
            audio("AQ_=", "audio/pcm;rate=24000"),
            audio(r"AQ\/=", "audio/pcm;rate=24000"),
            frame(""),
            frame(r#"{"text":"x"}"#),
            r#"{"serverContent":{"modelTurn":{"parts":[{"inlineData":{"mimeType":"audio/pcm;rate=24000","data":"AQI="}}]},"turnComplete":true}}"#.to_owned(),
            r#"{"serverContent":{"modelTurn":{"role":"model","parts":[{"inlineData":{"mimeType":"audio/pcm;rate=24000","data":"AQI="}}],"role":"model"}}}"#.to_owned(),
            format!("{}x", audio("AQI=", "audio/pcm;rate=24000")),
            String::new(),
        ] {
            assert_eq!(scan(nearly.as_bytes()), None, "{nearly}");
        }
    }
}
