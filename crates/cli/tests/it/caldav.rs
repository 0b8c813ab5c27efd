//! The built-in calendar tools on a CalDAV server that is not ours. `scripts/radicale` installs it.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use quarterdeck_calendar::{CalendarConfig, Calendars};
use quarterdeck_contracts::{ConfirmationAnswer, Mode};
use quarterdeck_remote_calendar::{CalDavCalendar, CalDavConfig, Credential};
use quarterdeck_runtime::{
    Call, Client, ClientEvent, ConfirmationMode, Connection, Orchestrator, Reply, RuntimeParts, Session,
};
use quarterdeck_store::MemoryStore;
use serde_json::{Value, json};

use crate::data::{registry, run};
use crate::terminal::{command, quarterdeck};

/// A server with the calendar `/ann/work/`.
struct Radicale {
    process: Child,
    folder: tempfile::TempDir,
    port: u16,
}

impl Radicale {
    fn start() -> Option<Self> {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/radicale/bin/python");
        if !program.exists() {
            let required = std::env::var("QUARTERDECK_REQUIRE_CLIENTS").is_ok_and(|value| value == "1");
            assert!(!required, "Radicale is required here; `scripts/radicale` installs it");
            #[expect(
                clippy::print_stderr,
                reason = "the reader of the result must know that nothing was tried"
            )]
            {
                eprintln!("SKIPPED: Radicale is not installed; `scripts/radicale` installs it");
            }
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let path = folder.path().display();
        let config = format!(
            "[server]\nhosts = 127.0.0.1:{port}\n[auth]\ntype = htpasswd\nhtpasswd_filename = {path}/users\n\
             htpasswd_encryption = plain\ndelay = 0\n[storage]\nfilesystem_folder = {path}/collections\n\
             [web]\ntype = none\n[logging]\nlevel = error\n"
        );
        fs::write(folder.path().join("config"), config).unwrap();
        fs::write(folder.path().join("users"), "ann:hush\n").unwrap();
        let work = folder.path().join("collections/collection-root/ann/work");
        fs::create_dir_all(&work).unwrap();
        fs::write(work.join(".Radicale.props"), r#"{"tag": "VCALENDAR", "D:displayname": "Work"}"#).unwrap();
        let mut command = Command::new(program);
        command.args(["-m", "radicale", "--config"]).arg(folder.path().join("config"));
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let server = Self { process, folder, port };
        let begin = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(begin.elapsed() < Duration::from_secs(120), "Radicale does not start");
            std::thread::sleep(Duration::from_millis(50));
        }
        Some(server)
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/ann/work", self.port)
    }
}

impl Drop for Radicale {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The calendar tools of this repository, built somewhere else.
fn tools(folder: &Path) -> std::path::PathBuf {
    let tools = folder.join("tools");
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools")).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if !name.starts_with("calendar-") {
            continue;
        }
        fs::create_dir_all(tools.join(&name)).unwrap();
        for file in fs::read_dir(entry.path()).unwrap() {
            let file = file.unwrap();
            fs::copy(file.path(), tools.join(&name).join(file.file_name())).unwrap();
        }
    }
    let built = quarterdeck(folder, &["build"]);
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    tools
}

/// A conversation in which every question is approved.
struct Approving {
    session: Session,
    connection: Connection,
}

impl Approving {
    /// The last question and the answer.
    async fn call(&self, tool: &str, args: Value) -> (Option<String>, Value) {
        self.session.begin_turn(None);
        let replies = self.connection.submit(vec![Call::new(tool, args)]).all().await;
        let Some(Reply::Answer(answer)) = replies.into_iter().next() else { panic!("one answer") };
        let mut asked = None;
        while let Some(event) = self.connection.try_next_event() {
            match event {
                ClientEvent::Confirmation { request, .. } => asked = Some(request),
                // One that is not received comes again.
                ClientEvent::Answer { answer, .. } => answer.mark_delivered(),
                _ => {}
            }
        }
        let first = json!(answer.response);
        answer.mark_delivered();
        let Some(request) = asked else { return (None, first) };
        let token = request.token.as_ref().unwrap().expose();
        let answer = self.session.resolve_confirmation(token, ConfirmationAnswer::Approve).await;
        let response = json!(answer.response);
        answer.mark_delivered();
        (Some(request.preview), response)
    }
}

async fn open(server: &Radicale, tools: &Path) -> Approving {
    let backend = CalDavCalendar::new(CalDavConfig {
        name: "primary".into(),
        url: server.url(),
        calendar: None,
        user: "ann".into(),
        password: Some(Credential::new("hush")),
        time_zone: "UTC".into(),
        timeout: Duration::from_secs(15),
        mirror: true,
    });
    let calendars = Calendars::builder(CalendarConfig::default()).unwrap();
    let calendars = calendars.calendar("primary", Arc::new(backend.unwrap())).build();
    let parts = RuntimeParts {
        calendar: Some(Arc::new(calendars)),
        ..RuntimeParts::new(Arc::new(MemoryStore::new()))
    };
    let orchestrator = Orchestrator::new(parts);
    let snapshot = registry(tools).snapshot();
    let session = orchestrator.open(Client::anonymous("visitor"), Mode::Text, snapshot).await.unwrap();
    let connection = session.connect_with(ConfirmationMode::AnswerFirst);
    Approving { session, connection }
}

#[test]
fn a_meeting_is_booked_listed_moved_and_cancelled_with_approval() {
    let Some(server) = Radicale::start() else { return };
    let files = tempfile::tempdir().unwrap();
    let tools = tools(files.path());
    run(async {
        let user = open(&server, &tools).await;
        let book = json!({ "title": "Tea", "start_time": "2090-01-13T10:00:00Z", "end_time": "2090-01-13T11:00:00Z",
                           "attendees": ["ada@example.com", "bo@example.com"] });
        let (asked, booked) = user.call("calendar_create_event", book.clone()).await;
        assert!(asked.unwrap().contains("with ada@example.com, bo@example.com"), "{booked}");
        assert_eq!(booked["data"]["conference_link"], Value::Null, "{booked}");

        // The time is taken now, and the user is not even asked.
        let (asked, taken) = user.call("calendar_create_event", book).await;
        assert_eq!((asked, &taken["error"]["type"]), (None, &json!("CONFLICT")), "{taken}");
        assert_eq!(taken["error"]["details"]["nearest_free"][0]["start"], "2090-01-13T09:00:00Z", "{taken}");

        let day = json!({ "start_date": "2090-01-13T00:00:00Z", "end_date": "2090-01-14T00:00:00Z" });
        let (_, listed) = user.call("calendar_list_events", day.clone()).await;
        let id = listed["data"]["events"][0]["event_id"].clone();
        assert_eq!(id, booked["data"]["event_id"]);

        let later = json!({ "event_id": id, "start_time": "2090-01-13T10:30:00Z", "end_time": "2090-01-13T11:30:00Z" });
        let (asked, moved) = user.call("calendar_move_event", later).await;
        assert!(asked.unwrap().starts_with("Move “Tea” from 2090-01-13T10:00:00Z"), "{moved}");
        assert_eq!(moved["data"]["start_time"], "2090-01-13T10:30:00Z", "{moved}");

        let (asked, cancelled) = user.call("calendar_cancel_event", json!({ "event_id": id })).await;
        assert!(asked.unwrap().starts_with("Cancel “Tea” from 2090-01-13T10:30:00Z"), "{cancelled}");
        assert_eq!(cancelled["ok"], true, "{cancelled}");
        let free = user.call("calendar_get_availability", day).await.1;
        assert_eq!(free["data"]["existing_events"], json!([]), "{free}");
    });
}

#[test]
fn a_calendar_is_configured_by_variables_and_its_password_is_not_told() {
    let Some(server) = Radicale::start() else { return };
    let data = server.folder.path().join("data");
    fs::create_dir_all(&data).unwrap();
    let run = |password: &str| {
        // The store must exist; an import into another calendar makes it.
        let ics = data.join("one.ics");
        fs::write(&ics, "BEGIN:VCALENDAR\nBEGIN:VEVENT\nUID:1\nDTSTART:20900113T090000Z\nDTEND:20900113T100000Z\nSUMMARY:Team day\nEND:VEVENT\nEND:VCALENDAR\n").unwrap();
        let with = |arguments: &[&str]| {
            let mut command = command(&data);
            command.args(arguments).args(["--data", data.to_str().unwrap()]);
            command.env("QUARTERDECK_CALENDAR__BACKEND__PRIMARY__KIND", "caldav");
            command.env("QUARTERDECK_CALENDAR__BACKEND__PRIMARY__URL", server.url());
            command.env("QUARTERDECK_CALENDAR__BACKEND__PRIMARY__USER", "ann");
            command.env("QUARTERDECK_CALENDAR_SECRET_PRIMARY", password);
            command.output().unwrap()
        };
        let imported = with(&["calendar", "import", ics.to_str().unwrap(), "--calendar", "team"]);
        assert!(imported.status.success(), "{}", String::from_utf8_lossy(&imported.stderr));
        let refused = with(&["calendar", "import", ics.to_str().unwrap()]);
        assert!(String::from_utf8_lossy(&refused.stderr).contains("kept on another server"));
        with(&["calendar", "list", "--from", "2090-01-13T00:00:00Z", "--to", "2090-01-14T00:00:00Z"])
    };
    let listed = run("hush");
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    assert!(String::from_utf8_lossy(&listed.stdout).contains("Team day"));
    let refused = run("wrong-one");
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && said.contains("refuses the configured credentials"), "{said}");
    assert!(!said.contains("wrong-one"), "{said}");
}
