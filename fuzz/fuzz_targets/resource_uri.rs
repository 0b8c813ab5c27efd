//! Any text as the address of a record, as a cursor, and as lines of a client: what is read has one spelling, and no line is
//! longer than its limit.
#![no_main]

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use libfuzzer_sys::fuzz_target;
use quarterdeck_mcp_server::{Line, LineReader, PagedList, ResourceUri};

const MAX_LINE_BYTES: usize = 16;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(text) = std::str::from_utf8(bytes) {
        if let Ok(uri) = ResourceUri::parse(text) {
            assert!(!uri.id.is_empty());
            let written = uri.to_string();
            assert!(written.is_ascii());
            assert_eq!(ResourceUri::parse(&written), Ok(uri));
        }
        if let Ok(name) = PagedList::Resources.read_cursor(text) {
            assert!(PagedList::Prompts.read_cursor(text).is_err(), "a cursor is for one list");
            let cursor = PagedList::Resources.cursor_after(&name);
            assert_eq!(PagedList::Resources.read_cursor(&cursor), Ok(name));
        }
    }
    let mut lines = LineReader::new(bytes, MAX_LINE_BYTES);
    while let Some(line) = ready(lines.next()).expect("memory can be read") {
        if let Line::Message(line) = line {
            assert!(line.len() <= MAX_LINE_BYTES && !line.contains(&b'\n') && !line.trim_ascii().is_empty());
        }
    }
});

/// Reading from memory never waits.
fn ready<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => unreachable!("nothing wakes it"),
    }
}
