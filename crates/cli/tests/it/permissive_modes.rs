//! What others may read or replace is warned about at the start, with what mends it.

use std::fs::{self, Permissions, set_permissions};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::Command;

use crate::serve::Server;
use crate::small_site::Site;

fn set_mode(path: &Path, mode: u32) {
    set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// The warnings of a start.
fn warnings(site: &Site) -> Vec<String> {
    let server = site.start(&[]);
    server.printed.iter().filter(|line| line.starts_with("warning:")).cloned().collect()
}

#[test]
fn a_folder_or_a_file_that_is_wider_than_its_owner_is_warned_about() {
    let site = Site::used();
    assert_eq!(warnings(&site), Vec::<String>::new(), "what we make is our own");
    let data = site.data();
    for (name, mode, expected) in [
        ("", 0o777, "others may write to the data folder"),
        ("", 0o770, "others may write to the data folder"),
        ("", 0o1777, "others may look into the data folder"),
        ("", 0o755, "others may look into the data folder"),
        ("", 0o710, "others may look into the data folder"),
        ("cookie_secret", 0o644, "which holds `server.cookie_secret`, can be used by others (mode 0644)"),
        ("cookie_secret", 0o640, "can be used by others (mode 0640)"),
        ("cookie_secret", 0o660, "can be used by others (mode 0660)"),
        ("audit.jsonl", 0o644, "holds what users wrote"),
        ("quarterdeck.db", 0o604, "holds what users wrote"),
    ] {
        let path = if name.is_empty() { data.clone() } else { data.join(name) };
        let before = fs::metadata(&path).unwrap().permissions();
        set_mode(&path, mode);
        let printed = warnings(&site);
        assert_eq!(printed.len(), 1, "{name} {mode:o}: {printed:?}");
        let mends = format!("`chmod {} {}`", if name.is_empty() { 700 } else { 600 }, path.display());
        assert!(printed[0].contains(expected) && printed[0].contains(&mends), "{name} {mode:o}: {printed:?}");
        set_permissions(&path, before).unwrap();
    }
}

#[test]
fn a_secret_that_every_user_may_write_is_refused() {
    let site = Site::used();
    let secret = site.data().join("cookie_secret");
    for mode in [0o666, 0o602, 0o777] {
        set_mode(&secret, mode);
        let printed = site.refused(&[]);
        assert!(
            printed.contains("can be written by every user") && printed.contains("chmod 600"),
            "{printed}"
        );
    }
    set_mode(&secret, 0o600);
    let token = site.files.join("token");
    fs::write(&token, "a token that is hard to guess").unwrap();
    set_mode(&token, 0o646);
    let output = site.serve(&[]).env("QUARTERDECK_SERVER__ADMIN_TOKEN_FILE", &token).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{printed}");
    assert!(printed.contains("`server.admin_token`, can be written by every user"), "{printed}");
}

#[test]
fn every_secret_that_is_read_from_a_file_is_looked_at() {
    let site = Site::used();
    let files = ["token", "cookies", "partner"].map(|name| site.files.join(name));
    for file in &files {
        fs::write(file, format!("a secret that is hard to guess: {}", "x".repeat(32))).unwrap();
        set_mode(file, 0o644);
    }
    let mut command = site.serve(&[]);
    command
        .env("QUARTERDECK_SERVER__ADMIN_TOKEN_FILE", &files[0])
        .env("QUARTERDECK_SERVER__COOKIE_SECRET_FILE", &files[1])
        .env("QUARTERDECK_AUTH__SECRET_FILE", &files[2]);
    let server = Server::begin(&mut command);
    let printed = server.printed.join("\n");
    for (file, key) in files.iter().zip(["server.admin_token", "server.cookie_secret", "auth.secret"]) {
        let line = format!("warning: {}, which holds `{key}`, can be used by others", file.display());
        assert!(printed.contains(&line), "{line}: {printed}");
        assert!(!printed.contains("a secret that is hard to guess"), "{printed}");
    }
}

#[expect(clippy::print_stderr, reason = "a test that could not look says so")]
#[test]
fn a_secret_that_is_a_link_or_belongs_to_another_user_is_warned_about() {
    let site = Site::used();
    let secret = site.data().join("cookie_secret");
    let elsewhere = site.files.join("elsewhere");
    fs::rename(&secret, &elsewhere).unwrap();
    symlink(&elsewhere, &secret).unwrap();
    let printed = warnings(&site);
    assert!(printed.len() == 1 && printed[0].contains("is a symbolic link"), "{printed:?}");
    fs::remove_file(&secret).unwrap();
    fs::rename(&elsewhere, &secret).unwrap();

    let is_root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
    if !is_root {
        return eprintln!("not checked: only root can give a file to another user");
    }
    chown(&secret, Some(65_534), None).unwrap();
    let printed = warnings(&site);
    assert!(printed.len() == 1 && printed[0].contains("belongs to another user (uid 65534)"), "{printed:?}");
}
