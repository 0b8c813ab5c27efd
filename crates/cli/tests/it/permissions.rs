//! Files that may not be read. Root may read everything, so as root the command runs as uid 65534.

use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use quarterdeck_testkit::tree;

use crate::terminal::{command, quarterdeck};

#[test]
fn a_file_without_permission_is_an_error_of_its_tool() {
    let files = tree("");
    assert!(quarterdeck(files.path(), &["new", "secret"]).status.success());
    assert!(quarterdeck(files.path(), &["new", "open"]).status.success());
    // The binary is copied to where every user may run it.
    let binary = files.join("quarterdeck");
    std::fs::copy(env!("CARGO_BIN_EXE_quarterdeck"), &binary).unwrap();
    set_permissions(files.path(), Permissions::from_mode(0o755)).unwrap();
    set_permissions(files.join("tools/secret/schema.json"), Permissions::from_mode(0o000)).unwrap();

    let is_root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
    let output = if is_root {
        let mut unprivileged = Command::new("setpriv");
        unprivileged.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&binary);
        unprivileged.current_dir(files.path()).args(["check", "--format", "json"]).output().unwrap()
    } else {
        command(files.path()).args(["check", "--format", "json"]).output().unwrap()
    };
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["errors"], 1, "{report:#}");
    assert_eq!(report["diagnostics"][0]["code"], "QD0003");
    assert_eq!(report["diagnostics"][0]["file"], "secret/schema.json");
}
