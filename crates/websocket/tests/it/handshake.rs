//! The handshake, between two ends of ours and with others.

use quarterdeck_websocket::{
    CloseCode, Limits, Message, UpgradeError, WebSocket, accept_key, receive_upgrade, upgrade,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

const LIMITS: Limits = Limits { max_message_bytes: 1_000 };
const UPGRADE_REQUEST: &str = "GET /live?key=a&model=b HTTP/1.1\r\nHost: here\r\nUpgrade: WebSocket\r\n\
                      Connection: keep-alive, Upgrade\r\nSec-WebSocket-Version: 13\r\n\
                      Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

#[test]
fn accept_key_matches_the_example_of_the_rfc() {
    // The example of RFC 6455.
    assert_eq!(accept_key("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

async fn next_text(socket: &mut WebSocket<DuplexStream>) -> String {
    loop {
        if let Some(message) = socket.next() {
            let Ok(Message::Text(text)) = message else { panic!("{message:?}") };
            return text.to_owned();
        }
        socket.fill().await.unwrap();
    }
}

#[tokio::test]
async fn our_client_and_our_server_complete_a_handshake_and_talk() {
    let (client, server) = duplex(64);
    let serving = async {
        let pending = receive_upgrade(server).await.unwrap();
        let request = pending.request.clone();
        let mut socket = pending.accept(LIMITS).await.unwrap();
        assert_eq!(next_text(&mut socket).await, "hello");
        socket.send_text("good day");
        socket.flush().await.unwrap();
        assert_eq!(next_text(&mut socket).await, "bye");
        socket.finish(CloseCode::NORMAL, "").await.unwrap();
        request
    };
    let calling = async {
        let headers = [("x-goog-api-key", "secret")];
        let mut socket = upgrade(client, "here", "/live?key=a&alt=b%20c", &headers, LIMITS).await.unwrap();
        socket.send_text("hello");
        socket.flush().await.unwrap();
        assert_eq!(next_text(&mut socket).await, "good day");
        socket.send_text("bye");
        socket.finish(CloseCode::NORMAL, "").await.unwrap();
    };
    let (request, ()) = tokio::join!(serving, calling);
    assert_eq!((request.path(), request.query("alt")), ("/live", Some("b%20c")));
    assert_eq!((request.query("key"), request.query("other")), (Some("a"), None));
    assert_eq!(request.header("x-goog-api-key"), Some("secret"));
    assert_eq!(request.header("host"), Some("here"));
}

#[tokio::test]
async fn frames_that_arrive_with_the_head_are_not_lost() {
    let (mut client, server) = duplex(1_000);
    let mut bytes = UPGRADE_REQUEST.as_bytes().to_vec();
    bytes.extend(crate::wire::frame(0x81, Some([1, 2, 3, 4]), b"early"));
    client.write_all(&bytes).await.unwrap();
    let mut socket = receive_upgrade(server).await.unwrap().accept(LIMITS).await.unwrap();
    assert_eq!(next_text(&mut socket).await, "early");
    let mut answer = vec![0; 200];
    let read = client.read(&mut answer).await.unwrap();
    let answer = String::from_utf8_lossy(&answer[..read]).into_owned();
    assert!(answer.starts_with("HTTP/1.1 101 ") && answer.ends_with("\r\n\r\n"), "{answer}");
    assert!(answer.contains("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"), "{answer}");
}

#[tokio::test]
async fn a_request_that_is_no_upgrade_is_answered_with_426() {
    let changed = [
        UPGRADE_REQUEST.replace("GET", "POST"),
        UPGRADE_REQUEST.replace("Upgrade: WebSocket\r\n", ""),
        UPGRADE_REQUEST.replace("WebSocket\r\n", "h2c\r\n"),
        UPGRADE_REQUEST.replace("keep-alive, Upgrade", "keep-alive"),
        UPGRADE_REQUEST.replace("Version: 13", "Version: 8"),
        UPGRADE_REQUEST.replace("Sec-WebSocket-Key", "X-Key"),
    ];
    for request in changed {
        let (mut client, server) = duplex(1_000);
        client.write_all(request.as_bytes()).await.unwrap();
        assert!(matches!(receive_upgrade(server).await, Err(UpgradeError::Malformed(_))), "{request}");
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 426 ") && answer.contains("Version: 13\r\n"), "{answer}");
    }
}

#[tokio::test]
async fn a_malformed_or_endless_head_is_refused() {
    let endless = "GET / HTTP/1.1\r\n".to_owned() + &"x: y\r\n".repeat(20_000);
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(100));
    for (bytes, why) in [
        (endless.as_str(), "the head is too long"),
        (&many, "the request cannot be read"),
        ("\0\0\0\r\n\r\n", "the request cannot be read"),
        ("GET / HT", "the connection ended in the handshake"),
    ] {
        let (mut client, server) = duplex(200_000);
        client.write_all(bytes.as_bytes()).await.unwrap();
        client.shutdown().await.unwrap();
        let Err(UpgradeError::Malformed(said)) = receive_upgrade(server).await else { panic!("{why}") };
        assert_eq!(said, why);
    }
}

#[tokio::test]
async fn a_refusal_reaches_the_client_with_status_and_reason() {
    let (client, server) = duplex(1_000);
    let refusing = async {
        receive_upgrade(server).await.unwrap().refuse("403 Forbidden", "no key").await.unwrap();
    };
    let (refused, ()) = tokio::join!(upgrade(client, "here", "/", &[], LIMITS), refusing);
    let Err(UpgradeError::Refused { status, reason }) = refused else { panic!("{refused:?}") };
    assert_eq!((status, reason.as_str()), (403, "no key"));
}

#[tokio::test]
async fn an_answer_to_another_key_is_not_believed() {
    let (client, mut server) = duplex(1_000);
    let answering = async {
        let mut asked = vec![0; 500];
        let _ = server.read(&mut asked).await.unwrap();
        let answer = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                      Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
        server.write_all(answer.as_bytes()).await.unwrap();
    };
    let (refused, ()) = tokio::join!(upgrade(client, "here", "/", &[], LIMITS), answering);
    assert!(matches!(refused, Err(UpgradeError::Malformed("the answer is not to our key"))));
}

#[tokio::test]
async fn nothing_can_be_smuggled_into_a_request() {
    for (host, target, header) in [
        ("here\r\nx: y", "/", ("a", "b")),
        ("here", "/ HTTP/1.1\r\nx: y\r\n", ("a", "b")),
        ("here", "/", ("a", "b\r\nx: y")),
        ("here", "/", ("a: b\r\nx", "y")),
    ] {
        let (client, mut server) = duplex(1_000);
        let refused = upgrade(client, host, target, &[header], LIMITS).await;
        assert!(matches!(refused, Err(UpgradeError::Malformed(_))));
        assert_eq!(server.read(&mut [0; 10]).await.unwrap(), 0, "nothing was sent");
    }
}
