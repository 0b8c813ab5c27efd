//! The server's clock is set back while a question is open. Time itself cannot be set back.

use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Site, booking, code, complete};
use crate::serve::{Server, say};

/// How long a question can be answered here, and a little more.
const LIFETIME_SECONDS: u64 = 2;
const UNTIL_EXPIRED: Duration = Duration::from_millis(2_600);

/// The library that sets a program's clock; nothing where it is not installed, which is said.
fn faketime() -> Option<PathBuf> {
    let folders = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    let mut found = folders.map(|folder| folder.path().join("faketime/libfaketimeMT.so.1"));
    let library = found.find(|path| path.exists());
    if library.is_none() {
        let required = std::env::var("QUARTERDECK_REQUIRE_CLIENTS").is_ok_and(|value| value == "1");
        assert!(!required, "libfaketime is required here; `scripts/faketime` installs it");
        #[expect(clippy::print_stderr, reason = "the reader of the result must know that nothing was tried")]
        {
            eprintln!("SKIPPED: libfaketime is not installed; `scripts/faketime` installs it");
        }
    }
    library
}

/// A site whose clock a test sets.
struct Clocked {
    site: Site,
    library: PathBuf,
}

impl Clocked {
    fn new(library: PathBuf, script: &Value) -> Self {
        let clocked = Self { site: Site::new(script), library };
        clocked.set(0);
        clocked
    }

    /// Sets the clock so many seconds from the real one.
    fn set(&self, seconds: i64) {
        let next = self.site.path("clock.next");
        std::fs::write(&next, format!("{seconds:+}s\n")).unwrap();
        std::fs::rename(next, self.site.path("clock")).unwrap();
    }

    fn serve(&self) -> Server {
        self.site.serve(|command| {
            command.env("LD_PRELOAD", &self.library);
            command.env("FAKETIME_TIMESTAMP_FILE", self.site.path("clock"));
            command.env("FAKETIME_NO_CACHE", "1");
            command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1").env("DONT_FAKE_MONOTONIC", "1");
            command.env("QUARTERDECK_POLICY__CONFIRMATION_SECONDS", LIFETIME_SECONDS.to_string());
        })
    }
}

/// A user is asked on the page: the cookie and the token.
fn ask(server: &Server) -> (String, String) {
    let (cookie, answer) = say(server, "", json!({ "message": "Book it" }));
    let question = answer.iter().find(|part| part["type"] == "data-confirmation").expect("it must ask");
    (cookie, question["data"]["token"].as_str().unwrap().to_owned())
}

fn approve(server: &Server, cookie: &str, token: &str) -> (u16, Value) {
    let body = json!({ "token": token, "approve": true }).to_string();
    let (status, _, answer) = server.ask("POST", "/api/confirmations", cookie, &body);
    (status, serde_json::from_str::<Value>(&answer).unwrap()["error"]["type"].clone())
}

#[test]
fn an_expired_question_cannot_be_approved_by_its_token_after_the_clock_is_set_back() {
    let Some(library) = faketime() else { return };
    let clocked = Clocked::new(library, &json!([booking(1), { "text": "Fine." }]));
    let server = clocked.serve();
    let (cookie, token) = ask(&server);
    sleep(UNTIL_EXPIRED);
    for back in [-1, -3, -3_600, -86_400] {
        clocked.set(back);
        assert_eq!(approve(&server, &cookie, &token), (410, json!("CONFIRMATION_EXPIRED")), "{back}");
    }
    // Neither does another process open it again.
    server.signal("-TERM");
    assert_eq!(server.ended().0, Some(0));
    assert_eq!(clocked.site.questions(), ["expired"]);
    let server = clocked.serve();
    assert_eq!(approve(&server, &cookie, &token).0, 410);
    server.signal("-TERM");
    server.ended();
    assert_eq!(clocked.site.questions(), ["expired"]);
}

#[test]
fn an_expired_question_cannot_be_approved_by_its_code_after_the_clock_is_set_back() {
    let Some(library) = faketime() else { return };
    let script = json!([booking(1), { "text": "Please approve it." }, { "text": "Too late." }]);
    let clocked = Clocked::new(library, &script);
    let server = clocked.serve();
    let mut told = json!([{ "role": "user", "content": "Book it" }]);
    let question = complete(&server, "me", &told);
    let messages = told.as_array_mut().unwrap();
    messages.push(json!({ "role": "assistant", "content": question }));
    messages.push(json!({ "role": "user", "content": format!("approve {}", code(&question)) }));
    sleep(UNTIL_EXPIRED);
    clocked.set(-3_600);
    assert_eq!(complete(&server, "me", &told), "Too late.");
    server.signal("-TERM");
    server.ended();
    assert_eq!(clocked.site.questions(), ["expired"]);
    std::fs::write(clocked.site.path("script.json"), json!([{ "text": "Still too late." }]).to_string())
        .unwrap();
    let server = clocked.serve();
    assert_eq!(complete(&server, "me", &told), "Still too late.");
    server.signal("-TERM");
    server.ended();
    assert_eq!(clocked.site.questions(), ["expired"]);
    let done = super::trail(&clocked.site.path("data"), "tool_execution");
    assert!(!done.is_empty() && done.iter().all(|line| line["ok"] == false), "{done:?}");
}

#[test]
fn a_question_that_a_crash_left_open_gets_no_time_from_a_clock_that_was_set_back() {
    let Some(library) = faketime() else { return };
    let clocked = Clocked::new(library, &json!([booking(1), { "text": "Fine." }]));
    let server = clocked.serve();
    let (cookie, token) = ask(&server);
    server.signal("-KILL");
    server.ended();
    assert_eq!(clocked.site.questions(), ["open"]);
    clocked.set(-3_600);
    let server = clocked.serve();
    assert_eq!(approve(&server, &cookie, &token), (410, json!("CONFIRMATION_EXPIRED")));
    clocked.set(0);
    server.signal("-TERM");
    server.ended();
    assert_eq!(clocked.site.questions(), ["expired"]);
}

#[test]
fn a_question_whose_clock_is_set_back_meanwhile_still_lapses_on_time() {
    let Some(library) = faketime() else { return };
    let clocked = Clocked::new(library, &json!([booking(1), { "text": "Fine." }]));
    let server = clocked.serve();
    let (cookie, token) = ask(&server);
    clocked.set(-3_600);
    sleep(UNTIL_EXPIRED);
    assert_eq!(approve(&server, &cookie, &token), (410, json!("CONFIRMATION_EXPIRED")));
}
