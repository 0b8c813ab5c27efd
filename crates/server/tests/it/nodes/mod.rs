//! Two nodes on one store.

mod calls;
mod forwarding;
mod limits;
mod mcp;
mod proxy;
mod requests;

use std::sync::Arc;

use quarterdeck_server::Settings;
use quarterdeck_store::MemoryStore;

use crate::world::World;
use proxy::Proxy;

/// Two nodes that share a store.
async fn pair(settings: Settings) -> [World; 2] {
    let store = Arc::<MemoryStore>::default();
    let nodes = [World::node(&store, "a", settings.clone()).await, World::node(&store, "b", settings).await];
    // Each has seen the other.
    nodes[0].orchestrator.renew_node().await.unwrap();
    nodes
}

/// The same, the first of which the other reaches through a proxy.
async fn pair_behind_proxy(settings: Settings) -> ([World; 2], Proxy) {
    let store = Arc::<MemoryStore>::default();
    let mut proxy = Proxy::bind().await;
    let a = World::node_behind(&store, "a", settings.clone(), Some(proxy.address)).await;
    proxy.start(a.address);
    let b = World::node(&store, "b", settings).await;
    a.orchestrator.renew_node().await.unwrap();
    ([a, b], proxy)
}
