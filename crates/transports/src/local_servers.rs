//! Model servers that listen on this machine, on their usual ports.
//!
//! They are looked for on the loopback address alone, briefly, and what they answer is read within limits: anything may
//! listen there.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use reqwest::{Client, redirect};
use serde_json::Value;

/// How long one server may take to answer.
const TIMEOUT: Duration = Duration::from_millis(1_500);
const MAX_BODY_BYTES: usize = 256 << 10;
const MAX_MODELS: usize = 20;
const MAX_NAME_CHARS: usize = 120;

/// A program that serves models, as it listens when nothing else is configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownServer {
    /// How it is called in `text.model`: `ollama/NAME`.
    pub id: &'static str,
    pub name: &'static str,
    pub port: u16,
    /// Who owns its models by its own words, where others use the port as well.
    owner: Option<&'static str>,
}

impl KnownServer {
    /// The usual ones. llama.cpp's own port is also ours, and the next one is where it is moved to.
    pub const ALL: [Self; 4] = [
        Self { id: "ollama", name: "Ollama", port: 11_434, owner: None },
        Self { id: "lmstudio", name: "LM Studio", port: 1_234, owner: None },
        Self { id: "llama.cpp", name: "llama.cpp", port: 8_080, owner: Some("llamacpp") },
        Self { id: "llama.cpp", name: "llama.cpp", port: 8_081, owner: Some("llamacpp") },
    ];

    /// The server of a model's name such as `ollama/qwen3`, and the model. `own_port` is where we listen ourselves.
    pub fn of_model(model: &str, own_port: u16) -> Option<(Self, &str)> {
        let (id, model) = model.split_once('/')?;
        let server = Self::ALL.into_iter().find(|server| server.id == id && server.port != own_port)?;
        (!model.is_empty()).then_some((server, model))
    }

    /// The same program at another port.
    pub fn at(self, port: u16) -> Self {
        Self { port, ..self }
    }

    /// Where it speaks OpenAI's protocol.
    pub fn base_url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }
}

/// A server that was found, with its models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundServer {
    pub server: KnownServer,
    pub models: Vec<String>,
}

/// Looks for the usual servers. `own_port` is where we listen ourselves.
pub async fn find_local_servers(own_port: u16) -> Vec<FoundServer> {
    find_servers(KnownServer::ALL.into_iter().filter(|server| server.port != own_port)).await
}

/// Looks for these servers, all at once.
pub async fn find_servers(candidates: impl IntoIterator<Item = KnownServer>) -> Vec<FoundServer> {
    let builder = Client::builder().no_proxy().redirect(redirect::Policy::none()).timeout(TIMEOUT);
    let Ok(client) = builder.connect_timeout(TIMEOUT / 2).build() else { return Vec::new() };
    let asked = candidates.into_iter().map(|server| ask(&client, server));
    futures_util::future::join_all(asked).await.into_iter().flatten().collect()
}

async fn ask(client: &Client, server: KnownServer) -> Option<FoundServer> {
    let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), server.port);
    let mut response = client.get(format!("http://{address}/v1/models")).send().await.ok()?;
    if !response.status().is_success() {
        return None;
    }
    let mut body = Vec::new();
    while let Some(bytes) = response.chunk().await.ok()? {
        if body.len() + bytes.len() > MAX_BODY_BYTES {
            return None;
        }
        body.extend_from_slice(&bytes);
    }
    Some(FoundServer { server, models: read_models(&body, server.owner)? })
}

/// The models of a list, if it is one, and of this owner.
pub fn read_models(body: &[u8], owner: Option<&str>) -> Option<Vec<String>> {
    let answer: Value = serde_json::from_slice(body).ok()?;
    let data = answer.get("data")?;
    let listed = match data {
        // Ollama has no list before the first model.
        Value::Null => &[][..],
        data => data.as_array()?,
    };
    let owned_by =
        |model: &Value| model.get("owned_by").and_then(Value::as_str).unwrap_or_default().to_owned();
    if listed.iter().any(|model| owned_by(model) == "quarterdeck")
        || owner.is_some_and(|owner| !listed.iter().any(|model| owned_by(model) == owner))
    {
        return None;
    }
    let names = listed.iter().filter_map(|model| model.get("id")?.as_str());
    let is_plain = |name: &&str| {
        !name.is_empty()
            && name.len() <= MAX_NAME_CHARS
            && !name.chars().any(|c| c.is_whitespace() || c.is_control())
    };
    Some(names.filter(is_plain).take(MAX_MODELS).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_names_its_server() {
        let named = |model, own_port| {
            KnownServer::of_model(model, own_port)
                .map(|(server, model)| (server.base_url(), model.to_owned()))
        };
        let at = |port: u16, model: &str| Some((format!("http://127.0.0.1:{port}/v1"), model.to_owned()));
        assert_eq!(named("ollama/qwen3:8b", 8_080), at(11_434, "qwen3:8b"));
        assert_eq!(named("lmstudio/google/gemma-3", 8_080), at(1_234, "google/gemma-3"));
        assert_eq!(named("llama.cpp/any", 8_080), at(8_081, "any"), "our own port is not theirs");
        assert_eq!(named("llama.cpp/any", 9_000), at(8_080, "any"));
        for other in ["gpt-5.4-mini", "meta-llama/llama-4", "ollama/", "ollama"] {
            assert_eq!(named(other, 8_080), None, "{other}");
        }
    }

    #[test]
    fn a_list_of_models_is_read_within_limits() {
        let ours = br#"{"object":"list","data":[{"id":"quarterdeck","owned_by":"quarterdeck"}]}"#;
        assert_eq!(read_models(ours, None), None, "another one of us is no model");
        let llama = br#"{"data":[{"id":"SmolLM2-135M-Instruct.Q4_1.gguf","owned_by":"llamacpp"}]}"#;
        let name = vec!["SmolLM2-135M-Instruct.Q4_1.gguf".to_owned()];
        assert_eq!(read_models(llama, Some("llamacpp")), Some(name));
        assert_eq!(read_models(br#"{"data":[{"id":"x","owned_by":"me"}]}"#, Some("llamacpp")), None);
        assert_eq!(read_models(br#"{"object":"list","data":null}"#, None), Some(Vec::new()));
        assert_eq!(read_models(br#"{"data":[{"id":"a b"},{"id":""},{"id":7}]}"#, None), Some(Vec::new()));
        let many: Vec<_> = (0..1_000).map(|n| format!(r#"{{"id":"m{n}"}}"#)).collect();
        let many = format!(r#"{{"data":[{}]}}"#, many.join(","));
        assert_eq!(read_models(many.as_bytes(), None).unwrap().len(), MAX_MODELS);
        for other in [&b"<html>"[..], b"[]", b"{}", b"{\"data\":{}}"] {
            assert_eq!(read_models(other, None), None);
        }
    }
}
