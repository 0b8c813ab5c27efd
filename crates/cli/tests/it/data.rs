//! A data folder with a little history in it, made by the library as a server would make it.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use quarterdeck_contracts::handler::NATIVE_KIND;
use quarterdeck_contracts::{Commit, Mode, Store, Table};
use quarterdeck_host_js::{HostConfig, JS_KIND, JsHost};
use quarterdeck_runtime::audit::{AuditEvent, AuditLog, AuditSink};
use quarterdeck_runtime::{Block, Client, Clock, Hosts, NativeHost, Orchestrator, Registry, RuntimeParts};
use quarterdeck_store::SqliteStore;
use quarterdeck_testkit::{Tree, tree};
use serde_json::{Value, json};

use crate::terminal::quarterdeck;

/// 2026-01-13T09:00:00Z.
pub(crate) const NINE: u64 = 1_768_294_800_000;

pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

pub(crate) fn store(files: &Tree) -> Arc<SqliteStore> {
    Arc::new(SqliteStore::open(files.join(".quarterdeck/quarterdeck.db")).unwrap())
}

/// Appends to the trail; a line is how many seconds after [`NINE`] it happened, its event and its fields.
pub(crate) fn record(files: &Tree, lines: &[(u64, &str, Value)]) {
    let store = store(files);
    let path = files.join(".quarterdeck/audit.jsonl");
    let log = run(AuditLog::open(&path, "local", store.clone())).unwrap();
    for (seconds, event, fields) in lines {
        let time = UNIX_EPOCH + Duration::from_millis(NINE) + Duration::from_secs(*seconds);
        let fields = fields.as_object().unwrap().clone();
        log.record(AuditEvent { event: (*event).into(), time, fields });
    }
    drop(log);
    run(store.close()).unwrap();
}

/// A trail of five lines.
pub(crate) fn with_trail() -> Tree {
    let files = tree("");
    let who = |more: Value| {
        let mut fields = json!({ "sessionId": "ses_1", "clientId": "fridtjof", "mode": "text" });
        fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        fields
    };
    let call = |tool: &str, more: Value| {
        let mut fields = who(json!({ "toolId": tool }));
        fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        fields
    };
    record(
        &files,
        &[
            (0, "session_start", who(json!({ "registryVersion": "1.0.0" }))),
            (1, "tool_execution", call("kb_search", json!({ "duration": 14, "ok": true }))),
            (
                2,
                "tool_execution",
                call("send_mail", json!({ "duration": 3, "ok": false, "errorType": "VALIDATION" })),
            ),
            (3, "confirmation", call("send_mail", json!({ "step": "approved" }))),
            (
                4,
                "tool_execution",
                json!({ "sessionId": "ses_2", "clientId": "hjalmar", "toolId": "kb\u{1b}[2Jsearch",
                        "duration": 9, "ok": false, "errorType": "NOT_FOUND" }),
            ),
        ],
    );
    files
}

struct Still(u64);

impl Clock for Still {
    fn now(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(NINE) + Duration::from_secs(self.0)
    }

    fn monotonic(&self) -> Duration {
        Duration::from_secs(self.0)
    }
}

/// Three sessions of two clients, one of whom is blocked and has a value kept.
pub(crate) fn with_sessions() -> Tree {
    let files = tree("");
    assert!(quarterdeck(files.path(), &["new", "word-count"]).status.success());
    assert!(quarterdeck(files.path(), &["build"]).status.success());
    let registry = registry(&files.join("tools"));
    let store = store(&files);
    run(async {
        for (seconds, id, client, mode) in [
            (0, "ses_1", "fridtjof", Mode::Text),
            (60, "ses_2", "hjalmar", Mode::Voice),
            (120, "ses_3", "fridtjof", Mode::Text),
        ] {
            let parts = RuntimeParts { clock: Arc::new(Still(seconds)), ..RuntimeParts::new(store.clone()) };
            let orchestrator = Orchestrator::new(parts);
            let client = Client::anonymous(client);
            orchestrator.open_as(id, client, mode, registry.snapshot()).await.unwrap();
        }
        let block = Block {
            client_id: "fridtjof".into(),
            until_ms: 4_102_444_800_000,
            message: "Please write to us instead.".into(),
            session_id: "ses_3".into(),
            at_ms: NINE,
            address: None,
        };
        let commit = Commit::default()
            .put(Table::Blocks, "fridtjof", json!(block))
            .put(Table::Values, "fridtjof/word_count/last", json!("ice"))
            .put(Table::Values, "fridtjof-2/word_count/last", json!("snow"));
        store.commit(commit).await.unwrap();
        store.close().await.unwrap();
    });
    files
}

pub(crate) fn registry(tools: &Path) -> Registry {
    let hosts = Hosts::default()
        .with(JS_KIND, Arc::new(JsHost::new(HostConfig::default()).unwrap()))
        .with(NATIVE_KIND, Arc::new(NativeHost::new(quarterdeck_tools::handlers())));
    Registry::load(&tools.join("tool_registry.json"), tools, hosts).unwrap()
}

/// The last line of the trail, without what changes from run to run.
pub(crate) fn last_line(files: &Tree) -> Value {
    let text = std::fs::read_to_string(files.join(".quarterdeck/audit.jsonl")).unwrap();
    let mut line: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    for name in ["seq", "prev", "hash", "time", "by"] {
        assert!(line.as_object_mut().unwrap().remove(name).is_some(), "{name}");
    }
    line
}
