//! HTTP clients that dial only what may be dialled: public addresses, and what an operator has opened to the server.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use quarterdeck_outbound::{AddressRule, Addresses, CheckedNames, OpenedHosts, PrivateHost, literal_in};
use reqwest::redirect::Policy;
use reqwest::{Client, Response};
use url::Url;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A connection that the server has closed meanwhile would leave the outcome of the next write unknown.
const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(5);

/// A client for one URL. It follows no redirect: another place is another server, which an operator would have to name.
pub(crate) fn client(url: &Url, opened: &[PrivateHost]) -> Result<Client, String> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("its URL begins with `{}:`; use http or https", url.scheme()));
    }
    let port = url.port_or_known_default().unwrap_or(443);
    let opened = Arc::new(OpenedHosts::on_port(port, opened));
    let rule = Arc::new(AddressRule::new(Addresses::Public));
    // The look-up of names is not asked about an address that stands in the URL itself.
    if let Some(address) = literal_in(url)
        && !opened.has_address(address)
    {
        rule.check(address)
            .map_err(|refusal| format!("{refusal}; open it with `private_hosts` if it is meant"))?;
    }
    let builder = Client::builder()
        .redirect(Policy::none())
        // A proxy would dial for us, past the check of addresses.
        .no_proxy()
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(POOL_IDLE_TIMEOUT)
        .dns_resolver(Arc::new(CheckedNames { rule, opened }))
        .user_agent("quarterdeck");
    builder.build().map_err(|error| format!("the HTTP client cannot start: {error}"))
}

/// A whole body of at most so many bytes; `None` if it is larger.
pub(crate) async fn read_body(
    response: Response,
    max_bytes: usize,
) -> Result<Option<Vec<u8>>, reqwest::Error> {
    let mut body = Vec::new();
    let mut chunks = response.bytes_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk: Bytes = chunk?;
        if body.len() + chunk.len() > max_bytes {
            return Ok(None);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Some(body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_is_not_public_must_be_opened() {
        let client = |url: &str, opened: &[&str]| {
            let opened: Vec<PrivateHost> = opened.iter().map(|host| host.parse().unwrap()).collect();
            client(&Url::parse(url).unwrap(), &opened).map(|_| ())
        };
        assert!(client("https://mcp.example.com/mcp", &[]).is_ok());
        assert!(client("http://127.0.0.1:8080/mcp", &["127.0.0.1:8080"]).is_ok());
        for refused in
            ["http://127.0.0.1:8080/mcp", "http://[::1]/", "http://0x7f.1/", "http://169.254.169.254/"]
        {
            let error = client(refused, &["127.0.0.1:9090"]).unwrap_err();
            assert!(error.contains("private_hosts"), "{refused}: {error}");
        }
        assert!(client("ftp://mcp.example.com/", &[]).unwrap_err().contains("use http or https"));
    }
}
