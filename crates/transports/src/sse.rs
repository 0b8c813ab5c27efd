//! Decodes server-sent events from chunks of bytes.
//!
//! Lines end in LF, CRLF or CR, and lines and characters may be split between packets. Nothing is allocated for an
//! event: its text is borrowed from buffers that are used again for the next one.

use std::borrow::Cow;

use memchr::{memchr, memchr2};

/// One event. Providers use no other fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event<'a> {
    /// The value of `event:`, or nothing.
    pub name: &'a str,
    /// The value of `data:`; several lines are joined by line feeds.
    pub data: &'a str,
}

/// An event over the decoder's limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event is larger than {limit} bytes")]
pub struct TooLarge {
    /// In bytes.
    pub limit: usize,
}

#[derive(Debug)]
pub struct Decoder {
    /// An incomplete line.
    line: Vec<u8>,
    data: Vec<u8>,
    name: Vec<u8>,
    /// An event with an empty `data:` is an event too.
    has_data: bool,
    /// The last byte was a CR, and a LF that follows belongs to it.
    after_cr: bool,
    at_start: bool,
    max_event_bytes: usize,
    events: usize,
}

impl Decoder {
    pub fn new(max_event_bytes: usize) -> Self {
        Self {
            line: Vec::new(),
            data: Vec::new(),
            name: Vec::new(),
            has_data: false,
            after_cr: false,
            at_start: true,
            max_event_bytes,
            events: 0,
        }
    }

    /// Events decoded so far.
    pub fn events(&self) -> usize {
        self.events
    }

    /// Takes more bytes, and calls `each` with the events that they complete.
    pub fn feed(&mut self, mut bytes: &[u8], mut each: impl FnMut(Event<'_>)) -> Result<(), TooLarge> {
        while !bytes.is_empty() {
            if self.after_cr {
                self.after_cr = false;
                if bytes[0] == b'\n' {
                    bytes = &bytes[1..];
                    continue;
                }
            }
            let Some(end) = memchr2(b'\n', b'\r', bytes) else {
                self.check(self.line.len() + bytes.len())?;
                self.line.extend_from_slice(bytes);
                return Ok(());
            };
            self.after_cr = bytes[end] == b'\r';
            self.check(self.line.len() + end)?;
            if self.line.is_empty() {
                self.take_line(&bytes[..end], &mut each)?;
            } else {
                let mut line = std::mem::take(&mut self.line);
                line.extend_from_slice(&bytes[..end]);
                self.take_line(&line, &mut each)?;
                // The buffer is reused for the next split line.
                line.clear();
                self.line = line;
            }
            bytes = &bytes[end + 1..];
        }
        Ok(())
    }

    /// Says that no more bytes come. Some servers leave out the empty line after their last event, so what is left may be
    /// an event or a part of one.
    pub fn end(&mut self, mut each: impl FnMut(Event<'_>)) -> Result<(), TooLarge> {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.take_line(&line, &mut each)?;
        }
        self.take_line(b"", &mut each)
    }

    fn take_line(&mut self, line: &[u8], each: &mut impl FnMut(Event<'_>)) -> Result<(), TooLarge> {
        let mut line = line;
        if self.at_start {
            self.at_start = false;
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if line.is_empty() {
            self.dispatch(each);
            return Ok(());
        }
        // A line that begins with a colon is a comment: its field has no name.
        let colon = memchr(b':', line).unwrap_or(line.len());
        let value = line.get(colon + 1..).unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match &line[..colon] {
            b"data" => {
                self.check(self.data.len() + value.len() + 1)?;
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.has_data = true;
                self.data.extend_from_slice(value);
            }
            b"event" => {
                self.name.clear();
                self.name.extend_from_slice(value);
            }
            _ => {}
        }
        Ok(())
    }

    fn dispatch(&mut self, each: &mut impl FnMut(Event<'_>)) {
        if self.has_data {
            self.events += 1;
            let (name, data) = (text(&self.name), text(&self.data));
            each(Event { name: &name, data: &data });
        }
        self.has_data = false;
        self.data.clear();
        self.name.clear();
    }

    fn check(&self, size: usize) -> Result<(), TooLarge> {
        if size > self.max_event_bytes { Err(TooLarge { limit: self.max_event_bytes }) } else { Ok(()) }
    }
}

/// Malformed UTF-8 is replaced, as the standard says; the JSON inside is checked by its reader.
fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Events = Vec<(String, String)>;

    fn decode<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Result<Events, TooLarge> {
        let (mut decoder, mut events) = (Decoder::new(1_000), Vec::new());
        let mut keep = |event: Event<'_>| events.push((event.name.to_owned(), event.data.to_owned()));
        for chunk in chunks {
            decoder.feed(chunk, &mut keep)?;
        }
        decoder.end(&mut keep)?;
        Ok(events)
    }

    fn decode_text(text: &str) -> Events {
        decode([text.as_bytes()]).unwrap()
    }

    fn event(name: &str, data: &str) -> (String, String) {
        (name.to_owned(), data.to_owned())
    }

    #[test]
    fn every_form_of_the_standard_is_read() {
        for (text, expected) in [
            ("data: a\n\ndata: b\n\n", vec![event("", "a"), event("", "b")]),
            ("data: a\r\n\r\ndata: b\r\n\r\n", vec![event("", "a"), event("", "b")]),
            ("data: a\r\rdata: b\r\r", vec![event("", "a"), event("", "b")]),
            ("data: a\r\n\ndata: b\n\r", vec![event("", "a"), event("", "b")]),
            ("data:a\n\n", vec![event("", "a")]),
            ("data:  a\n\n", vec![event("", " a")]),
            ("data: a\ndata: b\n\n", vec![event("", "a\nb")]),
            ("data\n\n", vec![event("", "")]),
            ("data:\ndata:\n\n", vec![event("", "\n")]),
            (": comment\n\n:\ndata: a\n: more\n\n", vec![event("", "a")]),
            ("event: ping\ndata: {}\n\ndata: x\n\n", vec![event("ping", "{}"), event("", "x")]),
            ("event: lost\n\ndata: x\n\n", vec![event("", "x")]),
            ("id: 1\nretry: 5\nunknown: y\ndata: a\n\n", vec![event("", "a")]),
            ("\u{feff}data: a\n\n\u{feff}data: b\n\n", vec![event("", "a")]),
            ("data: no empty line behind it", vec![event("", "no empty line behind it")]),
            ("database: x\n\n", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(decode_text(text), expected, "{text:?}");
        }
    }

    #[test]
    fn malformed_utf_8_is_replaced() {
        assert_eq!(decode([&b"data: \xff\n\n"[..]]).unwrap(), [event("", "\u{fffd}")]);
    }

    #[test]
    fn an_event_has_a_largest_size_in_one_line_and_in_many() {
        let long = format!("data: {}\n\n", "x".repeat(2_000));
        assert_eq!(decode([long.as_bytes()]), Err(TooLarge { limit: 1_000 }));
        assert_eq!(decode(long.as_bytes().chunks(7)), Err(TooLarge { limit: 1_000 }));
        let many = "data: 123456789\n".repeat(200);
        assert_eq!(decode([many.as_bytes()]), Err(TooLarge { limit: 1_000 }));
    }

    fn lines() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            3 => Just(b"data: ".to_vec()),
            1 => Just(b"event:".to_vec()),
            1 => Just(b":".to_vec()),
            1 => Just("é🚢{\"a\":1}".as_bytes().to_vec()),
            1 => Just(b"\xef\xbb\xbf".to_vec()),
            4 => Just(b"\n".to_vec()),
            3 => Just(b"\r\n".to_vec()),
            2 => Just(b"\r".to_vec()),
            1 => proptest::collection::vec(any::<u8>(), 0..5),
        ];
        proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn where_packets_end_does_not_matter(
            stream in lines(),
            cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..12),
        ) {
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
            cuts.extend([0, stream.len()]);
            cuts.sort_unstable();
            let whole = decode([&stream[..]]);
            let chunked = decode(cuts.windows(2).map(|pair| &stream[pair[0]..pair[1]]));
            prop_assert_eq!(&whole, &chunked);
            prop_assert_eq!(&whole, &decode(stream.chunks(1)));
        }
    }
}
