//! What a line to a provider goes through: silence, a provider that does not read, nonsense, goodbyes.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use quarterdeck_contracts::{
    Audio, LiveConnection, LiveErrorKind, LiveEvent, LiveInput, LiveModel, TranscriptPiece, TranscriptStage,
};
use quarterdeck_transports::{ConfigError, GeminiLive, GeminiLiveConfig};
use quarterdeck_websocket::{Class, CloseCode, Message, Opcode};
use serde_json::json;
use tokio::time::{Instant, timeout};

use crate::live_provider::{Pipe, Provider, event, flush, opening};

async fn conversation(pipe_size: usize) -> (Box<dyn LiveConnection>, Provider) {
    let (pipe, mut ends) = Pipe::new(pipe_size);
    let model = GeminiLive::new(GeminiLiveConfig::new("k")).unwrap().with_dialer(pipe);
    let provider = async {
        let mut provider = Provider::accept(&mut ends).await;
        provider.hear().await.unwrap();
        provider.say(&json!({"setupComplete": {}})).await;
        provider
    };
    let (connection, provider) = tokio::join!(model.connect(opening()), provider);
    (connection.unwrap(), provider)
}

#[tokio::test(start_paused = true)]
async fn a_silent_provider_gets_two_pings_and_then_times_out() {
    let (mut connection, mut provider) = conversation(1 << 16).await;
    let begun = Instant::now();
    let pings = async {
        let mut pings = Vec::new();
        loop {
            match provider.socket.next() {
                // Its answer is never sent.
                Some(Ok(Message::Ping(_))) => pings.push(begun.elapsed().as_secs()),
                Some(other) => panic!("{other:?}"),
                None => {
                    if timeout(Duration::from_secs(50), provider.socket.fill()).await.is_err() {
                        return pings;
                    }
                }
            }
        }
    };
    let (error, pings) = tokio::join!(
        async {
            let error = event(&mut connection).await.unwrap_err();
            (error.kind, begun.elapsed().as_secs())
        },
        pings
    );
    assert_eq!(error, (LiveErrorKind::TimedOut, 45));
    assert_eq!(pings, [20, 40]);
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_answers_pings_does_not_time_out() {
    let (mut connection, mut provider) = conversation(1 << 16).await;
    let provider = async {
        let end = Instant::now() + Duration::from_secs(600);
        while tokio::time::timeout_at(end, provider.socket.fill()).await.is_ok() {
            while let Some(message) = provider.socket.next() {
                assert_eq!(message, Ok(Message::Ping(&[])));
            }
            provider.socket.flush().await.unwrap();
        }
        provider.say(&json!({"goAway": {}})).await;
    };
    let (event, ()) = tokio::join!(event(&mut connection), provider);
    assert_eq!(event.unwrap(), LiveEvent::GoingAway { left: None });
}

#[tokio::test]
async fn a_provider_that_does_not_read_gets_the_newest_second_of_audio_and_everything_else() {
    let (mut connection, mut provider) = conversation(1 << 10).await;
    // Twenty milliseconds each, ten seconds, numbered by their first sample.
    for number in 0..500_u16 {
        let mut samples = number.to_le_bytes().to_vec();
        samples.resize(640, 0);
        connection.send(LiveInput::Audio(Audio::Pcm(samples.into())));
        if number == 100 {
            connection.send(LiveInput::Text("are you there?"));
        }
        poll_fn(|context| {
            let _ = connection.poll_flush(context);
            Poll::Ready(())
        })
        .await;
    }
    let (heard, ()) = tokio::join!(
        async {
            let mut heard = Vec::new();
            while let Some(message) = provider.hear().await {
                heard.push(message);
            }
            heard
        },
        async {
            flush(&mut connection).await;
            connection.close().await;
        }
    );
    let texts = heard.iter().filter(|message| message.get("clientContent").is_some()).count();
    let audio = heard.iter().filter_map(|message| message["realtimeInput"]["audio"]["data"].as_str());
    let numbers: Vec<_> = audio
        .map(|data| base64_simd::STANDARD.decode_to_vec(data).unwrap())
        .map(|samples| u16::from_le_bytes([samples[0], samples[1]]))
        .collect();
    assert_eq!(texts, 1);
    assert!(numbers.is_sorted() && numbers.last() == Some(&499), "{numbers:?}");
    assert!((40..100).contains(&numbers.len()), "{} pieces", numbers.len());
}

#[tokio::test]
async fn a_message_may_be_bytes_and_one_that_is_nonsense_ends_nothing() {
    let (mut connection, mut provider) = conversation(1 << 16).await;
    let said = br#"{"serverContent":{"outputTranscription":{"text":"Hello"}}}"#;
    provider.say_text("{nonsense").await;
    provider.say_text("[]").await;
    // Frames that say nothing do not hide what is behind them.
    provider.say(&json!({"somethingNew": {}})).await;
    provider.socket.ping();
    provider.socket.send(Opcode::Binary, Class::Control, said.len(), |out| out.extend_from_slice(said));
    provider.socket.flush().await.unwrap();
    let trouble = LiveEvent::Warning("a message that is no JSON object".to_owned());
    assert_eq!(event(&mut connection).await.unwrap(), trouble);
    assert_eq!(event(&mut connection).await.unwrap(), trouble);
    let words = TranscriptPiece { text: "Hello".into(), stage: TranscriptStage::Segment };
    assert_eq!(event(&mut connection).await.unwrap(), LiveEvent::OutputTranscript(words));
}

#[tokio::test]
async fn a_provider_that_closes_says_why_after_what_it_said_before() {
    let (mut connection, mut provider) = conversation(1 << 16).await;
    provider.socket.send_text(r#"{"serverContent":{"interrupted":true}}"#);
    provider.socket.close(CloseCode(1011), "Deadline expired");
    provider.socket.flush().await.unwrap();
    assert_eq!(event(&mut connection).await.unwrap(), LiveEvent::Interrupted { end_follows: true });
    for _ in 0..2 {
        let error = event(&mut connection).await.unwrap_err();
        assert_eq!((error.kind, error.code), (LiveErrorKind::Lost, Some(1011)));
        assert!(error.detail.ends_with("(1011): Deadline expired"), "{error}");
    }
}

#[tokio::test]
async fn a_provider_that_vanishes_is_lost() {
    let (mut connection, provider) = conversation(1 << 16).await;
    drop(provider);
    let error = event(&mut connection).await.unwrap_err();
    assert_eq!((error.kind, error.code), (LiveErrorKind::Lost, None));
}

#[tokio::test]
async fn a_message_above_eight_megabytes_is_refused_before_it_is_read() {
    let (mut connection, mut provider) = conversation(1 << 20).await;
    let length = (8 << 20) + 1;
    provider.socket.send(Opcode::Text, Class::Control, length, |out| out.resize(out.len() + length, b' '));
    let (error, _) = tokio::join!(event(&mut connection), async {
        let _ = timeout(Duration::from_millis(200), provider.socket.flush()).await;
    });
    assert_eq!(error.unwrap_err().kind, LiveErrorKind::Malformed);
}

#[tokio::test(start_paused = true)]
async fn closing_waits_at_most_a_second_for_the_provider() {
    let (connection, mut provider) = conversation(1 << 16).await;
    let begun = Instant::now();
    connection.close().await;
    assert_eq!(begun.elapsed(), Duration::from_secs(1));
    provider.socket.fill().await.unwrap();
    assert_eq!(provider.socket.next(), Some(Ok(Message::Close(Some(CloseCode::NORMAL), ""))));
}

#[test]
fn settings_that_cannot_work_are_refused_at_once() {
    let with = |change: fn(&mut GeminiLiveConfig)| {
        let mut config = GeminiLiveConfig::new("AIza-very-secret");
        change(&mut config);
        GeminiLive::new(config)
    };
    for good in ["http://127.0.0.1:8080", "https://a.example/", "ws://[::1]:80", "WSS://a.example/proxy"] {
        let config = GeminiLiveConfig { base_url: good.to_owned(), ..GeminiLiveConfig::new("k") };
        assert!(GeminiLive::new(config).is_ok(), "{good}");
    }
    assert!(matches!(with(|c| c.base_url = "ftp://a".to_owned()), Err(ConfigError::BaseUrl { .. })));
    assert!(matches!(with(|c| c.api_key = "".into()), Err(ConfigError::NoKey { .. })));
    assert!(matches!(with(|c| c.api_key = "a\nb".into()), Err(ConfigError::Header { .. })));
    assert!(matches!(with(|c| c.model = String::new()), Err(ConfigError::Model { .. })));
    let refused = |change| with(change).unwrap_err().to_string();
    assert_eq!(
        refused(|c| c.thinking.level = Some("LOW".to_owned())),
        "gemini-3.8-live of gemini takes no `thinkingLevel`"
    );
    let proactive = |is_on: bool| {
        let mut config = GeminiLiveConfig::new("k");
        config.extra.insert("proactivity".to_owned(), json!({ "proactiveAudio": is_on }));
        GeminiLive::new(config)
    };
    assert!(proactive(true).is_ok() && proactive(false).is_err());
    assert!(!format!("{:?}", with(|_| {})).contains("very-secret"));
}
