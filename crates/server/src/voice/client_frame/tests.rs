use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn audio(data: &str) -> ClientFrame<'_> {
    ClientFrame::Audio(Audio::Base64(data.into()))
}

#[test]
fn every_message_is_decoded() {
    let start = Start {
        session_id: Some("ses_1".into()),
        resume_token: Some("token".into()),
        pending_request: Some("Book a room".into()),
        audio: AudioFormat::Base64,
        time_zone: Some("Europe/Vienna".into()),
        locale: Some("de-AT".into()),
    };
    let all = [
        (json!({ "type": "start" }), ClientFrame::Start(Box::default())),
        (
            json!({
                "type": "start", "sessionId": "ses_1", "resumeToken": "token", "pendingRequest": "Book a room",
                "audio": "base64", "timeZone": "Europe/Vienna", "locale": "de-AT", "other": 1,
            }),
            ClientFrame::Start(Box::new(start)),
        ),
        (
            json!({ "type": "start", "sessionId": null, "audio": "binary" }),
            ClientFrame::Start(Box::default()),
        ),
        (json!({ "type": "audio", "data": "AAAAAAAA" }), audio("AAAAAAAA")),
        (json!({ "data": "AAAAAAAA", "type": "audio" }), audio("AAAAAAAA")),
        (json!({ "type": "audio", "data": "" }), ClientFrame::Empty),
        (json!({ "type": "text", "text": "hello \"you\"" }), ClientFrame::Text("hello \"you\"".into())),
        (
            json!({ "type": "confirm", "token": "cnf_1", "approve": false }),
            ClientFrame::Confirm { token: "cnf_1".into(), approve: false },
        ),
        (json!({ "type": "playback", "state": "drained" }), ClientFrame::Drained),
        (
            json!({ "type": "playback", "state": "playing", "playedMs": 1_250 }),
            ClientFrame::Played(Duration::from_millis(1_250)),
        ),
        (
            json!({ "type": "playback", "state": "playing", "playedMs": u64::MAX }),
            ClientFrame::Played(Duration::from_secs(86_400)),
        ),
        (json!({ "type": "interrupt", "why": ["x"] }), ClientFrame::Interrupt),
        (json!({ "type": "stop" }), ClientFrame::Stop),
        (json!({ "type": "ping" }), ClientFrame::Ping),
    ];
    for (json, frame) in all {
        assert_eq!(decode_text(&json.to_string()), Ok(frame), "{json}");
    }
}

#[test]
fn an_invalid_message_is_explained() {
    let long = json!({ "type": "text", "text": "ä".repeat(4_001) }).to_string();
    let deep = format!(r#"{{"type":"ping","x":{}{}}}"#, "[".repeat(9), "]".repeat(9));
    let very_deep = format!(r#"{{"type":{}"#, "[".repeat(60_000));
    let nonsense = json!({ "type": "x".repeat(60_000) }).to_string();
    for (sent, expected) in [
        ("", "Send a JSON object"),
        ("[\"ping\"]", "Send a JSON object"),
        ("\"ping\"", "Send a JSON object"),
        ("{", "EOF while parsing"),
        ("{}", "missing field `type`"),
        (r#"{"type":"dance"}"#, "unknown variant `dance`, expected one of `start`, `audio`, `text`"),
        (r#"{"type":5}"#, "Invalid message"),
        (r#"{"type":"text"}"#, "missing field `text`"),
        (r#"{"type":"text","text":5}"#, "expected a string"),
        (r#"{"type":"text","text":" \n"}"#, "The text is empty."),
        (&long, "at most 4000 characters"),
        (r#"{"type":"confirm","token":"t","approve":"yes"}"#, "expected a boolean"),
        (
            r#"{"type":"playback","state":"begun"}"#,
            "unknown variant `begun`, expected `playing` or `drained`",
        ),
        (r#"{"type":"start","audio":"mp3"}"#, "unknown variant `mp3`"),
        (r#"{"type":"audio","data":"AAA"}"#, "not padded base64"),
        (r#"{"type":"audio","data":"AA A"}"#, "not padded base64"),
        (r#"{"type":"audio","data":"AAAA"}"#, "3 bytes are not whole samples"),
        (r#"{"type":"audio","data":"AA=="}"#, "1 bytes are not whole samples"),
        (r#"{"type":"confirm","token":"t","approve":false,"approve":true}"#, "\"approve\" stands twice"),
        (r#"{"type":"ping","x":{"a":1,"a":2}}"#, "\"a\" stands twice"),
        (r#"{"type":"stop","type":"ping"}"#, "\"type\" stands twice"),
        (&deep, "at most 8 levels"),
        (&very_deep, "at most 8 levels"),
        (&nonsense, "unknown variant `xxx"),
    ] {
        let error = decode_text(sent).unwrap_err();
        assert!(error.contains(expected), "{expected}: {error}");
        assert!(error.len() < 400, "the input is not sent back: {}", error.len());
    }
}

#[test]
fn the_longest_text_is_accepted() {
    let max_length = "ä".repeat(4_000);
    assert_eq!(
        decode_text(&json!({ "type": "text", "text": max_length }).to_string()),
        Ok(ClientFrame::Text(max_length.into()))
    );
}

#[test]
fn binary_audio_is_whole_samples_or_empty() {
    assert_eq!(decode_binary(&[]), Ok(ClientFrame::Empty));
    assert_eq!(decode_binary(&[1, 2]), Ok(ClientFrame::Audio(Audio::Pcm((&[1, 2][..]).into()))));
    assert!(decode_binary(&[1, 2, 3]).unwrap_err().contains("3 bytes"));
}

#[test]
fn compact_audio_is_not_copied() {
    let sent = r#"{"type":"audio","data":"AAAAAAAA"}"#;
    let Ok(ClientFrame::Audio(Audio::Base64(Cow::Borrowed(data)))) = decode_text(sent) else { panic!() };
    assert!(sent.as_bytes().as_ptr_range().contains(&data.as_ptr()));
}

/// Texts that almost match compact audio.
fn nearly_audio() -> impl Strategy<Value = String> {
    let data = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..40)
            .prop_map(|bytes| base64_simd::STANDARD.encode_to_string(bytes)),
        "[A-Za-z0-9+/=]{0,12}",
        r#"[A-Z\\/"u0-9,:{} ]{0,12}"#,
        any::<String>(),
    ];
    let head = prop_oneof![
        6 => Just(AUDIO_HEAD.to_owned()),
        1 => Just(r#"{ "type": "audio", "data": ""#.to_owned()),
        1 => Just(r#"{"type":"text","data":""#.to_owned()),
    ];
    let tail = prop_oneof![
        6 => Just(AUDIO_TAIL.to_owned()),
        1 => Just(r#"" }"#.to_owned()),
        1 => Just(r#"","data":""}"#.to_owned()),
    ];
    (head, data, tail).prop_map(|(head, data, tail)| format!("{head}{data}{tail}"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn compact_audio_decodes_as_the_json_parser_does(sent in nearly_audio()) {
        if let Some(found) = decode_compact_audio(&sent) {
            prop_assert_eq!(Ok(found), decode_json(&sent));
        }
    }

    #[test]
    fn accepted_base64_audio_can_be_decoded(bytes in prop::collection::vec(any::<u8>(), 1..300)) {
        let sent = format!("{AUDIO_HEAD}{}{AUDIO_TAIL}", base64_simd::STANDARD.encode_to_string(&bytes));
        match decode_text(&sent) {
            Ok(ClientFrame::Audio(Audio::Base64(data))) => {
                prop_assert_eq!(base64_simd::STANDARD.decode_to_vec(&*data).unwrap(), bytes);
            }
            other => prop_assert!(bytes.len() % 2 == 1 && other.is_err()),
        }
    }

    #[test]
    fn no_text_makes_the_decoder_panic(sent in any::<String>()) {
        let _ = decode_text(&sent);
    }
}
