use proptest::prelude::*;
use serde_json::json;

use super::*;

fn audio(data: &str) -> Said<'_> {
    Said::Audio(Audio::Base64(data.into()))
}

#[test]
fn every_message_is_understood() {
    let start = Start {
        session_id: Some("ses_1".into()),
        resume_token: Some("seal".into()),
        pending_request: Some("Book a room".into()),
        audio: Form::Base64,
        time_zone: Some("Europe/Vienna".into()),
        locale: Some("de-AT".into()),
    };
    let all = [
        (json!({ "type": "start" }), Said::Start(Box::default())),
        (
            json!({
                "type": "start", "sessionId": "ses_1", "resumeToken": "seal", "pendingRequest": "Book a room",
                "audio": "base64", "timeZone": "Europe/Vienna", "locale": "de-AT", "other": 1,
            }),
            Said::Start(Box::new(start)),
        ),
        (json!({ "type": "start", "sessionId": null, "audio": "binary" }), Said::Start(Box::default())),
        (json!({ "type": "audio", "data": "AAAAAAAA" }), audio("AAAAAAAA")),
        (json!({ "data": "AAAAAAAA", "type": "audio" }), audio("AAAAAAAA")),
        (json!({ "type": "audio", "data": "" }), Said::Nothing),
        (json!({ "type": "text", "text": "hello \"you\"" }), Said::Text("hello \"you\"".into())),
        (
            json!({ "type": "confirm", "token": "cnf_1", "approve": false }),
            Said::Confirm { token: "cnf_1".into(), approve: false },
        ),
        (json!({ "type": "playback", "state": "drained" }), Said::Drained),
        (json!({ "type": "interrupt", "why": ["x"] }), Said::Interrupt),
        (json!({ "type": "stop" }), Said::Stop),
        (json!({ "type": "ping" }), Said::Ping),
    ];
    for (json, said) in all {
        assert_eq!(text(&json.to_string()), Ok(said), "{json}");
    }
}

#[test]
fn what_is_not_understood_is_explained() {
    let long = json!({ "type": "text", "text": "ä".repeat(4_001) }).to_string();
    let deep = format!(r#"{{"type":"ping","x":{}{}}}"#, "[".repeat(9), "]".repeat(9));
    let very_deep = format!(r#"{{"type":{}"#, "[".repeat(60_000));
    let nonsense = json!({ "type": "x".repeat(60_000) }).to_string();
    for (sent, said) in [
        ("", "A message is a JSON object"),
        ("[\"ping\"]", "A message is a JSON object"),
        ("\"ping\"", "A message is a JSON object"),
        ("{", "EOF while parsing"),
        ("{}", "missing field `type`"),
        (r#"{"type":"dance"}"#, "unknown variant `dance`, expected one of `start`, `audio`, `text`"),
        (r#"{"type":5}"#, "not understood"),
        (r#"{"type":"text"}"#, "missing field `text`"),
        (r#"{"type":"text","text":5}"#, "expected a string"),
        (r#"{"type":"text","text":" \n"}"#, "The text is empty."),
        (&long, "4000 characters are the most"),
        (r#"{"type":"confirm","token":"t","approve":"yes"}"#, "expected a boolean"),
        (r#"{"type":"playback","state":"begun"}"#, "unknown variant `begun`, expected `drained`"),
        (r#"{"type":"start","audio":"mp3"}"#, "unknown variant `mp3`"),
        (r#"{"type":"audio","data":"AAA"}"#, "not base64"),
        (r#"{"type":"audio","data":"AA A"}"#, "not base64"),
        (r#"{"type":"audio","data":"AAAA"}"#, "3 bytes are half a sample too many"),
        (r#"{"type":"audio","data":"AA=="}"#, "1 bytes are half a sample too many"),
        (r#"{"type":"confirm","token":"t","approve":false,"approve":true}"#, "\"approve\" stands twice"),
        (r#"{"type":"ping","x":{"a":1,"a":2}}"#, "\"a\" stands twice"),
        (r#"{"type":"stop","type":"ping"}"#, "\"type\" stands twice"),
        (&deep, "8 levels are the most"),
        (&very_deep, "8 levels are the most"),
        (&nonsense, "unknown variant `xxx"),
    ] {
        let fault = text(sent).unwrap_err();
        assert!(fault.contains(said), "{said}: {fault}");
        assert!(fault.len() < 400, "nobody is sent back what they sent: {}", fault.len());
    }
}

#[test]
fn the_longest_text_is_taken() {
    let longest = "ä".repeat(4_000);
    assert_eq!(text(&json!({ "type": "text", "text": longest }).to_string()), Ok(Said::Text(longest.into())));
}

#[test]
fn bytes_are_whole_samples_or_nothing() {
    assert_eq!(pcm(&[]), Ok(Said::Nothing));
    assert_eq!(pcm(&[1, 2]), Ok(Said::Audio(Audio::Pcm((&[1, 2][..]).into()))));
    assert!(pcm(&[1, 2, 3]).unwrap_err().contains("3 bytes"));
}

#[test]
fn audio_as_pages_write_it_is_not_copied() {
    let sent = r#"{"type":"audio","data":"AAAAAAAA"}"#;
    let Ok(Said::Audio(Audio::Base64(Cow::Borrowed(data)))) = text(sent) else { panic!() };
    assert!(sent.as_bytes().as_ptr_range().contains(&data.as_ptr()));
}

/// Texts that are nearly audio as pages write it.
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
    fn what_is_found_without_a_parser_is_what_a_parser_finds(sent in nearly_audio()) {
        if let Some(found) = compact(&sent) {
            prop_assert_eq!(Ok(found), thorough(&sent));
        }
    }

    #[test]
    fn audio_that_is_handed_on_as_base64_can_be_decoded(bytes in prop::collection::vec(any::<u8>(), 1..300)) {
        let sent = format!("{AUDIO_HEAD}{}{AUDIO_TAIL}", base64_simd::STANDARD.encode_to_string(&bytes));
        match text(&sent) {
            Ok(Said::Audio(Audio::Base64(data))) => {
                prop_assert_eq!(base64_simd::STANDARD.decode_to_vec(&*data).unwrap(), bytes);
            }
            other => prop_assert!(bytes.len() % 2 == 1 && other.is_err()),
        }
    }

    #[test]
    fn no_text_at_all_makes_it_panic(sent in any::<String>()) {
        let _ = text(&sent);
    }
}
