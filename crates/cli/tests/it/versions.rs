//! Versions of the registry on a running server, as an operator handles them.

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use crate::serve::Server;
use crate::small_site::Site;
use crate::terminal::{quarterdeck, stdout_json};

/// A site whose tool answers with a word, built in two further folders with other words.
struct Versions {
    site: Site,
    /// The digest of the tools folder, and of the others.
    digests: [String; 3],
}

impl Versions {
    fn new() -> Self {
        let site = Site::new();
        let definition = site.tools().join("word-count/schema.json");
        let mut schema: Value = serde_json::from_str(&fs::read_to_string(&definition).unwrap()).unwrap();
        schema.as_object_mut().unwrap().remove("returns");
        fs::write(&definition, schema.to_string()).unwrap();
        let folders = ["tools", "second", "third"].map(|name| site.files.join(name));
        for (folder, word) in folders.iter().zip(["one", "two", "three"]) {
            fs::create_dir_all(folder.join("word-count")).unwrap();
            for file in ["schema.json", "guide.md"] {
                let from = site.tools().join("word-count").join(file);
                if *folder != site.tools() {
                    fs::copy(from, folder.join("word-count").join(file)).unwrap();
                }
            }
            let handler = format!(
                "export function execute() {{ return {{ ok: true, data: {{ says: '{word}' }} }}; }}\n"
            );
            fs::write(folder.join("word-count/handler.js"), handler).unwrap();
        }
        let digests = folders.map(|folder| build(&site, &folder));
        Self { site, digests }
    }

    fn artifact(&self, folder: &str) -> String {
        self.site.files.join(folder).join("tool_registry.json").display().to_string()
    }

    fn start(&self) -> Server {
        let [first, second, _] = &self.digests;
        self.site.start(&["--locked", "--artifact-digest", first, "--allow-digests", second])
    }

    fn run(&self, server: &Server, words: &[&str]) -> Output {
        let address = server.address.to_string();
        quarterdeck(self.site.files.path(), &[&["registry"], words, &["--server", &address]].concat())
    }

    /// Runs a command that must work, and gives what it said.
    fn works(&self, server: &Server, words: &[&str]) -> String {
        let output = self.run(server, words);
        let said = printed(&output);
        assert!(output.status.success(), "{words:?}: {said}");
        said
    }

    fn refused(&self, server: &Server, words: &[&str]) -> String {
        let output = self.run(server, words);
        let said = printed(&output);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        said
    }
}

fn build(site: &Site, folder: &Path) -> String {
    let options = ["build", "--tools", &folder.display().to_string(), "--format", "json"];
    let built = stdout_json(&quarterdeck(site.files.path(), &options));
    built["contentHash"].as_str().unwrap_or_else(|| panic!("{built}")).to_owned()
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout)
}

/// What the tool says in a new session.
fn says(server: &Server) -> Value {
    let body = json!({ "tool": "word_count", "args": { "text": "ice" } }).to_string();
    let (status, _, answer) =
        server.ask("POST", "/api/deck/playground", "content-type: application/json\r\n", &body);
    assert_eq!(status, 200, "{answer}");
    serde_json::from_str::<Value>(&answer).unwrap()["response"]["data"]["says"].clone()
}

fn label(digest: &str) -> String {
    format!("1.0.{}", &digest[..8])
}

#[test]
fn an_operator_activates_compares_rolls_back_and_retires_without_a_restart() {
    let versions = Versions::new();
    let [first, second, third] = &versions.digests;
    let server = versions.start();
    let (works, refused) =
        (|words: &[&str]| versions.works(&server, words), |words: &[&str]| versions.refused(&server, words));
    assert_eq!(says(&server), "one");
    assert!(works(&["list"]).contains(&label(first)));
    assert!(refused(&["activate", second]).contains("--artifact FILE"));
    let third_artifact = versions.artifact("third");
    let unlisted = refused(&["activate", third, "--artifact", &third_artifact]);
    assert!(unlisted.contains("not on its list") && unlisted.contains("--allow-digests"), "{unlisted}");
    let mistaken = refused(&["activate", second, "--artifact", &third_artifact]);
    assert!(mistaken.contains(third) && mistaken.contains("help:"), "{mistaken}");

    let second_artifact = versions.artifact("second");
    let activated = works(&["activate", second, "--artifact", &second_artifact]);
    assert!(activated.contains(&format!("new sessions get {}", label(second))), "{activated}");
    assert_eq!(says(&server), "two");
    let share = format!("30:{}", label(second));
    let rules = works(&["rollout", "--percent", &share, "--rest", &label(first), "--header-from", "ci"]);
    assert!(rules.contains("key ci") && rules.contains("30 % of clients"), "{rules}");
    assert!(refused(&["retire", &label(second)]).contains("registry rollout"), "a rule names it");
    assert!(refused(&["rollout", "--rest", "1.0.00000000"]).contains("registry list"));
    let listed = stdout_json(&versions.run(&server, &["list", "--format", "json"]));
    assert_eq!(listed["versions"].as_array().unwrap().len(), 2, "{listed}");
    assert_eq!(listed["versions"][1]["counters"]["calls"], 1, "{listed}");

    // Rolling back takes the digest alone.
    works(&["activate", first]);
    assert_eq!(says(&server), "one");
    assert!(works(&["retire", &label(second)]).contains("is dropped"));
    let trail: Value = serde_json::from_str(&server.get("/api/deck/audit?event=operator").1).unwrap();
    let actions: Vec<_> = trail["lines"].as_array().unwrap().iter().map(|line| &line["action"]).collect();
    for action in ["activate_version", "set_rollout", "retire_version"] {
        assert!(actions.iter().any(|found| *found == action), "{actions:?}");
    }
}

#[test]
fn after_a_restart_the_rollout_and_the_versions_are_what_they_were() {
    let versions = Versions::new();
    let [first, second, _] = &versions.digests;
    let server = versions.start();
    versions.works(&server, &["activate", second, "--artifact", &versions.artifact("second")]);
    server.signal("-TERM");
    assert_eq!(server.ended().0, Some(0));
    // Everything that the version needs is stored: the folder that it was built from is not read.
    fs::remove_dir_all(versions.site.files.join("second")).unwrap();
    let server = versions.start();
    assert!(
        server.printed.iter().any(|line| line.contains(&format!("new sessions get {}", label(second)))),
        "{:?}",
        server.printed
    );
    assert_eq!(says(&server), "two");
    versions.works(&server, &["rollout", "--rest", "start"]);
    assert_eq!(says(&server), "one");
    server.signal("-TERM");
    assert_eq!(server.ended().0, Some(0));

    // A list that leaves it out keeps it from being loaded.
    let server = versions.site.start(&["--locked", "--artifact-digest", first]);
    assert_eq!(says(&server), "one");
    let trail: Value =
        serde_json::from_str(&server.get("/api/deck/audit?event=version_not_loaded").1).unwrap();
    assert_eq!(trail["lines"][0]["digest"], json!(second), "{trail}");
    assert!(versions.refused(&server, &["activate", second]).contains("not on its list"));
}

#[test]
fn without_a_server_the_command_says_what_to_do() {
    let site = Site::new();
    let output = quarterdeck(site.files.path(), &["registry", "list", "--server", "127.0.0.1:9"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        printed(&output).contains("start it, or name another one with `--server"),
        "{}",
        printed(&output)
    );
}
