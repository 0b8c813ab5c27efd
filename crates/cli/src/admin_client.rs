//! The operators' API of a running server, as its page uses it.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, bail};
use quarterdeck_transports::Secret;
use serde_json::Value;

use crate::arguments::operator::RunningServer;
use crate::config::LocalConfig;

/// Loading a version compiles its handlers, which takes a while for very many.
const TIMEOUT: Duration = Duration::from_secs(60);
const MAX_RESPONSE_BYTES: u64 = 1 << 20;

pub(crate) struct AdminClient {
    address: SocketAddr,
    admin_token: Option<Secret>,
    timeout: Duration,
}

pub(crate) struct AdminResponse {
    pub(crate) status: u16,
    body: Value,
}

impl AdminClient {
    /// For the server of the configuration, unless the command names another.
    pub(crate) fn new(config: &LocalConfig, named: &RunningServer) -> Self {
        let mut address = named.server.unwrap_or(config.server.listen);
        // A server on the unspecified address also listens on loopback.
        match address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
            IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
            _ => {}
        }
        Self { address, admin_token: config.server.admin_token.clone(), timeout: TIMEOUT }
    }

    /// For public endpoints: without the token, and not waiting longer than this for a connection or the next byte.
    pub(crate) fn anonymous(self, timeout: Duration) -> Self {
        Self { admin_token: None, timeout, ..self }
    }

    /// Waits less long, for what is asked again soon.
    pub(crate) fn within(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn request(&self, method: &str, path: &str) -> anyhow::Result<AdminResponse> {
        self.exchange(method, path, "")
    }

    pub(crate) fn send(&self, method: &str, path: &str, body: &Value) -> anyhow::Result<AdminResponse> {
        self.exchange(method, path, &body.to_string())
    }

    /// The status of an endpoint whose body need not be JSON.
    pub(crate) fn status(&self, path: &str) -> anyhow::Result<u16> {
        let response = self.receive("GET", path, "")?;
        let status = split(&response).map(|(status, _)| status);
        status.with_context(|| self.foreign_server_message())
    }

    fn exchange(&self, method: &str, path: &str, body: &str) -> anyhow::Result<AdminResponse> {
        parse(&self.receive(method, path, body)?).with_context(|| self.foreign_server_message())
    }

    fn foreign_server_message(&self) -> String {
        format!("{} is not a quarterdeck server", self.address)
    }

    fn receive(&self, method: &str, path: &str, body: &str) -> anyhow::Result<Vec<u8>> {
        let address = self.address;
        let unreachable = || {
            format!(
                "no server answers on {address}\n\
                 help: start it, or name another one with `--server ADDRESS:PORT`"
            )
        };
        let mut socket = TcpStream::connect_timeout(&address, self.timeout).with_context(unreachable)?;
        socket.set_read_timeout(Some(self.timeout))?;
        socket.set_write_timeout(Some(self.timeout))?;
        let token = self.admin_token.as_ref();
        let authorization =
            token.map(|token| format!("authorization: Bearer {}\r\n", token.expose())).unwrap_or_default();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {address}\r\naccept: application/json\r\n{authorization}\
             content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            body.len()
        );
        socket.write_all(head.as_bytes()).with_context(unreachable)?;
        socket.write_all(body.as_bytes()).with_context(unreachable)?;
        let mut response = Vec::new();
        socket.take(MAX_RESPONSE_BYTES).read_to_end(&mut response).with_context(unreachable)?;
        Ok(response)
    }
}

impl AdminResponse {
    /// The body of a 2xx response.
    pub(crate) fn success(self) -> anyhow::Result<Value> {
        match self.status {
            200..=299 => Ok(self.body),
            401 | 403 => bail!(
                "the server needs its admin token\n\
                 help: set QUARTERDECK_ADMIN_TOKEN, or name a file that holds it in `server.admin_token_file`"
            ),
            status => {
                let message = self.body["error"]["message"].as_str().unwrap_or("no reason given");
                bail!("the server refused with status {status}: {message}")
            }
        }
    }
}

/// Status and body.
fn split(response: &[u8]) -> anyhow::Result<(u16, &str)> {
    let text = std::str::from_utf8(response)?;
    let (head, body) = text.split_once("\r\n\r\n").context("the response has no head")?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.filter(|_| head.starts_with("HTTP/1.1 ")).context("the response has no status")?;
    Ok((status, body))
}

fn parse(response: &[u8]) -> anyhow::Result<AdminResponse> {
    let (status, body) = split(response)?;
    let body = if body.is_empty() { Value::Null } else { serde_json::from_str(body)? };
    Ok(AdminResponse { status, body })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_are_parsed_and_other_protocols_are_refused() {
        let found = parse(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{\"a\": 1}\n").unwrap();
        assert_eq!((found.status, found.success().unwrap()["a"].as_u64()), (200, Some(1)));
        let nothing = parse(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap();
        assert!(nothing.success().unwrap().is_null());
        let refused = parse(b"HTTP/1.1 500 X\r\n\r\n{\"error\":{\"message\":\"no\"}}").unwrap();
        assert_eq!(refused.success().unwrap_err().to_string(), "the server refused with status 500: no");
        for other in [
            &b""[..],
            b"SSH-2.0-OpenSSH",
            b"HTTP/1.1 200 OK",
            b"HTTP/1.1 x OK\r\n\r\n",
            b"HTTP/1.1 200 OK\r\n\r\n<p>",
        ] {
            assert!(parse(other).is_err());
        }
    }
}
