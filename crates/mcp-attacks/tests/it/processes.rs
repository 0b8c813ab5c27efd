//! Processes that do not start, do not end, or look around.

use std::time::{Duration, Instant};

use quarterdeck_contracts::{ErrorType, UpstreamState};
use quarterdeck_host_mcp::UpstreamLimits;

use crate::notes::is_running;
use crate::until::until;
use crate::world::{BOOKING, LOOK, Settings, World, assert_honest, error, for_model};

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_ignores_sigterm_is_killed_with_the_host() {
    let world = World::stdio("ignores-sigterm");
    assert_honest(&world.call_when_connected(LOOK, "it").await, "lookup", "it");
    let process = world.notes.processes()[0];
    assert!(is_running(process));
    world.host.stop().await;
    until("the process is gone", || (!is_running(process)).then_some(())).await;
    assert_eq!(world.notes.processes(), [process], "it is not started again");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_children_of_a_server_are_killed_with_it() {
    let world = World::stdio("leaves-grandchildren");
    assert_honest(&world.call_when_connected(LOOK, "it").await, "lookup", "it");
    let grandchild = u32::try_from(world.notes.of("grandchild")[0].as_u64().unwrap()).unwrap();
    assert!(is_running(grandchild));
    let folder = world.into_folder();
    until("the grandchild is gone", || (!is_running(grandchild)).then_some(())).await;
    drop(folder);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_children_of_a_server_that_died_are_killed_before_it_is_started_again() {
    let world = World::stdio("leaves-grandchildren");
    world.connected().await;
    let grandchild = u32::try_from(world.notes.of("grandchild")[0].as_u64().unwrap()).unwrap();
    kill(world.notes.processes()[0]);
    until("a second process was started", || (world.notes.processes().len() > 1).then_some(())).await;
    until("the grandchild is gone", || (!is_running(grandchild)).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_dies_at_once_is_started_again_with_growing_pauses() {
    let limits = UpstreamLimits {
        min_backoff: Duration::from_millis(200),
        max_backoff: Duration::from_secs(60),
        ..UpstreamLimits::default()
    };
    let world = World::stdio_with("dies-at-start", Settings { limits, ..Settings::default() });
    let start = Instant::now();
    let response = world.call(BOOKING, "it").await;
    assert_eq!(error(&response).kind, ErrorType::Unavailable);
    tokio::time::sleep(Duration::from_secs(3)).await;
    // 0.2 + 0.4 + 0.8 + 1.6 s; with jitter and a slow machine there is still a wide margin.
    let starts = world.notes.processes().len();
    assert!((1..=8).contains(&starts), "{starts} starts in {:?}", start.elapsed());
    // Calls meanwhile do not wait for it.
    let start = Instant::now();
    for _ in 0..5 {
        assert_eq!(error(&world.call(BOOKING, "it").await).kind, ErrorType::Unavailable);
    }
    assert!(start.elapsed() < Duration::from_secs(10));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_never_answers_the_handshake_is_given_up_and_killed() {
    let limits = UpstreamLimits {
        start_timeout: Duration::from_secs(1),
        min_backoff: Duration::from_secs(600),
        max_backoff: Duration::from_secs(600),
        stop_timeout: Duration::from_millis(200),
        ..UpstreamLimits::default()
    };
    let world = World::stdio_with("silent-start", Settings { limits, ..Settings::default() });
    let response = world.call(BOOKING, "it").await;
    assert_eq!(error(&response).kind, ErrorType::Unavailable);
    let process = until("it was started", || world.notes.processes().first().copied()).await;
    until("the process is gone", || (!is_running(process)).then_some(())).await;
    until("it counts as down", || (world.view().state == UpstreamState::Disconnected).then_some(())).await;
    assert_eq!(world.notes.count("tools/call"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_protocol_version_that_does_not_exist_is_not_spoken() {
    let world = World::stdio("wrong-version");
    let response = world.call(BOOKING, "it").await;
    assert_eq!(error(&response).kind, ErrorType::Unavailable);
    assert_eq!(world.notes.count("tools/call"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_finds_nothing_of_our_environment() {
    let world = World::stdio("tells-environment");
    let read = for_model(&world.call_when_connected(LOOK, "it").await);
    assert!(read.contains("environment"), "{read}");
    // Cargo gives every test these.
    for name in ["CARGO_MANIFEST_DIR", "CARGO_PKG_NAME", "\\\"HOME", "\\\"PATH"] {
        assert!(!read.contains(name), "{name} is in {read}");
    }
}

fn kill(process: u32) {
    let process = rustix::process::Pid::from_raw(i32::try_from(process).unwrap()).unwrap();
    rustix::process::kill_process(process, rustix::process::Signal::KILL).unwrap();
}
