//! The voice agent as the peers' load generator wants it: a relay that needs no `start`.
//!
//! usage: `quarterdeck-benches relay PORT UPSTREAM_PORT`
//!
//! It is the product's own path from socket to socket, orchestrator, journal, limits and timers included; only the
//! message that a page begins with is put in front of what each client sends.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use quarterdeck_agents::text::User;
use quarterdeck_agents::voice::{self, VoiceAgent};
use quarterdeck_agents::{Prompts, Situation};
use quarterdeck_contracts::Store;
use quarterdeck_runtime::{Client, Orchestrator, Registry, RuntimeParts};
use quarterdeck_server::{App, Identity, Operations, ServerParts, Settings, answer_call};
use quarterdeck_store::MemoryStore;
use quarterdeck_transports::{GeminiLive, GeminiLiveConfig};
use quarterdeck_websocket::accept_key;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpListener, TcpStream};

use crate::mcp::text_agent;

const MAX_CALLS: usize = 4_000;

pub(crate) fn run(registry: Arc<Registry>, port: u16, upstream: u16, has_ear: bool) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(serve(app(registry, upstream, has_ear), port));
}

async fn serve(app: Arc<App>, port: u16) {
    let listener = TcpListener::bind(("127.0.0.1", port)).await.expect("the port is free");
    for number in 0_u64.. {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let app = app.clone();
        tokio::spawn(async move {
            // A probe of the port sends nothing.
            let _ = answer(app, stream, number).await;
        });
    }
}

async fn answer(app: Arc<App>, mut stream: TcpStream, number: u64) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read_buf(&mut head).await? == 0 {
            return Ok(());
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let key = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("sec-websocket-key").then(|| value.trim())
    });
    let accept = accept_key(key.unwrap_or_default());
    let reply = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {accept}\r\n\r\n"
    );
    stream.write_all(reply.as_bytes()).await?;
    let start: &[u8] = if head.contains("mode=json") {
        br#"{"type":"start","audio":"base64"}"#
    } else {
        br#"{"type":"start"}"#
    };
    // A short text frame, with a mask of zeros, which is a mask.
    let mut first = vec![0x81, 0x80 | start.len() as u8, 0, 0, 0, 0];
    first.extend_from_slice(start);
    let visitor =
        User { client: Client::anonymous(format!("caller-{number}")), situation: Situation::default() };
    answer_call(app, visitor, PrefixedStream { first, stream }, &[]).await;
    Ok(())
}

fn app(registry: Arc<Registry>, upstream: u16, has_ear: bool) -> Arc<App> {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let orchestrator = Orchestrator::new(RuntimeParts::new(store));
    let config = GeminiLiveConfig {
        base_url: format!("ws://127.0.0.1:{upstream}"),
        ..GeminiLiveConfig::new("no key is needed here")
    };
    let text = text_agent(&orchestrator, &registry);
    let voice = VoiceAgent::new(voice::Parts {
        orchestrator: orchestrator.clone(),
        registry: registry.clone(),
        model: Arc::new(GeminiLive::new(config).expect("the settings are in order")),
        prompts: Prompts::default(),
        settings: voice::Settings { calls: MAX_CALLS, ear: has_ear, ..voice::Settings::default() },
        engines: voice::SpeechEngines::default(),
    });
    let settings = Settings {
        voice_connections: MAX_CALLS,
        max_connections: MAX_CALLS,
        connections_per_address: MAX_CALLS,
        ..Settings::default()
    };
    let identity = Identity::new(b"nothing that is signed here is kept", None, Vec::new());
    let operations = Operations::default();
    App::new(ServerParts {
        text,
        voice: Some(voice),
        mcp: None,
        orchestrator,
        registry,
        identity,
        operations,
        settings,
        node_secret: None,
    })
}

/// A stream with bytes in front of what it receives.
struct PrefixedStream {
    first: Vec<u8>,
    stream: TcpStream,
}

impl AsyncRead for PrefixedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.first.is_empty() {
            return Pin::new(&mut self.stream).poll_read(context, buffer);
        }
        let count = buffer.remaining().min(self.first.len());
        buffer.put_slice(&self.first[..count]);
        self.first.drain(..count);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for PrefixedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
