//! Shutdown.

use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::http::Open;
use crate::world::World;

#[tokio::test]
async fn draining_answers_what_was_accepted_and_accepts_nothing_more() {
    let mut world = World::new().await;
    let mut running = world.post("/api/chat", &json!({ "message": "wait" })).open().await;
    running.until("You said").await;
    // A request whose head is still on its way when the server is asked to stop.
    let late = world.post("/api/chat", &json!({ "message": "hello" })).bytes();
    let mut connection = TcpStream::connect(world.address).await.unwrap();
    connection.write_all(&late[..20]).await.unwrap();
    // One that was accepted, and has sent nothing yet.
    let mut silent = TcpStream::connect(world.address).await.unwrap();
    // Another one, answered after them, shows that the server has what came before it.
    assert_eq!(world.get("/healthz").send().await.status, 200);
    world.stop();
    while TcpStream::connect(world.address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    connection.write_all(&late[20..]).await.unwrap();
    silent.write_all(&late).await.unwrap();
    for accepted in [connection, silent] {
        let answered = Open::read(accepted).await.rest().await;
        assert_eq!(answered.event("finish")["finishReason"], "stop");
        assert_eq!(answered.header("connection"), Some("close"), "nothing more is read from it");
    }
    world.resume.add_permits(1);
    let finished = running.rest().await;
    assert!(finished.text().ends_with("data: [DONE]\n\n"));
    assert_eq!(finished.event("finish")["finishReason"], "stop");
    world.wait_until_stopped().await;
}
