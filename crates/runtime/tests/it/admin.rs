//! What operators do: list, end, erase, lift.

use std::time::Duration;

use quarterdeck_contracts::{Commit, ConfirmationAnswer, Mode, Scan, Store, Table};
use quarterdeck_runtime::{
    Call, Client, ClientEvent, SessionError, end_stored_session, erase_client, find_block, lift_block,
    list_blocks, list_clients, list_recent_sessions, list_sessions,
};
use serde_json::{Value, json};

use crate::orchestrator::fixture::{Fixture, submit_one};

const DECADES: u64 = 4_000_000_000_000;

fn call(tool: &str, what: &str) -> Call {
    Call::new(tool, json!({ "what": what }))
}

/// Every row of the store, but the tables that erasing leaves alone.
async fn rows(store: &dyn Store) -> Vec<(Table, String, Value)> {
    let mut found = Vec::new();
    for table in Table::ALL.into_iter().filter(|table| !matches!(table, Table::Blocks | Table::Audit)) {
        let page = store.scan(table, Scan::prefix("", 10_000)).await.unwrap();
        found.extend(page.into_iter().map(|(key, row)| (table, key, row.value)));
    }
    found
}

/// Lets a client leave something in every table.
async fn leave_traces(fixture: &Fixture, client: &str) {
    let (session, connection) = fixture.open(client, Mode::Text).await;
    submit_one(&connection, call("book", "room").with_id(format!("call_{client}_01"))).await;
    submit_one(&connection, call("rare", "thing")).await;
    submit_one(&connection, call("rare_here", "thing")).await;
    submit_one(&connection, call("count", "n")).await;
    submit_one(&connection, call("typed_only", "x")).await;
    connection.submit(vec![call("pay", "rent")]).all().await;
    let Some(ClientEvent::Confirmation { request, .. }) = connection.try_next_event() else { panic!() };
    session
        .resolve_confirmation(request.token.unwrap().expose(), ConfirmationAnswer::Deny)
        .await
        .mark_delivered();
    session.begin_turn(None);
    connection.submit(vec![call("pay", "more")]).all().await;
    let (_voice, _) = fixture.open(client, Mode::Voice).await;
    let issued = json!({ "clientId": client, "pendingRequest": "hello", "expiresMs": 1 });
    let commit = Commit::default().put(Table::Sessions, format!("r/issued-{client}"), issued);
    fixture.store.commit(commit).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
}

#[tokio::test(start_paused = true)]
async fn erasing_a_client_takes_every_trace_of_them_and_nothing_of_another_client() {
    let fixture = Fixture::new();
    for client in ["anna", "an", "client"] {
        leave_traces(&fixture, client).await;
    }
    let before = rows(&*fixture.store).await;
    leave_traces(&fixture, "ann").await;
    let (_, connection) = fixture.open("ann", Mode::Text).await;
    submit_one(&connection, call("block", "x")).await;
    drop(connection);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let with_ann = rows(&*fixture.store).await;
    for table in [
        Table::Sessions,
        Table::Calls,
        Table::Confirmations,
        Table::SessionConfirmations,
        Table::Rates,
        Table::Values,
    ] {
        let count = |rows: &[(Table, String, Value)]| rows.iter().filter(|row| row.0 == table).count();
        assert!(count(&with_ann) > count(&before), "{table:?}");
    }
    let erased = erase_client(&*fixture.store, "ann").await.unwrap();
    assert_eq!(rows(&*fixture.store).await, before);
    assert_eq!(erased, (with_ann.len() - before.len()) as u64);
    let now_ms = 1_768_294_800_000;
    assert!(
        find_block(&*fixture.store, "ann", now_ms).await.unwrap().is_some(),
        "erasing is no way out of a block"
    );
    assert_eq!(erase_client(&*fixture.store, "ann").await.unwrap(), 0);
    assert_eq!(erase_client(&*fixture.store, "unknown").await.unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_has_outlived_its_place_in_the_index_is_erased_too() {
    let fixture = Fixture::new();
    let (session, _connection) = fixture.open("ann", Mode::Text).await;
    let index = format!("c/ann/{}", session.id());
    fixture.store.commit(Commit::default().delete(Table::Sessions, index)).await.unwrap();
    assert!(erase_client(&*fixture.store, "ann").await.unwrap() > 0);
    assert!(rows(&*fixture.store).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn sessions_and_clients_are_listed_the_latest_first() {
    let fixture = Fixture::new();
    let (ann, _a) = fixture.open("ann", Mode::Text).await;
    fixture.clock.advance(Duration::from_secs(1));
    let (anna, connection) = fixture.open("anna", Mode::Voice).await;
    submit_one(&connection, call("book", "room")).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let listed: Vec<_> = list_sessions(&*fixture.store).await.unwrap();
    let short: Vec<_> = listed
        .iter()
        .map(|it| (it.id.as_str(), it.client_id.as_str(), it.mode, it.turns, it.calls))
        .collect();
    assert_eq!(short, [(anna.id(), "anna", Mode::Voice, 1, 1), (ann.id(), "ann", Mode::Text, 1, 0)]);
    assert!(end_stored_session(&*fixture.store, ann.id()).await.unwrap());
    let listed: Vec<_> = list_clients(&*fixture.store).await.unwrap();
    let short: Vec<_> = listed.iter().map(|it| (it.id.as_str(), it.sessions, it.active)).collect();
    assert_eq!(short, [("anna", 1, 1), ("ann", 1, 0)]);
}

#[tokio::test(start_paused = true)]
async fn sessions_that_are_left_out_are_counted() {
    let fixture = Fixture::new();
    for client in ["ann", "anna", "ben"] {
        let _ = fixture.open(client, Mode::Text).await;
        fixture.clock.advance(Duration::from_secs(1));
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let recent = async |most| {
        let wanted = |session: &quarterdeck_runtime::SessionSummary| session.client_id.starts_with("ann");
        let recent = list_recent_sessions(&*fixture.store, most, 1_000, wanted).await.unwrap();
        let clients: Vec<_> = recent.sessions.into_iter().map(|session| session.client_id).collect();
        (clients.join(" "), recent.matching, recent.examined, recent.is_complete)
    };
    assert_eq!(recent(2).await, ("anna ann".into(), 2, 3, true));
    assert_eq!(recent(1).await, ("anna".into(), 2, 3, false));
}

#[tokio::test(start_paused = true)]
async fn a_session_that_an_operator_ended_stays_ended_and_is_forgotten_in_time() {
    let fixture = Fixture::new();
    let (session, connection) = fixture.open("ann", Mode::Text).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let id = session.id().to_owned();
    drop((session, connection));
    assert!(end_stored_session(&*fixture.store, &id).await.unwrap());
    assert!(!end_stored_session(&*fixture.store, &id).await.unwrap(), "once");
    assert!(!end_stored_session(&*fixture.store, "ses_unheard_of").await.unwrap());
    let resumed = fixture.orchestrator.resume(&id, Client::anonymous("ann"), fixture.snapshot.clone()).await;
    assert!(matches!(resumed, Err(SessionError::Ended)));
    fixture.store.sweep(DECADES).await.unwrap();
    assert!(rows(&*fixture.store).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn blocks_are_listed_run_out_and_can_be_lifted() {
    let fixture = Fixture::new();
    let store = &*fixture.store;
    let now_ms = 1_768_294_800_000;
    for client in ["ann", "anna"] {
        let (_, connection) = fixture.open(client, Mode::Text).await;
        assert!(submit_one(&connection, call("block", "x")).await.is_ok());
    }
    let found = find_block(store, "ann", now_ms).await.unwrap().unwrap();
    assert_eq!(
        (found.client_id.as_str(), found.until_ms, found.message.as_str()),
        ("ann", now_ms + 60_000, "Bye.")
    );
    let listed =
        |rows: Vec<quarterdeck_runtime::Block>| rows.into_iter().map(|it| it.client_id).collect::<Vec<_>>();
    assert_eq!(listed(list_blocks(store, now_ms).await.unwrap()), ["ann", "anna"]);
    assert!(find_block(store, "ann", now_ms + 59_999).await.unwrap().is_some());
    assert!(find_block(store, "ann", now_ms + 60_000).await.unwrap().is_none(), "it has run out");
    assert!(list_blocks(store, now_ms + 60_000).await.unwrap().is_empty());
    assert!(!lift_block(store, "an", now_ms).await.unwrap());
    assert!(lift_block(store, "ann", now_ms).await.unwrap());
    assert!(!lift_block(store, "ann", now_ms).await.unwrap());
    assert_eq!(listed(list_blocks(store, now_ms).await.unwrap()), ["anna"]);
}
