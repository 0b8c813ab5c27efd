//! A site with one small tool and no knowledge base, so that its server starts at once, and a data folder that
//! was used.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use quarterdeck_testkit::{Tree, tree};

use crate::serve::{self, ANYWHERE, Server};
use crate::terminal::quarterdeck;

pub(crate) struct Site {
    pub(crate) files: Tree,
}

impl Site {
    /// With a tool, and nothing served yet.
    pub(crate) fn new() -> Self {
        let files = tree("");
        assert!(quarterdeck(files.path(), &["new", "word-count"]).status.success());
        Self { files }
    }

    /// After a server has been talked to and was stopped.
    pub(crate) fn used() -> Self {
        let site = Self::new();
        let server = site.start(&[]);
        // Three clients, each with a session.
        for _ in 0..3 {
            let (status, _, answer) = server.ask("POST", "/api/chat", "", r#"{"message":"Hello there"}"#);
            assert_eq!(status, 200, "{answer}");
        }
        server.signal("-TERM");
        assert_eq!(server.ended().0, Some(0));
        site
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.files.join("data")
    }

    pub(crate) fn tools(&self) -> PathBuf {
        self.files.join("tools")
    }

    /// `serve` with these options, ready to be run.
    pub(crate) fn serve(&self, options: &[&str]) -> Command {
        let mut command = serve::command(&self.data(), ANYWHERE);
        command.arg("--tools").arg(self.tools()).arg("--kb").arg(self.files.join("no-kb")).args(options);
        command
    }

    pub(crate) fn start(&self, options: &[&str]) -> Server {
        Server::begin(&mut self.serve(options))
    }

    /// Runs a server that must not come up, and gives what it said.
    pub(crate) fn refused(&self, options: &[&str]) -> String {
        let output = ended_at_once(&mut self.serve(options));
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{printed}");
        printed
    }

    /// Every file of the data folder with its bytes, but for what is made by looking.
    pub(crate) fn kept(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        contents(&self.data())
    }
}

/// Waits for a command that should end by itself; a server that comes up is stopped.
pub(crate) fn ended_at_once(command: &mut Command) -> Output {
    let mut child = command.spawn().unwrap();
    let began = std::time::Instant::now();
    while child.try_wait().unwrap().is_none() {
        if began.elapsed() > std::time::Duration::from_secs(60) {
            child.kill().unwrap();
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    child.wait_with_output().unwrap()
}

pub(crate) fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let is_made_by_looking = |path: &Path| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        name == "lock"
            || name.ends_with("-shm")
            || (name.ends_with("-wal") && path.metadata().unwrap().len() == 0)
    };
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files
        .filter(|path| path.is_file() && !is_made_by_looking(path))
        .map(|path| (path.clone(), fs::read(&path).unwrap()))
        .collect()
}
