//! PgBouncer in transaction mode between the store and its server: four connections for everything, none of them ours.

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::StreamExt;
use quarterdeck_contracts::{Change, ChangeEvent, Changes, Store};
use quarterdeck_testkit::{Pooler, PostgresServer, PostgresVersion, durable_store_promises, store_promises};

use super::support::{address_of_folder, open, open_folder};

store_promises!(in store_behind_a_pooler_keeps_every_promise, open_pooled);
durable_store_promises!(in store_behind_a_pooler_keeps_every_durable_promise, open_pooled);

fn pooler() -> Option<&'static Pooler> {
    static POOLER: OnceLock<Option<Pooler>> = OnceLock::new();
    POOLER.get_or_init(|| Pooler::start(PostgresServer::shared(PostgresVersion::V16)?)).as_ref()
}

fn open_pooled(folder: &Path) -> Arc<dyn Store> {
    match (address_of_folder(PostgresVersion::V16, folder), pooler()) {
        (Some(url), Some(pooler)) => Arc::new(open(&pooler.url(&url))),
        _ => open_folder(PostgresVersion::V16, folder),
    }
}

async fn next(changes: &mut Changes) -> ChangeEvent {
    tokio::time::timeout(Duration::from_secs(30), changes.next()).await.expect("something is heard").unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_are_heard_past_the_pooler_or_looked_for() {
    let (Some(server), Some(pooler)) = (PostgresServer::shared(PostgresVersion::V16), pooler()) else {
        return;
    };
    let url = server.create_database();
    let change = Change { topic: "block".into(), key: "ann".into() };
    let told = open(&pooler.url(&url));
    let direct = open(&format!("{}&direct=127.0.0.1:{}", pooler.url(&url), server.port()));
    let mut heard = direct.watch();
    assert_eq!(next(&mut heard).await, ChangeEvent::Resync);
    told.notify(change.clone());
    assert_eq!(next(&mut heard).await, ChangeEvent::Changed(change));

    // Through the pooler nothing may be heard; then the watcher is told to look, again and again.
    let mut looking = told.watch();
    for _ in 0..2 {
        assert_eq!(next(&mut looking).await, ChangeEvent::Resync);
    }
}
