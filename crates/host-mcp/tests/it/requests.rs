//! What a server asks of its client.

use quarterdeck_contracts::{RefusedRequest, UpstreamEvent};
use serde_json::json;

use crate::world::{Kind, World, call, data};

#[tokio::test(flavor = "multi_thread")]
async fn whatever_a_server_asks_for_is_refused_at_once_and_counted() {
    let world = World::stdio();
    let answer = data(call(&world.tool("ask", Kind::Reads), json!({})).await);
    assert_eq!(
        answer["text"],
        "roots/list: refused, sampling/createMessage: refused, elicitation/create: refused, else: refused"
    );
    assert_eq!(world.view().refused_requests, 4);
    let refused: Vec<_> = world
        .events()
        .into_iter()
        .filter_map(|event| match event {
            UpstreamEvent::Refused(request) => Some(request),
            _ => None,
        })
        .collect();
    assert_eq!(
        refused,
        [RefusedRequest::Roots, RefusedRequest::Sampling, RefusedRequest::Elicitation, RefusedRequest::Other]
    );
}
