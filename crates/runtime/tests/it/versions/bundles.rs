//! A stored version is what was stored, or refused.

use std::fs;

use quarterdeck_runtime::{Audience, Bundle};
use serde_json::{Value, json};

use super::world::{Disk, World, bundles, digest};

#[test]
fn a_bundle_is_read_as_it_was_written() {
    let bundle = &bundles()[0];
    assert_eq!(Bundle::from_json(&bundle.to_json()).unwrap(), *bundle);
}

#[test]
fn everything_in_a_bundle_is_covered_by_its_digest() {
    let whole: Value = serde_json::from_str(&bundles()[0].to_json()).unwrap();
    let changed = |change: fn(&mut Value)| {
        let mut value = whole.clone();
        change(&mut value);
        assert_ne!(value, whole);
        Bundle::from_value(value).err().map(|error| error.to_string()).expect("it must be refused")
    };
    let file = changed(|it| it["files"]["say/handler.rs"] = json!("Zm9v"));
    assert!(file.contains("say/handler.rs has changed"), "{file}");
    let gone = changed(|it| drop(it["files"].as_object_mut().unwrap().remove("say/handler.rs")));
    assert!(gone.contains("say/handler.rs has gone"), "{gone}");
    let extra = changed(|it| it["files"]["../x"] = json!("Zm9v"));
    assert!(extra.contains("no tool of the artifact has the file"), "{extra}");
    changed(|it| it["files"]["say/handler.rs"] = json!("not base64!"));
    changed(|it| it["artifact"]["version"] = json!("1.0.00000000"));
    changed(|it| it["artifact"]["contentHash"] = json!("0".repeat(64)));
    changed(|it| it["artifact"]["formatVersion"] = json!(2));
    changed(|it| it["artifact"]["tools"][0]["hash"] = json!("0".repeat(64)));
    changed(|it| it["artifact"]["tools"][0]["summary"] = json!("Something else."));
    changed(|it| it["more"] = json!(1));
    for text in ["", "{}", "[]", "{\"artifact\":{},\"artifact\":{},\"files\":{}}"] {
        assert!(Bundle::from_json(text).is_err(), "{text}");
    }
}

#[tokio::test]
async fn a_stored_bundle_that_was_altered_is_refused_with_the_way_out() {
    let disk = Disk::new();
    let world = World::start(&disk, 0).await;
    world.activate(1).await;
    drop(world);
    let text = fs::read_to_string(disk.bundle_file(1)).unwrap();
    let damaged = text.replace("For tests.", "Not tested.");
    for stored in [damaged.as_str(), &text[..text.len() / 2], "", &bundles()[2].to_json()] {
        assert_ne!(stored, text);
        fs::write(disk.bundle_file(1), stored).unwrap();
        let world = World::start(&disk, 0).await;
        assert_eq!((world.loaded(), world.audit.count("version_not_loaded")), (vec![0], 1));
        let error = world.admin.activate(&digest(1), None, Audience::Everyone).await.err().unwrap();
        assert!(error.to_string().contains("activate the version again"), "{error}");
    }
    let world = World::start(&disk, 0).await;
    world.activate(1).await;
    assert_eq!(fs::read_to_string(disk.bundle_file(1)).unwrap(), text, "and is mended by the artifact");
}

#[cfg(unix)]
#[tokio::test]
async fn stored_bundles_are_for_their_owner_alone_and_bounded() {
    use std::os::unix::fs::PermissionsExt;
    let disk = Disk::new();
    let world = World::start(&disk, 0).await;
    world.activate(1).await;
    let mode = fs::metadata(disk.bundle_file(1)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // Twenty that are not loaded, older than those that are.
    for number in 0..20 {
        fs::write(disk.folder.path().join(format!("{number:064x}.json")), "old").unwrap();
    }
    world.activate(2).await;
    assert_eq!(world.admin.stored().len(), 8);
    assert!(disk.bundle_file(0).exists() && disk.bundle_file(1).exists() && disk.bundle_file(2).exists());
}
