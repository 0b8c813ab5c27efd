//! Where things are is said once, and every command means the same folders.

use std::path::Path;
use std::process::Output;

use quarterdeck_testkit::{Tree, tree};

use crate::terminal::{command, quarterdeck};

const EVENT: &str = "BEGIN:VCALENDAR\nVERSION:2.0\nBEGIN:VEVENT\nUID:room@fram\nDTSTAMP:20260101T000000Z\n\
                     DTSTART:20260114T090000Z\nDTEND:20260114T100000Z\nSUMMARY:Room\nEND:VEVENT\nEND:VCALENDAR\n";

fn site() -> Tree {
    let files = tree(
        r#"
        //- quarterdeck.toml
        [tools]
        folder = "my/tools"
        [kb]
        folder = "records"
        [data]
        folder = "state"
        [calendar]
        calendars = ["office", "team"]
        //- records/studio/doc/hull.md
        # The hull

        It is round.
        "#,
    );
    std::fs::write(files.join("room.ics"), EVENT).unwrap();
    files
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Every command that has a folder, with a word of what it says on a site where all is well.
const COMMANDS: [(&str, &str); 24] = [
    ("new hours", "created my/tools/hours"),
    ("build", "written to my/tools/tool_registry.json"),
    ("check", "1 tool, 0 errors"),
    ("list", "hours"),
    ("describe hours", "hours"),
    ("test", "0 failed"),
    ("call hours {\"text\":\"ice\"}", "\"ok\": true"),
    ("kb check", "1 sound record"),
    ("kb build", "1 record in state/kb.db"),
    ("kb search round", "doc:hull"),
    ("kb get doc:hull", "It is round."),
    ("kb stats", "1 record"),
    ("kb export", "doc:hull"),
    ("calendar import room.ics", "1 event imported into office"),
    ("calendar list --from 2026-01-14 --to 2026-01-15", "office"),
    ("calendar export", "room@fram"),
    ("audit tail", "operator"),
    ("audit query", "operator"),
    ("audit export", "import_calendar"),
    ("audit verify", "state/audit.jsonl: 1 line, whole"),
    ("sessions", "no such sessions"),
    ("blocks", "no client is blocked"),
    ("clients", "no client"),
    ("backup monday", "the audit trail (1 file)"),
];

#[test]
fn every_command_takes_its_folders_from_the_configuration() {
    let files = site();
    for (typed, expected) in COMMANDS {
        let words: Vec<_> = typed.split(' ').collect();
        let output = quarterdeck(files.path(), &words);
        let printed = printed(&output);
        assert!(output.status.success() && printed.contains(expected), "{typed}: {printed}");
    }
    assert!(!files.join(".quarterdeck").exists() && !files.join("tools").exists());
}

#[test]
fn a_flag_wins_over_the_configuration() {
    let files = site();
    let made = quarterdeck(files.path(), &["new", "hours", "--tools", "other"]);
    assert!(printed(&made).contains("next: quarterdeck test hours --tools other"), "{}", printed(&made));
    let taken = quarterdeck(
        files.path(),
        &["calendar", "import", "room.ics", "--calendar", "team", "--data", "elsewhere"],
    );
    assert!(printed(&taken).contains("imported into team"), "{}", printed(&taken));
    assert!(files.join("elsewhere/quarterdeck.db").exists() && !files.join("state").exists());
}

#[test]
fn the_calendars_are_those_of_the_configuration() {
    let files = site();
    let refused = quarterdeck(files.path(), &["calendar", "import", "room.ics", "--calendar", "primary"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(printed(&refused).contains("there is no calendar \"primary\"; there are office, team"));
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools");
    let day = r#"{ "start_date": "2026-01-14T00:00:00Z", "end_date": "2026-01-15T00:00:00Z", "calendars": ["CALENDAR"] }"#;
    let ask = |calendar: &str| {
        let mut command = command(files.path());
        command.args(["call", "calendar-get-availability", &day.replace("CALENDAR", calendar), "--tools"]);
        printed(&command.arg(&tools).output().unwrap())
    };
    assert!(ask("team").contains("\"ok\": true"), "{}", ask("team"));
    assert!(ask("primary").contains("there are office, team"), "{}", ask("primary"));
}

#[test]
fn a_configuration_that_is_wrong_stops_every_command_and_is_told_with_its_place() {
    let files = tree("//- quarterdeck.toml\n[data]\nfoldr = \"state\"\n");
    for (typed, _) in COMMANDS {
        let words: Vec<_> = typed.split(' ').collect();
        let output = quarterdeck(files.path(), &words);
        assert_eq!(output.status.code(), Some(2), "{typed}");
        let printed = printed(&output);
        assert!(printed.contains("quarterdeck.toml:2: there is no key `data.foldr`"), "{typed}: {printed}");
    }
}

#[test]
fn what_only_a_server_needs_is_not_asked_of_an_operator() {
    let files = site();
    let path = files.join("quarterdeck.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    // No admin token, no key, no model, and a file that only the server may read.
    let server = "[server]\nlisten = \"0.0.0.0:80\"\ncookie_secret_file = \"secrets/cookie\"\n[text]\nprovider = \"openai\"\n";
    std::fs::write(&path, text + server).unwrap();
    let checked = quarterdeck(files.path(), &["kb", "check"]);
    assert!(checked.status.success(), "{}", printed(&checked));
    let served = quarterdeck(files.path(), &["config"]);
    assert_eq!(served.status.code(), Some(1), "{}", printed(&served));
}
