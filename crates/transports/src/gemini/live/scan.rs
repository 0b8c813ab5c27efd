//! The hot path of what arrives: a message that is nothing but one piece of audio.

use base64_simd::STANDARD;
use memchr::memchr;

use crate::live::holds_whole_samples;

const MIME_TYPE: &[u8] = br#""audio/pcm;rate=24000""#;

/// The base64 of a message that is nothing but one piece of audio at our rate. It is found without a parser, where it
/// lies; of every other message, and of one that is only nearly so, it is `None`, and the parser decides.
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

/// What was not looked at yet. What fails takes nothing.
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

    /// Takes the role, which says nothing here.
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
