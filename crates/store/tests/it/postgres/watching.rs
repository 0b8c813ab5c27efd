//! News between nodes, also after a connection that listens was cut.

use std::time::{Duration, Instant};

use futures_util::StreamExt;
use quarterdeck_contracts::{Change, ChangeEvent, Changes, Store};
use quarterdeck_testkit::{PostgresServer, PostgresVersion, block_on};

use super::support::{database_of, open};

fn change(key: &str) -> Change {
    Change { topic: "block".into(), key: key.into() }
}

/// What comes within ten seconds.
fn next(changes: &mut Changes) -> ChangeEvent {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        tokio::time::timeout(Duration::from_secs(10), changes.next())
            .await
            .expect("something is heard")
            .unwrap()
    })
}

#[test]
fn other_node_hears_each_change_once_and_reads_again_after_its_connection_was_cut() {
    let Some(server) = PostgresServer::shared(PostgresVersion::V18) else { return };
    let url = server.create_database();
    let (teller, listener) = (open(&url), open(&url));
    let mut heard = listener.watch();
    assert_eq!(next(&mut heard), ChangeEvent::Resync, "it listens");
    for n in 0..100 {
        teller.notify(change(&n.to_string()));
    }
    for n in 0..100 {
        assert_eq!(next(&mut heard), ChangeEvent::Changed(change(&n.to_string())));
    }
    server.execute(
        database_of(&url),
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query = 'LISTEN qd_changes'",
    );
    assert_eq!(next(&mut heard), ChangeEvent::Resync, "some may have been missed");
    teller.notify(change("after"));
    assert_eq!(next(&mut heard), ChangeEvent::Changed(change("after")));
    // One that does not fit a notification is not lost.
    teller.notify(change(&"\u{1}".repeat(3_000)));
    assert_eq!(next(&mut heard), ChangeEvent::Resync);
    // What was told just before the end is heard.
    teller.notify(change("last"));
    block_on(teller.close()).unwrap();
    assert_eq!(next(&mut heard), ChangeEvent::Changed(change("last")));
    block_on(listener.close()).unwrap();
    assert!(block_on(heard.next()).is_none(), "it ends with the store");
}

#[test]
fn notifying_never_waits() {
    let Some(server) = PostgresServer::start(PostgresVersion::V18) else { return };
    let store = open(&server.create_database());
    let mut heard = store.watch();
    server.stop();
    let begin = Instant::now();
    for n in 0..5_000 {
        store.notify(change(&n.to_string()));
    }
    assert!(begin.elapsed() < Duration::from_secs(1), "{:?}", begin.elapsed());
    // This node heard of them all the same, or was told to read again.
    assert!(matches!(next(&mut heard), ChangeEvent::Resync | ChangeEvent::Changed(_)));
}
