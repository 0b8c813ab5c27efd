//! Data folders of earlier releases, kept under `tests/fixtures`: what was stored then is there now.
//!
//! `tests/fixtures/make.py` says how they were made. Git keeps no permissions, so each test works on a copy for its
//! owner alone.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use quarterdeck_calendar::{CalendarConfig, Calendars};
use quarterdeck_contracts::{ConfirmationAnswer, Outcome, Store};
use quarterdeck_runtime::{Client, Clock, Orchestrator, Registry, RuntimeParts, SessionError};
use quarterdeck_store::{SQLITE_FORMAT, SqliteStore};
use quarterdeck_testkit::{Tree, tree};
use serde_json::{Value, json};

use crate::data::{registry, run, store};
use crate::serve::{Server, parts};
use crate::terminal::quarterdeck;

/// A copy of what a release has left: its tools and records under `site`, its state under `.quarterdeck`.
struct Earlier {
    files: Tree,
    facts: Value,
}

fn earlier(name: &str) -> Earlier {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures").join(name);
    let files = tree("");
    copy(&kept.join("data"), &files.join(".quarterdeck"));
    copy(&kept.join("site"), &files.join("site"));
    let facts = serde_json::from_str(&fs::read_to_string(kept.join("facts.json")).unwrap()).unwrap();
    Earlier { files, facts }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    set_mode(to, 0o700);
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), &target).unwrap();
            set_mode(&target, 0o600);
        }
    }
}

fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

impl Earlier {
    fn fact(&self, pointer: &str) -> &str {
        self.facts.pointer(pointer).and_then(Value::as_str).unwrap()
    }

    /// The client's id, which its cookie carries before the signature.
    fn client(&self, who: &str) -> Client {
        let cookie = self.fact(&format!("/{who}/cookie"));
        let id = cookie.split_once('=').unwrap().1.split('.').next().unwrap();
        Client::anonymous(id)
    }

    /// The orchestrator as it would have been on the minute after the folder was made.
    fn orchestrator(&self, store: Arc<SqliteStore>) -> (Orchestrator, Registry) {
        let clock = Arc::new(MinuteAfter(self.facts["madeAtMs"].as_u64().unwrap()));
        let calendar = Arc::new(Calendars::local(CalendarConfig::default()).unwrap());
        let parts = RuntimeParts { clock, calendar: Some(calendar), ..RuntimeParts::new(store) };
        (Orchestrator::new(parts), registry(&self.files.join("site/tools")))
    }

    fn says(&self, typed: &str) -> String {
        let words: Vec<_> = typed.split(' ').collect();
        let output = quarterdeck(self.files.path(), &words);
        let printed = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{typed}: {printed}");
        printed.into_owned()
    }
}

struct MinuteAfter(u64);

impl Clock for MinuteAfter {
    fn now(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(self.0) + Duration::from_secs(60)
    }
}

#[test]
fn commands_read_the_sessions_trail_calendar_and_index_of_the_first_release() {
    let earlier = earlier("data-1");
    for (typed, expected) in [
        ("sessions", earlier.fact("/client/sessionId")),
        ("audit verify", "8 lines, whole"),
        ("audit query", "reserve_room"),
        ("calendar list --from 2026-12-01 --to 2026-12-02", "Ice report"),
        ("kb search hull --kb site/kb", "doc:hull"),
        ("kb stats --kb site/kb", "2 records"),
    ] {
        let printed = earlier.says(typed);
        assert!(printed.contains(expected), "{typed}: {printed}");
    }
}

#[test]
fn server_opens_the_first_release_and_refuses_its_expired_question() {
    let earlier = earlier("data-1");
    let site = earlier.files.join("site");
    let (tools, kb) = (site.join("tools"), site.join("kb"));
    let options = ["--tools", tools.to_str().unwrap(), "--kb", kb.to_str().unwrap()];
    let server = Server::start(&earlier.files.join(".quarterdeck"), &options);
    let approve = format!(r#"{{ "token": "{}", "approve": true }}"#, earlier.fact("/question/token"));
    let cookie = format!("cookie: {}\r\n", earlier.fact("/client/cookie"));
    let (status, _, body) = server.ask("POST", "/api/confirmations", &cookie, &approve);
    // Long after, the sweep may have removed the question, and the client is told that there is none.
    assert!(matches!(status, 400 | 404 | 410), "{status} {body}");
    assert!(server.get("/readyz").0 == 200 && earlier.says("audit verify").contains("whole"));
}

#[test]
fn trail_of_the_first_release_becomes_the_first_segment_without_losing_the_chain() {
    let earlier = earlier("data-1");
    let data = earlier.files.join(".quarterdeck");
    let before = fs::read_to_string(data.join("audit.jsonl")).unwrap();
    let site = earlier.files.join("site");
    let (tools, kb) = (site.join("tools"), site.join("kb"));
    let options = ["--tools", tools.to_str().unwrap(), "--kb", kb.to_str().unwrap()];
    let server = Server::start(&data, &options);
    let (status, _, body) = server.ask("POST", "/api/chat", "", r#"{"message":"Hello"}"#);
    assert_eq!(status, 200, "{body}");
    let (status, _, verdict) = server.ask("POST", "/api/deck/audit/verify", "", "");
    let verdict: Value = serde_json::from_str(&verdict).unwrap();
    assert_eq!((status, &verdict["isWhole"], &verdict["closedSegments"]), (200, &true.into(), &1.into()));
    // The deck searches both segments as one trail.
    let (_, _, found) = server.ask("GET", "/api/deck/audit?limit=200", "", "");
    let found: Value = serde_json::from_str(&found).unwrap();
    assert_eq!(found["lines"].as_array().unwrap().len() as u64, verdict["lines"].as_u64().unwrap());
    server.signal("-TERM");
    assert_eq!(server.ended().0, Some(0));

    assert!(earlier.says("audit verify").contains("lines in 2 segments, whole"));
    assert!(earlier.says("audit query --tool reserve_room").contains("reserve_room"));
    let exported = earlier.says("audit export");
    assert!(exported.starts_with(&before), "byte for byte: {exported}");
    let header: Value = serde_json::from_str(exported.lines().nth(8).unwrap()).unwrap();
    assert_eq!((&header["event"], &header["previousLast"]), (&"audit_segment".into(), &8.into()));
    let events = earlier.says("audit export --format ocsf");
    for (line, event) in exported.lines().zip(events.lines()) {
        let event: Value = serde_json::from_str(event).unwrap();
        assert_eq!((&event["raw_data"], &event["class_uid"]), (&line.into(), &6003.into()));
    }
    assert_eq!(events.lines().count(), exported.lines().count());
    // Without the segment, the trail is not whole.
    let folder = data.join("audit.jsonl.segments");
    fs::rename(&folder, data.join("aside")).unwrap();
    let output = quarterdeck(earlier.files.path(), &["audit", "verify"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains("they are missing"));
}

#[test]
fn open_question_of_the_first_release_is_approved_as_it_was_asked() {
    let earlier = earlier("data-1");
    run(async {
        let store = store(&earlier.files);
        let (orchestrator, registry) = earlier.orchestrator(store.clone());
        let id = earlier.fact("/client/sessionId");
        let session = orchestrator.resume(id, earlier.client("client"), registry.snapshot()).await.unwrap();
        let token = earlier.fact("/question/token");
        let answer = session.resolve_confirmation(token, ConfirmationAnswer::Approve).await;
        assert!(matches!(answer.response.outcome, Outcome::Success(_)), "{:?}", answer.response);

        store.close().await.unwrap();
    });
    let listed = earlier.says("calendar list --from 2026-12-01 --to 2026-12-02");
    assert!(listed.contains("Ice report") && listed.contains("Open question"), "{listed}");
}

#[test]
fn store_of_the_first_release_gets_every_step_and_keeps_every_row() {
    let earlier = earlier("data-1");
    let rows = json!({
        "audit": 1, "blocks": 1, "calendar": 2, "calls": 3, "confirmations": 2, "history": 4, "rates": 1,
        // The third step has added one for each confirmation.
        "session_confirmations": 2, "sessions": 4,
    });
    // The second time, there is nothing left to do.
    for _ in 0..2 {
        let found: Value = serde_json::from_str(&earlier.says("store check --format json")).unwrap();
        assert_eq!(
            (&found["isSound"], found["schema"].as_i64()),
            (&true.into(), Some(SQLITE_FORMAT)),
            "{found}"
        );
        let counted: serde_json::Map<_, _> = found["tables"]
            .as_object()
            .unwrap()
            .iter()
            .filter(|(_, table)| table["rows"] != 0)
            .map(|(name, table)| (name.clone(), table["rows"].clone()))
            .collect();
        assert_eq!(Value::from(counted), rows);
    }
}

#[test]
fn cookie_of_the_first_release_names_its_client_and_a_forged_one_does_not() {
    let earlier = earlier("data-1");
    let site = earlier.files.join("site");
    let (tools, kb) = (site.join("tools"), site.join("kb"));
    let options = ["--tools", tools.to_str().unwrap(), "--kb", kb.to_str().unwrap()];
    let server = Server::start(&earlier.files.join(".quarterdeck"), &options);
    let cookie = earlier.fact("/client/cookie").to_owned();
    let client = cookie.split_once('=').unwrap().1.split('.').next().unwrap();
    let forged = cookie.replace(client, "c_00000000000000000000000000000000");
    for (cookie, is_known) in [(&cookie, true), (&forged, false)] {
        let (status, head, body) =
            server.ask("POST", "/api/chat", &format!("cookie: {cookie}\r\n"), r#"{"message":"Hello"}"#);
        assert_eq!(status, 200, "{body}");
        let session = parts(&body)[0]["messageMetadata"]["sessionId"].as_str().unwrap().to_owned();
        let is_listed = || {
            let listed: Value = serde_json::from_str(&server.get("/api/deck/sessions").1).unwrap();
            let sessions = listed["sessions"].as_array().unwrap().clone();
            let found = sessions.iter().find(|one| one["id"] == session.as_str()).cloned();
            found.unwrap_or_else(|| panic!("{listed}"))["clientId"] == client
        };
        assert_eq!(
            (is_listed(), head.contains("set-cookie: quarterdeck_client=c_")),
            (is_known, !is_known),
            "{head}"
        );
    }
}

#[test]
fn block_of_the_first_release_still_holds() {
    let earlier = earlier("data-1");
    run(async {
        let (orchestrator, registry) = earlier.orchestrator(store(&earlier.files));
        let refused = orchestrator
            .resume(earlier.fact("/blocked/sessionId"), earlier.client("blocked"), registry.snapshot())
            .await;
        assert!(matches!(refused, Err(SessionError::Blocked(_))), "{:?}", refused.err());
    });
}
