//! Lists of tools that are too long.

use std::time::Duration;

use quarterdeck_contracts::ErrorType;
use quarterdeck_host_mcp::UpstreamLimits;

use crate::memory::within;
use crate::world::{BOOKING, Settings, World, error};

const MEGABYTE: u64 = 1_000_000;

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_200_000_tools_is_refused_within_bounded_memory() {
    refused("huge-list").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_that_never_end_are_not_read_forever() {
    let world = refused("endless-pages").await;
    let pages = world.notes.count("tools/list") / world.notes.processes().len().max(1);
    assert!(pages <= UpstreamLimits::default().max_tools + 1, "{pages} pages were read");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_that_comes_again_ends_the_reading() {
    let world = refused("same-page").await;
    let pages = world.notes.count("tools/list") / world.notes.processes().len().max(1);
    assert!(pages <= UpstreamLimits::default().max_tools + 1, "{pages} pages were read");
}

async fn refused(behaviour: &str) -> World {
    let limits = UpstreamLimits {
        min_backoff: Duration::from_secs(600),
        max_backoff: Duration::from_secs(600),
        ..UpstreamLimits::default()
    };
    let world = World::stdio_with(behaviour, Settings { limits, ..Settings::default() });
    let response = within(60 * MEGABYTE, world.call(BOOKING, "it")).await;
    assert_eq!(error(&response).kind, ErrorType::Unavailable, "{behaviour}");
    assert_eq!(world.notes.count("tools/call"), 0);
    world
}
