//! Opens streams to providers.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use url::Url;

/// Bytes both ways.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// Resolves to an open stream.
pub type DialFuture = Pin<Box<dyn Future<Output = io::Result<Box<dyn Stream>>> + Send>>;

/// Opens streams to a provider. [`TcpDialer`] does it over the network; a test or a simulator hands in a pipe.
pub trait Dialer: Send + Sync {
    /// Opens a stream to the host of an address, encrypted if it begins with `https`. The caller has a time limit.
    fn dial(&self, url: &Url) -> DialFuture;
}

/// TCP, and TLS on it with the web's roots.
pub struct TcpDialer {
    tls: Result<Arc<ClientConfig>, String>,
}

impl Default for TcpDialer {
    fn default() -> Self {
        let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map(|builder| Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
            .map_err(|error| error.to_string());
        Self { tls }
    }
}

impl fmt::Debug for TcpDialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tcp").finish_non_exhaustive()
    }
}

impl Dialer for TcpDialer {
    fn dial(&self, url: &Url) -> DialFuture {
        let (url, tls) = (url.clone(), self.tls.clone());
        Box::pin(async move {
            let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
            let port = url.port_or_known_default().unwrap_or(443);
            let stream = TcpStream::connect((host.as_str(), port)).await?;
            // Audio is small pieces that must not wait for each other.
            stream.set_nodelay(true)?;
            if url.scheme() != "https" {
                return Ok(Box::new(stream) as Box<dyn Stream>);
            }
            let tls = TlsConnector::from(tls.map_err(io::Error::other)?);
            let name = ServerName::try_from(host).map_err(io::Error::other)?;
            Ok(Box::new(tls.connect(name, stream).await?) as Box<dyn Stream>)
        })
    }
}
