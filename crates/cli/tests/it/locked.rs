//! `serve --locked`: exactly the artifact that was built, or nothing. And without it, a word when one is replaced.

use std::fs;

use serde_json::Value;

use crate::serve::Server;
use crate::small_site::Site;
use crate::terminal::{quarterdeck, stdout_json};

/// Builds the tools, and gives the digest that is printed.
fn build(site: &Site) -> String {
    let output = quarterdeck(site.files.path(), &["build"]);
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{printed}");
    let digest = printed
        .lines()
        .find_map(|line| line.strip_prefix("digest "))
        .expect("it prints the digest")
        .to_owned();
    assert_eq!(digest.len(), 64);
    digest
}

fn edit(site: &Site, file: &str, change: impl FnOnce(String) -> String) {
    let path = site.tools().join(file);
    let text = fs::read_to_string(&path).unwrap();
    let changed = change(text.clone());
    assert_ne!(text, changed);
    fs::write(path, changed).unwrap();
}

fn registry_of(server: &Server) -> Value {
    serde_json::from_str(&server.get("/api/deck/registry").1).unwrap()
}

#[test]
fn a_locked_server_serves_what_was_built_whatever_the_sources_say_now() {
    let site = Site::new();
    let digest = build(&site);
    let artifact = fs::read(site.tools().join("tool_registry.json")).unwrap();
    let first = registry_of(&site.start(&["--locked"]));
    // A definition and a guide that were changed are not what is served, and nothing is compiled.
    edit(&site, "word-count/schema.json", |text| text.replacen("\"version\": \"", "\"version\": \"7", 1));
    edit(&site, "word-count/guide.md", |text| text + "\nMore words.\n");
    fs::create_dir(site.tools().join("half-a-tool")).unwrap();
    for options in [
        &["--locked", "--artifact-digest", &digest][..],
        &["--artifact-digest", &digest.to_uppercase()],
        &["--locked"],
    ] {
        let server = site.start(options);
        assert!(!server.printed.join("\n").contains("compiling"), "{:?}", server.printed);
        assert_eq!(registry_of(&server)["version"], first["version"]);
    }
    assert_eq!(fs::read(site.tools().join("tool_registry.json")).unwrap(), artifact);
    let mut by_variable = site.serve(&[]);
    by_variable.env("QUARTERDECK_TOOLS__ARTIFACT_DIGEST", &digest);
    assert_eq!(registry_of(&Server::begin(&mut by_variable))["version"], first["version"]);
}

#[test]
fn a_locked_server_refuses_everything_else_with_the_way_out() {
    let site = Site::new();
    let printed = site.refused(&["--locked"]);
    assert!(
        printed.contains("a locked server compiles nothing") && printed.contains("quarterdeck build"),
        "{printed}"
    );
    assert!(!site.tools().join("tool_registry.json").exists(), "nothing was made");

    let digest = build(&site);
    let artifact = site.tools().join("tool_registry.json");
    let built = fs::read_to_string(&artifact).unwrap();
    let other = "0".repeat(64);
    let printed = site.refused(&["--artifact-digest", &other]);
    assert!(printed.contains(&format!("has the digest {digest}")) && printed.contains(&other), "{printed}");

    // Every byte of a handler counts, an added one too; so does its absence.
    let handler = "word-count/handler.js";
    let original = fs::read_to_string(site.tools().join(handler)).unwrap();
    for changed in [
        format!("{original} "),
        original.replacen("const", "var", 1),
        format!("//\n{original}"),
        String::new(),
    ] {
        fs::write(site.tools().join(handler), &changed).unwrap();
        let printed = site.refused(&["--locked", "--artifact-digest", &digest]);
        assert!(
            printed.contains("word-count/handler.js has changed since the artifact was built"),
            "{printed}"
        );
    }
    fs::remove_file(site.tools().join(handler)).unwrap();
    assert!(site.refused(&["--locked"]).contains("word-count/handler.js has gone"));
    fs::write(site.tools().join(handler), &original).unwrap();

    // An artifact that was altered: in a tool, in its own hash, or so that it is none.
    for (from, to) in [
        ("word_count", "word_c0unt"),
        (&digest[..], &other[..]),
        ("\"formatVersion\": 1", "\"formatVersion\": 2"),
    ] {
        fs::write(&artifact, built.replace(from, to)).unwrap();
        let printed = site.refused(&["--locked", "--artifact-digest", &digest]);
        assert!(
            printed.contains("error:") && printed.contains("help:") || printed.contains("build"),
            "{printed}"
        );
    }
    fs::write(&artifact, &built[..built.len() / 2]).unwrap();
    assert!(site.refused(&["--locked"]).contains("is not a registry artifact"));
    fs::write(&artifact, &built).unwrap();
    drop(site.start(&["--locked", "--artifact-digest", &digest]));
}

#[test]
fn a_digest_that_is_none_is_refused_with_its_place() {
    let site = Site::new();
    let output = site.serve(&["--artifact-digest", "latest"]).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{printed}");
    assert!(printed.contains("--artifact-digest") && printed.contains("64 hexadecimal digits"), "{printed}");
}

#[test]
fn an_artifact_that_is_replaced_is_said_and_on_the_record() {
    let site = Site::used();
    let replaced = |server: &Server| {
        let printed: Vec<_> =
            server.printed.iter().filter(|line| line.contains("is replaced")).cloned().collect();
        let lines: Value =
            serde_json::from_str(&server.get("/api/deck/audit?event=registry_replaced").1).unwrap();
        (printed, lines["lines"].as_array().unwrap().len(), lines["lines"][0].clone())
    };
    assert_eq!(replaced(&site.start(&[])), (vec![], 0, Value::Null), "nothing has changed");
    edit(&site, "word-count/guide.md", |text| text + "\nMore words.\n");
    assert!(quarterdeck(site.files.path(), &["new", "second"]).status.success());
    let server = site.start(&[]);
    let (printed, count, line) = replaced(&server);
    assert!(printed.len() == 1 && printed[0].contains("second added, word_count changed"), "{printed:?}");
    assert!(printed[0].contains('→'), "{printed:?}");
    assert_eq!(count, 1);
    assert_eq!(line["tools"], serde_json::json!({ "second": "added", "word_count": "changed" }));
    assert_eq!(line["registryVersion"], registry_of(&server)["version"]);
    drop(server);
    assert_eq!(replaced(&site.start(&[])).0, Vec::<String>::new(), "once");

    // Built by hand, or brought from elsewhere: the word comes with the next start, locked or not.
    fs::remove_dir_all(site.tools().join("second")).unwrap();
    let built = stdout_json(&quarterdeck(site.files.path(), &["build", "--format", "json"]));
    let (printed, count, line) = replaced(&site.start(&["--locked"]));
    assert!(printed.len() == 1 && printed[0].contains("second removed"), "{printed:?}");
    assert_eq!((count, &line["digest"]), (2, &built["contentHash"]));
}

#[test]
fn a_foreign_file_in_the_place_of_the_artifact_keeps_every_byte() {
    let site = Site::new();
    let artifact = site.tools().join("tool_registry.json");
    for foreign in ["dear diary", "{\"registry\": \"of ships\"}\n", "\u{0}\u{1}\u{2}"] {
        fs::write(&artifact, foreign).unwrap();
        let server = site.start(&[]);
        assert!(
            server.printed.join("\n").contains("is not a registry artifact and was left alone"),
            "{:?}",
            server.printed
        );
        assert_eq!(fs::read_to_string(&artifact).unwrap(), foreign);
        drop(server);
        let output = quarterdeck(site.files.path(), &["build"]);
        assert_eq!(output.status.code(), Some(2));
        assert_eq!(fs::read_to_string(&artifact).unwrap(), foreign);
    }
}
