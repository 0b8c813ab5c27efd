use std::fs;

use quarterdeck_compiler::write_artifact;
use quarterdeck_testkit::tree;

use crate::world::{SOUND, artifact, patched, sound};

#[test]
fn the_same_sources_give_the_same_bytes_wherever_they_lie() {
    let (here, there) = (artifact(&sound()), artifact(&sound()));
    assert_eq!(serde_json::to_string(&here).unwrap(), serde_json::to_string(&there).unwrap());
    assert_eq!(here.version, format!("1.0.{}", &here.content_hash[..8]));
    let text = serde_json::to_string(&here).unwrap();
    assert!(!text.contains(&*std::env::temp_dir().to_string_lossy()), "no absolute path is in an artifact");
}

#[test]
fn the_version_follows_everything_that_changes_behaviour_and_nothing_else() {
    let version = |files: &quarterdeck_testkit::Tree| artifact(files).version;
    let original = version(&sound());

    let reformatted = sound();
    let text = fs::read_to_string(reformatted.join("greet/schema.json")).unwrap();
    let compact: serde_json::Value = serde_json::from_str(&text).unwrap();
    reformatted.write("greet/schema.json", compact.to_string());
    assert_eq!(version(&reformatted), original);

    let described = patched(serde_json::json!({ "description": "Greets someone." }));
    assert_ne!(version(&described), original);

    let documented = tree(&SOUND.replace("Fridtjof", "Hjalmar"));
    assert_ne!(version(&documented), original);

    let coded = tree(&SOUND.replace("Hello", "Hallo"));
    assert_ne!(version(&coded), original);
}

#[test]
fn an_artifact_is_written_whole_and_leaves_nothing_else_behind() {
    let files = sound();
    let artifact = artifact(&files);
    let out = quarterdeck_testkit::tree("//- registry.json\n{ \"formatVersion\": 0, \"an old one\"");
    write_artifact(&artifact, &out.join("registry.json")).unwrap();
    let text = fs::read_to_string(out.join("registry.json")).unwrap();
    assert_eq!(serde_json::from_str::<quarterdeck_contracts::Artifact>(&text).unwrap(), artifact);
    assert_eq!(fs::read_dir(out.path()).unwrap().count(), 1);
}

#[test]
fn a_file_that_is_no_artifact_is_not_written_over() {
    let artifact = artifact(&sound());
    let out = quarterdeck_testkit::tree("");
    let path = out.join("registry.json");
    for foreign in ["old", "{\"tools\": []}", "\u{0}\u{1}", "[\"formatVersion\"]"] {
        fs::write(&path, foreign).unwrap();
        let error = write_artifact(&artifact, &path).unwrap_err();
        assert!(
            error.source.to_string().contains("is not a registry artifact and was left alone"),
            "{error:?}"
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), foreign);
    }
    fs::write(&path, "").unwrap();
    write_artifact(&artifact, &path).unwrap();
}

#[test]
fn an_artifact_that_cannot_be_written_leaves_what_was_there() {
    let files = sound();
    let artifact = artifact(&files);
    let out = tree("//- folder/inside.txt\nkeep");
    // A folder stands where the file should go, so the last step fails.
    let error = write_artifact(&artifact, &out.join("folder")).unwrap_err();
    assert!(error.to_string().starts_with("cannot write "));
    assert_eq!(fs::read_to_string(out.join("folder/inside.txt")).unwrap(), "keep\n");
    assert_eq!(fs::read_dir(out.path()).unwrap().count(), 1, "the partial file is gone");
}
