use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;

use super::*;

fn words(text: &str) -> StreamEvent {
    StreamEvent::Text(text.into())
}

/// Everything that is there for a reader at the moment.
fn read(reader: &mut Reader) -> Vec<StreamEvent> {
    let mut all = Vec::new();
    let context = Context::from_waker(Waker::noop());
    while let Poll::Ready(true) = reader.poll_events(&context, |event| all.push(event.clone())) {}
    all
}

#[test]
fn a_reader_that_lags_is_told_how_much_it_lost() {
    let all = Arc::new(AtomicUsize::new(0));
    let stream = EventStream::new(HeldBytes::of(&all));
    let (mut fast, mut slow) = (stream.follow(), stream.follow());
    stream.push(words("begun")).unwrap();
    assert_eq!(read(&mut slow), [words("begun")]);
    let piece = "x".repeat(1_000);
    let mut received = 5;
    assert_eq!(read(&mut fast), [words("begun")]);
    for _ in 0..3_000 {
        stream.push(words(&piece)).unwrap();
        assert!(all.load(Ordering::Relaxed) <= MAX_BACKLOG_BYTES);
        assert_eq!(read(&mut fast), [words(&piece)], "a reader that reads misses nothing");
        received += piece.len();
    }
    stream.push(StreamEvent::RoundStarted).unwrap();
    stream.close();
    assert_eq!(received, 3_000_005);
    let late = read(&mut stream.follow());
    let behind = read(&mut slow);
    let [StreamEvent::Lagged { bytes }, .., StreamEvent::RoundStarted] = &behind[..] else {
        panic!("{behind:?}")
    };
    let received: u64 = behind
        .iter()
        .map(|event| if let StreamEvent::Text(text) = event { text.len() as u64 } else { 0 })
        .sum();
    assert_eq!(bytes + received, 3_000_000);
    assert_eq!(late[0], StreamEvent::Lagged { bytes: bytes + 5 });
    assert_eq!(late[1..], behind[1..]);
    drop((fast, slow, stream));
    assert_eq!(all.load(Ordering::Relaxed), 0);
}

#[test]
fn events_other_than_text_are_never_dropped() {
    let stream = EventStream::new(HeldBytes::default());
    let mut slow = stream.follow();
    for _ in 0..6 {
        stream.push(StreamEvent::RoundStarted).unwrap();
        for _ in 0..600 {
            stream.push(words(&"x".repeat(1_000))).unwrap();
        }
    }
    let received = read(&mut slow);
    assert_eq!(received.iter().filter(|event| **event == StreamEvent::RoundStarted).count(), 6);
    let places = received.iter().filter(|event| matches!(event, StreamEvent::Lagged { .. })).count();
    assert!((1..=6).contains(&places), "{places}");
}

#[test]
fn an_answer_is_limited_in_bytes() {
    let stream = EventStream::new(HeldBytes::default());
    let piece = "x".repeat(64 << 10);
    let taken = (0..1_000).take_while(|_| stream.push(words(&piece)).is_ok()).count();
    assert_eq!(taken * piece.len(), MAX_ANSWER_BYTES);
    assert_eq!(stream.push(StreamEvent::Thought("x".into())), Err(AnswerTooLong));
    assert!(stream.push(StreamEvent::RoundStarted).is_ok(), "it can still be ended");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// However readers and the turn alternate, each reader gets every byte, or learns that it was dropped.
    #[test]
    fn every_byte_is_told_or_left_out(
        steps in proptest::collection::vec((0_usize..3, 1_usize..40_000), 1..120),
    ) {
        let all = Arc::new(AtomicUsize::new(0));
        let stream = EventStream::new(HeldBytes::of(&all));
        let mut readers = [stream.follow(), stream.follow()];
        let mut received = [0_u64; 2];
        let mut pushed = 0_u64;
        let take = |reader: &mut Reader, received: &mut u64| {
            for event in read(reader) {
                match event {
                    StreamEvent::Text(text) => *received += text.len() as u64,
                    StreamEvent::Lagged { bytes } => *received += bytes,
                    _ => {}
                }
            }
        };
        for (who, size) in steps {
            if who < 2 {
                take(&mut readers[who], &mut received[who]);
                prop_assert_eq!(received[who], pushed);
            } else if stream.push(words(&"y".repeat(size))).is_ok() {
                pushed += size as u64;
                stream.push(StreamEvent::RoundStarted).unwrap();
            }
            prop_assert!(all.load(Ordering::Relaxed) <= MAX_BACKLOG_BYTES + (64 << 10));
        }
        for (reader, received) in readers.iter_mut().zip(&mut received) {
            take(reader, received);
            prop_assert_eq!(*received, pushed);
        }
    }
}
