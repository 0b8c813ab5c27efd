//! The built-in chat model by voice: engines over HTTP hear and speak, and the sample records answer.

use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use super::page::Page;
use super::speech_engines::SpeechEngines;
use crate::serve::{ANYWHERE, Server, command};

pub(super) const QUESTION: &str = "Who designed the Fram?";

/// A server with the shipped tools and records, whose voice is the pipeline with these engines.
pub(super) fn pipeline(data: &std::path::Path, engines: &SpeechEngines) -> Command {
    let mut command = command(data, ANYWHERE);
    for engine in ["STT", "TTS"] {
        command.env(format!("QUARTERDECK_SPEECH__{engine}__PROVIDER"), "openai");
        command.env(format!("QUARTERDECK_SPEECH__{engine}__BASE_URL"), engines.base_url());
    }
    command
}

/// The cookie of a new client.
pub(super) fn cookie(server: &Server) -> String {
    let (_, head, _) = server.ask("GET", "/api/me", "", "");
    let cookie = head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    cookie.split(';').next().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_heard_looked_up_and_answered_aloud() {
    let engines = SpeechEngines::start(QUESTION);
    let data = tempfile::tempdir().unwrap();
    let mut server = Server::begin(&mut pipeline(data.path(), &engines));
    let log = server.collect_log();
    let (_, me) = server.get("/api/me");
    let me: Value = serde_json::from_str(&me).unwrap();
    assert_eq!((&me["voice"]["hears"], &me["voice"]["speaks"]), (&json!(true), &json!(true)), "{me}");
    let mut page = Page::dial(server.address, cookie(&server), json!({})).await;
    assert_eq!(page.ready["provider"], "pipeline/rehearsal/built-in");
    page.speak(Duration::from_millis(1_500)).await;
    let heard = page.wait_for_transcript("user").await;
    assert_eq!(heard, QUESTION);
    page.wait_for_answer("Colin Archer").await;
    page.wait_for("turn_complete").await;
    let called: Vec<_> = page.messages.iter().filter(|it| it["type"] == "tool_call").collect();
    assert!(called.iter().any(|call| call["name"] == "kb_search"), "the records were asked: {called:?}");
    assert!(page.results().iter().all(|result| result == "ok"), "{:?}", page.results());
    assert!(page.audio_bytes >= 48_000, "{} bytes were heard", page.audio_bytes);
    assert_eq!(engines.utterances().len(), 1);
    assert!(engines.utterances()[0] > 32_000, "the beginning is in it: {:?}", engines.utterances());
    let spoken = engines.sentences().join(" ");
    assert!(spoken.contains("Colin Archer") && !spoken.contains('['), "{spoken}");
    drop(server);
    let log = log.join().unwrap();
    assert!(log.contains("it hears with openai/") && log.contains("and speaks with openai/"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_typed_question_is_answered_aloud() {
    let engines = SpeechEngines::start("");
    let data = tempfile::tempdir().unwrap();
    let server = Server::begin(&mut pipeline(data.path(), &engines));
    let mut page = Page::dial(server.address, cookie(&server), json!({})).await;
    page.exchange(QUESTION, "Colin Archer").await;
    assert!(page.audio_bytes >= 48_000 && engines.utterances().is_empty());
}

#[test]
fn a_missing_engine_is_warned_about_and_the_simulator_answers() {
    for (variables, reason) in [
        (&[("QUARTERDECK_VOICE__PROVIDER", "pipeline")][..], "no engine that hears is installed"),
        (
            &[("QUARTERDECK_VOICE__PROVIDER", "pipeline"), ("QUARTERDECK_SPEECH__STT__PROVIDER", "openai")],
            "openai needs a key",
        ),
    ] {
        let data = tempfile::tempdir().unwrap();
        let mut server = Server::begin(command(data.path(), ANYWHERE).envs(variables.iter().copied()));
        let warned = server.printed.join("\n");
        assert!(warned.contains(reason) && warned.contains("quarterdeck speech install"), "{warned}");
        let (_, me) = server.get("/api/me");
        let me: Value = serde_json::from_str(&me).unwrap();
        assert_eq!((&me["voice"]["model"], &me["voice"]["hears"]), (&json!("simulator"), &json!(false)));
        let log = server.collect_log();
        drop(server);
        let banner = log.join().unwrap();
        assert!(banner.contains("`quarterdeck speech install` gives it ears and a voice"), "{banner}");
    }
}
