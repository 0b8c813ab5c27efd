//! Shutdown.

use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::http::Open;
use crate::world::World;

#[tokio::test]
async fn draining_finishes_the_current_answer_and_refuses_new_ones() {
    let mut world = World::new().await;
    let mut running = world.post("/api/chat", &json!({ "message": "wait" })).open().await;
    running.until("You said").await;
    // A request whose head is still on its way when the server is asked to stop.
    let late = world.post("/api/chat", &json!({ "message": "hello" })).bytes();
    let mut connection = TcpStream::connect(world.address).await.unwrap();
    connection.write_all(&late[..20]).await.unwrap();
    // Another one, answered after it, shows that the server has the first part.
    assert_eq!(world.get("/healthz").send().await.status, 200);
    world.stop();
    while TcpStream::connect(world.address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    connection.write_all(&late[20..]).await.unwrap();
    let refused = Open::read(connection).await.rest().await;
    assert_eq!((refused.refusal().0, refused.refusal().1), (503, "TRANSIENT".into()));
    assert_eq!(refused.header("retry-after"), Some("5"));
    world.resume.add_permits(1);
    let finished = running.rest().await;
    assert!(finished.text().ends_with("data: [DONE]\n\n"));
    assert_eq!(finished.event("finish")["finishReason"], "stop");
    world.wait_until_stopped().await;
}
