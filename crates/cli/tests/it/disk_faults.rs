//! A disk that is full, read-only or limited is said to be that, and nothing is called damaged or set aside for it.
//!
//! Limits on the size of files and on their number need no privilege. A full and a read-only file system are mounted in
//! a user namespace; where the system allows none, that test says so and looks at the limits alone.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::json;

use crate::serve::Server;
use crate::small_site::{Site, contents};

/// The arguments of a server of a site, for a shell.
fn serve(site: &Site, data: &Path) -> String {
    format!(
        "{} serve --listen 127.0.0.1:0 --data {} --tools {} --kb {}",
        env!("CARGO_BIN_EXE_quarterdeck"),
        data.display(),
        site.tools().display(),
        site.files.join("no-kb").display()
    )
}

/// Runs a script in which a server must not come up; one that does is stopped after a while.
fn run(site: &Site, shell: &[&str], script: &str) -> Output {
    let mut command = Command::new(shell[0]);
    command.args(&shell[1..]).arg(script).current_dir(site.files.path());
    for variable in
        ["GEMINI_API_KEY", "GOOGLE_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY"]
    {
        command.env_remove(variable);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    crate::small_site::ended_at_once(&mut command)
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn assert_no_damage_reported(printed: &str) {
    let printed = printed.replace("nothing is damaged", "");
    for word in ["is damaged", "was damaged", "restore a backup", "--new-store", "moved aside"] {
        assert!(!printed.contains(word), "{word}: {printed}");
    }
}

const NAMESPACE: [&str; 6] = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"];

fn has_namespaces() -> bool {
    let mut probe = Command::new(NAMESPACE[0]);
    probe.args(&NAMESPACE[1..]).arg("mount -t tmpfs none /mnt").stderr(Stdio::null());
    probe.status().is_ok_and(|status| status.success())
}

#[expect(clippy::print_stderr, reason = "a test that could not look says so")]
#[test]
fn a_full_and_a_read_only_file_system_are_named_and_nothing_is_damaged() {
    if !has_namespaces() {
        return eprintln!("not checked: this system has no user namespaces to mount in");
    }
    let site = Site::used();
    let before = site.kept();
    let data = site.data().display().to_string();
    let mount = site.files.join("mount");
    fs::create_dir(&mount).unwrap();
    let there = mount.display();
    // Filled up to the last byte, with the data folder in it; what is left of it is copied out for a look.
    let copy = site.files.join("copy");
    for (name, spare) in [("full", 0), ("almost full", 20)] {
        let script = format!(
            "mount -t tmpfs -o size=4m tmpfs {there} && cp -r {data} {there}/data && \
             (dd if=/dev/zero of={there}/fill bs=1k count={} 2>/dev/null; dd if=/dev/zero of={there}/fill2 bs=1k 2>/dev/null; \
             dd if=/dev/null of={there}/fill2 bs=1k seek=0 2>/dev/null; truncate -s -{spare}k {there}/fill; true) && \
             {}; code=$?; rm -rf {} && cp -r {there}/data {}; exit $code",
            1 << 20,
            serve(&site, &mount.join("data")),
            copy.display(),
            copy.display()
        );
        let output = run(&site, &NAMESPACE, &script);
        let printed = printed(&output);
        assert_eq!(output.status.code(), Some(2), "{name}: {printed}");
        assert!(printed.contains("the disk is full"), "{name}: {printed}");
        assert_no_damage_reported(&printed);
        for (path, bytes) in &before {
            let now = fs::read(copy.join(path.file_name().unwrap())).unwrap();
            assert!(now == *bytes, "{name}: {} has changed", path.display());
        }
    }
    let script = format!(
        "mount --bind {data} {data} && mount -o remount,bind,ro {data} && {}",
        serve(&site, &site.data())
    );
    let output = run(&site, &NAMESPACE, &script);
    let read_only = printed(&output);
    assert_eq!(output.status.code(), Some(2), "{read_only}");
    assert!(read_only.contains("read-only") && read_only.contains("make it writable"), "{read_only}");
    assert_no_damage_reported(&read_only);
    assert!(site.kept() == before, "nothing has changed");
    drop(site.start(&[]));
}

#[test]
fn a_limit_on_files_is_named_and_nothing_is_damaged() {
    let site = Site::used();
    let before = site.kept();
    for (limit, expected) in [
        // No file may grow at all; none may grow beyond what the store needs to be opened.
        ("trap '' XFSZ; ulimit -f 0", "a limit on the size of files is reached"),
        ("trap '' XFSZ; ulimit -f 16", "a limit on the size of files is reached"),
        ("ulimit -n 6", "too many files are open"),
    ] {
        let output = run(&site, &["sh", "-c"], &format!("{limit}; exec {}", serve(&site, &site.data())));
        let printed = printed(&output);
        assert!(output.status.code().is_some_and(|code| code != 0), "{limit}: {printed}");
        assert!(printed.contains(expected), "{limit}: {printed}");
        assert_no_damage_reported(&printed);
        assert!(contents(&site.data()) == before, "{limit}: nothing has changed");
    }
    drop(site.start(&[]));
}

/// The same command, to which a limit on the size of files is an error and no signal.
fn with_limit_signals(command: &Command) -> Command {
    let mut printed = Command::new("sh");
    printed
        .args(["-c", "trap '' XFSZ; exec \"$@\"", "sh"])
        .arg(command.get_program())
        .args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => printed.env(name, value),
            None => printed.env_remove(name),
        };
    }
    printed.current_dir(command.get_current_dir().unwrap());
    printed.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    printed
}

/// Begins a session of MCP, and gives what calls the site's tool in it.
fn call_over_mcp(server: &Server) -> impl Fn() -> String {
    let post = move |headers: &str, message: serde_json::Value| {
        let common = "content-type: application/json\r\naccept: application/json, text/event-stream\r\n";
        server.ask("POST", "/mcp", &format!("{common}{headers}"), &message.to_string())
    };
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let (status, head, body) =
        post("", json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello }));
    assert_eq!(status, 200, "{body}");
    let session = head.lines().find(|line| line.starts_with("mcp-session-id: ")).unwrap();
    let headers = format!("{session}\r\nmcp-protocol-version: 2025-11-25\r\n");
    post(&headers, json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    let params = json!({ "name": "word_count", "arguments": { "text": "ice and snow" } });
    move || post(&headers, json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params })).2
}

#[test]
fn a_disk_that_refuses_under_a_running_server_makes_it_unready_until_it_takes_writes_again() {
    let site = Site::used();
    let server = Server::begin(&mut with_limit_signals(&site.serve(&[])));
    let limit = |bytes: &str| {
        let arguments = [format!("--fsize={bytes}:"), format!("--pid={}", server.child.id())];
        assert!(Command::new("prlimit").args(arguments).status().unwrap().success());
    };
    let call = call_over_mcp(&server);
    let say_hello = || server.ask("POST", "/api/chat", "", r#"{"message":"Hello"}"#).0;
    assert_eq!(server.get("/readyz").0, 200);
    // The memory that calls of a handler begin with is a file in memory, made with the first; the limit, which stands for the
    // disk here, would hold for it as well.
    assert!(call().contains("\"isError\":false"));
    limit("1");
    let (status, body) = server.get("/readyz");
    assert!(status == 503 && body.contains("\"storeWritable\":false"), "{status} {body}");
    for _ in 0..3 {
        assert_ne!(say_hello(), 200, "a session that cannot be stored is not begun");
    }
    let answer = call();
    assert!(answer.contains("\"isError\":false"), "what only reads is answered: {answer}");
    limit("unlimited");
    assert_eq!(server.get("/readyz").0, 200, "as soon as there is room again");
    assert_eq!(say_hello(), 200);
    call();
    drop(call);
    let (_, metrics) = server.get("/metrics?format=prometheus");
    let lost = metrics.lines().find_map(|line| line.strip_prefix("quarterdeck_audit_lost_lines_total "));
    assert!(
        lost.is_some_and(|lost| lost.parse::<u64>().unwrap() > 0),
        "it stays after the trail has told: {lost:?}"
    );
    let (_, _, verdict) = server.ask("POST", "/api/deck/audit/verify", "", "");
    assert!(verdict.contains("\"isWhole\":true"), "{verdict}");
    server.signal("-TERM");
    let (code, log) = server.ended();
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("a limit on the size of files is reached"), "{log}");
    assert_no_damage_reported(&log);
    drop(site.start(&[]));
}

#[test]
fn a_knowledge_base_on_a_disk_that_refuses_is_not_set_aside() {
    let site = Site::new();
    let kb = site.files.join("kb/studio/doc");
    fs::create_dir_all(&kb).unwrap();
    fs::write(kb.join("hull.md"), "# The hull\n\nColin Archer gave her a rounded hull.\n").unwrap();
    let build = |limit: &str| {
        let binary = env!("CARGO_BIN_EXE_quarterdeck");
        let cache = site.files.join("no-cache");
        let script = format!(
            "{limit}; XDG_CACHE_HOME={} exec {binary} kb build --data {}",
            cache.display(),
            site.data().display()
        );
        run(&site, &["sh", "-c"], &script)
    };
    let first = build("true");
    assert!(first.status.success(), "{}", printed(&first));
    let before = site.kept();
    fs::write(kb.join("sails.md"), format!("# Sails\n\n{}\n", "Three masts carried them. ".repeat(4_000)))
        .unwrap();
    let output = build("trap '' XFSZ; ulimit -f 32");
    let refused = printed(&output);
    assert_eq!(output.status.code(), Some(2), "{refused}");
    assert!(refused.contains("no sign of a damaged file"), "{refused}");
    assert_no_damage_reported(&refused);
    let file = site.data().join("kb.db");
    assert!(!site.data().join("kb.db.damaged-1").exists(), "{refused}");
    assert!(build("true").status.success());
    assert!(before.contains_key(&file) && file.exists());

    // A foreign file stays as it is.
    for foreign in [&b"a letter"[..], b"\x7fELF\x00\x01\x02", &[0; 4_096]] {
        fs::write(&file, foreign).unwrap();
        let output = build("true");
        assert_eq!(output.status.code(), Some(2), "{}", printed(&output));
        assert_eq!(fs::read(&file).unwrap(), foreign);
        assert!(!site.data().join("kb.db.damaged-1").exists());
    }
}
