//! Clients hear of new tools.

use rmcp::model::{ServerNotification, SubscriptionFilter};

use super::client::Generation;
use super::world::World;

async fn description(client: &super::client::Connected) -> String {
    let tools = client.service.list_all_tools().await.unwrap();
    let echo = tools.iter().find(|tool| tool.name == "echo").unwrap();
    echo.description.clone().unwrap().into_owned()
}

#[tokio::test]
async fn a_connected_client_is_told_and_lists_the_new_tools() {
    let world = World::new();
    let mut client = world.connect("ann", Generation::Handshake).await;
    assert_eq!(description(&client).await, "Does what it is told.");
    world.change_tools();
    assert_eq!(client.hears().await, "tools have changed");
    assert_eq!(description(&client).await, "Says the same again, louder.");
    client.call("echo", "a").await;
    assert_eq!(world.audit.count("session_start"), 1, "the session goes on");
}

#[tokio::test]
async fn a_client_that_listens_is_told_too() {
    let world = World::new();
    let client = world.connect("ann", Generation::Stateless).await;
    let filter = SubscriptionFilter::builder().tools_list_changed().resources_list_changed().build();
    let mut subscription = client.service.listen(filter).await.unwrap();
    let acknowledged = subscription.acknowledged();
    assert_eq!((acknowledged.tools_list_changed, acknowledged.resources_list_changed), (Some(true), None));
    world.change_tools();
    let told = subscription.next().await.unwrap();
    assert!(matches!(told, Some(ServerNotification::ToolListChangedNotification(_))), "{told:?}");
}

#[tokio::test]
async fn a_call_that_runs_keeps_its_session_on_the_tools_it_began_with() {
    let world = World::new();
    let client = world.connect("ann", Generation::Handshake).await;
    let running = client.call("book_slowly", "a boat");
    let meanwhile = async {
        world.effects.gate.wait_for_one().await;
        world.change_tools();
        let listed = description(&client).await;
        world.effects.gate.open.add_permits(1);
        listed
    };
    let (result, listed) = tokio::join!(running, meanwhile);
    assert_eq!(listed, "Does what it is told.");
    assert_eq!(result.is_error, Some(false), "{result:?}");
    assert_eq!(description(&client).await, "Says the same again, louder.");
}
