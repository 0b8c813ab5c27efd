//! Looking for model servers on this machine.

use std::time::{Duration, Instant};

use quarterdeck_transports::{KnownServer, find_servers};

use crate::server::{Act, Server, answer, head};

const LIST: &str = r#"{"object":"list","data":[{"id":"qwen3:8b","owned_by":"library"}]}"#;

#[tokio::test]
async fn a_server_is_found_with_its_models_beside_one_that_hangs_and_one_that_floods() {
    let [ollama, ..] = KnownServer::ALL;
    let there = Server::start(vec![Act::Send(answer("200 OK", "", LIST))]).await;
    let hanging = Server::start(vec![Act::SendAndHang(Vec::new())]).await;
    let flood = Act::Endlessly(head("200 OK", "").into_bytes(), vec![b' '; 64 << 10], Duration::ZERO);
    let flooding = Server::start(vec![flood]).await;
    let other = Server::start(vec![Act::Send(answer("404 Not Found", "", LIST))]).await;
    let ports = [&there, &hanging, &flooding, &other].map(Server::port);
    let began = Instant::now();
    let found = find_servers(ports.map(|port| ollama.at(port))).await;
    assert!(began.elapsed() < Duration::from_secs(20), "it took {:?}", began.elapsed());
    let [found] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((found.server.port, found.models.as_slice()), (there.port(), &["qwen3:8b".to_owned()][..]));
    assert!(there.requests()[0].starts_with("GET /v1/models HTTP/1.1\r\n"));
}
