//! Offers models of this machine while the built-in one answers: in the terminal, and on the page.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use quarterdeck_server::{App, LocalServer};
use quarterdeck_transports::{FoundServer, KnownServer, find_local_servers};

use crate::terminal::{info, plain};

/// How often it is looked again: someone who reads the hint starts a server then.
const INTERVAL: Duration = Duration::from_secs(30);

/// Looks for model servers without end, and offers those that are there.
pub(crate) async fn offer(app: Arc<App>, own: SocketAddr) {
    let mut told: Vec<KnownServer> = Vec::new();
    loop {
        let found = find_local_servers(own.port()).await;
        for found in &found {
            if !told.contains(&found.server) {
                told.push(found.server);
                info(&hint(found, own.port()));
            }
        }
        // Others need not know what runs beside a server that they can reach.
        if own.ip().is_loopback() {
            app.set_local_servers(found.iter().map(|found| local_server(found, own.port())).collect());
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

/// One paragraph for the terminal.
fn hint(found: &FoundServer, own_port: u16) -> String {
    let FoundServer { server, models } = found;
    let named = match models.len() {
        0 => "it has no model yet".to_owned(),
        1 => format!("with the model {}", plain(&models[0])),
        more => format!("with {} and {} more", plain(&models[0]), more - 1),
    };
    format!(
        "hint: {} runs on port {}, {named}. To use it, start again with\n      {}",
        server.name,
        server.port,
        plain(&variable(found, own_port))
    )
}

fn local_server(found: &FoundServer, own_port: u16) -> LocalServer {
    LocalServer {
        name: found.server.name.to_owned(),
        url: found.server.base_url(),
        models: found.models.clone(),
        variable: variable(found, own_port),
    }
}

/// The variable that chooses the first model of a server. Where two servers share a name, the other address is told.
fn variable(found: &FoundServer, own_port: u16) -> String {
    let FoundServer { server, models } = found;
    let model = models.first().map_or("NAME", String::as_str);
    let by_name = format!("{}/{model}", server.id);
    match KnownServer::of_model(&by_name, own_port) {
        Some((meant, _)) if meant == *server => format!("QUARTERDECK_TEXT__MODEL={by_name}"),
        _ => format!("OPENAI_BASE_URL={} QUARTERDECK_TEXT__MODEL={model}", server.base_url()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_offered_by_name_with_one_variable() {
        let [ollama, _, llama, moved] = KnownServer::ALL;
        let models = vec!["qwen3:8b".to_owned(), "gemma3".to_owned()];
        let found = FoundServer { server: ollama, models };
        assert_eq!(
            hint(&found, 8_080),
            "hint: Ollama runs on port 11434, with qwen3:8b and 1 more. To use it, start again with\n      \
             QUARTERDECK_TEXT__MODEL=ollama/qwen3:8b"
        );
        let of = |server| FoundServer { server, models: vec!["m".to_owned()] };
        assert_eq!(variable(&of(moved), 8_080), "QUARTERDECK_TEXT__MODEL=llama.cpp/m");
        assert_eq!(variable(&of(llama), 9_000), "QUARTERDECK_TEXT__MODEL=llama.cpp/m");
        assert_eq!(
            variable(&of(moved), 9_000),
            "OPENAI_BASE_URL=http://127.0.0.1:8081/v1 QUARTERDECK_TEXT__MODEL=m"
        );
        let empty = FoundServer { server: ollama, models: Vec::new() };
        assert!(hint(&empty, 8_080).contains("it has no model yet"));
    }
}
