//! Speech over HTTP: what is sent, samples cut anywhere, and servers that misbehave.

use std::time::Duration;

use futures_util::StreamExt;
use quarterdeck_contracts::{Sentence, SpeechError, SpeechErrorKind, TextToSpeech};
use quarterdeck_transports::{AudioFormat, Limits, OpenAiTextToSpeech, OpenAiTextToSpeechConfig, Secret};
use serde_json::{Value, json};

use crate::client::KEY;
use crate::server::{Act, Server, answer};

const PCM: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: audio/pcm\r\nconnection: close\r\n\r\n";

fn config(server: &Server) -> OpenAiTextToSpeechConfig {
    let config = OpenAiTextToSpeechConfig::new(Some(Secret::new(KEY)));
    let limits = Limits { backoff: Duration::from_millis(5), ..config.limits.clone() };
    OpenAiTextToSpeechConfig { base_url: format!("{}/v1", server.url()), limits, ..config }
}

fn sentence() -> Sentence {
    Sentence { text: "Colin Archer designed her.".into(), language: Some("en".into()) }
}

struct Spoken {
    samples: Vec<i16>,
    pieces: usize,
    error: Option<SpeechError>,
    server: Server,
}

async fn speak(
    config: impl Fn(OpenAiTextToSpeechConfig) -> OpenAiTextToSpeechConfig,
    script: Vec<Act>,
) -> Spoken {
    let server = Server::start(script).await;
    let engine = OpenAiTextToSpeech::new(config(self::config(&server))).unwrap();
    let mut stream = engine.speak(sentence());
    let (mut samples, mut pieces, mut error) = (Vec::new(), 0, None);
    while let Some(piece) = stream.next().await {
        assert!(error.is_none(), "nothing follows an error");
        match piece {
            Ok(piece) => {
                assert!(!piece.is_empty());
                samples.extend(piece);
                pieces += 1;
            }
            Err(failed) => error = Some(failed),
        }
    }
    let told = format!("{error:?} {}", error.as_ref().map(ToString::to_string).unwrap_or_default());
    assert!(!told.contains(KEY), "the key is in {told}");
    Spoken { samples, pieces, error, server }
}

fn same(config: OpenAiTextToSpeechConfig) -> OpenAiTextToSpeechConfig {
    config
}

fn kind(spoken: &Spoken) -> Option<SpeechErrorKind> {
    spoken.error.as_ref().map(|error| error.kind)
}

fn bytes(samples: &[i16]) -> Vec<u8> {
    samples.iter().flat_map(|sample| sample.to_le_bytes()).collect()
}

/// A WAV file of mono samples.
fn wav(rate: u32, samples: &[i16]) -> Vec<u8> {
    let length = 2 * samples.len() as u32;
    let numbers =
        [rate.to_le_bytes(), (2 * rate).to_le_bytes(), *b"\x02\0\x10\0", *b"data", length.to_le_bytes()];
    let header = [b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0".as_slice(), &numbers.concat()].concat();
    [header, bytes(samples)].concat()
}

#[tokio::test]
async fn a_sentence_is_sent_as_json_and_comes_back_as_samples() {
    let body = [PCM, &bytes(&[1, -2, i16::MAX])].concat();
    let spoken = speak(same, vec![Act::Send(body)]).await;
    assert_eq!((kind(&spoken), &*spoken.samples), (None, &[1, -2, i16::MAX][..]));
    let sent = &spoken.server.requests()[0];
    assert!(sent.starts_with("POST /v1/audio/speech HTTP/1.1\r\n"), "{sent}");
    assert!(sent.contains(&format!("authorization: Bearer {KEY}\r\n")), "{sent}");
    let body: Value = serde_json::from_str(sent.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!(
        body,
        json!({
            "model": "gpt-4o-mini-tts", "voice": "alloy", "input": "Colin Archer designed her.", "response_format": "pcm",
        })
    );
}

#[tokio::test]
async fn samples_are_handed_on_as_they_come_wherever_packets_are_cut() {
    let wanted: Vec<i16> = (0..100).map(|n| n * 37).collect();
    for size in [1, 3, 7, 77] {
        let speech = bytes(&wanted);
        // Many packets of one byte would take long.
        let (begin, rest) = speech.split_at(if size == 1 { 40 } else { speech.len() });
        let pieces = begin.chunks(size).chain([rest]).map(<[u8]>::to_vec);
        let spoken = speak(same, vec![Act::InPieces([vec![PCM.to_vec()], pieces.collect()].concat())]).await;
        assert_eq!((kind(&spoken), &spoken.samples), (None, &wanted), "{size}");
        assert!(spoken.pieces > 1, "it does not wait for the end");
    }
}

#[tokio::test]
async fn other_rates_and_wav_files_are_converted() {
    let constant = vec![500; 160];
    // A filter rises from the silence before it, and falls into the silence after it.
    let is_converted = |spoken: &Spoken| {
        (kind(spoken), spoken.samples.len()) == (None, 240) && spoken.samples[30..210] == [500; 180]
    };
    let slow = |config| OpenAiTextToSpeechConfig { format: AudioFormat::Pcm { rate: 16_000 }, ..config };
    let spoken = speak(slow, vec![Act::Send([PCM, &bytes(&constant)].concat())]).await;
    assert!(is_converted(&spoken), "{:?} {:?}", spoken.error, spoken.samples);
    let as_wav = |config| OpenAiTextToSpeechConfig { format: AudioFormat::Wav, ..config };
    let file = wav(16_000, &constant);
    let head = b"HTTP/1.1 200 OK\r\ncontent-type: audio/wav\r\nconnection: close\r\n\r\n".to_vec();
    let pieces = file.chunks(51).map(<[u8]>::to_vec);
    let act = Act::InPieces([vec![head.clone()], pieces.collect()].concat());
    let spoken = speak(as_wav, vec![act]).await;
    assert!(is_converted(&spoken), "{:?} {:?}", spoken.error, spoken.samples);
    assert!(spoken.server.requests()[0].contains(r#""response_format":"wav""#));
    let cut = [&head[..], &file[..file.len() - 10]].concat();
    assert_eq!(kind(&speak(as_wav, vec![Act::Send(cut)]).await), Some(SpeechErrorKind::Unavailable));
    let mp3 = [&head[..], b"ID3\x04mp3 is something else"].concat();
    assert_eq!(kind(&speak(as_wav, vec![Act::Send(mp3)]).await), Some(SpeechErrorKind::Malformed));
}

#[tokio::test]
async fn what_was_heard_before_a_stream_is_cut_stands() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: audio/pcm\r\ncontent-length: 500\r\n\r\n";
    let cut = [head.as_bytes(), &bytes(&[1, 2, 3])].concat();
    for act in [Act::Send(cut.clone()), Act::Reset(cut.clone())] {
        let spoken = speak(same, vec![act]).await;
        assert_eq!(kind(&spoken), Some(SpeechErrorKind::Unavailable));
        assert_eq!(
            (&*spoken.samples, spoken.server.requests().len()),
            (&[1, 2, 3][..], 1),
            "never spoken twice"
        );
    }
    let within_a_sample = [PCM, &bytes(&[1, 2]), b"x"].concat();
    let spoken = speak(same, vec![Act::Send(within_a_sample)]).await;
    assert_eq!((kind(&spoken), &*spoken.samples), (Some(SpeechErrorKind::Unavailable), &[1, 2][..]));
    let soon = Duration::from_millis(300);
    let impatient = |mut config: OpenAiTextToSpeechConfig| {
        config.limits = Limits { first_byte: soon, idle: soon, ..config.limits };
        config
    };
    let spoken = speak(impatient, vec![Act::SendAndHang(cut)]).await;
    assert_eq!((kind(&spoken), spoken.samples.len()), (Some(SpeechErrorKind::TimedOut), 3));
    let spoken = speak(impatient, vec![Act::SendAndHang(Vec::new())]).await;
    assert_eq!(kind(&spoken), Some(SpeechErrorKind::TimedOut));
}

#[tokio::test]
async fn failures_have_the_kind_that_says_what_helps() {
    use SpeechErrorKind::{Auth, Busy, Malformed, Refused, Unavailable};
    let wrong_key = format!(r#"{{"error":{{"message":"Incorrect API key provided: {KEY}"}}}}"#);
    let json = "content-type: application/json\r\n";
    for (status, headers, body, kind, requests) in [
        ("401 Unauthorized", json, &*wrong_key, Auth, 1),
        ("429 Too Many Requests", json, "{}", Busy, 2),
        ("400 Bad Request", json, r#"{"error":{"message":"no such voice"}}"#, Refused, 1),
        ("500 Internal Server Error", json, "{}", Unavailable, 2),
        ("200 OK", json, r#"{"error":{"message":"x","code":"invalid_api_key"}}"#, Auth, 1),
        ("200 OK", json, "{}", Malformed, 1),
        ("200 OK", "content-type: text/html\r\n", "<html>", Malformed, 1),
        ("200 OK", "content-type: audio/pcm\r\n", "", Malformed, 1),
    ] {
        let spoken = speak(same, vec![Act::Send(answer(status, headers, body))]).await;
        assert_eq!(self::kind(&spoken), Some(kind), "{status} {body}");
        assert_eq!((spoken.samples.len(), spoken.server.requests().len()), (0, requests), "{status} {body}");
    }
}

#[tokio::test]
async fn speech_without_end_stops_at_the_limit() {
    let small = |mut config: OpenAiTextToSpeechConfig| {
        config.limits.response = 1 << 20;
        config
    };
    let spoken = speak(small, vec![Act::Endlessly(PCM.to_vec(), vec![1; 64 << 10], Duration::ZERO)]).await;
    assert_eq!(kind(&spoken), Some(SpeechErrorKind::Malformed));
    assert!(spoken.samples.len() <= 1 << 19 && spoken.server.is_disconnected().await);
    let server = Server::start(vec![Act::Send(PCM.to_vec())]).await;
    let engine = OpenAiTextToSpeech::new(config(&server)).unwrap();
    let long = Sentence { text: "a".repeat(5_000), language: None };
    let error = engine.speak(long).next().await.unwrap().unwrap_err();
    assert_eq!((error.kind, server.requests().len()), (SpeechErrorKind::Refused, 0));
}

#[tokio::test]
async fn a_dropped_sentence_closes_the_connection_and_makes_room() {
    let server = Server::start(vec![Act::SendAndHang([PCM, &bytes(&[1, 2])].concat())]).await;
    let engine =
        OpenAiTextToSpeech::new(OpenAiTextToSpeechConfig { max_requests: 1, ..config(&server) }).unwrap();
    let mut first = engine.speak(sentence());
    assert_eq!(first.next().await.unwrap().unwrap(), [1, 2]);
    let error = engine.speak(sentence()).next().await.unwrap().unwrap_err();
    assert_eq!(error.kind, SpeechErrorKind::Busy);
    drop(first);
    assert!(server.is_disconnected().await);
    assert_eq!(engine.speak(sentence()).next().await.unwrap().unwrap(), [1, 2]);
}
