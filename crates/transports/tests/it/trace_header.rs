//! The span of a request, in the header by which a provider goes on with its trace.

use futures_util::StreamExt;
use quarterdeck_contracts::telemetry::TraceContext;
use quarterdeck_contracts::{ChatModel, ChatRequest};
use quarterdeck_transports::{Anthropic, AnthropicConfig, Gemini, GeminiConfig};

use crate::client::{KEY, limits, openai_with, question};
use crate::server::{Act, Server, answer};

const SPAN: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn models(server: &Server) -> [Box<dyn ChatModel>; 3] {
    let (base_url, limits) = (server.url(), limits());
    let anthropic =
        AnthropicConfig { base_url: base_url.clone(), limits: limits.clone(), ..AnthropicConfig::new(KEY) };
    let gemini = GeminiConfig { base_url, limits: limits.clone(), ..GeminiConfig::new(KEY) };
    [
        Box::new(openai_with(server, limits)),
        Box::new(Anthropic::new(anthropic).unwrap()),
        Box::new(Gemini::new(gemini).unwrap()),
    ]
}

/// The headers of that name in each request.
fn trace_headers(server: &Server) -> Vec<Vec<String>> {
    let of_request = |request: String| {
        let (head, _) = request.split_once("\r\n\r\n").unwrap();
        let values = head.lines().filter_map(|line| line.strip_prefix("traceparent: "));
        values.map(str::to_owned).collect()
    };
    server.requests().into_iter().map(of_request).collect()
}

#[tokio::test]
async fn span_of_a_request_is_a_header_of_every_attempt_and_without_one_there_is_none() {
    for place in 0..3 {
        for (span, sent) in [(Some(SPAN), vec![SPAN.to_owned()]), (None, vec![])] {
            // The first attempt is turned away, so that there is a second.
            let busy = Act::Send(answer("503 Service Unavailable", "", "{}"));
            let refused = Act::Send(answer("401 Unauthorized", "", "{}"));
            let server = Server::start(vec![busy, refused]).await;
            let model = &models(&server)[place];
            let span = span.and_then(TraceContext::parse);
            let events = model.ask(ChatRequest { span, ..question() }).collect::<Vec<_>>().await;
            assert!(events[0].is_err() && events.len() == 1, "{events:?}");
            assert_eq!(trace_headers(&server), [sent.clone(), sent], "{}", model.name());
        }
    }
}
