//! Streams that we wrote down ourselves, and what each comes to. `UPDATE_EXPECT=1` rewrites the expectations.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use expect_test::expect_file;
use quarterdeck_contracts::ChatEvent;

use crate::fixtures::{ReadReply, read};

pub(crate) fn streams() -> Vec<(String, PathBuf)> {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut streams = Vec::new();
    for provider in ["anthropic", "gemini", "openai"] {
        for file in std::fs::read_dir(golden.join(provider)).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "sse") {
                streams.push((provider.to_owned(), path));
            }
        }
    }
    assert!(streams.len() > 30, "the samples are gone");
    streams
}

/// One line for each piece, then the reply or the fault.
fn render((events, end): ReadReply) -> String {
    let mut lines = String::new();
    for event in events {
        match event {
            ChatEvent::Text(text) => writeln!(lines, "text {text:?}").unwrap(),
            ChatEvent::Thought(text) => writeln!(lines, "thought {text:?}").unwrap(),
            ChatEvent::Done(_) => panic!("an accumulator does not say itself that it is done"),
        }
    }
    match end {
        Ok(reply) => {
            writeln!(lines, "done {:?} {:?}", reply.finish, reply.usage).unwrap();
            for part in reply.message.parts {
                writeln!(lines, "  {}", serde_json::to_string(&part).unwrap()).unwrap();
            }
        }
        Err(fault) => {
            writeln!(lines, "failed {:?} again={}: {}", fault.kind, fault.is_retryable, fault.detail).unwrap()
        }
    }
    lines
}

#[test]
fn every_sample_comes_to_what_is_written_beside_it() {
    for (provider, path) in streams() {
        let stream = std::fs::read(&path).unwrap();
        expect_file![path.with_extension("events")].assert_eq(&render(read(&provider, [&stream[..]])));
    }
}

#[test]
fn where_packets_end_makes_no_difference_to_a_reply() {
    for (provider, path) in streams() {
        let stream = std::fs::read(&path).unwrap();
        let whole = render(read(&provider, [&stream[..]]));
        for size in [1, 2, 3, 7, 64] {
            assert_eq!(render(read(&provider, stream.chunks(size))), whole, "{} by {size}", path.display());
        }
    }
}
