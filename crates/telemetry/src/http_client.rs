//! Requests to the collector, with the HTTP client that is in the tree already.

use std::time::Duration;

use async_trait::async_trait;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use tokio::runtime::Handle;

/// A collector answers with a few bytes; a longer answer is no collector's.
const MAX_ANSWER_BYTES: usize = 64 << 10;

/// Sends on the server's own runtime, whichever thread asks: the thread that collects metrics has none, and a client that finds
/// none panics.
#[derive(Debug, Clone)]
pub(crate) struct CollectorClient {
    client: reqwest::Client,
    runtime: Handle,
}

impl CollectorClient {
    pub(crate) fn new(timeout: Duration, runtime: Handle) -> Result<Self, reqwest::Error> {
        let client = reqwest::Client::builder()
            // A redirect could carry the headers, and a key among them, to another host.
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(timeout)
            .timeout(timeout)
            .pool_max_idle_per_host(1)
            .user_agent(concat!("quarterdeck/", env!("CARGO_PKG_VERSION")))
            .build()?;
        Ok(Self { client, runtime })
    }
}

#[async_trait]
impl HttpClient for CollectorClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let client = self.client.clone();
        self.runtime.spawn(async move { send(client, request).await }).await?
    }
}

async fn send(client: reqwest::Client, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
    let mut response = client.execute(request.try_into()?).await?;
    let mut answer = Response::builder().status(response.status());
    if let Some(headers) = answer.headers_mut() {
        *headers = std::mem::take(response.headers_mut());
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > MAX_ANSWER_BYTES {
            return Err("the answer is too long for a collector".into());
        }
        body.extend_from_slice(&chunk);
    }
    Ok(answer.body(body.into())?)
}
