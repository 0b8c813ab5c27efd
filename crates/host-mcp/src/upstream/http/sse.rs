//! Events of a stream, cut out of its bytes within a limit.

/// One event, as far as this protocol uses it.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) id: Option<String>,
    /// Not yet known to be text.
    pub(crate) data: Vec<u8>,
}

/// An event beyond the limit.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLarge;

/// Takes bytes as they arrive, and gives events. It never holds more than one event.
#[derive(Debug)]
pub(crate) struct EventReader {
    max_bytes: usize,
    line: Vec<u8>,
    event: Event,
    has_data: bool,
    /// The byte before was a carriage return, which with a line feed is one end of a line.
    after_return: bool,
}

impl EventReader {
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self { max_bytes, line: Vec::new(), event: Event::default(), has_data: false, after_return: false }
    }

    /// Reads some bytes, and adds the events that are whole with them to `events`.
    pub(crate) fn read(&mut self, bytes: &[u8], events: &mut Vec<Event>) -> Result<(), TooLarge> {
        for byte in bytes {
            let follows_return = std::mem::take(&mut self.after_return);
            match byte {
                b'\n' if follows_return => {}
                b'\n' | b'\r' => {
                    self.after_return = *byte == b'\r';
                    self.end_line(events);
                }
                _ if self.line.len() + self.event.data.len() >= self.max_bytes => return Err(TooLarge),
                byte => self.line.push(*byte),
            }
        }
        Ok(())
    }

    fn end_line(&mut self, events: &mut Vec<Event>) {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            if std::mem::take(&mut self.has_data) {
                events.push(event);
            }
            return;
        }
        let (name, value) = match line.iter().position(|byte| *byte == b':') {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (&line[..], &line[..0]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => {
                if self.has_data {
                    self.event.data.push(b'\n');
                }
                self.event.data.extend_from_slice(value);
                self.has_data = true;
            }
            b"id" if !value.contains(&0) => self.event.id = String::from_utf8(value.to_vec()).ok(),
            // Comments, the type of the event and the server's wish for pauses between connections.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(chunks: &[&[u8]], max_bytes: usize) -> Result<Vec<Event>, TooLarge> {
        let (mut reader, mut events) = (EventReader::new(max_bytes), Vec::new());
        for chunk in chunks {
            reader.read(chunk, &mut events)?;
        }
        Ok(events)
    }

    #[test]
    fn events_are_read_with_every_end_of_line() {
        let text = b": hello\r\nid: 7\r\ndata: {\"a\":\r\ndata: 1}\r\n\r\nevent: message\rdata:two\r\rdata: no end\n";
        let events = read(&[text], 100).unwrap();
        assert_eq!(
            events,
            [
                Event { id: Some("7".into()), data: b"{\"a\":\n1}".into() },
                Event { id: None, data: b"two".into() },
            ]
        );
    }

    #[test]
    fn an_event_that_does_not_end_is_refused_at_the_limit() {
        assert_eq!(read(&[b"data: ", &[b'x'; 200]], 100), Err(TooLarge));
        let many_lines = b"data: 123456789\n".repeat(20);
        assert_eq!(read(&[&many_lines], 100), Err(TooLarge));
        let many_events = b"data: 123456789\n\n".repeat(20);
        assert_eq!(read(&[&many_events], 100).unwrap().len(), 20);
    }

    proptest! {
        #[test]
        fn events_do_not_depend_on_how_they_arrive(text in "(data: ?|id:|:|[a-z]|\r\n|\n|\r|é){0,60}", cut in 0_usize..120) {
            let bytes = text.as_bytes();
            let cut = cut.min(bytes.len());
            prop_assert_eq!(read(&[bytes], 1_000), read(&[&bytes[..cut], &bytes[cut..]], 1_000));
        }
    }
}
